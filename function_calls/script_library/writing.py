"""What is written of compiled scripts: files in the work folder, rows in the store. Neither is needed to serve, so
trouble with them is told and stops nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from config.diagnostics import Diagnostic
from function_calls.definition_faults import fault
from function_calls.script_library.kept_tools import LibraryTool
from function_calls.script_library.work_folder import WorkFolder
from services.basic_tools import BasicTools
from services.crew import Crew
from services.store.port import StoreError, Write

_log = structlog.get_logger("basic")
_SERVES = "scripts serve all the same, but have to be compiled anew at the next start"


@dataclass(frozen=True, slots=True)
class Files:
    """What the work folder is to hold of one script."""

    bot: str
    script: str
    """The name of its file, without `.bas`."""
    content: bytes | None
    """None: the script is gone."""
    tools: tuple[tuple[LibraryTool, bytes], ...] = ()
    """Each with its program as it is kept."""
    gone: tuple[str, ...] = ()
    """Tools that it has no more."""


class Writing:
    """Writes both. Belongs to one event loop."""

    def __init__(self, work: WorkFolder, kept: BasicTools, crew: Crew) -> None:
        self._work = work
        self._kept = kept
        self._crew = crew

    async def write(self, files: Sequence[Files], rows: Sequence[Write]) -> tuple[Diagnostic, ...]:
        """Write all of it; what could not be."""
        problems: list[Diagnostic] = []
        try:
            if files:
                await self._crew.begin(partial(self._put, files))
        except OSError as error:
            folder = str(self._work.of(files[0].bot))
            problems.append(fault(folder, f"cannot be written: {error.strerror}; {_SERVES}"))
        try:
            await self._kept.commit(rows)
        except StoreError as error:
            _log.error("tools_not_stored", problem=str(error))
            problems.append(fault("basic_tools", f"the tools could not be stored; {_SERVES}"))
        return tuple(problems)

    def _put(self, files: Sequence[Files]) -> None:
        for one in files:
            self._work.drop(one.bot, [one.script] if one.content is None else [], one.gone)
            if one.content is not None:
                self._work.put_script(one.bot, one.script, one.content)
            for tool, program in one.tools:
                self._work.put_tool(one.bot, tool.definition, program)
