"""Functions declared as mappings, with handlers in four forms: `f(args)`, `f(args, context)`, `"package.module:f"` and
`("package.module:f", [extra, …])`, sync or async."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import declaration_of, error_text, parameters_of, place_of
from function_calls.result import normalised
from function_calls.schema.definition import DefinitionError, build_spec, misspelt_options, schema_arguments
from function_calls.spec import FunctionResult, FunctionSpec, Handler

FindModule = Callable[[str], ModuleType]
"""Imports the module of a handler by its dotted path; raises the errors of the import."""


def spec_from_mapping(
    definition: Mapping[str, Any], source: str = "", find: FindModule = importlib.import_module
) -> FunctionSpec:
    """Spec of `{"name", "handler", "description"?, "parameters"?, …}`. `parameters` is a JSON Schema, or a map of name
    → {type, description, required, default, enum, items, properties}. Raises DefinitionError with all problems."""
    problems = [f"{key} is required" for key in ("name", "handler") if not definition.get(key)]
    handler: Handler | None = None
    if definition.get("handler"):
        try:
            handler = handler_of(definition["handler"], find)
        except (ValueError, TypeError, ImportError, AttributeError) as error:
            problems.append(f"handler: {error}")
    where = f"function {definition.get('name')!r}" + (f" ({source})" if source else "")
    if problems or handler is None:
        raise DefinitionError(where, problems)
    name = str(definition["name"])
    parameters, arguments = schema_arguments(name, parameters_of(definition.get("parameters")))
    options = {
        key: value for key, value in definition.items() if key not in ("name", "handler", "description", "parameters")
    }
    return build_spec(
        name=name,
        description=str(definition.get("description") or ""),
        handler=handler,
        arguments=arguments,
        parameters=parameters,
        options=options,
        source=source,
    )


def new_spec(name: str, handler: object, description: str = "", **options: Any) -> FunctionSpec:
    """Spec from keyword arguments. Raises DefinitionError."""
    return spec_from_mapping({"name": name, "handler": handler, "description": description, **options})


def specs_of_module(module: ModuleType) -> list[FunctionSpec]:
    """Specs of a module with `tools()`. An optional `tool_info()` provides defaults for descriptions and tags. Raises
    DefinitionError with all problems, also if there is no `tools()`."""
    if not declares(module, "tools"):
        raise DefinitionError(
            f"module {module.__name__}", ["it has no function tools(), so it is no module of functions"]
        )
    info = info_of(module)
    found = [one for _, one in specs_returned_by(module.tools)]
    wrong = [one for one in found if isinstance(one, DefinitionError)]
    if wrong:
        raise DefinitionError(
            f"module {module.__name__}", [f"{one.where}: {problem}" for one in wrong for problem in one.problems]
        )
    return [info.lend(one) for one in found if isinstance(one, FunctionSpec)]


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """Default description and tags of a module's functions."""

    description: str = ""
    tags: frozenset[str] = frozenset()

    def lend(self, spec: FunctionSpec) -> FunctionSpec:
        """`spec` with the module's description and tags where it has none."""
        description, tags = spec.description or self.description, spec.origin.tags or self.tags
        if description == spec.description and tags == spec.origin.tags:
            return spec
        return replace(spec, description=description, origin=replace(spec.origin, tags=tags))


def declares(module: ModuleType, name: str) -> bool:
    """Whether `module` has a hook function of that name; functions marked with `@tool_function` are no hooks."""
    function = getattr(module, name, None)
    return callable(function) and declaration_of(function) is None


def info_of(module: ModuleType) -> ModuleInfo:
    """Result of `tool_info()`, or no defaults without it. Raises DefinitionError and the exceptions of the module."""
    if not declares(module, "tool_info"):
        return ModuleInfo()
    info = module.tool_info()
    if not isinstance(info, Mapping):
        raise DefinitionError("tool_info()", [f"it has to return a mapping, not {type(info).__name__}"])
    listed, description = info.get("tags", info.get("tag")) or (), info.get("description") or ""
    tags = [listed] if isinstance(listed, str) or not isinstance(listed, Iterable) else list(listed)
    if not all(isinstance(tag, str) for tag in tags):
        raise DefinitionError("tool_info()", ["tags: has to be a text or a list of texts"])
    if not isinstance(description, str):
        raise DefinitionError("tool_info()", ["description: has to be a text"])
    return ModuleInfo(description.strip(), frozenset(tags))


