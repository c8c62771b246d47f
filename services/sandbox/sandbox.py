"""Sandboxed processes: bubblewrap with kernel resource limits, or unsandboxed if the operator permits it."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import structlog

from config.sections.processes import SandboxSettings
from services.clock import Clock, Deadlines
from services.sandbox.processes import (
    PATH,
    AdjustableSemaphore,
    CannotStart,
    Command,
    Finished,
    Limits,
    OnOutput,
    Running,
    program,
)

_OPEN_FILES = 256
PRLIMIT = "/usr/bin/prlimit"

_SET_AND_BECOME = """
import os, resource, sys
names, argv = sys.argv[1].split(), sys.argv[2:]
for name, value in (pair.split("=") for pair in names):
    kind = getattr(resource, "RLIMIT_" + name)
    most = resource.getrlimit(kind)[1]
    value = int(value) if most == resource.RLIM_INFINITY else min(int(value), most)
    resource.setrlimit(kind, (value, value))
try:
    os.execv(argv[0], argv)
except OSError as error:
    sys.exit(f"{argv[0]}: {error.strerror}")
"""


def by_prlimit(argv: Sequence[str], limits: Limits) -> list[str]:
    """Arguments that start `argv` by prlimit(1) inside the sandbox, where the process limit counts only the sandbox."""
    values = {**_values(limits), "NPROC": limits.processes}
    return [PRLIMIT, *(f"--{name.lower()}={value}" for name, value in values.items()), "--", *argv]


def by_python(argv: Sequence[str], limits: Limits) -> list[str]:
    """Arguments that start `argv` by a minimal Python that sets the limits, without a sandbox. No process limit: the
    kernel would count all processes of the user."""
    named = " ".join(f"{name}={value}" for name, value in _values(limits).items())
    return [sys.executable, "-I", "-S", "-c", _SET_AND_BECOME, named, *argv]


def _values(limits: Limits) -> dict[str, int]:
    return {
        "AS": limits.memory_bytes,
        "CPU": limits.cpu_seconds,
        "FSIZE": limits.file_bytes,
        "NOFILE": _OPEN_FILES,
        "CORE": 0,
    }


_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM = (Path("/usr"), *(Path("/", name) for name in _MERGED))
_ETC = ("ld.so.cache", "alternatives", "localtime", "magic", "mime.types")
_ETC_OF_THE_NETWORK = ("hosts", "nsswitch.conf", "resolv.conf", "ssl", "ca-certificates", "services", "protocols")
_NO_SANDBOX_WITHIN = ("--unshare-user", "--disable-userns")
_TMP = "/tmp"  # noqa: S108 - within the sandbox
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - within the sandbox


def bubblewrap_arguments(
    bubblewrap: Path, command: Command, program: Path, limits: Limits, *, is_new: bool = True
) -> list[str]:
    """Argument list that runs `program` with the arguments of `command` in a new sandbox. `is_new`: use the options of
    bubblewrap 0.8 that limit in-memory file systems and prevent nested sandboxes.

    The caller must start it in a new session and kill its process group at the end. With bubblewrap's own
    `--new-session` the first inner process would leave that group shortly before it sets its parent-death signal; a
    kill in between would leave it running.

    The environment is inherited instead of passed as arguments, which every user of the machine can read.
    """
    shown = [(path, False) for path in command.readable]
    if command.folder is not None:
        shown.append((command.folder, True))
    resolved = program.resolve()
    if not _is_within(resolved, [*_SYSTEM, *(path for path, _ in shown)]):
        program = resolved
        shown.append((program, False))
    arguments = _arguments(command, sorted(shown, key=_depth), limits, is_new)
    inside = by_prlimit([str(program), *command.argv[1:]], limits)
    return [str(bubblewrap), *arguments, "--", *inside]


def _arguments(command: Command, shown: Sequence[tuple[Path, bool]], limits: Limits, is_new: bool) -> Iterator[str]:
    yield from ("--unshare-all", "--die-with-parent", "--cap-drop", "ALL")
    if command.network:
        yield "--share-net"
    if is_new:
        yield from _NO_SANDBOX_WITHIN
    size = ("--size", str(limits.file_bytes)) if is_new else ()
    yield from _system(command.network)
    # Root owns /proc/sys even without capabilities, so all of /proc is read-only.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", *size, "--tmpfs", _SHARED_MEMORY, "--remount-ro", "/dev")
    yield from (*size, "--tmpfs", _TMP)
    for path, is_writable in shown:  # outer folders first, or they would hide the inner mounts
        yield from ("--bind" if is_writable else "--ro-bind", str(path), str(path))
    # Last, because the mount points above must be created first.
    yield from ("--remount-ro", "/")
    yield from ("--chdir", str(command.folder or _TMP))


def _system(network: bool) -> Iterator[str]:
    """Mounts for programs, libraries and the few necessary files of /etc: no users, keys or settings."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _MERGED:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in (*_ETC, *(_ETC_OF_THE_NETWORK if network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _is_within(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _depth(shown: tuple[Path, bool]) -> int:
    return len(shown[0].parts)


