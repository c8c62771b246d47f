"""Conversion of functions marked with @tool_function to specs. Signatures are inspected at load time only."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import BaseModel, TypeAdapter

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import Declaration, declaration_of, place_of
from function_calls.loading.module_loading import Services, bound_services, untyped
from function_calls.loading.source import Publish, Snapshot
from function_calls.result import normalised
from function_calls.schema.arguments import ModelArguments
from function_calls.schema.definition import DefinitionError, build_spec, misspelt_options
from function_calls.schema.schema import UnusableSchema, cleaned
from function_calls.spec import FunctionResult, FunctionSpec, Handler
from services.refs import JsonObject


class NoArguments(BaseModel, frozen=True):
    """Arguments of functions without parameters."""


class PythonFunctions:
    """Source for the marked functions of modules that are already imported."""

    def __init__(self, name: str, modules: Sequence[ModuleType], services: Services) -> None:
        self.name = name
        self._modules = modules
        self._services = services

    async def run(self, publish: Publish) -> None:
        """Publish the marked functions of all modules once, in order. Raises DefinitionError."""
        publish(Snapshot(tuple(spec for module in self._modules for spec in specs_of(module, self._services))))


def specs_of(module: ModuleType, services: Services) -> list[FunctionSpec]:
    """Specs of the marked functions that `module` itself defines, in order. Raises DefinitionError."""
    found = [
        (function, declaration)
        for function in vars(module).values()
        if (declaration := declaration_of(function)) is not None and function.__module__ == module.__name__
    ]
    return [as_spec(function, services, declaration) for function, declaration in found]


def as_spec(function: Callable[..., Any], services: Services, declaration: Declaration | None = None) -> FunctionSpec:
    """Spec of a marked function, with services bound to its keyword-only parameters by type. Raises DefinitionError if
    the function is not marked, its signature is invalid, or a service is missing."""
    declared = declaration or declaration_of(function)
    where = place_of(function)
    if declared is None:
        raise DefinitionError(where, [f"{function.__qualname__} is not marked with @tool_function"])
    misspelt = misspelt_options(declared.meta)
    if misspelt:
        raise DefinitionError(where, misspelt)
    signature: _Signature = declared.read.get("signature") or _signature(function, where)
    declared.read["signature"] = signature
    handler = _handler(function, signature, services, where)
    spec: FunctionSpec | None = declared.read.get("spec")
    if spec is None:
        spec = build_spec(
            name=declared.name,
            description=declared.description,
            handler=_unbound,
            arguments=signature.arguments,
            parameters=signature.arguments.schema,
            options={"examples": declared.examples, **declared.meta},
            source=where,
            result_schema=signature.result_schema,
        )
        declared.read["spec"] = spec
    return replace(spec, handler=handler, origin=replace(spec.origin, source=where))


async def _unbound(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
    """Placeholder handler of a cached spec, which must not hold the services of a particular daemon."""
    raise NotImplementedError


class _Signature:
    """Signature of a marked function: the context, optionally a model, keyword-only services, and the result type."""

    def __init__(self, model: Any, takes_model: bool, services: Mapping[str, Any], returns: Any) -> None:
        self.arguments = ModelArguments(model)
        self.takes_model = takes_model
        self.services = services
        self.result_schema = _result_schema(returns)


def _signature(function: Callable[..., Any], where: str) -> _Signature:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DefinitionError(where, [f"a type in the signature is unknown: {error}"]) from None
    parameters = list(inspect.signature(function).parameters.values())
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    problems: list[str] = []
    if not positional or hints.get(positional[0].name) is not MessageContext:
        problems.append("the first parameter must be annotated with MessageContext")
    if len(positional) > 2:
        problems.append("only the context and the arguments are positional; put `*` before services")
    model = hints.get(positional[1].name) if len(positional) > 1 else NoArguments
    if not (isinstance(model, type) and (issubclass(model, BaseModel) or is_dataclass(model))):
        problems.append("the arguments must be annotated with a pydantic model or a dataclass")
    services = {one.name: hints.get(one.name) for one in parameters if one.kind is one.KEYWORD_ONLY}
    problems += untyped(services)
    if problems:
        raise DefinitionError(where, problems)
    try:
        return _Signature(model, len(positional) > 1, services, hints.get("return"))
    except UnusableSchema as error:
        raise DefinitionError(where, [str(error)]) from None


def _handler(function: Callable[..., Any], signature: _Signature, services: Services, where: str) -> Handler:
    call_name = next((name for name, kind in signature.services.items() if kind is Call), "")
    others = {name: kind for name, kind in signature.services.items() if kind is not Call}
    bound, missing = bound_services(others, services)
    if missing:
        raise DefinitionError(where, missing)
    run = functools.partial(function, **bound) if bound else function
    if inspect.iscoroutinefunction(function):
        return _async_handler(run, signature.takes_model, call_name)
    return _threaded_handler(run, signature.takes_model, call_name)


def _async_handler(run: Callable[..., Awaitable[Any]], takes_model: bool, call_name: str) -> Handler:
    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        positional = (context, arguments) if takes_model else (context,)
        value = await (run(*positional, **{call_name: call}) if call_name else run(*positional))
        return value if type(value) is FunctionResult else normalised(value)

    async def handle_plainly(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        """Fast path for the most common signature."""
        value = await run(context, arguments)
        return value if type(value) is FunctionResult else normalised(value)

    return handle_plainly if takes_model and not call_name else handle


def _threaded_handler(run: Callable[..., Any], takes_model: bool, call_name: str) -> Handler:
    """Handler for a plain function, which runs in a thread because it may block."""

    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        positional = (context, arguments) if takes_model else (context,)
        named = {call_name: call} if call_name else {}
        return normalised(await call.threads.run(run, *positional, **named))

    return handle


def _result_schema(returns: Any) -> JsonObject | None:
    if (
        isinstance(returns, type)
        and (issubclass(returns, BaseModel) or is_dataclass(returns))
        and returns is not FunctionResult
    ):
        return cleaned(TypeAdapter(returns).json_schema(mode="serialization"))
    return None
