"""Where programs are found: an absolute path, or a name in these folders. Never the working folder."""

from __future__ import annotations

import os
from pathlib import Path

from services.processes import CannotStart

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
