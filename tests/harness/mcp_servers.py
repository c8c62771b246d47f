"""Servers of tools for tests: a program whose doings a file says, and how to wait for what a daemon makes of it."""

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
    """A tool of the program; `more` is part of its definition."""
    tool = {"name": name, "description": f"Does {name}.", "inputSchema": NOTHING, "does": does, **more}
    return tool if given is None else {**tool, "with": given}


class Script:
    """What the program does, and what it was asked."""

    def __init__(self, folder: Path, *tools: dict[str, Any], name: str = "one", **more: Any) -> None:
        self.name = name
        self._file = folder / f"{name}.json"
        self._diary = folder / f"{name}.log"
        self.write(*tools, **more)

    def write(self, *tools: dict[str, Any], **more: Any) -> None:
        """It has these tools from now on."""
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({"tools": tools, **more}), encoding="utf-8")
        beside.replace(self._file)

    def settings(self, **more: Any) -> dict[str, Any]:
        """Its entry in `mcp.servers`; members may call its tools."""
        command = [sys.executable, "-I", str(RAW), str(self._file)]
        return {"name": self.name, "command": command, "roles": "member", **more}

    def asked(self, kind: str) -> list[Any]:
        """What it noted of that kind: `began` (process ids), `listed` (pages), `called` (tools), `cancelled`."""
        lines = self._diary.read_text(encoding="utf-8").splitlines() if self._diary.exists() else []
        return [one[kind] for line in lines if kind in (one := json.loads(line))]


def servers(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Settings with these servers."""
    return {"mcp": {"servers": list(entries)}, **more}


def function(group: Group, name: str) -> FunctionSpec | None:
    """The function of that name, as the daemon has it now."""
    return group.daemon.registry.of("default").find(name)


def faults(group: Group) -> str:
    """All that cannot be used now, a line each."""
    return "\n".join(one.message for one in group.daemon.functions.faults)


async def until(group: Group, holds: Callable[[], object]) -> None:
    """Return when `holds`, which is asked after every change of functions and faults. Raises TimeoutError."""
    changed = asyncio.Event()
    group.daemon.functions.on_change(changed.set)
    async with asyncio.timeout(_WAIT_SECONDS):
        while not holds():
            changed.clear()
            await changed.wait()


async def until_true(holds: Callable[[], object]) -> None:
    """The same for what another process does, which is looked at again and again. Raises TimeoutError."""
    async with asyncio.timeout(_WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - another process cannot tell
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is more than a name that waits to be taken note of."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        # It may end between one look and the next.
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
