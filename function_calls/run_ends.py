"""Ends: a run that has asked something, and may not go on, is run once more, but only to come to its end. Neither
rights nor switches are in its way then, so it may not act: it calls no other function, and nobody is shown what it
says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from function_calls.call import Resumed, ResumedKind
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult, Message, Question
from function_calls.turn import Turn
from function_calls.turn_log import Path
from services.json_values import JsonObject
from services.refs import ErrorCode


class Ended(NamedTuple):
    """Which run comes to its end, and how."""

    function: str
    arguments: Mapping[str, Any]
    path: Path
    resumed: Resumed
    key: str = ""
    """Of the run that ends it. Empty: the next one of the turn."""

    @classmethod
    def of(cls, question: Question, path: Path, kind: ResumedKind, key: str = "") -> Ended:
        """What asked `question`, or was held up with it when it was to go on, on the way `path`."""
        before = question.goes_on or Resumed(question.resume or {}, "", number=question.number)
        way = Path.NESTED if question.nested else path
        return cls(question.function, question.arguments, way, replace(before, answer="", kind=kind), key)


class Invokes(Protocol):
    """Who runs functions: the Invoker."""

    async def invoke(
        self, context: MessageContext, name: str, raw: JsonObject, turn: Turn, path: Path, *, key: str = ""
    ) -> FunctionResult:
        """The result of running the function `name`."""


async def end(invoker: Invokes, context: MessageContext, turn: Turn, ended: Ended) -> list[Message]:
    """Let the run come to its end. What the chat has to hear: nothing, but that nobody knows what became of an
    effect."""
    key = ended.key or turn.next_key()
    turn.resume(key, ended.resumed)
    turn.ending |= {key}
    return unknown_end(await invoker.invoke(context, ended.function, dict(ended.arguments), turn, ended.path, key=key))


def only_ends(key: str, turn: Turn) -> bool:
    """Whether the run of `key`, which is not allowed, takes place all the same, only to come to its end."""
    resumed = turn.resuming.get(key)
    if resumed is None or resumed.kind == "answered":
        return False
    turn.ending |= {key}
    return True


def end_key(key: str) -> str:
    """Under which the run of `key` is ended in the same turn, on every attempt."""
    return f"{key}.end"


def held_up(result: FunctionResult, resumed: Resumed | None) -> FunctionResult:
    """`result`, which came instead of a run that was to go on from `resumed`: where it asks for a yes, the run goes on
    from there with it."""
    if result.question is None or resumed is None:
        return result
    return replace(result, question=replace(result.question, goes_on=resumed))


def unknown_end(result: FunctionResult) -> list[Message]:
    """What the chat hears of the end of a run that nobody waits for."""
    if result.error is not None and result.error.code is ErrorCode.UNKNOWN_OUTCOME:
        return list(result.for_chat())
    return []


def with_unknown(result: FunctionResult, told: list[Message]) -> FunctionResult:
    """`result` of a run, and what the chat has to hear of another one that came to its end meanwhile."""
    return replace(result, messages=(*result.for_chat(), *told)) if told else result
