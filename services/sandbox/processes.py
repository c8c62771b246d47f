"""Child processes: environment, working folder, output limits, and the result of a run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_FLOOD_BYTES = 4_000_000
_FLOOD = 16
"""Who writes so many times what is kept, and so much at all, is not listened to any longer, but killed."""
_DRAIN_SECONDS = 1.0
"""How long a stream is read on after the process has ended: only one who slipped away can hold it open then."""
OnOutput = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may use; all it starts may use as much each, unless it says otherwise."""

    timeout_seconds: float = 30.0
    """From the start to the end, all it has started included."""
    output_bytes: int = 64_000
    """Kept of what it writes to its standard output, and as much of its standard error. More is thrown away; who writes
    16 times as much, and more than 4 MB, is killed."""
    memory_bytes: int = 512 * 1024 * 1024
    """Address space."""
    cpu_seconds: int = 30
    """Time of processors."""
    processes: int = 64
    """All processes and threads together. The kernel counts them for everybody but root."""
    file_bytes: int = 64 * 1024 * 1024
    """One file that it writes; in a sandbox also all of its /tmp together."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program and what it is given."""

    argv: tuple[str, ...]
    """The program, as an absolute path or as a name that is looked up in fixed folders, and its arguments. No shell
    reads them."""
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    """Beside PATH, LANG, HOME and TMPDIR, which are set for it; nothing is inherited."""
    folder: Path | None = None
    """The working folder, under its own path: the one place where it may write beside its own empty /tmp."""
    readable: tuple[Path, ...] = ()
    """Files and folders that it may read, under their own paths, beside the system's programs and libraries."""
    network: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a process."""

    exit_code: int
    """Negative: ended by the signal of that number."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    cut: bool
    """It wrote more than was kept."""
    isolated: bool


class CannotStart(Exception):
    """The process was not started. The text says why, for operators."""


class Running:
    """A process of its own session that is being listened to. Belongs to the loop in which it was started."""

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
        """Starts it. Raises CannotStart."""
        self._loop = asyncio.get_running_loop()
        self._stdin = stdin
        self._dead: asyncio.Future[int] = self._loop.create_future()
        self.stdout = _Kept(output_bytes, on_output, self.kill)
        self.stderr = _Kept(output_bytes, on_output, self.kill)
        self._readers: list[asyncio.ReadTransport] = []
        self._writer: asyncio.WriteTransport | None = None
        self._written = _Written()
        try:
            # Nothing of ours runs between fork and exec; only the three streams are handed on.
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
        """The code it ended with, once it is gone and everything it wrote was read."""
        await self._connect()
        code = await asyncio.shield(self._dead)
        await asyncio.wait([self.stdout.closed, self.stderr.closed], timeout=_DRAIN_SECONDS)
        return code

    def kill(self) -> None:
        """Kill it and its process group, if it has not ended. In a sandbox that is all it has ever started."""
        if not self._dead.done():
            self._kill_group()

    async def gone(self) -> int:
        """The code it ended with, as soon as it is gone."""
        return await asyncio.shield(self._dead)

    def close(self) -> None:
        """Read no more of it."""
        for reader in self._readers:
            reader.close()
        if self._writer is not None and not self._written.is_closed:
            self._writer.abort()  # closing would wait for what nobody will read
        self._close_pipes()

    async def _connect(self) -> None:
        for kept, pipe in ((self.stdout, self._process.stdout), (self.stderr, self._process.stderr)):
            reader, _ = await self._loop.connect_read_pipe(_reading(kept), pipe)
            self._readers.append(reader)
        if self._stdin:
            self._writer, _ = await self._loop.connect_write_pipe(lambda: self._written, self._process.stdin)
            # What does not go through at once is written on as the process reads, beside everything else.
            self._writer.write(self._stdin)
            self._writer.write_eof()

    def _end(self) -> None:
        """It is dead and not yet buried, so its number cannot be another's: those of its group that live on end now."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._kill_group()
        self._dead.set_result(self._process.wait())

    def _kill_group(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # nobody is left, or nobody who may be killed

    def _close_pipes(self) -> None:
        pipes: list[IO[bytes] | None] = [self._process.stdin, self._process.stdout, self._process.stderr]
        for pipe in pipes:
            if pipe is not None:
                pipe.close()


class _Kept(asyncio.Protocol):
    """The beginning of what comes out of a stream."""

    def __init__(self, most_bytes: int, on_output: OnOutput | None, on_flood: Callable[[], None]) -> None:
        self.kept = bytearray()
        self.cut = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._most = most_bytes
        self._seen = 0
        self._on_output = on_output
        self._on_flood = on_flood

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)
        piece = data[: self._most - len(self.kept)]
        if len(piece) < len(data):
            self.cut = True
        if piece:
            self.kept += piece
            if self._on_output is not None:
                self._on_output(piece)
        if self._seen > max(self._most * _FLOOD, _FLOOD_BYTES):
            self._on_flood()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class _Written(asyncio.BaseProtocol):
    """The way into a stream; a closed one cannot be closed again."""

    def __init__(self) -> None:
        self.is_closed = False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True


def _reading(kept: _Kept) -> Callable[[], _Kept]:
    return lambda: kept


class ProcessPlaces:
    """So many places, given to who has waited longest; their number may change while they are taken."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def use(self, at_once: int) -> None:
        """From now on there are so many; who has a place keeps it."""
        self._at_once = at_once
        self._give()

    async def __aenter__(self) -> None:
        """Return when there is a place."""
        if self._taken < self._at_once and not self._waiting:
            self._taken += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was given in the same moment.
                self._free()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._free()

    def _free(self) -> None:
        self._taken -= 1
        self._give()

    def _give(self) -> None:
        while self._waiting and self._taken < self._at_once:
            place = self._waiting.popleft()
            if not place.done():
                self._taken += 1
                place.set_result(None)


FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
PATH = ":".join(FOLDERS)


def program(name: str) -> Path:
    """The program that `name` means, by the path that leads to it, links not followed. Raises CannotStart."""
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
