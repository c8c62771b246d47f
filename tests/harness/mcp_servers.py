"""MCP servers for tests: a program controlled by a file, and functions that wait for the daemon's reaction."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot.testing import Group
from function_calls.spec import FunctionSpec

RAW = Path(__file__).with_name("mcp_raw.py")
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_WAIT_SECONDS = 60.0


def a_tool(name: str, does: str = "say", given: Any = None, **more: Any) -> dict[str, Any]:
    """A tool of the program; `more` is added to its definition."""
    tool = {"name": name, "description": f"Does {name}.", "inputSchema": NOTHING, "does": does, **more}
    return tool if given is None else {**tool, "with": given}


class Script:
    """The program's control file and its log."""

    def __init__(self, folder: Path, *tools: dict[str, Any], name: str = "one", **more: Any) -> None:
        self.name = name
        self._file = folder / f"{name}.json"
        self._diary = folder / f"{name}.log"
        self.write(*tools, **more)

    def write(self, *tools: dict[str, Any], **more: Any) -> None:
        """Replace the tools."""
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({"tools": tools, **more}), encoding="utf-8")
        beside.replace(self._file)

    def settings(self, **more: Any) -> dict[str, Any]:
        """Its entry in `mcp.servers`; members may call its tools."""
        command = [sys.executable, "-I", str(RAW), str(self._file)]
        return {"name": self.name, "command": command, "roles": "member", **more}

    def asked(self, kind: str) -> list[Any]:
        """Log entries of a kind: `began` (process ids), `listed` (pages), `called` (tools), `cancelled`."""
        lines = self._diary.read_text(encoding="utf-8").splitlines() if self._diary.exists() else []
        return [one[kind] for line in lines if kind in (one := json.loads(line))]


def servers(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Settings with these servers."""
    return {"mcp": {"servers": list(entries)}, **more}


def function(group: Group, name: str) -> FunctionSpec | None:
    """The daemon's current function with that name."""
    return group.daemon.registry.of("default").find(name)


def faults(group: Group) -> str:
    """All current problems, one per line."""
    return "\n".join(one.message for one in group.daemon.functions.faults)


async def until(group: Group, holds: Callable[[], object]) -> None:
    """Wait until `holds` is true; it is checked after each change of functions and problems. Raises TimeoutError."""
    changed = asyncio.Event()
    group.daemon.functions.on_change(changed.set)
    async with asyncio.timeout(_WAIT_SECONDS):
        while not holds():
            changed.clear()
            await changed.wait()


async def until_true(holds: Callable[[], object]) -> None:
    """Wait until `holds` is true, for changes by another process. Raises TimeoutError."""
    async with asyncio.timeout(_WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - another process cannot notify us
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        # It may end between the two checks.
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
