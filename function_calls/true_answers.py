"""True answers: what a model says it did is compared with what functions did in this turn, before anybody reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import structlog

from function_calls.claims import Act, Claim, corrected, unfounded
from function_calls.registry import BotFunctions
from function_calls.turn import Turn
from services.llm.model import ModelMessage
from services.refs import Effect

_ABOUT_THE_PAST = re.compile(
    r"\b(?:have(?:n['’]?t)?\s+you|(?:did(?:n['’]?t)?|has(?:n['’]?t)?|was|were)\s+(?:you|it|that|the|my|our|any\w*))\b"
    r"|了吗|了没|有没有|是不是已经|是否已",
    re.IGNORECASE,
)
_NOTHING_BEFORE = 2
"""The messages of a conversation with nothing before the question: the instructions, and the question itself."""
_log = structlog.get_logger("claims")


def false_claims(
    text: str, turn: Turn, acts: Sequence[Act], *, has_read: bool = False, told_before: str = ""
) -> list[Claim]:
    """The sentences of `text` that claim what no run of this turn did."""
    if not text:
        return []
    acts = [*acts, *_nested(turn)]
    return unfounded(text, turn.functions.specs, acts, has_read=has_read, told_before=told_before)


def told_before(asked: str, conversation: Sequence[ModelMessage]) -> str:
    """What the bot said earlier, when `asked` is a question about the past: "did you add milk?" may be answered by what
    another turn did."""
    if len(conversation) <= _NOTHING_BEFORE or not _ABOUT_THE_PAST.search(asked):
        return ""
    return "\n".join(message.content for message in conversation if message.role == "assistant" and not message.calls)


def true_words(text: str, turn: Turn, claims: Sequence[Claim], acts: Sequence[Act]) -> str:
    """`text` with a true sentence in place of `claims`; `acts`: what was done beside them."""
    if not claims:
        return text
    _log.warning("claim_corrected", turn=turn.id, claims=len(claims), effects=turn.effects)
    key = "claims.unconfirmed" if turn.effects or acts else "claims.nothing_done"
    return corrected(text, claims, turn.profile().texts.say(key))


def acts_told(transcript: Sequence[ModelMessage], functions: BotFunctions) -> list[Act]:
    """The effects that a conversation tells of, from before a question interrupted it."""
    results = {message.call_id: message.content for message in transcript if message.role == "tool"}
    acts: list[Act] = []
    for message in transcript:
        for call in message.calls:
            spec = functions.find(call.name)
            if spec is not None and spec.effect is not Effect.READ and not _is_error(results.get(call.id, "")):
                acts.append(Act(spec, call.arguments or {}))
    return acts


def _nested(turn: Turn) -> list[Act]:
    """Effects of functions that functions called."""
    found: list[Act] = []
    for run in turn.nested.values():
        spec = turn.functions.find(run.function)
        if spec is not None and run.result is not None and run.result.ok:
            found.append(Act(spec, {}, run.result))
    return found


def _is_error(content: str) -> bool:
    try:
        told: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        return not content
    return isinstance(told, Mapping) and "error" in told
