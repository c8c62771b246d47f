"""Execution of a command, with progress output and decoding for display."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from function_calls.command_tools.request import Output
from function_calls.command_tools.word_templates import Definition
from services.clock import Clock, Deadlines
from services.refs import ChatRef
from services.sandbox.processes import Command, Limits
from services.sandbox.sandbox import Sandbox
from services.sandbox.workspace import Workspaces

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
    r"|[\x80-\x9f]",
    re.DOTALL,
)
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LINE_CHARS = 200
_TAIL_PIECES = 8


def readable(data: bytes, most_chars: int) -> tuple[str, bool]:
    """Text of `data`, at most `most_chars` characters, and whether it was truncated. Invalid UTF-8 is replaced, and
    only the last version of an overwritten line is kept."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    text = _CONTROLS.sub("", _OVERWRITTEN.sub("", text))
    return text[:most_chars], len(text) > most_chars


class Tail:
    """The end of a program's output so far."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque(maxlen=_TAIL_PIECES)

    def add(self, data: bytes) -> None:
        """Append output; only the end of a long piece, and the last _TAIL_PIECES pieces, are kept."""
        self._pieces.append(data[-4 * _LINE_CHARS :])

    @property
    def line(self) -> str:
        """Last line that is not blank, or empty."""
        text, _ = readable(b"".join(self._pieces), _TAIL_PIECES * 4 * _LINE_CHARS)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:_LINE_CHARS] if lines else ""


_BYTES_A_CHAR = 4
_STATUS_SECONDS = 5.0
_MEBIBYTE = 1024 * 1024
Report = Callable[[str], Awaitable[None]]


class RanOutOfTime(Exception):
    """A command was terminated by its timeout. `output` is its output until then."""

    def __init__(self, output: Output) -> None:
        super().__init__("out of time")
        self.output = output


@dataclass(frozen=True, slots=True)
class Machine:
    """Services for running commands."""

    sandbox: Sandbox
    clock: Clock
    workspaces: Workspaces
    deadlines: Deadlines

    async def folder_of(self, chat: ChatRef) -> Path:
        """Folder of the chat, created if necessary. Raises WorkspaceError and OSError if that fails."""
        return await asyncio.to_thread(self.workspaces.of(chat).made)

    async def run(
        self,
        tool: Definition,
        argv: tuple[str, ...],
        stdin: str,
        folder: Path | None,
        owner: str,
        report: Report | None,
    ) -> Output:
        """Output of the command, successful or failed. `owner`: key of the member for whom it runs. `report` gets the
        last output line every 5 seconds if changed. Raises RanOutOfTime after its timeout, NotIsolated without a
        sandbox, and CannotStart if the program cannot be started."""
        opts = tool.opts
        command = Command(
            argv,
            stdin=stdin.encode("utf-8", "replace"),
            folder=folder,
            readable=tool.readable,
            network=opts.network,
            owner=owner,
        )
        limits = Limits(
            timeout_seconds=opts.timeout_seconds,
            output_bytes=opts.output_chars * _BYTES_A_CHAR,
            memory_bytes=opts.memory_megabytes * _MEBIBYTE,
        )
        tail = Tail()
        async with self._report_progress(tail, report):
            ended = await self.sandbox.run(command, limits, tool.isolation, on_output=tail.add)
        stdout, cut_out = readable(ended.stdout, opts.output_chars)
        stderr, cut_err = readable(ended.stderr, opts.output_chars)
        output = Output(stdout, stderr, ended.exit_code, cut=ended.cut or cut_out or cut_err)
        if ended.timed_out:
            raise RanOutOfTime(output)
        return output

    @asynccontextmanager
    async def _report_progress(self, tail: Tail, report: Report | None) -> AsyncIterator[None]:
        if report is None:
            yield
            return
        telling = asyncio.create_task(self._report_line(tail, report))
        try:
            yield
        finally:
            telling.cancel()

    async def _report_line(self, tail: Tail, report: Report) -> None:
        reported = ""
        while True:
            await self.clock.sleep(_STATUS_SECONDS)
            line = tail.line
            if line and line != reported:
                reported = line
                await report(line)
