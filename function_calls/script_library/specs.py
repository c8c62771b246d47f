"""From a tool of the library to the function that it is in chats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from config.basic import BasicSource
from function_calls.arguments import SchemaArguments
from function_calls.basic.program import Program
from function_calls.definition import build_spec
from function_calls.script_library.kept_tools import LibraryTool
from function_calls.spec import FunctionSpec, Handler, Touch
from services.json_values import JsonObject
from services.refs import Effect

TAG = "basic"
"""Borne by every function that is a script, for rules that speak of all of them."""
SESSION = "session"
"""In the metadata of a script that begins a conversation."""
KEYWORDS = "keywords"
"""In the metadata of a script: those of the host that it may want, by their names."""
LoadProgram = Callable[[], Awaitable[Program]]


class Runs(Protocol):
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
    thousand scripts few are called."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._made: SchemaArguments | None = None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The arguments with defaults filled in. Raises ArgumentFault."""
        if self._made is None:
            self._made = SchemaArguments(self._schema)
        return self._made.parse(raw)

    def dump(self, arguments: Any) -> JsonObject:
        """The same dict."""
        return dict(arguments)


def spec_of(tool: LibraryTool, load: LoadProgram, source: BasicSource, runs: Runs) -> FunctionSpec:
    """The function. Raises DefinitionError."""
    definition = tool.definition
    parameters = definition.schema()
    is_session = bool(definition.metadata.get(SESSION))
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
    return build_spec(
        name=definition.name,
        description=definition.description,
        handler=runs.handler(tool, load, source),
        arguments=ArgumentsLater(parameters),
        parameters=parameters,
        options=options,
        source=f"{tool.file}:{definition.line}",
        version=tool.digest,
    )
