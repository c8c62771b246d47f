"""TALK, PRINT, HEAR, INPUT, ADD SUGGESTION and FORMAT … AS."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import structlog

from function_calls.basic.codes import RunCode
from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.basic.run.answer_parsers import ALIASES, KINDS, Answer, AnswerMismatch, chosen, read
from function_calls.basic.run.session import SUGGESTIONS, ChatWorld, EndOfRun, translated_error
from function_calls.basic.values import as_number, text_of
from function_calls.spec import Choice, Message
from services.chats.members import KnownMembers, SeveralMembers, UnknownMember, called
from services.clock import Clock
from services.refs import MemberRef
from services.times import Times

_LINE = "talk.line"
"""Key in `ScriptRun.stored_data`: the line that the next PRINT continues."""
_LOGGED_CHARS = 1000
MOST_LOGGED = 100
"""Limit on log lines per run."""
_LOGGED = "talk.logged"
_log = structlog.get_logger("scripts")


@basic_keyword("TALK {text}", "SAY {text}", "SEND MESSAGE {text}", effect="idempotent")
async def talk(run: ScriptRun, text: Value) -> None:
    """Send a message to the chat."""
    _say(run, text_of(text))


@basic_keyword("BEGIN TALK {text:block}", effect="idempotent")
async def talk_block(run: ScriptRun, text: Value) -> None:
    """Send several lines as one message."""
    _say(run, text_of(text))


@basic_keyword(
    "TALK TO {to}, {text}",
    "NOTIFY {to}, {text}",
    "NOTIFY [ATTENDANT] {to} ( WITH | , ) {text}",
    "NOTIFY AGENT {to} ( WITH | , ) {text}",
    "SEND TO SESSION {to}, {text}",
    "SEND SMS {to}, {text}",
    effect="idempotent",
    touches=["reaches_out"],
)
async def talk_to(run: ScriptRun, to: Value, text: Value, *, members: KnownMembers) -> None:
    """Send a message to one member of this chat, by name or id."""
    member = await member_called(run, text_of(to).strip(), members)
    said = text_of(text)
    if said.strip():
        run.say(Message(said, to=member))


@basic_keyword(
    "PRINT [{values...} [; {second...} [; {third...} [; {fourth...}]]] [{more:semicolon}]]", effect="idempotent"
)
async def print_line(
    run: ScriptRun,
    values: Value = None,
    second: Value = None,
    third: Value = None,
    fourth: Value = None,
    more: Value = None,
) -> None:
    """Print values in a line: separated by spaces at commas, by nothing at semicolons. After a semicolon at the end,
    the next PRINT continues the line."""
    before, text = run.stored_data.pop(_LINE, ""), "".join(map(_line, (values, second, third, fourth)))
    if not (before and run.append_to_last(before, text)):
        before = ""
        _say(run, text)
    if more is not None:
        run.stored_data[_LINE] = before + text


@basic_keyword("CREATE DRAFT {parts...}", effect="idempotent")
async def draft(run: ScriptRun, parts: Value) -> None:
    """Show the parts of a mail, such as recipient, subject and text, to the caller instead of sending it."""
    text = "\n\n".join(filter(str.strip, map(text_of, parts if isinstance(parts, list) else [parts])))
    if text:
        run.say(Message(text, to=run.context.sender.ref))


@basic_keyword(
    "LOG {values...}",
    "LOG ACTIVITY {values...}",
    "DEBUG {values...}",
    "RECORD METRIC {values} [WITH {more:assignments}]",
)
async def log_line(run: ScriptRun, values: Value, more: Value = None) -> None:
    """Write a line to the log of the daemon, for the author, up to 100 in a run. Members do not see it."""
    count = run.stored_data[_LOGGED] = int(run.stored_data.get(_LOGGED, 0)) + 1
    if count > MOST_LOGGED:
        if count == MOST_LOGGED + 1:
            _log.info("script_log_limited", tool=run.tool, bot=run.bot, line=run.at.line, most=MOST_LOGGED)
        return
    _log.info(
        "script_says",
        tool=run.tool,
        bot=run.bot,
        line=run.at.line,
        text=_line([values, more] if more else values)[:_LOGGED_CHARS],
    )


@basic_keyword("CANCEL [{text}]", effect="idempotent")
async def cancel(run: ScriptRun, text: Value = None) -> None:
    """End the run, optionally with a last message."""
    _say(run, text_of(text))
    raise EndOfRun


def _say(run: ScriptRun, text: str) -> None:
    if text.strip():
        run.say(Message(text))


def _line(values: Value) -> str:
    return " ".join(map(text_of, values)) if isinstance(values, list) else text_of(values)


async def member_called(run: ScriptRun, name: str, members: KnownMembers) -> MemberRef | None:
    """The member called `name` who has spoken in this chat; None for the whole chat. Raises RunError for another chat,
    and if nobody or several members have this name."""
    context = run.context
    if name.casefold() in ("", "here", "chat", "all", context.chat.key.casefold()):
        return None
    known = await members.of(context.chat)
    for ref in (context.sender.ref, *(one.ref for one in known)):
        if name == ref.key:
            return ref
    if name.count(":") >= 2:
        raise translated_error(run, RunCode.NOT_ALLOWED, "talk.other_chat", to=name)
    if name.removeprefix("@").casefold() == context.sender.name.casefold():
        return context.sender.ref
    try:
        return called(name, known, context.mentions, as_mention=name.startswith("@")).ref
    except SeveralMembers as several:
        raise translated_error(
            run, RunCode.NO_SUCH_THING, "talk.several", to=name, names=", ".join(several.names)
        ) from None
    except UnknownMember:
        raise translated_error(run, RunCode.NO_SUCH_THING, "talk.nobody", to=name) from None


MOST_RETRIES = 3
"""Limit on repeating a question after an answer that does not fit."""
_MOST_BUTTONS = 20
_MOST_CHOICES = 200
_LABEL_CHARS = 60
_ANY = "*"
"""As a choice of HEAR: any other text is accepted too."""
_NO_ANSWER = "-"
"""Answer that selects the DEFAULT of HEAR."""
_OF_FILES = frozenset({"file", "image", "audio", "video"}) | {
    word for word, kind in ALIASES.items() if kind in ("file", "image", "audio", "video")
}
_KINDS = "|".join(sorted(one.upper() for one in (*KINDS, *ALIASES)))
_WANTED = f"[AS ( {{kind={_KINDS}}} | {{choices...}} )]"


@basic_keyword(
    f"HEAR {{into:variable}} ( WITH {{prompt}} {_WANTED} | {_WANTED} [WITH {{prompt}}] ) [DEFAULT {{default}}]",
    f"HEAR {_WANTED} [WITH {{prompt}}] [DEFAULT {{default}}]",
    f"HEAR {{prompt:text}} [AS {{kind={_KINDS}}}]",  # no choices: in `HEAR "Name?" AS x` the x is a variable
    effect="idempotent",
)
async def hear(
    run: ScriptRun,
    kind: Value = "text",
    choices: Value = None,
    prompt: Value = None,
    default: Value = None,
    *,
    clock: Clock,
    times: Times,
) -> Value | Asks:
    """Wait for the member's answer: any text, a kind such as EMAIL, or one of several texts; with `*` as the last
    choice, or another text. An answer that does not match is asked for again, up to three times. The question can be
    asked before or in the statement: `HEAR name WITH "Your name?"`, `name = HEAR "Your name?"`. With DEFAULT there is a
    button for the default, which the answer `-` selects too."""
    if run.answer is None:
        offered = _buttons(run, text_of(kind), _texts(run, choices))
        if default is not None:
            offered = (*offered, Choice(text_of(default).strip()[:_LABEL_CHARS] or _NO_ANSWER, _NO_ANSWER))
        return Asks(text_of(prompt), offered, takes_files=choices is None and text_of(kind).casefold() in _OF_FILES)
    if default is not None and run.answer.strip() in (_NO_ANSWER, ""):
        return default
    return _parsed_answer(run, text_of(kind).casefold(), _texts(run, choices), clock, times)


@basic_keyword("INPUT {prompt} (, | ;) {into:variable}", "INPUT {into:variable}", effect="idempotent")
async def input_line(run: ScriptRun, prompt: Value = None) -> Value | Asks:
    """Ask and wait for the answer like HEAR; a numeric answer becomes a number."""
    if run.answer is None:
        return Asks(text_of(prompt))
    number = as_number(run.answer)
    return run.answer if number is None else number


def _parsed_answer(run: ScriptRun, kind: str, choices: Sequence[str], clock: Clock, times: Times) -> Value | Asks:
    """The parsed answer of the member, or the question again if it does not match. Raises RunError if it has been asked
    again too often."""
    texts, said = run.call.profile.texts, run.answer or ""
    kind = ALIASES.get(kind, kind)
    heard = Answer(said, run.context.attachments, clock.now().astimezone(run.call.profile.timezone), times, texts)
    takes_any = _ANY in choices
    choices = [one for one in choices if one != _ANY]
    try:
        return chosen(choices, said) if choices else read(kind, heard)
    except AnswerMismatch:
        if takes_any:
            return read("text", heard)
        if run.asked > MOST_RETRIES:
            raise translated_error(run, RunCode.BAD_VALUE, "hear.gave_up") from None
    key = "choice" if choices else kind
    why = texts.say(f"basic.hear.{key}", choices=", ".join(choices[:_MOST_BUTTONS]))
    return Asks(why, _buttons(run, kind, choices), takes_files=not choices and kind in _OF_FILES)


def _texts(run: ScriptRun, choices: Value) -> list[str]:
    """Choices from `AS "A", "B"` or from a single list, each once; empty if none are given. Raises RunError for empty
    texts only, or too many."""
    if choices is None:
        return []
    given = choices if isinstance(choices, list) else [choices]
    if len(given) == 1 and isinstance(given[0], list):
        given = given[0]
    found = [text for one in given if (text := text_of(one).strip())]
    if not found or len(found) > _MOST_CHOICES:
        raise translated_error(run, RunCode.BAD_VALUE, "hear.no_choices")
    return list(dict.fromkeys(found))


def _buttons(run: ScriptRun, kind: str, choices: Sequence[str]) -> tuple[Choice, ...]:
    """Buttons for the answer: one for each choice up to a maximum, Yes and No for the kind `boolean`, otherwise
    none."""
    if choices:
        shown = [one for one in choices if one != _ANY][:_MOST_BUTTONS]
        return tuple(Choice(one[:_LABEL_CHARS], one) for one in shown)
    if ALIASES.get(kind.casefold(), kind.casefold()) != "boolean":
        return ()
    texts = run.call.profile.texts
    return tuple(Choice(texts.say(f"questions.{one}_label"), texts.words(f"answers.{one}")[0]) for one in ("yes", "no"))


_MOST = 12
_MOST_CHARS = 200


@basic_keyword("ADD SUGGESTION {kind=TOOL|TEXT} {value:word} [AS {label}]", "ADD SUGGESTION {value} [AS {label}]")
async def add_suggestion(run: ScriptRun, value: Value, label: Value = None, kind: Value = "TEXT") -> Value:
    """Add a suggested reply under the last message of this run: a text, or the command of a tool."""
    words = text_of(value).strip()
    said = f"/{words.removesuffix('.bas')}" if kind == "TOOL" else words
    shown = text_of(label).strip() or words
    if not said or len(said) > _MOST_CHARS or len(shown) > _MOST_CHARS:
        raise translated_error(run, RunCode.BAD_VALUE, "suggestion.length", most=_MOST_CHARS)
    if kind == "TOOL" and not _is_command(run, said[1:].casefold()):
        _log.warning("suggested_tool_unknown", tool=run.tool, bot=run.bot, line=run.at.line, suggested=words)
        return None
    kept: list[Any] = run.stored_data.setdefault(SUGGESTIONS, [])
    if [said, shown] not in kept:
        if len(kept) >= _MOST:
            raise translated_error(run, RunCode.NOT_ALLOWED, "suggestion.too_many", most=_MOST)
        kept.append([said, shown])
    return None


@basic_keyword("CLEAR SUGGESTIONS")
async def clear_suggestions(run: ScriptRun) -> Value:
    """Remove the suggestions under the last message."""
    run.stored_data.pop(SUGGESTIONS, None)
    return None


def _is_command(run: ScriptRun, line: str) -> bool:
    """Whether the line is a command that this member can use here."""
    words = [word for spec in run.call.functions() for word in spec.command.words]
    return any(line == word or line.startswith(f"{word} ") for word in words)


_JSON = "JSON"


@basic_keyword("FORMAT {value} [AS {pattern:word}]")
async def format_as(run: ScriptRun, value: Value, pattern: Value = None, *, clock: Clock, chance: Random) -> Value:
    """A number, date or text formatted by a pattern: `FORMAT NOW() AS "yyyy-MM-dd"`, `FORMAT total AS "0.00"`; any
    value as JSON: `FORMAT order AS JSON`. Without a pattern, the text that TALK would send."""
    world = ChatWorld(clock, run.call, chance)
    if pattern is None:
        return FUNCTIONS["format"].run(world, [value])
    if text_of(pattern).strip().upper() == _JSON:
        return FUNCTIONS["tojson"].run(world, [value])
    return FUNCTIONS["format"].run(world, [value, pattern])
