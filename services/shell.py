"""One program at a time, of those that the settings list, in a chat's folder and in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass

from config.shell import ShellSettings
from services.command_words import words_of
from services.program_policy import allowed
from services.refs import ChatRef
from services.sandbox import Command, Finished, Isolation, Limits, Sandbox
from services.threads import Threads
from services.workspace import Workspaces

_KILOBYTE = 1000
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that was run."""

    program: str
    """As it was called."""
    finished: Finished
    timeout_seconds: float
    """The longest that it might take."""


class Shell:
    """What shell_exec may do."""

    def __init__(self, sandbox: Sandbox, workspaces: Workspaces, settings: ShellSettings | None = None) -> None:
        self._sandbox = sandbox
        self._workspaces = workspaces
        self._settings = settings or ShellSettings()

    def use(self, settings: ShellSettings) -> None:
        """From the next run on these hold."""
        self._settings = settings

    async def run(self, chat: ChatRef, line: str, threads: Threads) -> Ran:
        """What came of the command `line` in the folder of `chat`. Raises NoCommand, NotAllowed, NotIsolated and
        CannotStart before anything runs."""
        settings = self._settings
        words = words_of(line)
        argv = await threads.run(allowed, words, settings.programs)
        folder = await threads.run(self._workspaces.of(chat).made)
        command = Command(argv, folder=folder)
        finished = await self._sandbox.run(command, _limits(settings), Isolation.REQUIRED)
        return Ran(words[0], finished, settings.timeout_seconds)


def _limits(settings: ShellSettings) -> Limits:
    return Limits(
        timeout_seconds=settings.timeout_seconds,
        output_bytes=settings.output_kilobytes * _KILOBYTE,
        memory_bytes=settings.memory_megabytes * _MEBIBYTE,
        cpu_seconds=settings.cpu_seconds,
        processes=settings.processes,
        file_bytes=settings.file_megabytes * _MEBIBYTE,
    )
