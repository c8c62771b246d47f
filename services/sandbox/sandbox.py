"""Sandboxed processes: bubblewrap with kernel resource limits, or none where the operator allows that."""

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
    CannotStart,
    Command,
    Finished,
    Limits,
    OnOutput,
    ProcessPlaces,
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
    """`argv` begun by prlimit(1), which the sandbox has inside. There processes are counted for the sandbox alone."""
    values = {**_values(limits), "NPROC": limits.processes}
    return [PRLIMIT, *(f"--{name.lower()}={value}" for name, value in values.items()), "--", *argv]


def by_python(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` begun by a Python that does nothing else, for where there is no sandbox. Processes are not counted: the
    kernel would count all that this machine's user has."""
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


def wrapped(bubblewrap: Path, command: Command, program: Path, limits: Limits, *, is_new: bool = True) -> list[str]:
    """The argument list that runs `program` with the arguments of `command` in a sandbox of its own. `is_new`: with
    what bubblewrap has since 0.8, sizes for what is kept in memory and no sandboxes within the sandbox.

    Whoever starts it gives it a session of its own, and kills its process group in the end. A session that bubblewrap
    made would take the first process within out of that group a moment before that process has asked to die with
    bubblewrap, and a kill in this moment would leave it behind.

    The environment is not named here: every user of the machine can read the arguments of a process, so the sandbox
    hands on the one that it is started with itself, which holds nothing but what is meant for the program.
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
    # Root owns what lies in /proc/sys even after it has lost all its rights, so all of /proc can only be read.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", *size, "--tmpfs", _SHARED_MEMORY, "--remount-ro", "/dev")
    yield from (*size, "--tmpfs", _TMP)
    for path, is_writable in shown:  # the outer ones first, or they would hide what is shown within them
        yield from ("--bind" if is_writable else "--ro-bind", str(path), str(path))
    # Last, because the places for all of these have to be made in it.
    yield from ("--remount-ro", "/")
    yield from ("--chdir", str(command.folder or _TMP))


def _system(network: bool) -> Iterator[str]:
    """Programs and libraries, and of /etc the little that they need: no users, no keys, no settings."""
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
    """Whether a process has to be kept apart from this machine."""

    REQUIRED = "required"  # it does not run without
    PREFERRED = "preferred"  # it runs without where there is no other way
    OFF = "off"  # it runs without, unless the settings require more


class NotIsolated(Exception):
    """The process may run only in a sandbox, and there is none. The text says why, for operators."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a process is to be started by somebody who holds its streams: with this environment and no other."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: Path
    isolated: bool


@dataclass(frozen=True, slots=True)
class _Bubblewrap:
    """What the probe has found. `path` None: it cannot be used, and `problem` says why."""

    path: Path | None
    is_new: bool = False
    problem: str = ""


class Sandbox:
    """Runs processes, in bubblewrap where this machine has it and allows it. At most `at_once` of the
    settings run beside each other; others wait for a place, and their time begins when they have it."""

    def __init__(self, clock: Clock, settings: SandboxSettings | None = None) -> None:
        self._clock = clock
        self._deadlines = Deadlines(clock)
        self._settings = settings or SandboxSettings()
        self._found: _Bubblewrap | None = None
        self._probing = asyncio.Lock()
        self._places = ProcessPlaces(self._settings.at_once)
        self._has_warned = False

    def use(self, settings: SandboxSettings) -> None:
        """From now on these hold for each process that is started, for those that wait for a place too. What runs goes
        on as it was started."""
        self._settings = settings
        self._places.use(settings.at_once)

    @property
    def settings(self) -> SandboxSettings:
        """Those that hold now."""
        return self._settings

    async def run(
        self,
        command: Command,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: Isolation = Isolation.PREFERRED,
        on_output: OnOutput | None = None,
    ) -> Finished:
        """What came of `command`. At the timeout, and when the caller is cancelled, it is killed with all it started.
        `on_output` is given what is kept of both streams as it comes, and must not raise.
        Raises NotIsolated where isolation is required and cannot be had, and CannotStart for what cannot be started."""
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
        """How to start `command` for somebody who talks with it while it runs and ends it himself: the limits of time
        and output are his to keep, the others hold. It has to be started in a session of its own, with no open files
        but its streams, and ended by killing its process group: where it is isolated, that ends all it has started.
        Where it is neither isolated nor has a folder, it works in the machine's folder of temporary files.
        Raises NotIsolated and CannotStart."""
        own_folder, settings = Path(tempfile.gettempdir()), self._settings
        return await self._prepare(command, _capped(limits, settings), isolation, own_folder, settings)

    async def problem(self) -> str:
        """Why processes cannot be isolated on this machine, for operators; empty where they can."""
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
            argv = wrapped(found.path, command, path, limits, is_new=found.is_new)
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
                code = await running.gone()
        finally:
            running.kill()
            try:
                await running.gone()
            finally:
                running.close()
        return Finished(
            exit_code=_unwrapped(code) if prepared.isolated else code,
            stdout=bytes(running.stdout.kept),
            stderr=bytes(running.stderr.kept),
            timed_out=timed_out,
            cut=running.stdout.cut or running.stderr.cut,
            isolated=prepared.isolated,
        )

    async def _bubblewrap(self, isolation: Isolation, settings: SandboxSettings) -> _Bubblewrap:
        """What to run in; without a path nothing is to be isolated. Raises NotIsolated."""
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
        """Whether bubblewrap works, found out by running it: it may be there and forbidden."""
        found = shutil.which("bwrap", path=PATH)
        if found is None:
            return _Bubblewrap(None, problem=f"there is no bwrap in {PATH}: install the package bubblewrap")
        problem = ""
        for is_new in (True, False):
            argv = wrapped(Path(found), _PROBE, program("true"), Limits(), is_new=is_new)
            prepared = Prepared(tuple(argv), _environment(_PROBE, _TMP), Path("/"), isolated=True)
            try:
                ended = await self._run(prepared, _PROBE, replace(Limits(), timeout_seconds=_PROBE_SECONDS), None)
            except CannotStart as error:
                return _Bubblewrap(None, problem=str(error))
            if ended.exit_code == 0:
                return _Bubblewrap(Path(found), is_new)
            said = ended.stderr.decode("utf-8", "replace").strip() or f"it ended with {ended.exit_code}"
            problem = problem or f"bubblewrap cannot be used here: {said}"
        return _Bubblewrap(None, problem=problem)


def _capped(limits: Limits, most: SandboxSettings) -> Limits:
    """No more than the settings allow to anybody."""
    return Limits(
        timeout_seconds=min(limits.timeout_seconds, most.timeout_seconds),
        output_bytes=min(limits.output_bytes, most.output_kilobytes * 1000),
        memory_bytes=min(limits.memory_bytes, most.memory_megabytes * 1024 * 1024),
        cpu_seconds=min(limits.cpu_seconds, most.cpu_seconds),
        processes=min(limits.processes, most.processes),
        file_bytes=min(limits.file_bytes, most.file_megabytes * 1024 * 1024),
    )


def _check(command: Command) -> None:
    """Raises CannotStart for what the system would refuse, or bubblewrap would refuse in words of its own."""
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
    """All that the process has of an environment."""
    return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, **command.env}


def _unwrapped(code: int) -> int:
    """bubblewrap reports a signal as shells do, as 128 and its number."""
    return 128 - code if code - 128 in _SIGNALS else code
