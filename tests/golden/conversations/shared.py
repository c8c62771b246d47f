"""Parts of many requests, recorded once: tool definitions and instructions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "expected"
_FILE = FOLDER / "_shared.json"


class Shared:
    """Names of recorded parts. In an open recording new parts get the next number."""

    def __init__(self, file: Path = _FILE, *, is_open: bool, is_empty: bool = False) -> None:
        self._file = file
        self._is_open = is_open
        recorded = {} if is_empty or not file.exists() else json.loads(file.read_text(encoding="utf-8"))
        self._tools: dict[str, list[Any]] = recorded.get("tools", {})
        self._instructions: list[list[str]] = recorded.get("instructions", [])

    def tool(self, definition: Any) -> str:
        """Name of a function offered to a model; `name#2` for its second definition."""
        function = definition["function"]
        place = self._place(self._tools.setdefault(function["name"], []), definition)
        return function["name"] + ("" if place == 0 else f"#{place + 1 if place > 0 else ' as never recorded'}")

    def instructions(self, text: str) -> str:
        """Name of a system message."""
        place = self._place(self._instructions, text.split("\n"))
        return f"<instructions {place + 1}>" if place >= 0 else text

    def write(self) -> None:
        """Write the recorded parts."""
        told = {"instructions": self._instructions, "tools": dict(sorted(self._tools.items()))}
        self._file.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def _place(self, among: list[Any], value: Any) -> int:
        if value in among:
            return among.index(value)
        if not self._is_open:
            return -1
        among.append(value)
        return len(among) - 1
