"""MCP servers as child processes: one JSON message per line over standard input and output.

The program runs in a new session with exactly the given environment. To stop its process group, close its standard
input, then send SIGTERM, then SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from services.mcp.problems import MESSAGE_BYTES

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_ASKED_SECONDS = 2.0
_TERM_SECONDS = 2.0
_LOOK_SECONDS = 0.02
_log = structlog.get_logger("mcp")


@dataclass(frozen=True, slots=True)
class Program:
    """Program to start: arguments with the program first, environment, and working folder."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The complete environment."""
    folder: Path
    end: Callable[[], None] | None = None
    """Called after its process group was killed."""


@asynccontextmanager
async def program_streams(
    program: Program, on_stderr: Callable[[bytes], None], on_noise: Callable[[bytes], None]
) -> AsyncIterator[TransportStreams]:
    """Start `program` and yield its message streams; stop it on exit. `on_stderr` receives its standard error,
    `on_noise` output lines that are not messages. Raises OSError if it cannot be started, and ValueError for a NUL in
    an argument."""
    process = await asyncio.create_subprocess_exec(
        *program.argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(program.env),
        cwd=program.folder,
        start_new_session=True,
        limit=MESSAGE_BYTES,
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(stdout, incoming, on_noise)),
        asyncio.create_task(_write(stdin, outgoing, incoming)),
        asyncio.create_task(_pass_on(stderr, on_stderr)),
    ]
    try:
        yield read, write
    finally:
        try:
            with anyio.CancelScope(shield=True):
                await _end(process)
        finally:
            # Kill the group even if the orderly stop failed.
            _signal_group(process.pid, signal.SIGKILL)
            try:
                # Wait for the exit: a cancelled caller may close the loop next, which would never reap the child.
                await _wait_gone(lambda: process.returncode is not None, _TERM_SECONDS)
            finally:
                if program.end is not None:
                    program.end()
                for task in tasks:
                    task.cancel()
                for stream in (read, write, incoming, outgoing):
                    stream.close()
                transport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001 - no public API closes the pipes
                transport.close()


async def _read(
    stdout: asyncio.StreamReader,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    on_noise: Callable[[bytes], None],
) -> None:
    """Pass on each incoming message, until the output ends or a line exceeds the size limit (logged). Other lines go to
    `on_noise`."""
    with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            try:
                line = await stdout.readline()
            except ValueError:
                _log.warning("mcp_message_too_long", most_bytes=MESSAGE_BYTES)
                return
            if not line:
                return
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                on_noise(line)
                continue
            await incoming.send(SessionMessage(message))


async def _write(
    stdin: asyncio.StreamWriter,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Write each message to the program. A broken pipe closes `incoming`, so that the session ends."""
    try:
        async with outgoing:
            async for item in outgoing:
                stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        incoming.close()


async def _pass_on(stderr: asyncio.StreamReader, on_stderr: Callable[[bytes], None]) -> None:
    while piece := await stderr.read(65_536):
        on_stderr(piece)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Stop the program and its process group: close its input, then SIGTERM, then SIGKILL."""
    if process.stdin is not None:
        process.stdin.close()
    if await _wait_gone(lambda: process.returncode is not None, _ASKED_SECONDS) and not _group_lives(process.pid):
        return
    _signal_group(process.pid, signal.SIGTERM)
    if not await _wait_gone(lambda: process.returncode is not None and not _group_lives(process.pid), _TERM_SECONDS):
        _signal_group(process.pid, signal.SIGKILL)
        await _wait_gone(lambda: process.returncode is not None, _TERM_SECONDS)


async def _wait_gone(is_gone: Callable[[], bool], seconds: float) -> bool:
    """Poll `is_gone` for up to `seconds`; returns whether it became true. `Process.wait` would also wait for other
    holders of the pipes."""
    remaining = seconds
    while not is_gone():
        if remaining <= 0:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
        remaining -= _LOOK_SECONDS
    return True


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
