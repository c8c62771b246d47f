"""From a tool of the library to the function that it is in chats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from config.basic import BasicSource
from function_calls.arguments import SchemaArguments
from function_calls.basic.program import Program
from function_calls.definition import build_spec
from function_calls.scripts.handler import script_seconds
from function_calls.scripts.keyword_table import KeywordTable
from function_calls.scripts.kept_tools import LibraryTool
from function_calls.spec import FunctionSpec, Handler
from services.json_values import JsonObject

TAG = "basic"
"""Borne by every function that is a script, for rules that speak of all of them."""
SESSION = "session"
"""In the metadata of a script that begins a conversation."""
LoadProgram = Callable[[], Awaitable[Program]]
MakeHandler = Callable[[LibraryTool, LoadProgram, BasicSource], Handler]
"""From a tool, what loads its program, and the entry of the settings that it comes from."""


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


def spec_of(tool: LibraryTool, handler: Handler, table: KeywordTable) -> FunctionSpec:
    """The function. Raises DefinitionError."""
    definition = tool.definition
    parameters = definition.schema()
    is_session = bool(definition.metadata.get(SESSION))
    options: JsonObject = {
        "bot": tool.place.bot,
        "effect": table.effect_of(tool.keywords),
        "touches": table.touches_of(tool.keywords),
        "timeout_seconds": script_seconds(tool.keywords),
        "tags": [TAG],
        "metadata": definition.metadata,
    }
    # Nobody calls what begins a conversation.
    options |= {"offered_to": []} if is_session else {"commands": [definition.name]}
    return build_spec(
        name=definition.name,
        description=definition.description,
        handler=handler,
        arguments=ArgumentsLater(parameters),
        parameters=parameters,
        options=options,
        source=f"{tool.file}:{definition.line}",
        version=tool.digest,
    )
