"""Conversion of functions marked with @tool_function to specs. Signatures are inspected at load time only."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import Declaration, declaration_of, place_of
from function_calls.loading.module_loading import Services, bound_services, untyped
from function_calls.loading.source import Publish, Snapshot
from function_calls.ports import Configurable
from function_calls.result import is_result_form, normalised
from function_calls.schema.arguments import ModelArguments
from function_calls.schema.definition import DefinitionError, build_spec, misspelt_options
from function_calls.schema.schema import UnusableSchema, cleaned
from function_calls.spec import FunctionResult, FunctionSpec, Handler
from services.refs import JsonObject, RequestProblem

_BUILT_IN = "function_calls.handlers."


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
    bound = _bound(signature, services, where)
    handler = _handler(function, signature, bound)
    configured = tuple(service.is_configured for service in bound.values() if isinstance(service, Configurable))
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
    return replace(
        spec,
        handler=handler,
        execution=replace(spec.execution, configured=configured) if configured else spec.execution,
        origin=replace(
            spec.origin,
            source=where,
            built_in=function.__module__.startswith(_BUILT_IN),
            services=signature.service_names,
            runs=signature.runs,
        ),
    )


async def _unbound(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
    """Placeholder handler of a cached spec, which must not hold the services of a particular daemon. Raises
    NotImplementedError."""
    raise NotImplementedError


class _Signature:
    """Signature of a marked function: the context, a model or single parameters, keyword-only services, and the result
    type."""

    def __init__(
        self,
        model: Any,
        names: Sequence[str] | None,
        services: Mapping[str, Any],
        returns: Any,
        runs: Literal["async", "thread"],
    ) -> None:
        """`names`: single parameters, the fields of `model`; None: the function takes the model itself."""
        self.arguments = ModelArguments(model)
        self.names = names
        self.services = services
        self.service_names = tuple(
            getattr(kind, "__name__", str(kind)) for kind in services.values() if kind is not Call
        )
        self.result_schema = _result_schema(returns)
        self.runs = runs

    def given(self, context: MessageContext, arguments: Any) -> tuple[Any, ...]:
        """Positional arguments of a run: the context, then the model, or the fields that are single parameters."""
        if self.names is None:
            return (context, arguments)
        return (context, *(getattr(arguments, name) for name in self.names))


def _signature(function: Callable[..., Any], where: str) -> _Signature:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DefinitionError(where, [f"a type in the signature is unknown: {error}"]) from None
    parameters = list(inspect.signature(function).parameters.values())
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    problems: list[str] = []
    if not positional or hints.get(positional[0].name, _CONTEXT.get(positional[0].name)) is not MessageContext:
        problems.append("the first parameter must be annotated with MessageContext")
    services = {one.name: hints.get(one.name) for one in parameters if one.kind is one.KEYWORD_ONLY}
    problems += untyped(services)
    single = positional[1:]
    problems += [
        f"parameter {one.name!r} needs a type, such as `{one.name}: str`" for one in single if one.name not in hints
    ]
    model = hints.get(single[0].name) if len(single) == 1 else None
    takes_model = isinstance(model, type) and (issubclass(model, BaseModel) or is_dataclass(model))
    if len(single) == 1 and single[0].name in _ALL_ARGUMENTS and model is not None and not takes_model:
        problems.append(f"{single[0].name!r} must be annotated with a pydantic model or a dataclass")
    if problems:
        raise DefinitionError(where, problems)
    try:
        if not takes_model:
            model = _model_of(function, {one.name: (hints[one.name], one.default) for one in single})
        names = None if takes_model else [one.name for one in single]
        runs: Literal["async", "thread"] = "async" if inspect.iscoroutinefunction(function) else "thread"
        return _Signature(model, names, services, hints.get("return"), runs)
    except UnusableSchema as error:
        raise DefinitionError(where, [str(error)]) from None


_CONTEXT = {"context": MessageContext}
"""The first parameter, if it has this name, needs no annotation."""
_ALL_ARGUMENTS = ("args", "arguments")
"""Names of a parameter for all arguments together, which is a model."""
_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):[ \t]*\n((?:[ \t]+.*\n|[ \t]*\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+)(?: *\([^)\n]*\))?:[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def _model_of(function: Callable[..., Any], parameters: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    """Model of single parameters, given as type and default. Descriptions are those of the types, else of the section
    `Args:` of the docstring. Raises UnusableSchema for types without a schema."""
    if not parameters:
        return NoArguments
    section = _SECTION.search((inspect.getdoc(function) or "") + "\n")
    texts = dict(_ENTRY.findall(textwrap.dedent(section[1]))) if section else {}
    fields: dict[str, Any] = {}
    for name, (kind, default) in parameters.items():
        # An explicit description follows, and counts.
        base, *details = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        text = " ".join(texts.get(name, "").split()) or None
        described: Any = Annotated[(base, Field(description=text), *details)]
        fields[name] = (described, ... if default is inspect.Parameter.empty else default)
    try:
        with warnings.catch_warnings():
            # A parameter may be called as an attribute of models, which nobody uses here.
            warnings.filterwarnings("ignore", message="Field name .* shadows", category=UserWarning)
            return create_model(
                function.__name__,
                __module__=function.__module__,
                __config__=ConfigDict(frozen=True, extra="forbid", protected_namespaces=()),
                **fields,
            )
    except (PydanticUserError, NameError):
        broken = [name for name, (kind, _) in parameters.items() if name.startswith("_") or not _is_usable(kind)]
        named = ", ".join(map(repr, broken))
        text = f"parameter {named} has a name or type that no argument can have; put `*` before services"
        raise UnusableSchema(text) from None


def _is_usable(kind: Any) -> bool:
    try:
        TypeAdapter(kind)
    except PydanticUserError:
        return False
    return True


def _bound(signature: _Signature, services: Services, where: str) -> Mapping[str, Any]:
    """Services by the name of their parameter, without `call`. Raises DefinitionError, located at `where`, if one is
    missing."""
    others = {name: kind for name, kind in signature.services.items() if kind is not Call}
    bound, missing = bound_services(others, services)
    if missing:
        raise DefinitionError(where, missing)
    return bound


def _handler(function: Callable[..., Any], signature: _Signature, bound: Mapping[str, Any]) -> Handler:
    call_name = next((name for name, kind in signature.services.items() if kind is Call), "")
    run = functools.partial(function, **bound) if bound else function
    if signature.runs == "async":
        return _async_handler(run, signature, call_name)
    return _threaded_handler(run, signature, call_name)


def _async_handler(run: Callable[..., Awaitable[Any]], signature: _Signature, call_name: str) -> Handler:
    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        given = signature.given(context, arguments)
        try:
            value = await (run(*given, **{call_name: call}) if call_name else run(*given))
        except RequestProblem as problem:
            return _failed(problem, call)
        return value if type(value) is FunctionResult else normalised(value, context.chat)

    async def handle_plainly(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        """Fast path for the most common signature."""
        try:
            value = await run(context, arguments)
        except RequestProblem as problem:
            return _failed(problem, call)
        return value if type(value) is FunctionResult else normalised(value, context.chat)

    return handle_plainly if signature.names is None and not call_name else handle


def _threaded_handler(run: Callable[..., Any], signature: _Signature, call_name: str) -> Handler:
    """Handler for a plain function, which runs in a thread because it may block."""

    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        given = signature.given(context, arguments)
        named = {call_name: call} if call_name else {}
        try:
            return normalised(await call.threads.run(run, *given, **named), context.chat)
        except RequestProblem as problem:
            return _failed(problem, call)

    return handle


def _failed(problem: RequestProblem, call: Call) -> FunctionResult:
    return FunctionResult.fail(problem.code, call.say(problem.key, **problem.values), problem.fields)


def _result_schema(returns: Any) -> JsonObject | None:
    if (
        isinstance(returns, type)
        and (issubclass(returns, BaseModel) or is_dataclass(returns))
        and returns is not FunctionResult
    ):
        schema = cleaned(TypeAdapter(returns).json_schema(mode="serialization"))
        return None if is_result_form(schema.get("properties", ())) else schema
    return None
