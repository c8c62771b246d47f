"""`@tool_function`, the short form of parameters, and the `file:line` locations of definitions and errors."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from services.refs import JsonObject

Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "__rollcall_declaration__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """Arguments of the decorator."""

    name: str
    description: str
    examples: tuple[str, ...]
    meta: Mapping[str, Any]
    """The other fields of FunctionSpec by name, spelled as in YAML (`effect="once"`, `roles="admin"`)."""
    read: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Cache of the function's signature and spec for later loads; shared by all daemons."""


def tool_function(
    name: str = "", description: str = "", examples: Sequence[str] = (), **meta: Any
) -> Callable[[Function], Function]:
    """Mark `async def f(context: MessageContext, args: Model, *, service: Type) -> FunctionResult` as a function that
    models and people may call. Single parameters with types may replace `args`; a plain `def` runs in a thread; other
    results are converted to FunctionResult. `name` defaults to the Python name, `description` to the first paragraph of
    the docstring. `meta` takes the other fields of FunctionSpec; unknown fields become metadata, except that a name
    similar to a known field raises DefinitionError when the function is loaded."""

    def mark(function: Function) -> Function:
        text = description or _first_paragraph(function.__doc__ or "")
        declaration = Declaration(name or function.__name__, text, tuple(examples), meta)
        setattr(function, _MARK, declaration)
        return function

    return mark


def declaration_of(candidate: object) -> Declaration | None:
    """Declaration of `candidate`, or None if it is not marked."""
    declaration = getattr(candidate, _MARK, None)
    return declaration if isinstance(declaration, Declaration) else None


def _first_paragraph(docstring: str) -> str:
    return " ".join(docstring.strip().split("\n\n", 1)[0].split())


_OF_A_SCHEMA = frozenset({"$ref", "$schema", "allOf", "anyOf", "oneOf"})
"""JSON Schema keywords that are no parameter names unless their value is a mapping."""


def parameters_of(declared: Any) -> Any:
    """JSON Schema for the short form (name → description of a parameter), nested. A schema is returned unchanged."""
    if declared is None or not isinstance(declared, Mapping):
        return declared
    if isinstance(declared.get("properties"), Mapping) or declared.get("type") == "object" or not declared:
        return declared
    if any(not isinstance(declared[key], Mapping) for key in _OF_A_SCHEMA & declared.keys()):
        return declared
    return _object_schema(declared)


def _object_schema(parameters: Mapping[Any, Any]) -> JsonObject:
    properties = {str(name): _property(value) for name, value in parameters.items()}
    required = [str(name) for name, value in parameters.items() if _is_required(value)]
    return {"type": "object", "properties": properties, "required": required}


def _is_required(declared: Any) -> bool:
    """Whether the parameter itself is required. A list under `required` names properties of an object instead."""
    required = declared.get("required") if isinstance(declared, Mapping) else None
    return bool(required) and not isinstance(required, list | tuple)


def _property(declared: Any) -> JsonObject:
    if not isinstance(declared, Mapping):
        return {"type": str(declared)}
    schema: JsonObject = {key: value for key, value in declared.items() if key != "required"}
    nested = schema.get("properties")
    if isinstance(nested, Mapping):
        inner = _object_schema(nested)
        named = declared.get("required")
        if isinstance(named, list | tuple):
            inner["required"] = list(dict.fromkeys([*named, *inner["required"]]))
        schema = {**schema, **inner, "type": schema.get("type", "object")}
    if isinstance(schema.get("items"), Mapping):
        schema["items"] = _property(schema["items"])
    return schema


_MOST_CHARS = 500


def place_of(function: Callable[..., Any]) -> str:
    """`file:line` of a Python function, or the name of a callable without code."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{shortened(code.co_filename)}:{code.co_firstlineno}" if code else getattr(function, "__qualname__", "?")


def shortened(file: str) -> str:
    """`file` relative to the working directory, if it is inside."""
    # String operations instead of Path for speed: this runs for every function at startup.
    return file.removeprefix(os.path.join(os.getcwd(), ""))


def innermost_place(error: BaseException, files: Collection[str]) -> str:
    """`file:line` of the innermost frame of `error` that belongs to `files`; empty if there is no such frame."""
    return _place(error, files.__contains__)


def last_place(error: BaseException, *but: str) -> str:
    """`file:line` of the innermost frame of `error` outside `but` and Python's import system; empty if there is no such
    frame."""
    return _place(error, lambda file: file not in but and not file.startswith("<frozen importlib"))


def _place(error: BaseException, is_wanted: Callable[[str], bool]) -> str:
    if isinstance(error, SyntaxError) and error.filename and is_wanted(error.filename):
        return f"{shortened(error.filename)}:{error.lineno or 1}"
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return next((f"{shortened(file)}:{line}" for file, line in reversed(frames) if is_wanted(file)), "")


def error_text(error: BaseException) -> str:
    """Type and message of `error`, at most 500 characters of it; for operators, never for a chat."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # noqa: BLE001 - `__str__` of an author's exception may raise
        text = ""
    kind = type(error).__name__
    return f"{kind}: {text[:_MOST_CHARS]}" if text else kind
