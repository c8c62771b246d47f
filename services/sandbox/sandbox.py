"""Sandboxed processes: bubblewrap with kernel resource limits, or unsandboxed if the operator permits it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

import structlog

from config.sections.processes import SandboxSettings, ShellSettings
from services.clock import Clock, Deadlines
from services.sandbox.cgroups import Cgroups, NoCgroups, delegated_cgroups
from services.sandbox.processes import (
    PATH,
    CannotStart,
    Command,
    Finished,
    Limits,
    OnOutput,
    Places,
    Running,
    program,
)
from services.sandbox.seccomp import seccomp_filter

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


_JOIN = """
for folder in $1; do echo $$ > "$folder/cgroup.procs" || exit 125; done
[ -z "$2" ] || exec 9< "$2" || exit 125
shift 2; exec "$@"
"""
"""Joins a cgroup, opens the system call filter as descriptor 9 and becomes the rest of its arguments."""
_FILTER_DESCRIPTOR = "9"
_MOUNT = """
mount -t tmpfs -o "size=$1,nr_inodes=$2,mode=0700" tmpfs "$3" && mkdir "$3/tmp" "$3/shm" || exit 125
shift 3; exec "$@"
"""
"""Mounts the memory of /tmp and /dev/shm, where bubblewrap finds it: its own option limits bytes, but not files."""
_MOUNTED = Path("/sys")
_MOST_FILES = 20_000
"""Files in /tmp and /dev/shm together."""
_WITH_OWN_MOUNTS = ("/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--")


def by_prlimit(argv: Sequence[str], values: Mapping[str, int]) -> list[str]:
    """`argv` started by prlimit(1) with `values`. Child processes inherit them, and without privileges nobody can raise
    them."""
    return [PRLIMIT, *(f"--{name.lower()}={value}" for name, value in values.items()), "--", *argv]


def by_python(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` started by a minimal Python without a sandbox. No process limit: the kernel would count all processes of
    the user."""
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
_ETC_OF_THE_NETWORK = (
    *("hosts", "nsswitch.conf", "resolv.conf", "ca-certificates", "services", "protocols"),
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem"),  # ssl/private has the keys of the machine's services
)
_NO_SANDBOX_WITHIN = ("--unshare-user", "--disable-userns")
_TMP = "/tmp"  # noqa: S108 - within the sandbox
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - within the sandbox


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """An installed bubblewrap and its usable options."""

    path: Path
    is_new: bool = False
    """Version 0.8: it can limit in-memory file systems and prevent nested sandboxes."""
    limits_files: bool = False
    """Unprivileged mounts outside of bubblewrap work, so that the number of temporary files can be limited."""

    def arguments(self, command: Command, program: Path, limits: Limits, *, has_filter: bool) -> list[str]:
        """Argument list that runs `program` with the arguments of `command` in a new sandbox. `has_filter`: a system
        call filter is open as descriptor 9.

        The caller must start it in a new session and kill its process group at the end. With bubblewrap's own
        `--new-session` the first inner process would leave that group shortly before it sets its parent-death signal; a
        kill in between would leave it running.

        The limits are set before bubblewrap starts, so they apply to its own first process too. Only the number of
        processes is set inside, where it counts only the sandbox.

        The environment is inherited instead of passed as arguments, which every user of the machine can read.
        """
        shown = [(path, False) for path in command.readable]
        if command.folder is not None:
            shown.append((command.folder, True))
        resolved = program.resolve()
        if not _is_within(resolved, [*_SYSTEM, *(path for path, _ in shown)]):
            program = resolved
            shown.append((program, False))
        has_mount = self.limits_files and not any(_is_within(path, [_MOUNTED]) for path, _ in shown)
        options = [*self._options(command, sorted(shown, key=_depth), limits, has_mount=has_mount)]
        if has_filter:
            options += ["--seccomp", _FILTER_DESCRIPTOR]
        inside = by_prlimit([str(program), *command.argv[1:]], {"NPROC": limits.processes})
        argv = by_prlimit([str(self.path), *options, "--", *inside], _values(limits))
        if not has_mount:
            return argv
        values = (str(limits.file_bytes), str(_MOST_FILES), str(_MOUNTED))
        return [*_WITH_OWN_MOUNTS, "/bin/sh", "-c", _MOUNT, "sh", *values, *argv]

    def _options(
        self, command: Command, shown: Sequence[tuple[Path, bool]], limits: Limits, *, has_mount: bool
    ) -> Iterator[str]:
        yield from ("--unshare-all", "--die-with-parent", "--cap-drop", "ALL")
        if command.network:
            yield "--share-net"
        if self.is_new:
            yield from _NO_SANDBOX_WITHIN
        if has_mount:
            yield from ("--uid", str(os.getuid()), "--gid", str(os.getgid()))
        size = ("--size", str(limits.file_bytes)) if self.is_new else ()
        yield from _system(command.network)
        # Root owns /proc/sys even without capabilities, so all of /proc is read-only.
        yield from ("--proc", "/proc", "--remount-ro", "/proc")
        yield from ("--dev", "/dev")
        for name, place in (("shm", _SHARED_MEMORY), ("tmp", _TMP)):
            yield from ("--bind", str(_MOUNTED / name), place) if has_mount else (*size, "--tmpfs", place)
        yield from ("--remount-ro", "/dev")
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


