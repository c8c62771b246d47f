"""From a tool of the library to its FunctionSpec, and arguments as people write them."""

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
from function_calls.spec import BEGINS_CHATS, ArgumentError, FunctionSpec, Handler, Touch
from services.refs import Effect, JsonObject, JsonValue

_KINDS: Mapping[str, str] = {
    "number": "number", "float": "number", "decimal": "number", "double": "number", "integer": "integer",
    "int": "integer", "boolean": "boolean", "bool": "boolean", "money": "money", "currency": "money",
    "percent": "percent", "date": "date", "time": "hour", "hour": "hour", "datetime": "datetime", "email": "email",
    "phone": "mobile", "mobile": "mobile", "url": "url", "uuid": "uuid", "zipcode": "zipcode",
}  # fmt: skip
"""The kind of HEAR that each type of a parameter is read as."""


class ReadsSaid(Protocol):
    """Understands what people say."""

    def heard(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        """What `text` means as a kind of HEAR in a chat. Raises ValueError."""


def kind_of(parameter: ParamDecl) -> str:
    """The kind of HEAR that people's words for this parameter are read as; empty where they are taken as they stand."""
    return "" if parameter.choices else _KINDS.get(parameter.type, "")


def said(
    raw: Mapping[str, Any], parameters: Sequence[ParamDecl], reads: ReadsSaid, profile: ChatProfile
) -> dict[str, Any]:
    """`raw` with what people have said in their words as the schema wants it; what already is, and what nobody
    understands, as it stands."""
    return {**raw, **{one.name: _read(raw[one.name], one, reads, profile) for one in parameters if one.name in raw}}


def _read(value: Any, parameter: ParamDecl, reads: ReadsSaid, profile: ChatProfile) -> Any:
    kind, of_type = kind_of(parameter), type_named(parameter.type)
    if not kind or of_type is None or not isinstance(value, str):
        return value
    try:
        of_type.read(value)
    except DoesNotFit:
        try:
            return reads.heard(kind, value, profile)
        except ValueError:
            return value
    return value


TAG = "basic"
"""Borne by every function that is a script, for rules that speak of all of them."""
KEYWORDS = "keywords"
"""In the metadata of a script: those of the host that it may want, by their names."""
LoadProgram = Callable[[], Awaitable[Program]]


class Runs(ReadsSaid, Protocol):
    """How scripts are run."""

    def handler(self, tool: LibraryTool, load: LoadProgram, source: BasicSource) -> Handler:
        """What runs `tool`, whose program `load` gives, of that entry of the settings."""

    def effect_of(self, keywords: Iterable[str]) -> Effect:
        """What a script with these keywords does to the world."""

    def touches_of(self, keywords: Iterable[str]) -> frozenset[Touch]:
        """What it touches."""

    def seconds_of(self, keywords: Iterable[str]) -> float:
        """How long a run of it may take."""


class ArgumentsLater:
    """Reads arguments by a schema that is known to be usable. What reads them is made when the first ones come: of a
    thousand scripts few are called. What people say in their words is read as what the script declares."""

    def __init__(self, schema: JsonObject, parameters: Sequence[ParamDecl], reads: ReadsSaid) -> None:
        self._schema = schema
        self._parameters = parameters
        self._reads = reads
        self._made: SchemaArguments | None = None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The arguments with defaults filled in. Raises ArgumentError."""
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
        """See `ReadsPeople`."""
        return said(raw, self._parameters, self._reads, profile)

    def dump(self, arguments: Any) -> JsonObject:
        """The same, in a dict of its own."""
        return dict(arguments)


def spec_of(tool: LibraryTool, load: LoadProgram, source: BasicSource, runs: Runs) -> FunctionSpec:
    """The function. Raises DefinitionError."""
    definition = tool.definition
    parameters = definition.schema()
    is_session = bool(definition.metadata.get(BEGINS_CHATS))
    options: JsonObject = {
        "bot": tool.place.bot,
        "effect": runs.effect_of(tool.keywords),
        "touches": runs.touches_of(tool.keywords),
        "timeout_seconds": runs.seconds_of(tool.keywords),
        "tags": [TAG],
        "metadata": {**definition.metadata, KEYWORDS: list(tool.keywords)},
    }
    # Nobody calls what begins a conversation.
    options |= {"offered_to": []} if is_session else {"commands": [definition.name]}
    spec = build_spec(
        name=definition.name,
        description=definition.description,
        handler=runs.handler(tool, load, source),
        arguments=ArgumentsLater(parameters, definition.parameters, runs),
        parameters=parameters,
        options=options,
        source=f"{tool.file}:{definition.line}",
        version=tool.digest,
    )
    if len(definition.parameters) == 1 and kind_of(definition.parameters[0]):
        # `3 pm` and `12,50 €` are more than one word.
        return replace(spec, command=replace(spec.command, line=definition.parameters[0].name))
    return spec
