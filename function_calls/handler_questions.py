"""Questions that a handler asks during its run, and runs that end without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import orjson
import structlog

from config.texts import Phrases
from function_calls.call import CallRequest, Path
from function_calls.context import MessageContext
from function_calls.failures import LASTS, REFUSED_BY
from function_calls.questions.questions import asking_messages
from function_calls.result import plain
from function_calls.schema.commands import spoken_name
from function_calls.spec import FunctionResult, FunctionSpec, Message, Question, Resumed, ResumedKind
from function_calls.turn import Run, Turn
from services.refs import ErrorCode, JsonObject

MOST_QUESTIONS = 50
"""Of one run, each of them answered: a handler that asks on and on is broken."""
MOST_STATE_BYTES = 512_000
_UNANSWERED = frozenset({Path.TIMER, Path.API, Path.MCP, Path.CLI})
_log = structlog.get_logger("questions")


def with_its_run(
    run: Run, result: FunctionResult, resumed: Resumed | None, allowed: str, texts: Phrases
) -> FunctionResult:
    """`result` of `run`, whose own question knows where its answer leads; a failure where it may ask no more.
    `resumed`: what the run went on from. `allowed`: the digest of the yes that it was given."""
    question = result.question
    if question is None or question.kind != "input" or question.nested:
        return result
    spec = run.spec
    if resumed is not None and resumed.kind != "answered":
        _log.warning("asked_after_the_end", function=spec.name, kind=resumed.kind)
        return replace(result, question=None)
    before = resumed.number if resumed is not None else 0
    state = question.resume or {}
    too_much = "too_many_questions" if before >= MOST_QUESTIONS else ""
    if not too_much and is_too_much(state):
        too_much = "too_much_state"
    if too_much:
        _log.error(too_much, function=spec.name, source=spec.origin.source, questions=before)
        text = texts.say("questions.cannot_go_on", name=spoken_name(spec, texts.language))
        return replace(FunctionResult.fail(ErrorCode.FAILED, text), messages=result.messages)
    asked = replace(
        question,
        function=spec.name,
        arguments=plain(spec.arguments.dump(run.arguments)),
        resume=state,
        number=before + 1,
        key=run.key,
        allowed=allowed,
        said=tuple(message.text for message in asking_messages(result, texts) if message.to is None),
    )
    return replace(result, question=asked)


def is_too_much(state: JsonObject) -> bool:
    """Whether a run that waits for a person leaves more than is kept for it."""
    return len(orjson.dumps(state, default=str)) > MOST_STATE_BYTES


def has_asked(result: FunctionResult, path: Path, depth: int, *, can_ask: bool) -> Question | None:
    """What `result` of a run that began on `path` asks, where nobody is there to answer it; else None."""
    question = result.question
    if question is None or question.kind != "input" or depth or path not in _UNANSWERED or can_ask:
        return None
    return question


def nobody_answers(question: Question, spec: FunctionSpec, result: FunctionResult, texts: Phrases) -> FunctionResult:
    """The end of a run that asked where nobody can answer."""
    words = [message.text for message in result.messages] if not question.text.strip() else [question.text]
    name = spoken_name(spec, texts.language)
    failed = FunctionResult.fail(
        ErrorCode.REFUSED, texts.say("questions.nobody_answers", name=name, question=" ".join(words).strip())
    )
    return replace(failed, metadata={REFUSED_BY: "questions", LASTS: True})


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

    async def invoke(self, request: CallRequest) -> FunctionResult:
        """The result of the requested run."""


async def end(invoker: Invokes, context: MessageContext, turn: Turn, ended: Ended) -> list[Message]:
    """Let the run come to its end. What the chat has to hear: nothing, but that nobody knows what became of an
    effect."""
    key = ended.key or turn.next_key()
    turn.memory.resume(key, ended.resumed)
    turn.memory.ending |= {key}
    request = CallRequest(context, ended.function, dict(ended.arguments), turn, ended.path, key=key)
    return unknown_end(await invoker.invoke(request))


def only_ends(key: str, turn: Turn) -> bool:
    """Whether the run of `key`, which is not allowed, takes place all the same, only to come to its end."""
    resumed = turn.memory.resuming.get(key)
    if resumed is None or resumed.kind == "answered":
        return False
    turn.memory.ending |= {key}
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
