"""The command line of bubblewrap: what a process in the sandbox has of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from services.process_limits import by_prlimit
from services.processes import Command, Limits

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("ld.so.cache", "alternatives", "localtime", "magic", "mime.types")
_ETC_OF_THE_NETWORK = ("hosts", "nsswitch.conf", "resolv.conf", "ssl", "ca-certificates", "services", "protocols")
NEWEST: tuple[str, ...] = ("--unshare-user", "--disable-userns")
"""What bubblewrap has since 0.8: no sandboxes within the sandbox."""


def wrapped(bubblewrap: Path, command: Command, program: Path, limits: Limits, *, is_new: bool = True) -> list[str]:
    """The argument list that runs `program` with the arguments of `command` in a sandbox of its own.

    The environment is not named here: every user of the machine can read the arguments of a process, so the sandbox
    hands on the one it is started with, and that holds nothing but what is meant for the program.
    """
    if _is_of_the_system(program) or _is_within(program, command.readable) or _is_within(program, _folders(command)):
        at = program
    else:
        at = program.resolve()
    inside = by_prlimit([str(at), *command.argv[1:]], limits)
    return [str(bubblewrap), *_arguments(command, at, limits, is_new), "--", *inside]


def _arguments(command: Command, program: Path, limits: Limits, is_new: bool) -> Iterator[str]:
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if command.network:
        yield "--share-net"
    if is_new:
        yield from NEWEST
    size = ("--size", str(limits.file_bytes)) if is_new else ()
    yield from _system(command.network)
    # A root that has lost its rights still owns what lies in /proc/sys, so all of /proc can only be read.
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", *size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108 - within the sandbox
    yield from (*size, "--tmpfs", "/tmp")  # noqa: S108 - within the sandbox
    for path in command.readable:
        yield from ("--ro-bind", str(path), str(path))
    if not (_is_of_the_system(program) or _is_within(program, (*command.readable, *_folders(command)))):
        yield from ("--ro-bind", str(program), str(program))
    if command.folder is not None:
        yield from ("--bind", str(command.folder), str(command.folder))
    # Last, because the places for the folders above have to be made in it.
    yield from ("--remount-ro", "/")
    yield from ("--chdir", str(command.folder) if command.folder is not None else "/tmp")  # noqa: S108


def _system(network: bool) -> Iterator[str]:
    """Programs and libraries, and of /etc the little that they need: no users, no keys, no settings."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in (*_ETC, *(_ETC_OF_THE_NETWORK if network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _is_of_the_system(path: Path) -> bool:
    return _is_within(path, [Path("/usr"), *(Path("/", name) for name in _SYSTEM)])


def _is_within(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _folders(command: Command) -> tuple[Path, ...]:
    return (command.folder,) if command.folder is not None else ()
