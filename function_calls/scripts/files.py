"""The files of a chat as scripts have them: those of its own folder, and what stands in an address."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.scripts.faults import count_up, worded
from services.data_urls import data_in, media_type_in
from services.visible_text import visible
from services.web_addresses import host_of
from services.workspace import Problem, Workspace, WorkspaceFault, Workspaces

_NOT_THERE = frozenset({Problem.NOT_FOUND, Problem.NO_FOLDER})
_NO_ROOM = frozenset({Problem.FULL, Problem.TOO_MANY, Problem.TOO_BIG})
_PLAIN = "application/octet-stream"
_KNOWN = {".md": "text/markdown", ".csv": "text/csv", ".json": "application/json", ".log": "text/plain"}
_NAME_CHARS = 100
MOST_DONE = 200
"""Operations on files in one run."""
_TEXT = "text.txt"
_IN_A_NAME = re.compile(r"[^\w .()+,@&=-]+")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file."""

    name: str
    media_type: str
    content: bytes


async def in_folder(run: ScriptRun, workspaces: Workspaces, path: str, work: Callable[[Workspace], Result]) -> Result:
    """What `work` gives on the chat's folder, done in a thread; `path` is what a fault speaks of. Raises RunFault."""
    count_up(run, "files.done", MOST_DONE, "files.too_many")
    try:
        return await run.call.threads.run(work, workspaces.of(run.context.chat))
    except WorkspaceFault as fault:
        raise _fault(run, fault, path) from None
    except OSError:
        raise worded(run, RunCode.UNAVAILABLE, "files.out_of_order") from None


async def loaded(run: ScriptRun, workspaces: Workspaces, file: Value) -> Loaded:
    """The file that a script means: one of the chat's folder by its path, a `data:` address, a text of several lines as
    it stands, or a map with `name` and such an address as `url`. Raises RunFault."""
    name = ""
    if isinstance(file, dict):
        name, file = str(file.get("name") or ""), file.get("url") or file.get("name")
    if not isinstance(file, str) or not file.strip():
        raise RunFault(RunCode.WRONG_TYPE, 'a file is named by a text, such as "report.csv"')
    if file.startswith("data:"):
        content, media_type = data_in(file), media_type_in(file)
        if content is None:
            raise worded(run, RunCode.BAD_VALUE, "files.unreadable")
        return Loaded(file_name(name, media_type or "text/plain"), media_type or "text/plain", content)
    if "\n" in file:
        return Loaded(file_name(name or _TEXT, "text/plain"), "text/plain", file.encode("utf-8", "replace"))
    if re.match(r"[a-z]+://", file, re.IGNORECASE):
        raise worded(run, RunCode.BAD_VALUE, "files.is_page")
    run.outside = True
    path = file
    content = await in_folder(run, workspaces, path, lambda folder: folder.read(path))
    own_name = path.rstrip("/").rpartition("/")[2]
    return Loaded(own_name, media_type_of(own_name), content)


def media_type_of(name: str) -> str:
    """What kind of file has that name, such as `text/csv`; the same on every machine for the usual ones."""
    ending = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    return _KNOWN.get(ending) or mimetypes.guess_type(name, strict=False)[0] or _PLAIN


def file_name(name: str, media_type: str) -> str:
    """A name for a file that goes to others; made from its kind where it has none."""
    plain = _IN_A_NAME.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")[:_NAME_CHARS]
    return plain or f"file{mimetypes.guess_extension(media_type) or '.bin'}"


def name_in(url: str) -> str:
    """The name of the file that stands at an address of the web."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    return file_name(unquote(path), "text/html")


def text_in(run: ScriptRun, content: bytes, path: str) -> str:
    """A file as text. Raises RunFault where it is none."""
    if b"\0" in content:
        raise _fault(run, WorkspaceFault(Problem.NOT_TEXT), path)
    return content.decode("utf-8-sig", "replace")


def _fault(run: ScriptRun, fault: WorkspaceFault, path: str) -> RunFault:
    code = RunCode.BAD_VALUE
    if fault.problem in _NOT_THERE:
        code = RunCode.NO_SUCH_THING
    elif fault.problem in _NO_ROOM:
        code = RunCode.NOT_ALLOWED
    # What is taken for a file may be an address of the web, with a key in it.
    shown = host_of(path) if "://" in path else path
    return RunFault(code, run.call.say(f"files.problem.{fault.problem}", path=visible(shown)[:200], **fault.values))
