"""Child processes: environment, working folder, output limits and results."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_FLOOD_BYTES = 4_000_000
_FLOOD = 16
"""Multiple of the output limit at which a process is killed, once it has also written `_FLOOD_BYTES`."""
_DRAIN_SECONDS = 1.0
"""Time for reading the rest of the output after the exit: processes that left the group may hold a stream open."""
OnOutput = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits. Except where noted, they apply to each process separately, children included."""

    timeout_seconds: float = 30.0
    """Wall-clock time of the whole run, children included."""
    output_bytes: int = 64_000
    """Kept bytes of standard output, and as many of standard error; the rest is dropped. A process that writes 16 times
    as much, and more than 4 MB, is killed."""
    memory_bytes: int = 512 * 1024 * 1024
    """Address space; in a cgroup also all memory of the run."""
    cpu_seconds: int = 30
    """CPU time."""
    processes: int = 64
    """Processes and threads together. Without a cgroup the kernel does not enforce it for root."""
    file_bytes: int = 64 * 1024 * 1024
    """Size of a single file; in a sandbox also the size of /tmp and /dev/shm together."""


@dataclass(frozen=True, slots=True)
class Command:
    """Program to run, with its arguments, input, environment, and the files and network it may use."""

    argv: tuple[str, ...]
    """Arguments, starting with the program as an absolute path or as a name in fixed folders. Not interpreted by a
    shell."""
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    """In addition to PATH, LANG, HOME and TMPDIR, which are always set; nothing is inherited."""
    folder: Path | None = None
    """Working folder at the same path in the sandbox, writable as is the private /tmp."""
    readable: tuple[Path, ...] = ()
    """Files and folders to expose read-only at the same paths, in addition to the system's programs and libraries."""
    network: bool = False
    owner: str = ""
    """Key of the member for whom it runs, whose share of concurrent processes it uses; empty: no share."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Result of a process that has ended: exit code, kept output, and whether it exceeded its timeout and was
    isolated."""

    exit_code: int
    """Negative: terminated by this signal."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    cut: bool
    """Whether it wrote more output than was kept."""
    isolated: bool


class CannotStart(Exception):
    """The process was not started. The text is for operators."""


class Running:
    """Running process in a new session, with captured output. Bound to the event loop that started it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        folder: Path,
        stdin: bytes,
        output_bytes: int,
        on_output: OnOutput | None,
    ) -> None:
        """Start the process with exactly `env`. Keeps `output_bytes` of each stream and passes them to `on_output`;
        excessive output kills it. Raises CannotStart."""
        self._loop = asyncio.get_running_loop()
        self._stdin = stdin
        self._dead: asyncio.Future[int] = self._loop.create_future()
        self.stdout = _OutputCapture(output_bytes, on_output, self.kill)
        self.stderr = _OutputCapture(output_bytes, on_output, self.kill)
        self._readers: list[asyncio.ReadTransport] = []
        self._writer: asyncio.WriteTransport | None = None
        self._written = _Written()
        try:
            # No Python code runs between fork and exec, and only the three streams are inherited.
            self._process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
                list(argv),
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=folder,
                start_new_session=True,
                close_fds=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise CannotStart(f"{argv[0]} cannot be started: {error}") from error
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError as error:
            self._kill_group()
            self._process.wait()
            self._close_pipes()
            raise CannotStart(f"{argv[0]} cannot be watched: {error}") from error
        self._loop.add_reader(self._pidfd, self._end)

    async def ended(self) -> int:
        """Send the input, read the output, and wait for the exit and at most one second for the rest of the output;
        returns the exit code, negative for a signal. Call it once."""
        await self._connect()
        code = await asyncio.shield(self._dead)
        await asyncio.wait([self.stdout.closed, self.stderr.closed], timeout=_DRAIN_SECONDS)
        return code

    def kill(self) -> None:
        """Kill the process group if the process is running. In a sandbox this ends all its children."""
        if not self._dead.done():
            self._kill_group()

    async def wait_ended(self) -> int:
        """Wait for the exit only, not for output; returns the exit code, negative for a signal."""
        return await asyncio.shield(self._dead)

    def close(self) -> None:
        """Stop reading and writing, and close the pipes; does not kill the process."""
        for reader in self._readers:
            reader.close()
        if self._writer is not None and not self._written.is_closed:
            self._writer.abort()  # close() would wait for the unread rest
        self._close_pipes()

    async def _connect(self) -> None:
        for capture, pipe in ((self.stdout, self._process.stdout), (self.stderr, self._process.stderr)):
            reader, _ = await self._loop.connect_read_pipe(_reading(capture), pipe)
            self._readers.append(reader)
        if self._stdin:
            self._writer, _ = await self._loop.connect_write_pipe(lambda: self._written, self._process.stdin)
            # The transport buffers the rest and writes it as the process reads.
            self._writer.write(self._stdin)
            self._writer.write_eof()

    def _end(self) -> None:
        """Callback at the exit of the process: kill the rest of its group, then reap it and set the exit code. The
        process is not reaped yet, so its number cannot be reused."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._kill_group()
        self._dead.set_result(self._process.wait())

    def _kill_group(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # the group is gone or belongs to another user

    def _close_pipes(self) -> None:
        pipes: list[IO[bytes] | None] = [self._process.stdin, self._process.stdout, self._process.stderr]
        for pipe in pipes:
            if pipe is not None:
                pipe.close()


class _OutputCapture(asyncio.Protocol):
    """Keeps the first `most_bytes` of a stream and passes them to `on_output`; sets `cut` if it drops more, and calls
    `on_flood` for excessive output."""

    def __init__(self, most_bytes: int, on_output: OnOutput | None, on_flood: Callable[[], None]) -> None:
        self.data = bytearray()
        self.cut = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._most = most_bytes
        self._seen = 0
        self._on_output = on_output
        self._on_flood = on_flood

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)
        piece = data[: self._most - len(self.data)]
        if len(piece) < len(data):
            self.cut = True
        if piece:
            self.data += piece
            if self._on_output is not None:
                self._on_output(piece)
        if self._seen > max(self._most * _FLOOD, _FLOOD_BYTES):
            self._on_flood()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class _Written(asyncio.BaseProtocol):
    """Protocol of the input pipe; remembers that it was closed, because it cannot be closed twice."""

    def __init__(self) -> None:
        self.is_closed = False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True


def _reading(capture: _OutputCapture) -> Callable[[], _OutputCapture]:
    return lambda: capture


class Places:
    """First-in, first-out semaphore with an adjustable limit and shares: an owner holds at most half of the places,
    rounded up, and its further requests wait without delaying those of others."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    def use(self, at_once: int) -> None:
        """Change the limit to `at_once`; holders are not affected, and waiters get new places at once."""
        self._at_once = at_once
        self._release_waiters()

    @asynccontextmanager
    async def held(self, owner: str) -> AsyncIterator[None]:
        """Hold a place, after a wait if necessary. An empty `owner` has no share."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.append((owner, place))
        self._release_waiters()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # Granted and cancelled at the same time.
                self._free(owner)
            raise
        try:
            yield
        finally:
            self._free(owner)

    def _free(self, owner: str) -> None:
        self._held[owner] -= 1
        self._held += Counter()  # removes owners without places
        self._release_waiters()

    def _release_waiters(self) -> None:
        left: list[tuple[str, asyncio.Future[None]]] = []
        for owner, place in self._waiting:
            if place.done():
                continue
            if self._held.total() < self._at_once and (not owner or self._held[owner] < -(-self._at_once // 2)):
                self._held[owner] += 1
                place.set_result(None)
            else:
                left.append((owner, place))
        self._waiting = left


FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
PATH = ":".join(FOLDERS)


def program(name: str) -> Path:
    """Path of the program `name`, an absolute path or a name in `FOLDERS`, without resolving links. Raises CannotStart
    if it is a relative path, missing or not executable."""
    if not name or "\0" in name:
        raise CannotStart("there is no program without a name")
    if name.startswith("/"):
        if not _is_program(Path(name)):
            raise CannotStart(f"{name} is no program")
        return Path(name)
    if "/" in name:
        raise CannotStart(f"{name} is a path from nowhere: name the program, or its absolute path")
    for folder in FOLDERS:
        if _is_program(Path(folder, name)):
            return Path(folder, name)
    raise CannotStart(f"there is no program {name} in {PATH}")


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