def specs_returned_by(
    tools: Callable[[], object], find: FindModule = importlib.import_module
) -> Iterator[tuple[str, FunctionSpec | DefinitionError]]:
    """Name of each definition that `tools` returns (empty if it has none), with its spec or error. Raises
    DefinitionError if the result is no list, and any exception of `tools`."""
    returned, place = tools(), place_of(tools)
    if isinstance(returned, str | bytes | Mapping) or not isinstance(returned, Iterable):
        kind = (
            f"{type(returned).__name__}; leave out `async`"
            if inspect.iscoroutine(returned)
            else type(returned).__name__
        )
        if inspect.iscoroutine(returned):
            returned.close()
        raise DefinitionError(f"tools() ({place})", [f"it has to return a list of definitions, not {kind}"])
    for number, one in enumerate(returned, start=1):
        name = one.get("name") if isinstance(one, Mapping) else getattr(one, "name", "")
        try:
            spec: FunctionSpec | DefinitionError = _spec_of(one, place, f"definition {number} ({place})", find)
        except DefinitionError as error:
            spec = error
        yield str(name or ""), spec


def _spec_of(one: object, place: str, nameless: str, find: FindModule) -> FunctionSpec:
    """Spec of a definition, a mapping or a FunctionSpec. Raises DefinitionError for anything else, misspelt options or
    invalid values; `nameless` names a definition without a name."""
    if isinstance(one, FunctionSpec):
        return one if one.origin.source else replace(one, origin=replace(one.origin, source=place))
    if not isinstance(one, Mapping):
        raise DefinitionError(nameless, [f"it has to be a mapping or a FunctionSpec, not {type(one).__name__}"])
    source = _place_of_handler(one.get("handler")) or place
    named = f"function {one['name']!r} ({source})" if one.get("name") else nameless
    misspelt = misspelt_options(one, ("name", "handler", "description", "parameters"))
    if misspelt:
        raise DefinitionError(named, misspelt)
    try:
        return spec_from_mapping(one, source, find)
    except DefinitionError as error:
        raise DefinitionError(named, error.problems) from None
    except Exception as error:
        raise DefinitionError(named, [f"it cannot be read: {error_text(error)}"]) from error


def _place_of_handler(handler: object) -> str:
    """`file:line` of a handler that is a Python function, else empty."""
    target = handler[0] if isinstance(handler, list | tuple) and handler else handler
    place = place_of(target) if callable(target) else ""
    return place if ":" in place else ""


def handler_of(form: object, find: FindModule = importlib.import_module) -> Handler:
    """Adapt any of the four forms to a Handler. Raises ValueError, TypeError, ImportError or AttributeError."""
    target: Any
    extra: Sequence[Any] = ()
    if isinstance(form, tuple | list):
        if len(form) != 2 or not isinstance(form[1], list | tuple):
            raise ValueError('a handler with extra arguments is ("package.module:function", [extra, …])')
        target, extra = form
    else:
        target = form
    function = _found(target, find) if isinstance(target, str) else target
    if not callable(function):
        raise TypeError(f"{target!r} cannot be called")
    takes_context = bool(extra) or _positional_count(function) >= 2
    return _adapted(function, takes_context, tuple(extra))


def _found(path: str, find: FindModule) -> Any:
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"{path!r} is not of the form package.module:function")
    try:
        return getattr(find(module), name)
    except (ImportError, AttributeError):
        raise
    except (Exception, SystemExit) as error:
        raise ImportError(f"{module} cannot be imported: {error_text(error)}") from error


def _positional_count(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 2
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


def _adapted(function: Callable[..., Any], takes_context: bool, extra: tuple[Any, ...]) -> Handler:
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        positional: tuple[Any, ...] = (arguments,)
        if takes_context:
            positional = (arguments, run_context(context, call), *extra)
        value = await function(*positional) if is_async else await call.threads.run(function, *positional)
        return normalised(value, context.chat)

    return handle


def run_context(context: MessageContext, call: Call) -> dict[str, Any]:
    """The `context` argument of handlers: `run_id`, `agent_id`, `chat`, `member`, and the turn's state."""
    return {
        **call.state,
        "run_id": call.key.rpartition(":")[0],
        "agent_id": context.bot,
        "chat": context.chat.key,
        "member": context.sender.ref.key,
    }
