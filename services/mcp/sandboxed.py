"""How a server's program is started apart from this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from config.mcp_servers import McpServerSettings
from config.sandbox import SandboxSettings
from services.mcp.opening import plainly
from services.mcp.problems import Unreachable
from services.processes import CannotStart, Command, Limits
from services.sandbox import Isolation, NotIsolated, Sandbox

if TYPE_CHECKING:
    from services.mcp.stdio import Program

_MEGABYTE = 1024 * 1024


class SandboxedStart:
    """Starts programs as their settings say: in the sandbox, or as they are where neither they nor those of the sandbox
    ask for it. In the sandbox the limits of its settings hold, all as they are when the program starts."""

    def __init__(self, sandbox: Sandbox, folders: Path) -> None:
        """`folders`: where each server has a folder of its own to work in, unless its settings name one."""
        self._sandbox = sandbox
        self._folders = folders

    async def __call__(self, settings: McpServerSettings) -> Program:
        """Raises Unreachable where the program may not be started so, or is not there."""
        from services.mcp.stdio import Program

        limits = self._sandbox.settings
        if settings.sandbox == "off" and limits.isolation != "required":
            return plainly(settings, self._folder(settings))
        command = Command(
            settings.command,
            env={name: value.get_secret_value() for name, value in settings.env.items()},
            folder=self._folder(settings),
            readable=tuple(path.absolute() for path in settings.readable),
            network=settings.network,
        )
        try:
            prepared = await self._sandbox.prepare(command, _limits(limits), Isolation(settings.sandbox))
        except (NotIsolated, CannotStart) as error:
            raise Unreachable(said=str(error)) from None
        return Program(prepared.argv, prepared.env, prepared.folder)

    def _folder(self, settings: McpServerSettings) -> Path:
        """Where the program works. One that everybody may write to would not do: what lies there may be run."""
        if settings.folder is not None:
            if not settings.folder.is_dir():
                raise Unreachable(said=f"there is no folder {settings.folder}")
            return settings.folder.absolute()
        own = (self._folders / settings.name).absolute()
        try:
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unreachable(said=f"the folder {own} cannot be made: {error.strerror}") from None
        return own


def _limits(most: SandboxSettings) -> Limits:
    """As much as any process may use."""
    return Limits(
        memory_bytes=most.memory_megabytes * _MEGABYTE,
        cpu_seconds=most.cpu_seconds,
        processes=most.processes,
        file_bytes=most.file_megabytes * _MEGABYTE,
    )
