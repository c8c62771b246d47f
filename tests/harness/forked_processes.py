"""Fast processes of `python -m MODULE`: one interpreter imports everything, runs the slow first uses once, and forks
for each process. Input, output and exit status are as in any process."""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

REPOSITORY = Path(__file__).resolve().parents[2]
_MOST_BYTES = 1 << 20
_NEEDED = (
    *("bot.cli.call", "bot.cli.mcp", "bot.cli.run", "bot.mcp.stdio", "bot.mcp.server", "bot.web.wiring"),
    *("bot.platforms.irc.platform", "bot.platforms.irc.platform", "bot.mcp.http", "uvicorn.server", "mcp"),
    *("services.mcp.connection", "services.mcp.login", "services.mcp.web", "config.texts"),
    *("alembic.command", "apscheduler.schedulers.asyncio", "httpx2", "jsonschema_rs", "openai"),
)
"""Modules that commands import on demand."""
_CLIENT = Path(__file__).with_name("forked_client.py")


class Ended(NamedTuple):
    """Exit status and output of a process."""

    status: int
    out: str
    err: str


class ForkedProcess:
    """A process, with the interface of `asyncio.subprocess.Process`."""

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
        """Closes our end of its standard output."""
        self.returncode: int | None = None
        """Negative signal number if it was killed; None while it runs."""
        self._forking = forking
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._watched = os.pidfd_open(pid)
        self._loop.add_reader(self._watched, self._has_ended)

    async def wait(self) -> int:
        """Wait for the end of the process; returns its exit status."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Raises ProcessLookupError if it has ended."""
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
    folder: Path = REPOSITORY,
    stdin: int = subprocess.DEVNULL,
    stderr: int | None = None,
    limit: int = 1 << 16,
) -> AsyncIterator[ForkedProcess]:
    """The process of `python -m MODULE ARGUMENTS…` in `folder`, with a pipe for standard output and for streams that
    are `subprocess.PIPE`. It is killed at the end if it is still running. `limit`: maximum length of an output line in
    bytes."""
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
            asked = {
                "module": module,
                "arguments": arguments,
                "environment": dict(env or os.environ),
                "folder": str(folder),
            }
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
    """Exit status and output of such a process after it has ended."""
    async with a_forked_process(module, *arguments, env=env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
        return Ended(await process.wait(), out.decode(), err.decode())


def forked_command(module: str) -> tuple[str, ...]:
    """Command that replaces `python -m MODULE` if a shell or a library starts the process; ARGUMENTS follow."""
    return (sys.executable, "-I", "-S", str(_CLIENT), _forking().address, module)


class _Output(NamedTuple):
    """Our end of an output pipe."""

    reader: asyncio.StreamReader
    close: Callable[[], None]


async def _reading(pipes: AsyncExitStack, theirs: list[int], limit: int) -> _Output:
    """Our end of a new pipe; the other end is appended to `theirs`."""
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
    """Connection to the interpreter that forks."""

    def __init__(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="rollcall-fork.")
        atexit.register(folder.cleanup)
        self.address = f"{folder.name}/socket"
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self.address)
            listening.listen(64)
            self._control.connect(self.address)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listening.fileno())],
                cwd=REPOSITORY,
                env=environment,
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._asking = threading.Lock()
        atexit.register(self._end)

    def start(self, asked: Mapping[str, object], descriptors: Sequence[int]) -> int:
        """Process id of a new process; `descriptors` become its stdin, stdout and, if there are three, stderr."""
        return self._answer(asked, descriptors)

    def status(self, pid: int) -> int:
        """Exit status of a process that has ended."""
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


def fork_for(listening: socket.socket) -> None:
    """Fork as requested over connections, until the first one closes. If a connection closes, kill its processes."""
    first, _ = listening.accept()
    running: dict[socket.socket, set[int]] = {first: set()}
    while first in running:
        for ready in select.select([listening, *running], [], [])[0]:
            if ready is listening:
                running[listening.accept()[0]] = set()
            elif not _answered(ready, listening, running):
                ready.close()
                _kill(running.pop(ready))
    for left in running.values():
        _kill(left)


def _answered(asking: socket.socket, listening: socket.socket, running: Mapping[socket.socket, set[int]]) -> bool:
    """Process a request; returns False if the connection `asking` was closed."""
    message, descriptors, _, _ = socket.recv_fds(asking, _MOST_BYTES, 3)
    if not message:
        return False
    asked = json.loads(message)
    if "ended" in asked:
        _, status = os.waitpid(asked["ended"], 0)
        running[asking].discard(asked["ended"])
        answer = os.waitstatus_to_exitcode(status)
    else:
        answer = os.fork()
        if answer == 0:
            for inherited in (listening, *running):
                inherited.close()
            _become(asked, descriptors)
        running[asking].add(answer)
        for one in descriptors:
            os.close(one)
    with suppress(BrokenPipeError):  # the client has ended; its connection will be closed next
        asking.send(str(answer).encode())
    return True


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _become(asked: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """Run the requested module, then end this process like an interpreter."""
    for theirs, ours in enumerate(descriptors):
        os.dup2(ours, theirs)
        os.close(ours)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    if "umask" in asked:
        os.umask(asked["umask"])
    _take_the_interpreters_variables(asked["folder"])
    sys.argv[1:] = asked["arguments"]
    try:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise
        _exit(ending.code or 0)
    _exit(0)


def _exit(status: int) -> NoReturn:
    """End like an interpreter, but do not release all objects: most memory is shared with the parent and would be
    copied."""
    threading._shutdown()  # type: ignore[attr-defined]
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        sys.exit(status)
    atexit._run_exitfuncs()
    gc.collect()  # emits warnings for unclosed files and connections
    os._exit(status & 0xFF)


def _take_the_interpreters_variables(folder: str) -> None:
    """Apply PYTHONPATH, PYTHONUNBUFFERED and PYTHONWARNINGS, and add `folder` to sys.path, as an interpreter does at
    start."""
    path = os.environ.get("PYTHONPATH")
    sys.path[:1] = [folder, *(path.split(os.pathsep) if path else ())]
    if os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            assert isinstance(stream, io.TextIOWrapper)
            stream.reconfigure(write_through=True)
    for action in filter(None, os.environ.get("PYTHONWARNINGS", "").split(",")):
        warnings.simplefilter(action)  # type: ignore[arg-type]


async def live_once(functions: Sequence[object] = ()) -> None:
    """Use a daemon with `functions` once: first uses are slower than most tests."""
    # Imported here, because the test process does not need it.
    from bot.testing import a_group, call

    async with a_group(functions) as group:
        group.model.says(call("calculate", expression="2 + 2"), "It is 4.")
        await group.say("Ann", "@Rollcall what is 2 + 2?")
        await group.say("Ann", "/help")


def _main() -> None:
    gc.disable()
    for name in _NEEDED:
        importlib.import_module(name)
    asyncio.run(live_once())
    assert threading.active_count() == 1, "a fork takes no threads along, and may take what they hold"
    gc.collect()
    gc.freeze()
    gc.enable()
    fork_for(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    _main()
