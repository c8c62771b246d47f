"""Copies of the code that calls handlers, with or without a piece of its source."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from types import CodeType, ModuleType

from function_calls import call, invocation, llm, router, spec
from function_calls import turn as turns
from function_calls.checks import approvals, askers_words, permissions, vouching
from function_calls.questions import (
    approval_questions,
    argument_questions,
    confirm_questions,
    input_questions,
    resume,
    waiting_runs,
)
from function_calls.rounds import progress

_IN_ORDER: Sequence[ModuleType] = (
    spec,
    turns,
    permissions,
    waiting_runs,
    argument_questions,
    confirm_questions,
    input_questions,
    approval_questions,
    resume,
    approvals,
    askers_words,
    vouching,
    progress,
    call,
    invocation,
    llm,
    router,
)
"""Each module follows those that it imports names from."""
_IN_PART = {spec: ("ApprovalTerms",)}
"""Modules of which only these names are replaced: test functions return values of the other types."""


class Code:
    """Copies of all modules, which import each other. In the source of `module`, `piece`, which occurs once, is
    replaced by `instead`."""

    def __init__(self, module: ModuleType | None = None, piece: str = "", instead: str = "") -> None:
        replaced: dict[int, object] = {}
        for original in _IN_ORDER:
            source = inspect.getsource(original)
            if original is module:
                assert source.count(piece) == 1, f"{piece!r} occurs {source.count(piece)} times in {module.__name__}"
                source = source.replace(piece, instead)
            copy = ModuleType(original.__name__)
            exec(_compiled(source, original.__name__), vars(copy))
            for name, value in list(vars(copy).items()):
                if id(value) in replaced:
                    setattr(copy, name, replaced[id(value)])
            replaced[id(original)] = copy
            for name, value in vars(original).items():
                if name not in _IN_PART.get(original, (name,)):
                    continue
                if getattr(value, "__module__", None) == original.__name__ and hasattr(copy, name):
                    replaced[id(value)] = getattr(copy, name)
            setattr(self, original.__name__.rpartition(".")[2], copy)

    turn: ModuleType
    approvals: ModuleType
    permissions: ModuleType
    invocation: ModuleType
    llm: ModuleType
    router: ModuleType


@cache  # most modules of a copy are those of every other copy
def _compiled(source: str, name: str) -> CodeType:
    return compile(source, f"{name} without a check", "exec")
