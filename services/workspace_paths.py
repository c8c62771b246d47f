"""Names in a workspace: what people and models may write for a path, and what chats' folders are called."""

from __future__ import annotations

import hashlib
import unicodedata
from enum import StrEnum

from services.refs import ChatRef
from services.visible_text import is_visible

MOST_DEPTH = 12
_MOST_NAME_BYTES = 200  # of the 255 that file systems take, so that a name of ours fits beside it
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_FOLDER = 180
_KEPT_OF_A_LONG_ONE = 100


class Problem(StrEnum):
    """Why something cannot be done in a workspace; `files.problem.…` says it."""

    BLANK = "blank"
    ABSOLUTE = "absolute"
    PARENT = "parent"
    HIDDEN = "hidden"
    BACKSLASH = "backslash"
    UNSEEN = "unseen"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    NOT_FOUND = "not_found"
    IS_FOLDER = "is_folder"
    NO_FOLDER = "no_folder"
    NO_FILE = "no_file"  # a link, a device, a pipe
    LINKED = "linked"
    NOT_TEXT = "not_text"
    TOO_BIG = "too_big"
    FULL = "full"
    TOO_MANY = "too_many"


class WorkspaceFault(Exception):
    """Something cannot be done; `values` are for the sentence that says so."""

    def __init__(self, problem: Problem, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values


def parts_of(path: str) -> tuple[str, ...]:
    """The names that a path or a pattern leads through, each fit to be one; `.` is none. Raises WorkspaceFault."""
    parts = _parts(path)
    if not parts:
        raise WorkspaceFault(Problem.BLANK)
    return parts


def folder_parts_of(path: str) -> tuple[str, ...]:
    """The same for a folder; nothing and `.` mean the workspace itself. Raises WorkspaceFault."""
    return _parts(path) if path.strip() else ()


def is_name(name: str) -> bool:
    """Whether a name that stands in a folder is one that could be written here."""
    return _problem(name) is None


def folder_name(chat: ChatRef) -> str:
    """What the folder of `chat` is called: different for different chats, on file systems that do not tell capitals
    from small letters as well."""
    name = "".join(_plain(one) for one in chat.key)
    if len(name) <= _LONGEST_FOLDER:
        return name
    # A dot stands in no shorter name, so this is no other chat's.
    digest = hashlib.sha256(chat.key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:_KEPT_OF_A_LONG_ONE]}.{digest}"


def _parts(path: str) -> tuple[str, ...]:
    if not path.strip():
        raise WorkspaceFault(Problem.BLANK)
    if path.startswith("/"):
        raise WorkspaceFault(Problem.ABSOLUTE)
    written = unicodedata.normalize("NFC", path) if is_visible(path) else path
    parts = [part for part in written.removesuffix("/").split("/") if part != "."]
    for part in parts:
        problem = _problem(part)
        if problem is not None:
            raise WorkspaceFault(problem)
    if len(parts) > MOST_DEPTH:
        raise WorkspaceFault(Problem.TOO_DEEP, most=MOST_DEPTH)
    return tuple(parts)


def _problem(name: str) -> Problem | None:
    """What is wrong with one name."""
    if not is_visible(name):
        return Problem.UNSEEN
    if not name.strip():
        return Problem.BLANK
    if "\\" in name:
        return Problem.BACKSLASH
    if name == "..":
        return Problem.PARENT
    if name.startswith("."):
        return Problem.HIDDEN
    if "/" in name or len(name.encode()) > _MOST_NAME_BYTES:
        return Problem.TOO_LONG
    return None


def _plain(one: str) -> str:
    return one if one in _PLAIN else "".join(f"_{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))
