"""The tools that a server lists, page after page, as far as they can be used."""

from __future__ import annotations

from services.mcp.limits import DEFINITION_BYTES, MOST_TOOLS
from services.mcp.problems import in_one_line, shown
from services.mcp.tools import Listing, ToolDefinition, definition_of

_NAME_CHARS = 128
_MOST_DETAILS = 20


class Found:
    """What was found so far."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self._problems: dict[str, None] = {}
        self._details: list[str] = []
        self._is_whole = True

    def take(self, tool: object) -> bool:
        """Put a listed tool among the others, or note why it cannot be there. False: there is no room for more."""
        if len(self._tools) >= MOST_TOOLS:
            self.cut(f"it has more than {MOST_TOOLS} tools; those after them are left out")
            return False
        self._take(tool)
        return True

    def cut(self, problem: str) -> None:
        """The rest is left out."""
        self._is_whole = False
        self._note(problem)

    def listing(self) -> Listing:
        """All of it."""
        return Listing(tuple(self._tools.values()), tuple(self._problems), tuple(self._details), self._is_whole)

    def _take(self, tool: object) -> None:
        try:
            found = definition_of(tool if isinstance(tool, dict) else {})
            size = len(found.canonical)
        except (ValueError, RecursionError):
            self._note("it lists a tool that has no name or cannot be read")
            return
        name = found.name
        if not name.isprintable() or " " in name or len(name) > _NAME_CHARS:
            self._note("it lists a tool whose name cannot be used", f"{name!r} is no name of a tool")
        elif name in self._tools:
            self._note(f"it lists {shown(name)} twice; the first one counts", f"{name!r} is listed twice")
        elif size > DEFINITION_BYTES:
            said = f"the definition of {shown(name)} is longer than {DEFINITION_BYTES} bytes, so it is not read"
            self._note(said, f"the definition of {name!r} has {size} bytes")
        else:
            self._tools[name] = found

    def _note(self, problem: str, details: str = "") -> None:
        self._problems.setdefault(problem)
        if details and len(self._details) < _MOST_DETAILS:
            self._details.append(in_one_line(details))
