"""Words that a program would read as code: no value of a variable may stand in them, however it is quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from function_calls.command_tools.words import Template

_SHELLS = "ash bash busybox csh dash fish ksh mksh pwsh sh tcsh yash zsh"
_BY_C = f"{_SHELLS} python pypy su"
_BY_E = "perl ruby node nodejs bun deno lua luajit groovy elixir julia Rscript raku osascript erl guile"
_SCRIPTED = "awk gawk mawk nawk original-awk sed bc"
_OPTIONS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(_BY_C.split(), re.compile(r"-[A-Za-z]*c|--command|-Command")),
    **dict.fromkeys(_BY_E.split(), re.compile(r"-[A-Za-z]*[eEp]|--eval|--print|eval|-eval")),
    "php": re.compile(r"-[rBRE]"),
    **dict.fromkeys(_SCRIPTED.split(), re.compile(r"-e|--expression|--source")),
}
"""For each program the options after which code stands."""
_FIRST_WORD = frozenset(_SCRIPTED.split())
_VERSION = re.compile(r"[-.\d]+$")


def code_with_variables(words: Sequence[Template]) -> int | None:
    """The place of a word with variables that a program of `words` would read as code; None where there is none. The
    program may stand behind another one that starts it."""
    texts = [_plain(word) for word in words]
    for place, text in enumerate(texts):
        name = _program(text)
        if name not in _OPTIONS:
            continue
        found = _after_an_option(words, texts, place, _OPTIONS[name])
        if found is None and name in _FIRST_WORD:
            found = _script_of(words, texts, place)
        if found is not None:
            return found
    return None


def _after_an_option(
    words: Sequence[Template], texts: Sequence[str | None], program: int, option: re.Pattern[str]
) -> int | None:
    for place in range(program + 1, len(words) - 1):
        text = texts[place]
        if text is not None and option.fullmatch(text) and words[place + 1].variables:
            return place + 1
    return None


def _script_of(words: Sequence[Template], texts: Sequence[str | None], program: int) -> int | None:
    """The first word that is no option, where it has variables."""
    for place in range(program + 1, len(words)):
        text = texts[place]
        if text is not None and text.startswith("-"):
            if text in ("-e", "-f", "--expression", "--file"):
                return None  # the code stands there, not in the first word
            continue
        return place if words[place].variables else None
    return None


def _plain(word: Template) -> str | None:
    """The word where it has no variables."""
    return None if word.variables else "".join(part for part in word.parts if isinstance(part, str))


def _program(text: str | None) -> str:
    return "" if text is None else _VERSION.sub("", PurePosixPath(text).name)
