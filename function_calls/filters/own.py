"""The filters that a module declares for its own functions, bound to those that name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.definition import DefinitionError
from function_calls.filters.call import CallFilter, Invocation, chain
from function_calls.filters.pre_post import Step, call_filter, steps_of
from function_calls.spec import FunctionResult, FunctionSpec

_AROUND_RUNS = ("pre_invocation", "post_invocation")


class OwnFilters:
    """By the names that a module gave them. Steps of one name are one filter."""

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
        """Those that `module.filters()` declares. Raises DefinitionError, and whatever the module's code does."""
        return cls(steps_of(module))

    def bound(self, spec: FunctionSpec) -> FunctionSpec:
        """`spec` with those that it names around its handler, the first one outermost; the names that are left are
        those of the settings' filters, which stand around these. Raises DefinitionError for a filter that cannot stand
        around a run."""
        own = [name for name in spec.filters if name in self._steps]
        wrong = [name for name in own if name not in self._filters]
        if wrong:
            problems = [
                f"its filter {name!r} stands around requests to the model, not around runs: name this file under "
                "filters.round in the settings instead"
                for name in wrong
            ]
            raise DefinitionError(f"function {spec.name!r} ({spec.source})", problems)
        if not own:
            return spec
        run = chain(spec, [self._filters[name] for name in own])

        async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
            return await run(Invocation(context, spec, arguments, call))

        return replace(spec, handler=handle, filters=tuple(name for name in spec.filters if name not in self._steps))
