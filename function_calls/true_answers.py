"""True answers: what a model says it did is compared with what functions did in this turn, before anybody reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import structlog

from function_calls.claims import Act, Claim, corrected, unfounded
from function_calls.registry import BotFunctions
from function_calls.spec import FunctionResult, Message
from function_calls.turn import Turn
from services.json_values import JsonObject
from services.llm.model import ModelMessage

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
    acts = [*acts, *nested_acts(turn)]
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


def acts_to_json(acts: Sequence[Act]) -> list[JsonObject]:
    """`acts` as plain data, for the time of a question."""
    return [{"function": act.spec.name, "arguments": dict(act.arguments), "said": _said_by(act)} for act in acts]


def acts_from_json(data: Sequence[JsonObject], functions: BotFunctions) -> list[Act]:
    """The acts that `acts_to_json` wrote, less those of functions that are not there any more."""
    acts: list[Act] = []
    for one in data:
        spec = functions.find(one["function"])
        if spec is not None:
            messages = tuple(map(Message, one["said"]))
            acts.append(Act(spec, one["arguments"], FunctionResult(messages=messages)))
    return acts


def _said_by(act: Act) -> list[str]:
    return [message.text for message in act.result.messages] if act.result else []


def nested_acts(turn: Turn) -> list[Act]:
    """Effects of functions that functions called."""
    found: list[Act] = []
    for run in turn.nested.values():
        spec = turn.functions.find(run.function)
        if spec is not None and run.result is not None and run.result.ok:
            found.append(Act(spec, {}, run.result))
    return found
