"""Filters of tool modules that act before or after a run, bound to the functions that name them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal, cast, get_args

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import error_text
from function_calls.filters.call import CallFilter, Invocation, Proceed, chain
from function_calls.filters.round import Ask, Round, RoundFilter
from function_calls.result import normalised
from function_calls.schema.definition import DefinitionError
from function_calls.spec import FunctionResult, FunctionSpec
from services.llm.model import ModelAnswer, ModelError
from services.refs import ErrorCode

Kind = Literal["pre_invocation", "post_invocation", "pre_chat", "post_chat"]
Handle = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One declared filter."""

    name: str
    kind: Kind
    handle: Handle
    priority: float


@dataclass(frozen=True, slots=True)
class _Ended:
    """A step ended the chain: with a result, or with the reason of an error."""

    value: Any = None
    reason: str | None = None


def steps_of(module: ModuleType) -> list[Step]:
    """The filters that `module.filters()` declares, by priority. Raises DefinitionError with all problems."""
    declare = getattr(module, "filters", None)
    if not callable(declare):
        raise DefinitionError(f"module {module.__name__}", ["it has no function filters()"])
    problems: list[str] = []
    steps: list[Step] = []
    try:
        every = list(declare())
    except (Exception, SystemExit) as error:
        raise DefinitionError(f"module {module.__name__}", [f"filters() fails: {error_text(error)}"]) from error
    for place, declared in enumerate(every):
        name = str(declared.get("name") or f"number {place}")
        wrong = _problems(declared)
        if wrong:
            problems += [f"filter {name}: {one}" for one in wrong]
        else:
            kind = cast(Kind, declared["type"])
            steps.append(Step(name, kind, declared["handler"], float(declared.get("priority", 0))))
    if problems:
        raise DefinitionError(f"module {module.__name__}", problems)
    return sorted(steps, key=lambda step: step.priority)


def call_filter(steps: Sequence[Step]) -> CallFilter:
    """One call filter of the steps before and after a run. Arguments that steps change are validated again."""
    before = [step for step in steps if step.kind == "pre_invocation"]
    after = [step for step in steps if step.kind == "post_invocation"]

    async def around(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        spec = invocation.spec
        raw = spec.arguments.dump(invocation.arguments)
        facts: dict[str, Any] = {"name": spec.name, "args": dict(raw), "metadata": dict(spec.origin.metadata)}
        ended = await _walk(before, facts)
        if ended is not None:
            return _result(ended)
        if facts["args"] != raw:
            invocation.arguments = spec.arguments.parse(facts["args"])
        result = await proceed(invocation)
        if not result.ok or not after:
            return result
        for_model = result.for_model()
        facts["result"] = for_model.get("result", for_model.get("text"))
        shown = facts["result"]
        ended = await _walk(after, facts)
        if ended is not None:
            return _result(ended)
        return result if facts["result"] == shown else replace(normalised(facts["result"]), handled=result.handled)

    return around


def round_filter(steps: Sequence[Step]) -> RoundFilter:
    """One round filter of the steps before and after a model request."""
    before = [step for step in steps if step.kind == "pre_chat"]
    after = [step for step in steps if step.kind == "post_chat"]

    async def around(round_: Round, ask: Ask) -> ModelAnswer:
        facts: dict[str, Any] = {"round": round_.number, "messages": list(round_.request.messages)}
        ended = await _walk(before, facts)
        if ended is not None:
            return _answer(ended)
        round_.request = replace(round_.request, messages=facts["messages"])
        answer = await ask(round_)
        facts |= {"text": answer.text, "calls": [call.name for call in answer.calls]}
        ended = await _walk(after, facts)
        if ended is not None:
            return _answer(ended)
        return answer if facts["text"] == answer.text else replace(answer, text=str(facts["text"]))

    return around


async def _walk(steps: Sequence[Step], facts: dict[str, Any]) -> _Ended | None:
    """Run each step on `facts`; None if no step ended the chain. Raises TypeError for an unknown return value."""
    for step in steps:
        value = step.handle(facts)
        if isinstance(value, Awaitable):
            value = await value
        match value:
            case None:
                continue
            case ("continue", Mapping() as changed):
                facts.update(changed)
            case ("skip", result):
                return _Ended(result)
            case ("error", reason):
                return _Ended(reason=str(reason))
            case _:
                raise TypeError(f"filter {step.name} returned {type(value).__name__}, which means nothing here")
    return None


def _result(ended: _Ended) -> FunctionResult:
    return normalised(ended.value) if ended.reason is None else FunctionResult.fail(ErrorCode.FAILED, ended.reason)


def _answer(ended: _Ended) -> ModelAnswer:
    """The answer of the step that ended the chain. Raises ModelError for an error or an empty answer."""
    if ended.reason is not None:
        raise ModelError(ErrorCode.PROVIDER_ERROR, f"a filter ended the request: {ended.reason}")
    if not ended.value:
        raise ModelError(ErrorCode.EMPTY_RESPONSE, "a filter answered with nothing")
    return ModelAnswer(text=str(ended.value), finish="stop")


def _problems(declared: Mapping[str, Any]) -> list[str]:
    problems: list[str] = []
    if declared.get("type") not in get_args(Kind):
        problems.append(f"type {declared.get('type')!r} is none of {', '.join(get_args(Kind))}")
    handler = declared.get("handler")
    if not callable(handler):
        problems.append("it has no handler that can be called")
    elif len(inspect.signature(handler).parameters) != 1:
        problems.append("its handler has to take one parameter")
    if not isinstance(declared.get("priority", 0), int | float):
        problems.append("its priority has to be a number")
    return problems


_AROUND_RUNS = ("pre_invocation", "post_invocation")


class OwnFilters:
    """A module's filters by name. Steps with the same name form one filter."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps: dict[str, list[Step]] = {}
        for step in steps:
            self._steps.setdefault(step.name, []).append(step)
        self._filters: Mapping[str, CallFilter] = {
            name: call_filter(of_name)
            for name, of_name in self._steps.items()
            if all(step.kind in _AROUND_RUNS for step in of_name)
        }

    @classmethod
    def of(cls, module: ModuleType) -> OwnFilters:
        """Filters that `module.filters()` declares. Raises DefinitionError; exceptions of the module propagate."""
        return cls(steps_of(module))

    def bound(self, spec: FunctionSpec) -> FunctionSpec:
        """`spec` with its handler wrapped in its filters of this module, the first one outermost. The remaining names
        are filters of the settings and wrap these. Raises DefinitionError for a filter of model requests."""
        own = [name for name in spec.execution.filters if name in self._steps]
        wrong = [name for name in own if name not in self._filters]
        if wrong:
            problems = [
                f"its filter {name!r} wraps requests to the model, not runs: name this file under "
                "filters.round in the settings instead"
                for name in wrong
            ]
            raise DefinitionError(f"function {spec.name!r} ({spec.origin.source})", problems)
        if not own:
            return spec
        run = chain(spec, [self._filters[name] for name in own])

        async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
            return await run(Invocation(context, spec, arguments, call))

        others = tuple(name for name in spec.execution.filters if name not in self._steps)
        return replace(spec, handler=handle, execution=replace(spec.execution, filters=others))
