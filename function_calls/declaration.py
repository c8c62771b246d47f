"""@tool_function: a mark on a plain function, nothing more. A source reads it when it loads the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "__rollcall_declaration__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the decorator was given."""

    name: str
    description: str
    examples: tuple[str, ...]
    meta: Mapping[str, Any]
    """The other fields of FunctionSpec by name, spelled as in YAML (`effect="once"`, `roles="admin"`)."""
    read: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What a source has read of the function's signature, for whoever loads it again: the same for every daemon."""


def tool_function(
    name: str = "", description: str = "", examples: Sequence[str] = (), **meta: Any
) -> Callable[[Function], Function]:
    """Mark `async def f(ctx: MessageContext, args: Model, *, service: Type) -> FunctionResult` as a function that a
    model and people may call. Without `name` it is called like the Python function; without `description` the first
    paragraph of the docstring serves. `meta` takes the other fields of FunctionSpec; unknown ones become metadata."""

    def mark(function: Function) -> Function:
        text = description or _first_paragraph(function.__doc__ or "")
        declaration = Declaration(name or function.__name__, text, tuple(examples), meta)
        setattr(function, _MARK, declaration)
        return function

    return mark


def declaration_of(candidate: object) -> Declaration | None:
    """The mark on `candidate`, or None."""
    declaration = getattr(candidate, _MARK, None)
    return declaration if isinstance(declaration, Declaration) else None


def _first_paragraph(docstring: str) -> str:
    return " ".join(docstring.strip().split("\n\n", 1)[0].split())
