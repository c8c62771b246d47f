"""Processes of `python -m MODULE` that start in a moment: one interpreter imports everything, does once what takes
longest the first time, and forks for each of them. What they are given, do and say is theirs as in any process."""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import lru_cache
from typing import NamedTuple, NoReturn

from tests.conftest import REPOSITORY

_MOST_BYTES = 1 << 20
_NEEDED = (
    *("bot.cli.call", "bot.cli.mcp", "bot.cli.run", "bot.mcp.stdio", "bot.mcp.server", "bot.web.wiring"),
    *("bot.platforms.irc.platform", "bot.platforms.irc.platform", "bot.mcp.http", "uvicorn.server", "mcp"),
    *("alembic.command", "apscheduler.schedulers.asyncio", "httpx2", "jsonschema_rs", "openai"),
)
"""What commands import when they come to it."""


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    status: int
    out: str
    err: str


class ForkedProcess:
    """What a test holds of a process, in the words of `asyncio.subprocess.Process`."""

    def __init__(
        self,
        forking: _Forking,
        pid: int,
        stdin: asyncio.StreamWriter | None,
        stdout: _Output,
        stderr: _Output | None,
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout.reader
        self.stderr = stderr.reader if stderr is not None else None
        self.stop_reading = stdout.close
        """Closes this end of its standard output."""
        self.returncode: int | None = None
        """Minus the signal that killed it; None while it runs."""
        self._forking = forking
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._watched = os.pidfd_open(pid)
        self._loop.add_reader(self._watched, self._has_ended)

    async def wait(self) -> int:
        """Its exit status, when it has ended."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Raises ProcessLookupError when it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        signal.pidfd_send_signal(self._watched, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self) -> None:
        self._loop.remove_reader(self._watched)
        os.close(self._watched)
        self.returncode = self._forking.status(self.pid)
        self._ended.set()


@asynccontextmanager
async def a_forked_process(
    module: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stderr: int | None = None,
    limit: int = 1 << 16,
) -> AsyncIterator[ForkedProcess]:
    """The process of `python -m MODULE ARGUMENTS…`, with pipes for standard output and what is `subprocess.PIPE`;
    killed at the end if it still runs. `limit`: of a line that it writes, in bytes."""
    async with AsyncExitStack() as pipes:
        theirs: list[int] = []
        try:
            if stdin == subprocess.PIPE:
                writer = await _writing(pipes, theirs)
            else:
                writer = None
                theirs.append(os.open(os.devnull, os.O_RDONLY))
            out = await _reading(pipes, theirs, limit)
            err = await _reading(pipes, theirs, limit) if stderr == subprocess.PIPE else None
            forking = await asyncio.to_thread(_forking)
            asked = {"module": module, "arguments": arguments, "environment": dict(env or os.environ)}
            pid = await asyncio.to_thread(forking.start, asked, theirs)
        finally:
            for one in theirs:
                os.close(one)
        process = ForkedProcess(forking, pid, writer, out, err)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def forked(module: str, *arguments: str, env: Mapping[str, str]) -> Ended:
    """How such a process ended, by itself."""
    async with a_forked_process(module, *arguments, env=env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
        return Ended(await process.wait(), out.decode(), err.decode())


class _Output(NamedTuple):
    """Our end of what a process writes."""

    reader: asyncio.StreamReader
    close: Callable[[], None]


async def _reading(pipes: AsyncExitStack, theirs: list[int], limit: int) -> _Output:
    """Our end of one more pipe, the other end of which is added to `theirs`."""
    reader = asyncio.StreamReader(limit)
    ours, end = os.pipe()
    theirs.append(end)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb")
    )
    pipes.callback(transport.close)
    return _Output(reader, transport.close)


async def _writing(pipes: AsyncExitStack, theirs: list[int]) -> asyncio.StreamWriter:
    end, ours = os.pipe()
    theirs.append(end)
    loop, protocol = asyncio.get_running_loop(), asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(ours, "wb"))
    pipes.callback(transport.close)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class _Forking:
    """The one interpreter that forks, and how it is asked."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=REPOSITORY,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._asking = threading.Lock()
        atexit.register(self._end)

    def start(self, asked: Mapping[str, object], descriptors: Sequence[int]) -> int:
        """The id of a new process; `descriptors` become its standard input, output and, with three, error."""
        return self._answer(asked, descriptors)

    def status(self, pid: int) -> int:
        """The exit status of a process that has ended."""
        return self._answer({"ended": pid}, ())

    def _answer(self, asked: Mapping[str, object], descriptors: Sequence[int]) -> int:
        with self._asking:
            socket.send_fds(self._control, [json.dumps(asked).encode()], descriptors)
            answer = self._control.recv(_MOST_BYTES)
        assert answer, "the interpreter that forks has ended; what it said stands on standard error"
        return int(answer)

    def _end(self) -> None:
        self._control.close()
        self._process.wait()


@lru_cache(maxsize=1)
def _forking() -> _Forking:
    return _Forking()


def fork_for(control: socket.socket) -> None:
    """Fork as asked, until nobody asks any more; then kill what still runs."""
    running: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MOST_BYTES, 3)
        if not message:
            break
        asked = json.loads(message)
        if "ended" in asked:
            _, status = os.waitpid(asked["ended"], 0)
            running.discard(asked["ended"])
            control.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _become(asked["module"], asked["arguments"], asked["environment"], descriptors)
        running.add(pid)
        for one in descriptors:
            os.close(one)
        control.send(str(pid).encode())
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _become(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]
) -> NoReturn:
    """Be the process that was asked for. It ends by SystemExit, which ends this process as it would end any."""
    for theirs, ours in enumerate(descriptors):
        os.dup2(ours, theirs)
        os.close(ours)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


async def live_once() -> None:
    """Do what every daemon does once: first uses of everything take longer than all that a test has it do."""
    # Imported here: the test's side needs none of it.
    from bot.testing import a_group, call

    async with a_group() as group:
        group.model.says(call("calculate", expression="2 + 2"), "It is 4.")
        await group.say("Ann", "@Rollcall what is 2 + 2?")
        await group.say("Ann", "/help")


def _main() -> None:
    for name in _NEEDED:
        importlib.import_module(name)
    asyncio.run(live_once())
    assert threading.active_count() == 1, "a fork takes no threads along, and may take what they hold"
    gc.collect()
    gc.freeze()
    fork_for(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    _main()