_log = structlog.get_logger("sandbox")
_PROBE = Command(("true",))
_PROBE_SECONDS = 10.0
_SIGNALS = range(1, 65)


class Isolation(StrEnum):
    """Isolation that a process needs."""

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
    end: Callable[[], None]
    """To be called after the process group was killed: ends what left the group, and removes the cgroup."""


class Sandbox:
    """Runs processes in bubblewrap. If it is unavailable, processes that require isolation are refused, and others run
    without a sandbox. At most `at_once` of the settings run concurrently, half of them for one member, not counting
    those from `prepare`; timeouts start after the wait for a place."""

    def __init__(self, clock: Clock, settings: SandboxSettings | None = None) -> None:
        self._clock = clock
        self._deadlines = Deadlines(clock)
        self._settings = settings or SandboxSettings()
        self._found: Bubblewrap | str | None = None
        self._cgroups: Cgroups | str | None = None
        self._filters: dict[bool, int] = {}
        self._probing = asyncio.Lock()
        self._places = Places(self._settings.at_once)
        self._has_warned = False

    def use(self, settings: SandboxSettings) -> None:
        """Apply `settings` to every process started from now on, waiting ones included."""
        self._settings = settings
        self._places.use(settings.at_once)

    @property
    def settings(self) -> SandboxSettings:
        """The current settings."""
        return self._settings

    async def run(
        self,
        command: Command,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: Isolation = Isolation.PREFERRED,
        on_output: OnOutput | None = None,
    ) -> Finished:
        """Run `command` and return its result. A timeout or a cancelled caller kills it with its children. `on_output`
        receives the kept output of both streams as it arrives and must not raise. Raises NotIsolated if isolation is
        required but unavailable, and CannotStart."""
        async with self._places.held(command.owner):
            settings = self._settings
            limits = _capped(limits, settings)
            with tempfile.TemporaryDirectory(prefix="rollcall-", ignore_cleanup_errors=True) as own:
                prepared = await self._prepare(command, limits, isolation, Path(own), settings)
                try:
                    return await self._run(prepared, command, limits, on_output)
                finally:
                    prepared.end()

    async def prepare(
        self,
        command: Command,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        isolation: Isolation = Isolation.PREFERRED,
    ) -> Prepared:
        """Prepare `command` for a caller that starts, talks to and ends the process itself. The caller enforces the
        limits of time and output, starts it in a new session with no open files but its streams, at the end kills its
        process group, which in a sandbox ends all children, and calls `end` of the result. Without isolation and
        folder it runs in the system's temporary folder. Raises NotIsolated and CannotStart."""
        own_folder, settings = Path(tempfile.gettempdir()), self._settings
        return await self._prepare(command, _capped(limits, settings), isolation, own_folder, settings)

    async def problem(self) -> str:
        """Why processes cannot be isolated here, for operators; empty if they can."""
        return await self._problem(self._settings)

    async def _problem(self, settings: SandboxSettings) -> str:
        if settings.isolation == "off":
            return "the settings say `sandbox.isolation: off`"
        found = await self._probed()
        return found if isinstance(found, str) else ""

    async def unbounded(self) -> Sequence[str]:
        """Limits that isolated processes can exceed here, for operators: what is unlimited, and why."""
        found = await self._probed()
        if isinstance(found, str):
            return ()
        gaps: list[str] = []
        cgroups = self._delegated()
        if isinstance(cgroups, str):
            gaps.append(f"memory of a run as a whole and of its sockets (each process has a limit), because {cgroups}")
            if os.getuid() == 0:
                gaps.append("the number of processes, because the daemon runs as root without a cgroup")
        if self._filter(network=False) is None:
            gaps.append(f"system calls, because their numbers on {platform.machine()} are unknown")
        if not found.limits_files:
            gaps.append("the number of files in /tmp, because `unshare --user --mount` does not work")
        if not found.is_new:
            gaps.append("the size of /tmp and nested sandboxes, because bubblewrap is older than 0.8")
        return gaps

    async def _prepare(
        self, command: Command, limits: Limits, isolation: Isolation, own_folder: Path, settings: SandboxSettings
    ) -> Prepared:
        _check(command)
        path = program(command.argv[0])
        found = await self._bubblewrap(isolation, settings)
        if found is not None:
            return self._isolated(found, command, path, limits)
        folder = command.folder or own_folder
        argv = by_python([str(path), *command.argv[1:]], limits)
        return self._started(argv, _environment(command, str(own_folder)), folder, limits, filter_path="")

    def _isolated(self, found: Bubblewrap, command: Command, path: Path, limits: Limits) -> Prepared:
        descriptor = self._filter(network=command.network)
        argv = found.arguments(command, path, limits, has_filter=descriptor is not None)
        # A path instead of an inherited descriptor: each run needs its own file position.
        filter_path = "" if descriptor is None else f"/proc/{os.getpid()}/fd/{descriptor}"
        return self._started(argv, _environment(command, _TMP), Path("/"), limits, filter_path, isolated=True)

    def _started(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        limits: Limits,
        filter_path: str,
        *,
        isolated: bool = False,
    ) -> Prepared:
        group, end = "", _nothing
        cgroups = self._delegated()
        if not isinstance(cgroups, str):
            try:
                created = cgroups.create(limits)
            except OSError as error:
                _log.warning("cgroup_not_created", problem=str(error))
            else:
                group, end = str(created), partial(cgroups.end, created)
        if group or filter_path:
            argv = ["/bin/sh", "-c", _JOIN, "sh", group, filter_path, *argv]
        return Prepared(tuple(argv), env, folder, isolated, end)

    def _delegated(self) -> Cgroups | str:
        """Parent of the runs' cgroups, or why there is none."""
        if self._cgroups is None:
            try:
                self._cgroups = delegated_cgroups()
            except NoCgroups as error:
                self._cgroups = str(error)
        return self._cgroups

    def _filter(self, *, network: bool) -> int | None:
        """Descriptor of an in-memory file with the system call filter. None: unknown machine."""
        program = seccomp_filter(network=network)
        if program is None:
            return None
        if network not in self._filters:
            descriptor = os.memfd_create("rollcall-seccomp")
            os.write(descriptor, program)
            self._filters[network] = descriptor
            weakref.finalize(self, os.close, descriptor)
        return self._filters[network]

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

    async def _bubblewrap(self, isolation: Isolation, settings: SandboxSettings) -> Bubblewrap | None:
        """Bubblewrap for the process; None to run without isolation. Raises NotIsolated."""
        required = Isolation.REQUIRED in (isolation, Isolation(settings.isolation))
        if isolation is Isolation.OFF and not required:
            return None
        problem = await self._problem(settings)
        if not problem:
            found = await self._probed()
            return None if isinstance(found, str) else found
        if required:
            raise NotIsolated(problem)
        if not self._has_warned:
            self._has_warned = True
            _log.warning("processes_not_isolated", problem=problem)
        return None

    async def _probed(self) -> Bubblewrap | str:
        async with self._probing:
            if self._found is None:
                self._found = await self._probe()
            return self._found

    async def _probe(self) -> Bubblewrap | str:
        """Test bubblewrap by running it: it may be installed but forbidden. Returns the best usable options, or why
        there are none, for operators."""
        path = shutil.which("bwrap", path=PATH)
        if path is None:
            return f"there is no bwrap in {PATH}: install the package bubblewrap"
        problem = ""
        for is_new, limits_files in ((True, True), (True, False), (False, False)):
            found = Bubblewrap(Path(path), is_new, limits_files)
            prepared = self._isolated(found, _PROBE, program("true"), Limits())
            try:
                ended = await self._run(prepared, _PROBE, replace(Limits(), timeout_seconds=_PROBE_SECONDS), None)
            except CannotStart as error:
                return str(error)
            finally:
                prepared.end()
            if ended.exit_code == 0:
                return found
            message = ended.stderr.decode("utf-8", "replace").strip() or f"it ended with {ended.exit_code}"
            if not limits_files:
                problem = problem or f"bubblewrap cannot be used here: {message}"
        return problem


def _nothing() -> None:
    """End of a run without a cgroup."""


def limits_of(settings: SandboxSettings | ShellSettings) -> Limits:
    """The limits in the settings."""
    return Limits(
        timeout_seconds=settings.timeout_seconds,
        output_bytes=settings.output_kilobytes * 1000,
        memory_bytes=settings.memory_megabytes * 1024 * 1024,
        cpu_seconds=settings.cpu_seconds,
        processes=settings.processes,
        file_bytes=settings.file_megabytes * 1024 * 1024,
    )


def _capped(limits: Limits, settings: SandboxSettings) -> Limits:
    return Limits(*map(min, astuple(limits), astuple(limits_of(settings))))


def _check(command: Command) -> None:
    """Raises CannotStart for commands that the kernel or bubblewrap would reject."""
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
    """Complete environment of the process."""
    return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, **command.env}


def _unwrapped(code: int) -> int:
    """Convert bubblewrap's exit code, which is 128 plus the number for a signal, as in shells."""
    return 128 - code if code - 128 in _SIGNALS else code
