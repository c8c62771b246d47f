"""Removal of markup in a model's text that is not for people: reasoning, special tokens and leaked calls.

Servers with support for a model return these as fields; others leave them in `content`. Leaked calls are not run, since
any text that the model repeats could contain them, unless the model's profile names their notation (`dialects`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import orjson

from services.llm.model import ToolCall
from services.patterns import lazy_pattern
from services.refs import JsonValue
from services.text_index import listed

_REASONING = (
    *((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "reasoning", "seed:think")),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
_TURN_ENDS = listed("""
<|im_end|> <|eot_id|> <|eom_id|> <|eot|> <|end|> <|return|> <|user|> <|endoftext|> <|end_of_text|> <|begin_of_text|>
<｜end▁of▁sentence｜> <｜begin▁of▁sentence｜> <end_of_turn> <turn|> <eos> <bos> </s>
""")
_MOST_IN_A_ROW = 8
_MARKUP = lazy_pattern(
    r"""
      <\|[^\s|<>]{1,64}\|>                      # <|python_tag|>
    | <\|[\w/]{1,64}> | <[a-z_]{1,64}\|>        # <|tool_call> … <tool_call|>
    | <\|\w{0,64}\|?\Z                          # the beginning of one, at the end
    | </?[|｜]{0,2}\s?DSML | </?｜              # <｜tool▁calls▁begin｜>
    | </?(?:[\w-]{1,32}[:_])?(?:tool_?calls?|tool_use|tool_response|tool_code|function_calls?)(?=[\s>/]|\Z)
    | <(?:tool|function)\w{0,32}\Z
    | <function= | </function> | <parameter= | <invoke\s+name= | </invoke> | </?arg_(?:key|value)>
    | <(?:start|end)_of_turn> | <unused\d{1,4}>
    | \[/?(?:END_)?TOOL_(?:CALLS?|REQUEST|RESULTS?)(?:\]|\Z) | \[/?(?:AVAILABLE_TOOLS|INST)\]
    | ```tool_(?:code|calls?)\b | \bfunctools\[ | (?:\bcommentary\s)?\bto=functions\.\w | \bcommentary\s+to=\w
    | </?tools>(?=\s*[\[{]) | ✿(?:FUNCTION|ARGS|RESULT|RETURN)✿
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SIGN = lazy_pattern(r"[<\[{◁✿‹]|```tool|to=functions")
_CALL_RECORD = lazy_pattern(
    r"\s*(?:‹\s*/?call_record\b[^›]*(?:›|\Z)(?:[^‹]*‹\s*/call_record\s*›)?"
    r"|<\s*/?call_record\b[^>]*(?:>|\Z)(?:[^<]*<\s*/call_record\s*>)?)",
    re.IGNORECASE,
)
"""A note on an earlier call that the model imitates; it is no call."""
_CALL_NAME = lazy_pattern(
    r'"(?:name|function|function_name|tool|tool_name|recipient_name|action)"\s*:\s*"(?P<name>[\w.:/-]{1,128})"'
)
_CALL_ARGUMENTS = lazy_pattern(r'"(?:arguments|parameters|args|params|input|tool_input|action_input)"\s*:\s*["{\[]')
_PYTHONIC = lazy_pattern(r"\[[A-Za-z_][\w.]{0,63}\((?:[A-Za-z_]\w{0,63}\s*=.*)?\)\]", re.DOTALL)
_FENCED = lazy_pattern(r"```(?:json)?\s*\n(?P<code>[^`]*?)\s*```", re.IGNORECASE)
_CALL_KEYS = frozenset({"id", "type", "name", "arguments", "parameters"})


class Visible(NamedTuple):
    """Visible part of a model's text, whether a call or special token leaked into it, and the calls parsed from it."""

    text: str
    leaked: bool
    calls: tuple[ToolCall, ...] = ()


ReadText = Callable[[str, str], Visible]
"""Parses the text of an answer; the second argument is the seed for call ids."""


def visible_text(content: str, seed: str = "") -> Visible:
    """`content` without reasoning, cut at the first leaked token or call (`leaked`); empty if it is only a call. Parses
    no calls."""
    if not has_signs(content):
        return Visible(content, leaked=False)
    text = without_markup(content)
    found = _MARKUP.search(text)
    if found:
        return Visible(text[: found.start()].rstrip(), leaked=True)
    if _is_nothing_but_calls(text.strip()):
        return Visible("", leaked=True)
    return Visible(text, leaked="call_record" in content.lower() and not text.strip())


def names_in_calls(text: str) -> list[str]:
    """Names that JSON in `text` calls with arguments, also if the JSON is broken; empty if there are no calls. They may
    be names of anything: the caller knows the functions."""
    if '"' not in text or not _CALL_ARGUMENTS.search(text):
        return []
    return [found["name"] for found in _CALL_NAME.finditer(text)]


def has_signs(content: str) -> bool:
    """Whether `content` may contain markup: a quick check that also matches harmless brackets."""
    return _SIGN.search(content) is not None


def without_markup(content: str) -> str:
    """`content` without reasoning, end-of-turn tokens and records of calls."""
    text = _without_turn_ends(_without_reasoning(content))
    return _CALL_RECORD.sub("", text).strip() if "call_record" in text.lower() else text


def _without_reasoning(content: str) -> str:
    text = content
    for _ in range(_MOST_IN_A_ROW):
        head = text.lstrip()
        closing = next((closing for opening, closing in _REASONING if head.startswith(opening)), None)
        if closing is None:
            break
        text = head.partition(closing)[2].lstrip()
    # The chat template may contain the opening tag, so that the answer has only the closing one.
    _, closed, after = text.rpartition("</think>")
    if closed:
        text = after.lstrip()
    return text.partition("<think>")[0]


def _without_turn_ends(content: str) -> str:
    text = content
    for _ in range(_MOST_IN_A_ROW):
        shorter = text.strip()
        for token in _TURN_ENDS:
            shorter = shorter.removesuffix(token).removeprefix(token)
        if shorter == text.strip():
            return text
        text = shorter.strip()
    return text


def _is_nothing_but_calls(text: str) -> bool:
    """Whether the whole text is a call, as JSON or in Python notation, fenced or not. JSON within a sentence is a
    quotation."""
    fenced = _FENCED.fullmatch(text)
    text = fenced["code"] if fenced else text
    if text.startswith("[") and _PYTHONIC.fullmatch(text):
        return True
    if not text.startswith(("{", "[")):
        return False
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    entries = value if isinstance(value, list) else [value]
    return bool(entries) and all(is_call(entry) for entry in entries)


def is_call(value: JsonValue) -> bool:
    """Whether `value` is a call, or a message's list of calls, without other keys."""
    if not isinstance(value, dict):
        return False
    if value.keys() == {"tool_calls"} or value.keys() == {"function_call"}:
        return True
    function = value.get("function")
    if isinstance(function, dict):
        value = function
    arguments = value.get("arguments", value.get("parameters"))
    return isinstance(value.get("name"), str) and isinstance(arguments, dict | str) and value.keys() <= _CALL_KEYS
