"""ADD SUGGESTION: what members may answer with one tap."""

from __future__ import annotations

from typing import Any

import structlog

from function_calls.basic.codes import RunCode
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.scripts.faults import worded
from function_calls.scripts.said import SUGGESTIONS

_MOST = 12
_MOST_CHARS = 200
_log = structlog.get_logger("scripts")


@basic_keyword("ADD SUGGESTION {kind=TOOL|TEXT} {value:word} [AS {label}]", "ADD SUGGESTION {value} [AS {label}]")
async def add_suggestion(run: ScriptRun, value: Value, label: Value = None, kind: Value = "TEXT") -> Value:
    """Put something to say under the last message of this run: a text, or the command of a tool."""
    words = text_of(value).strip()
    said = f"/{words.removesuffix('.bas')}" if kind == "TOOL" else words
    shown = text_of(label).strip() or words
    if not said or len(said) > _MOST_CHARS or len(shown) > _MOST_CHARS:
        raise worded(run, RunCode.BAD_VALUE, "suggestion.length", most=_MOST_CHARS)
    if kind == "TOOL" and not _is_command(run, said[1:].casefold()):
        _log.warning("suggested_tool_unknown", tool=run.tool, bot=run.bot, line=run.at.line, suggested=words)
        return None
    kept: list[Any] = run.kept.setdefault(SUGGESTIONS, [])
    if [said, shown] not in kept:
        if len(kept) >= _MOST:
            raise worded(run, RunCode.NOT_ALLOWED, "suggestion.too_many", most=_MOST)
        kept.append([said, shown])
    return None


@basic_keyword("CLEAR SUGGESTIONS")
async def clear_suggestions(run: ScriptRun) -> Value:
    """Put nothing under the last message."""
    run.kept.pop(SUGGESTIONS, None)
    return None


def _is_command(run: ScriptRun, line: str) -> bool:
    """Whether a line that is typed leads somewhere for who is here."""
    words = [word for spec in run.call.functions() for word in spec.commands]
    return any(line == word or line.startswith(f"{word} ") for word in words)
