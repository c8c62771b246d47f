"""How families of models write calls into their text when their server does not turn them into fields.

A notation says where calls begin, what one call looks like and what may stand between calls. From the first call on
everything has to be understood, or nothing of it is. No pattern may take long on any text: strangers write it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from services.lazy_patterns import lazy_pattern

_NAME = r"(?P<name>[\w.:-]{1,128})"
_OBJECT = r"\s*(?P<arguments>\{.*?\})\s*"


@dataclass(frozen=True, slots=True)
class Notation:
    """One way to write calls."""

    begins: re.Pattern[str]
    """Finds the first call."""
    call: re.Pattern[str]
    """One call. Groups: `json`, a call or a list of calls; or `python`, calls in a list; or `name` with `arguments`, an
    object, or with `tags`, parameters that `parameter` finds."""
    between: re.Pattern[str] = re.compile(r"\s*")
    """What may stand before, between and after calls."""
    parameter: re.Pattern[str] | None = None
    """One parameter: groups `key`, `value`, and perhaps `is_text`, which is `true` or `false`."""


def _notation(begins: str, call: str, between: str = r"\s*", parameter: str | None = None) -> Notation:
    return Notation(
        lazy_pattern(begins),
        lazy_pattern(call, re.DOTALL),
        lazy_pattern(between, re.DOTALL),
        lazy_pattern(rf"\s*{parameter}\s*", re.DOTALL) if parameter else None,
    )


def _json_between(opening: str, closing: str) -> Notation:
    """JSON after a marker; the closing one may be missing at the end of the text."""
    ends = rf"(?:{closing}|\Z)" if closing else r"(?=\s*(?:" + opening + r"|\Z))"
    return _notation(opening, rf"{opening}\s*(?P<json>[\[{{].*?[\]}}])\s*(?:;\s*)?{ends}")


_HERMES = _json_between("<tool_call>", "</tool_call>")
_TOOL_CALLS_TAG = _json_between("<tool_calls>", "</tool_calls>")
_FUNCTION_TAGS = _notation(
    r"(?:<(?:seed:)?tool_call>\s*)?<function=",
    rf"<function={_NAME}>(?P<tags>.*?)</function>",
    r"(?:\s|</?(?:seed:)?tool_call>)*",
    r"<parameter=(?P<key>[^>]{1,64})>\n?(?P<value>.*?)\n?</parameter>",
)
_FUNCTION_JSON = _notation("<function=", rf"<function={_NAME}>{_OBJECT}</function>")
_KEYS_AND_VALUES = _notation(
    "<tool_call>",
    rf"<tool_call>\s*{_NAME}\s*(?P<tags>(?:<arg_key>.*?)?)</tool_call>",
    parameter=r"<arg_key>(?P<key>[^<]{1,64})</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>",
)
_PYTHON_TAG = _json_between(r"<\|python_tag\|>", r"(?:<\|eom_id\|>|<\|eot_id\|>|(?=<\|python_tag\|>))")
_BARE_JSON = _notation(r"\A\s*[\[{]", r"(?P<json>[\[{].*[\]}])")
_PYTHONIC = _notation(
    r"<\|tool_call_start\|>|<\|python_start\|>|\A\s*\[[A-Za-z_][\w.]*\(",
    r"(?:<\|tool_call_start\|>|<\|python_start\|>)?\s*(?P<python>\[.*?\)\s*\])\s*"
    r"(?:<\|tool_call_end\|>|<\|python_end\|>|\Z)",
)
_TOOL_CODE = _notation("```tool_code", r"```tool_code\s(?P<python>.*?)```")
_TOOL_CALLS = _json_between(r"\[TOOL_CALLS\]", "")
_TOOL_CALLS_BY_NAME = _notation(
    r"\[TOOL_CALLS\]", rf"\[TOOL_CALLS\]\s*{_NAME}(?:\[ARGS\])?\s*(?P<arguments>\{{.*?\}})\s*(?=\[TOOL_CALLS\]|\Z)"
)
_DEEPSEEK = _notation(
    "<｜tool▁calls▁begin｜>",
    rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?{_NAME}(?:<｜tool▁sep｜>|\n```json\n){_OBJECT}(?:```\s*)?"
    "<｜tool▁call▁end｜>",
    "(?:\\s|<｜tool▁calls▁begin｜>|<｜tool▁calls▁end｜>)*",
)
_DSML = _notation(
    "<｜DSML｜(?:function_calls|tool_calls)>",
    rf'<｜DSML｜invoke name="{_NAME}">(?P<tags>.*?)</｜DSML｜invoke>',
    "(?:\\s|</?｜DSML｜(?:function_calls|tool_calls)>)*",
    '<｜DSML｜parameter name="(?P<key>[^"]{1,64})"(?: string="(?P<is_text>true|false)")?>'
    "(?P<value>.*?)</｜DSML｜parameter>",
)
_SECTION = _notation(
    r"<\|tool_calls_section_begin\|>",
    rf"<\|tool_call_begin\|>\s*{_NAME}\s*<\|tool_call_argument_begin\|>{_OBJECT}<\|tool_call_end\|>",
    r"(?:\s|<\|tool_calls_section_begin\|>|<\|tool_calls_section_end\|>)*",
)
_CHANNELS = _notation(
    r"(?:<\|start\|>assistant\s*)?<\|channel\|>",
    r"<\|channel\|>commentary to=(?P<name>functions\.[\w.-]{1,64})\s*(?:<\|constrain\|>\s*)?(?:json\s*)?"
    rf"<\|message\|>{_OBJECT}(?:<\|call\|>|\Z)",
    r"(?:\s|<\|start\|>assistant|<\|channel\|>analysis<\|message\|>.*?<\|end\|>)*",
)
_INVOKES = _notation(
    r"<minimax:tool_call>|<function_calls>",
    rf'<invoke name="{_NAME}">(?P<tags>.*?)</invoke>',
    r"(?:\s|</?minimax:tool_call>|</?function_calls>)*",
    r'<parameter name="(?P<key>[^"]{1,64})">\n?(?P<value>.*?)\n?</parameter>',
)

DIALECTS: Mapping[str, tuple[Notation, ...]] = MappingProxyType(
    {
        "hermes": (_HERMES,),
        "qwen": (_HERMES, _FUNCTION_TAGS),
        "glm": (_KEYS_AND_VALUES, _HERMES),
        "llama": (_PYTHON_TAG, _FUNCTION_JSON, _PYTHONIC, _BARE_JSON),
        "mistral": (_TOOL_CALLS, _TOOL_CALLS_BY_NAME),
        "deepseek": (_DEEPSEEK, _DSML),
        "kimi": (_SECTION,),
        "gpt-oss": (_CHANNELS,),
        "minimax": (_INVOKES, _TOOL_CALLS_TAG),
        "gemma": (_TOOL_CODE,),
        "granite": (_json_between(r"<\|tool_call\|>", ""), _HERMES),
        "nemotron": (_json_between("<TOOLCALL>", "</TOOLCALL>"), _HERMES),
        "jamba": (_TOOL_CALLS_TAG,),
        "hunyuan": (_TOOL_CALLS_TAG,),
        "longcat": (_json_between("<longcat_tool_call>", "</longcat_tool_call>"),),
        "internlm": (_json_between(r"<\|action_start\|>\s*<\|plugin\|>", r"<\|action_end\|>"),),
        "seed": (_FUNCTION_TAGS,),
        "phi": (_json_between(r"<\|tool_call\|>", r"<\|/tool_call\|>"), _json_between(r"functools(?=\[)", "")),
    }
)
"""By family: the notations that its models are trained to write."""