__all__ = [
    "CannotStart",
    "Command",
    "Finished",
    "Isolation",
    "Limits",
    "NotIsolated",
    "OnOutput",
    "Prepared",
    "Sandbox",
]
_log = structlog.get_logger("sandbox")
_PROBE = Command(("true",))
_PROBE_SECONDS = 10.0
_SIGNALS = range(1, 65)


class Isolation(StrEnum):
    """Whether a process must, should or need not run in a sandbox."""

    REQUIRED = "required"  # do not run without a sandbox
    PREFERRED = "preferred"  # run without a sandbox if it is unavailable
    OFF = "off"  # run without a sandbox unless the settings require it


class NotIsolated(Exception):
    """The process requires a sandbox that is not available. The text is for operators."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Arguments for a caller that starts the process itself, with exactly this environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: Path
    isolated: bool


@dataclass(frozen=True, slots=True)
class _Bubblewrap:
    """Result of the probe. `path` is None if bubblewrap is unavailable; `problem` gives the reason."""

    path: Path | None
    is_new: bool = False
    problem: str = ""


class Sandbox:
    """Runs processes in bubblewrap. If it is unavailable, processes that require isolation are refused, and others run
    without a sandbox. At most `at_once` of the settings run concurrently, not counting those from `prepare`; timeouts
    start after the wait for a place."""

    def __init__(self, clock: Clock, settings: SandboxSettings | None = None) -> None:
        self._clock = clock
        self._deadlines = Deadlines(clock)
        self._settings = settings or SandboxSettings()
        self._found: _Bubblewrap | None = None
        self._probing = asyncio.Lock()
        self._places = AdjustableSemaphore(self._settings.at_once)
        self._has_warned = False

    def use(self, settings: SandboxSettings) -> None:
        """Apply `settings` to every process started from now on, waiting ones included."""
        self._settings = settings
        self._places.use(settings.at_once)

    @property
    def settings(self) -> SandboxSettings:
        """The settings last passed to `use`, or the initial ones."""
        return self._settings

    async def run(
        self,
        command: Command,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: Isolation = Isolation.PREFERRED,
        on_output: OnOutput | None = None,
    ) -> Finished:
        """Run `command` and return its result. A timeout or a cancelled caller kills it with its children. `on_output`
        receives the kept output of both streams as it arrives and must not raise. `limits` are capped by the settings.
        Raises NotIsolated if isolation is required but unavailable, and CannotStart."""
        async with self._places:
            settings = self._settings
            limits = _capped(limits, settings)
            with tempfile.TemporaryDirectory(prefix="rollcall-", ignore_cleanup_errors=True) as own:
                prepared = await self._prepare(command, limits, isolation, Path(own), settings)
                return await self._run(prepared, command, limits, on_output)

    async def prepare(
        self,
        command: Command,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: Isolation = Isolation.PREFERRED,
    ) -> Prepared:
        """Prepare `command` for a caller that starts, talks to and ends the process itself. The caller enforces the
        limits of time and output, starts it in a new session with no open files but its streams, and kills its process
        group at the end, which in a sandbox ends all children. Without isolation and folder it runs in the system's
        temporary folder. Raises NotIsolated and CannotStart."""
        own_folder, settings = Path(tempfile.gettempdir()), self._settings
        return await self._prepare(command, _capped(limits, settings), isolation, own_folder, settings)

    async def problem(self) -> str:
        """Why processes cannot be isolated here, for operators; empty if they can."""
        return await self._problem(self._settings)

    async def _problem(self, settings: SandboxSettings) -> str:
        if settings.isolation == "off":
            return "the settings say `sandbox.isolation: off`"
        return (await self._probed()).problem

    async def _prepare(
        self, command: Command, limits: Limits, isolation: Isolation, own_folder: Path, settings: SandboxSettings
    ) -> Prepared:
        _check(command)
        path = program(command.argv[0])
        found = await self._bubblewrap(isolation, settings)
        if found.path is not None:
            argv = bubblewrap_arguments(found.path, command, path, limits, is_new=found.is_new)
            return Prepared(tuple(argv), _environment(command, _TMP), Path("/"), isolated=True)
        folder = command.folder or own_folder
        argv = by_python([str(path), *command.argv[1:]], limits)
        return Prepared(tuple(argv), _environment(command, str(own_folder)), folder, isolated=False)

    async def _run(self, prepared: Prepared, command: Command, limits: Limits, on_output: OnOutput | None) -> Finished:
        running = Running(
            prepared.argv,
            env=prepared.env,
            folder=prepared.folder,
            stdin=command.stdin,
            output_bytes=limits.output_bytes,
            on_output=on_output,
        )
        timed_out = False
        try:
            try:
                code = await self._deadlines.run(running.ended(), self._clock.monotonic() + limits.timeout_seconds)
            except TimeoutError:
                timed_out = True
                running.kill()
                code = await running.wait_ended()
        finally:
            running.kill()
            try:
                await running.wait_ended()
            finally:
                running.close()
        return Finished(
            exit_code=_unwrapped(code) if prepared.isolated else code,
            stdout=bytes(running.stdout.data),
            stderr=bytes(running.stderr.data),
            timed_out=timed_out,
            cut=running.stdout.cut or running.stderr.cut,
            isolated=prepared.isolated,
        )

    async def _bubblewrap(self, isolation: Isolation, settings: SandboxSettings) -> _Bubblewrap:
        """Bubblewrap for the process; its path is None to run without isolation. Raises NotIsolated if isolation is
        required but unavailable; logs a warning, once, if it is only preferred."""
        required = Isolation.REQUIRED in (isolation, Isolation(settings.isolation))
        if isolation is Isolation.OFF and not required:
            return _Bubblewrap(None)
        problem = await self._problem(settings)
        if not problem:
            return await self._probed()
        if required:
            raise NotIsolated(problem)
        if not self._has_warned:
            self._has_warned = True
            _log.warning("processes_not_isolated", problem=problem)
        return _Bubblewrap(None)

    async def _probed(self) -> _Bubblewrap:
        async with self._probing:
            if self._found is None:
                self._found = await self._probe()
            return self._found

    async def _probe(self) -> _Bubblewrap:
        """Find bubblewrap and test it by running `true`, first with the options of version 0.8: it may be installed but
        forbidden."""
        found = shutil.which("bwrap", path=PATH)
        if found is None:
            return _Bubblewrap(None, problem=f"there is no bwrap in {PATH}: install the package bubblewrap")
        problem = ""
        for is_new in (True, False):
            argv = bubblewrap_arguments(Path(found), _PROBE, program("true"), Limits(), is_new=is_new)
            prepared = Prepared(tuple(argv), _environment(_PROBE, _TMP), Path("/"), isolated=True)
            try:
                ended = await self._run(prepared, _PROBE, replace(Limits(), timeout_seconds=_PROBE_SECONDS), None)
            except CannotStart as error:
                return _Bubblewrap(None, problem=str(error))
            if ended.exit_code == 0:
                return _Bubblewrap(Path(found), is_new)
            message = ended.stderr.decode("utf-8", "replace").strip() or f"it ended with {ended.exit_code}"
            problem = problem or f"bubblewrap cannot be used here: {message}"
        return _Bubblewrap(None, problem=problem)


def _capped(limits: Limits, most: SandboxSettings) -> Limits:
    """Each of `limits`, or the limit in the settings if that is lower."""
    return Limits(
        timeout_seconds=min(limits.timeout_seconds, most.timeout_seconds),
        output_bytes=min(limits.output_bytes, most.output_kilobytes * 1000),
        memory_bytes=min(limits.memory_bytes, most.memory_megabytes * 1024 * 1024),
        cpu_seconds=min(limits.cpu_seconds, most.cpu_seconds),
        processes=min(limits.processes, most.processes),
        file_bytes=min(limits.file_bytes, most.file_megabytes * 1024 * 1024),
    )


def _check(command: Command) -> None:
    """Raises CannotStart for an empty command, NUL characters, and folders or readable paths that are relative or
    missing."""
    if not command.argv:
        raise CannotStart("there is no program")
    if any("\0" in one for one in (*command.argv, *command.env, *command.env.values())):
        raise CannotStart(f"{command.argv[0]} is given an argument with a NUL in it")
    if command.folder is not None and not (command.folder.is_absolute() and command.folder.is_dir()):
        raise CannotStart(f"{command.folder} is no folder to work in")
    for path in command.readable:
        if not (path.is_absolute() and path.exists()):
            raise CannotStart(f"{path} is not there to be read")


def _environment(command: Command, home: str) -> dict[str, str]:
    """Complete environment of the process: PATH, LANG, HOME and TMPDIR (both `home`), overridden by the command's."""
    return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, **command.env}


def _unwrapped(code: int) -> int:
    """Convert bubblewrap's exit code: 128 plus a signal number, as in shells, becomes the negative number; others are
    unchanged."""
    return 128 - code if code - 128 in _SIGNALS else code
