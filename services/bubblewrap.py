"""The command line of bubblewrap: what a process in the sandbox has of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from services.process_limits import by_prlimit
from services.processes import Command, Limits

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
