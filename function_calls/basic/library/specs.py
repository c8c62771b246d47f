"""FunctionSpecs of compiled tools, and conversion of arguments in natural language."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from config.sections.basic import BasicSource
from function_calls.basic.language.param_types import DoesNotFit, type_named
from function_calls.basic.library.compiled_tools import LibraryTool
from function_calls.basic.machine.program import Program
from function_calls.basic.tool_definition import ParamDecl
from function_calls.profile import ChatProfile
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.commands import KIND
from function_calls.schema.definition import build_spec
from function_calls.spec import START_FUNCTION, ArgumentError, FunctionSpec, Handler, Touch
from services.refs import Effect, JsonObject, JsonValue

_KINDS: Mapping[str, str] = {
    "number": "number", "float": "number", "decimal": "number", "double": "number", "integer": "integer",
    "int": "integer", "boolean": "boolean", "bool": "boolean", "money": "money", "currency": "money",
    "percent": "percent", "date": "date", "time": "hour", "hour": "hour", "datetime": "datetime", "email": "email",
    "phone": "mobile", "mobile": "mobile", "url": "url", "uuid": "uuid", "zipcode": "zipcode",
}  # fmt: skip
"""Kind of HEAR that parses natural-language input, by parameter type."""


def kind_of(parameter: ParamDecl) -> str:
    """Kind of HEAR that parses natural-language input of this parameter, such as `date`; empty if there is none."""
    return "" if parameter.choices else _KINDS.get(parameter.type, "")


TAG = "basic"
"""Tag of every script function, for rules that apply to all scripts."""
KEYWORDS = "keywords"
"""Metadata key for the host keywords that a script may use."""
LoadProgram = Callable[[], Awaitable[Program]]


class Runs(Protocol):
    """Interface to the script runtime."""

    def parse(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        """Parse `text` as a kind of HEAR, in the language and time zone of `profile`. Raises ValueError if it is not
        understood."""

    def handler(self, tool: LibraryTool, load: LoadProgram, source: BasicSource) -> Handler:
        """Handler that runs `tool`, a script of this config entry; `load` returns its program."""

    def effect_of(self, keywords: Iterable[str]) -> Effect:
        """Effect of a script with these keywords."""

    def touches_of(self, keywords: Iterable[str]) -> frozenset[Touch]:
        """Data labels of a script with these keywords."""

    def seconds_of(self, keywords: Iterable[str]) -> float:
        """Timeout in seconds of a script with these keywords."""


def _read(value: Any, parameter: ParamDecl, reads: Runs, profile: ChatProfile) -> Any:
    """The natural-language argument as the type of the schema. Valid and unparsable values are returned unchanged."""
    kind, of_type = kind_of(parameter), type_named(parameter.type)
    if not kind or of_type is None or not isinstance(value, str):
        return value
    try:
        of_type.read(value)
    except DoesNotFit:
        try:
            return reads.parse(kind, value, profile)
        except ValueError:
            return value
    return value


class LazyArguments:
    """Argument parser for a valid schema. The validator is created at the first call, since few of many scripts are
    called. Natural-language values are converted to the declared types."""

    def __init__(self, schema: JsonObject, parameters: Sequence[ParamDecl], reads: Runs) -> None:
        self._schema = schema
        self._parameters = parameters
        self._reads = reads
        self._made: SchemaArguments | None = None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """Validate arguments and fill in defaults. Raises ArgumentError, whose schemas name the natural-language kind
        of a parameter."""
        if self._made is None:
            self._made = SchemaArguments(self._schema)
        try:
            return self._made.parse(raw)
        except ArgumentError as fault:
            kinds = {one.name: kind for one in self._parameters if (kind := kind_of(one))}
            named = {
                name: {**schema, KIND: kinds[name]} if schema is not None and name in kinds else schema
                for name, schema in fault.problems.items()
            }
            raise ArgumentError(named, fault.missing) from None

    def said(self, raw: Mapping[str, Any], profile: ChatProfile) -> Mapping[str, Any]:
        """Arguments with dates and numbers parsed from natural language; see `ReadsPeople`."""
        given = [one for one in self._parameters if one.name in raw]
        return {**raw, **{one.name: _read(raw[one.name], one, self._reads, profile) for one in given}}

    def dump(self, arguments: Any) -> JsonObject:
        """Return the arguments as a new dict."""
        return dict(arguments)


def spec_of(tool: LibraryTool, load: LoadProgram, source: BasicSource, runs: Runs) -> FunctionSpec:
    """Build the FunctionSpec of a tool; tools that begin conversations are not callable. Raises DefinitionError if the
    definition is invalid."""
    definition = tool.definition
    parameters = definition.schema()
    is_session = bool(definition.metadata.get(START_FUNCTION))
    options: JsonObject = {
        "bot": tool.place.bot,
        "effect": runs.effect_of(tool.keywords),
        "touches": runs.touches_of(tool.keywords),
        "timeout_seconds": runs.seconds_of(tool.keywords),
        "tags": [TAG],
        "metadata": {**definition.metadata, KEYWORDS: list(tool.keywords)},
    }
    # Scripts that begin conversations are not callable.
    options |= {"offered_to": []} if is_session else {"commands": [definition.name]}
    spec = build_spec(
        name=definition.name,
        description=definition.description,
        handler=runs.handler(tool, load, source),
        arguments=LazyArguments(parameters, definition.parameters, runs),
        parameters=parameters,
        options=options,
        result_schema=definition.result_schema(),
        source=f"{tool.file}:{definition.line}",
        version=tool.digest,
    )
    if len(definition.parameters) == 1 and kind_of(definition.parameters[0]):
        # Accept the rest of the line: `3 pm` and `12,50 €` contain spaces.
        return replace(spec, command=replace(spec.command, line=definition.parameters[0].name))
    return spec
