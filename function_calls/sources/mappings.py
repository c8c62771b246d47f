"""Functions declared as plain mappings, with handlers in any of the four forms:
`f(args)`, `f(args, context)`, `"package.module:f"` and `("package.module:f", [extra, …])`, sync or async."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.definition import DefinitionError, build_spec, schema_arguments
from function_calls.results import normalised
from function_calls.short_parameters import parameters_of
from function_calls.spec import FunctionResult, FunctionSpec, Handler


def spec_from_mapping(definition: Mapping[str, Any], source: str = "") -> FunctionSpec:
    """The spec of `{"name", "handler", "description"?, "parameters"?, …}`. `parameters` is a JSON Schema, or a map of
    name → {type, description, required, default, enum, items, properties}. Raises DefinitionError with all problems."""
    problems = [f"{key} is required" for key in ("name", "handler") if not definition.get(key)]
    handler: Handler | None = None
    if definition.get("handler"):
        try:
            handler = handler_of(definition["handler"])
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
    """The same, from arguments. Raises DefinitionError."""
    return spec_from_mapping({"name": name, "handler": handler, "description": description, **options})


def specs_of_module(module: ModuleType) -> list[FunctionSpec]:
    """The specs of a module that has `tools()` and perhaps `tool_info()`, whose description and tags serve the tools
    that have no tags of their own. Raises DefinitionError when there is no `tools()`."""
    tools = getattr(module, "tools", None)
    if not callable(tools):
        raise DefinitionError(
            f"module {module.__name__}", ["it has no function tools(), so it is no module of functions"]
        )
    info = module.tool_info() if callable(getattr(module, "tool_info", None)) else {}
    default_tags = info.get("tags", info.get("tag"))
    specs = []
    for definition in tools():
        has_tags = definition.get("tag") or definition.get("tags")
        tagged = definition if has_tags or not default_tags else {**definition, "tags": default_tags}
        specs.append(spec_from_mapping(tagged, module.__name__))
    return specs


def handler_of(form: object) -> Handler:
    """One of the four forms as our handler. Raises ValueError, TypeError, ImportError or AttributeError."""
    target: Any
    extra: Sequence[Any] = ()
    if isinstance(form, tuple | list):
        if len(form) != 2 or not isinstance(form[1], list | tuple):
            raise ValueError('a handler with extra arguments is ("package.module:function", [extra, …])')
        target, extra = form
    else:
        target = form
    function = _imported(target) if isinstance(target, str) else target
    if not callable(function):
        raise TypeError(f"{target!r} cannot be called")
    takes_context = bool(extra) or _positional_count(function) >= 2
    return _adapted(function, takes_context, tuple(extra))


def _imported(path: str) -> Any:
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"{path!r} is not of the form package.module:function")
    return getattr(importlib.import_module(module), name)


def _positional_count(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 2
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


def _adapted(function: Callable[..., Any], takes_context: bool, extra: tuple[Any, ...]) -> Handler:
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        given: tuple[Any, ...] = (arguments,)
        if takes_context:
            given = (arguments, run_context(context, call), *extra)
        value = await function(*given) if is_async else await call.threads.run(function, *given)
        return normalised(value)

    return handle


def run_context(context: MessageContext, call: Call) -> dict[str, Any]:
    """What `f(args, context)` is given: `run_id`, `agent_id`, `chat`, `member`, and the turn's state."""
    return {
        **call.state,
        "run_id": call.key.rpartition(":")[0],
        "agent_id": context.bot,
        "chat": context.chat.key,
        "member": context.sender.ref.key,
    }
