"""Files and folders that only the user of the process may read."""

from __future__ import annotations

from pathlib import Path

_OTHERS = 0o077


def make_private(path: Path) -> None:
    """Take `path` from group and others, where it is there and they have any rights. Raises OSError."""
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS & 0o777)
    except FileNotFoundError:
        return
