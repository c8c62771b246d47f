"""Control groups: limits of memory and processes for a run as a whole, if cgroup v2 is delegated to the daemon."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import structlog

from services.sandbox.processes import Limits

_PROC = Path("/proc")
_CONTROLLERS = {"memory", "pids"}
_DAEMON = "rollcall-daemon"
_RUN = "rollcall-run-"
_OWN_PROCESSES = 4
"""Processes of the sandbox itself."""
_log = structlog.get_logger("sandbox")


class NoCgroups(Exception):
    """No usable cgroup. The text is for operators."""


class Cgroups:
    """Parent of the runs' cgroups."""

    def __init__(self, folder: Path) -> None:
        """`folder`: a writable cgroup v2 directory that passes the controllers memory and pids to its children."""
        self._folder = folder
        self._ended: list[Path] = []

    def create(self, limits: Limits) -> Path:
        """Folder of a new cgroup with these limits. Raises OSError."""
        self._ended = [each for each in self._ended if not _removed(each)]
        group = self._folder / f"{_RUN}{secrets.token_hex(8)}"
        group.mkdir()
        try:
            (group / "memory.max").write_text(str(limits.memory_bytes))
            (group / "pids.max").write_text(str(limits.processes + _OWN_PROCESSES))
            (group / "memory.oom.group").write_text("1")
            if (group / "memory.swap.max").exists():  # absent without swap accounting
                (group / "memory.swap.max").write_text("0")
        except OSError:
            self.end(group)
            raise
        return group

    def end(self, group: Path) -> None:
        """Kill the rest of a run and remove its cgroup, at the latest before a later run."""
        if not _removed(group):
            self._ended.append(group)


def _removed(group: Path) -> bool:
    """Kill the processes of a cgroup and remove it; returns False if the kernel still counts one of them."""
    try:
        # Exists since Linux 5.14; without it the caller's kill of the process group has to suffice.
        if (group / "cgroup.kill").exists():
            (group / "cgroup.kill").write_text("1")
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def delegated_cgroups(proc: Path = _PROC) -> Cgroups:
    """Cgroups below the daemon's own. A process in a cgroup with children prevents controllers for them, so the daemon
    moves itself to a child if nobody else is in its cgroup. Raises NoCgroups."""
    folder = _own_folder(proc)
    if folder.name == _DAEMON:
        folder = folder.parent
    try:
        available = set((folder / "cgroup.controllers").read_text().split())
        if missing := _CONTROLLERS - available:
            raise NoCgroups(f"the cgroup {folder} has no controller for {' and '.join(sorted(missing))}")
        if not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.procs", os.W_OK):
            raise NoCgroups(f"the cgroup {folder} is not writable; systemd delegates it with `Delegate=yes`")
        if not set((folder / "cgroup.subtree_control").read_text().split()) >= _CONTROLLERS:
            _enable(folder)
    except OSError as error:
        raise NoCgroups(f"the cgroup {folder} cannot be used: {error.strerror}") from error
    _remove_old(folder)
    return Cgroups(folder)


def _own_folder(proc: Path) -> Path:
    """Directory of the daemon's cgroup. Raises NoCgroups."""
    try:
        mounts = [line.split(" - ") for line in (proc / "self/mountinfo").read_text().splitlines()]
        mount = next((each[0].split()[4] for each in mounts if each[1].startswith("cgroup2 ")), None)
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError as error:
        raise NoCgroups(f"{proc}/self cannot be read: {error.strerror}") from error
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if mount is None or own is None:
        raise NoCgroups("no cgroup v2 is mounted")
    return Path(mount, own)


def _enable(folder: Path) -> None:
    """Pass the controllers to children. Raises NoCgroups and OSError."""
    others = set((folder / "cgroup.procs").read_text().split()) - {str(os.getpid())}
    if others:
        raise NoCgroups(f"{len(others)} other processes are in the cgroup {folder}")
    (folder / _DAEMON).mkdir(exist_ok=True)
    (folder / _DAEMON / "cgroup.procs").write_text(str(os.getpid()))
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(_CONTROLLERS)))


def _remove_old(folder: Path) -> None:
    """Remove empty cgroups of an earlier daemon; those in use stay."""
    for path in folder.glob(f"{_RUN}*"):
        try:
            path.rmdir()
        except OSError as error:
            _log.debug("cgroup_in_use", path=str(path), problem=str(error))
