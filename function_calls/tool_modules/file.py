"""Functions that read and write files in a chat's folder. Disabled unless the settings name this module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.patterns import visible
from services.refs import ErrorCode, JsonObject
from services.sandbox.workspace import Entry, Listing, Problem, WorkspaceError, Workspaces

MOST_CHARS = 4000
_file_function = partial(tool_function, tags="files", scope="private")
_reads = partial(_file_function, touches="reads_outside", effect="read")
_Path = Annotated[str, Field(description="The folder; empty for all of it", max_length=1000)]
_Pattern = Annotated[
    str, Field(description="Such as **/*.txt: * and ? within a name, ** for any folders", min_length=1, max_length=1000)
]


@dataclass(frozen=True, slots=True)
class LinesShown:
    """Lines of a text, counted from 1."""

    text: str
    first_line: int
    last_line: int
    """0 if the text has none of the requested lines."""
    lines: int
    """Number of lines in the whole text."""
    is_cut: bool
    """More lines were requested than fit."""
    line_is_cut: bool
    """The last line is longer than the limit and was cut."""

    @property
    def is_part(self) -> bool:
        """Whether the text has other lines as well."""
        return (self.first_line, self.last_line) != (1, self.lines)

    def as_json(self) -> JsonObject:
        """As JSON, for models and callers in code: `text`, `first_line`, `last_line`, `lines`, and `cut` if the text or
        its last line is cut."""
        return {
            "text": self.text,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "lines": self.lines,
            "cut": self.is_cut or self.line_is_cut,
        }


def lines_shown(text: str, first: int, last: int | None, most_chars: int = MOST_CHARS) -> LinesShown:
    """The lines from `first` to `last`, or to the end: as many whole lines as fit, but at least part of the first."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    selected = lines[first - 1 : last]
    shown: list[str] = []
    left = most_chars
    for line in selected:
        left -= len(line) + 1
        if left < 0 and shown:
            break
        shown.append(line[:most_chars])
        if left < 0:
            break
    return LinesShown(
        text="\n".join(shown),
        first_line=first,
        last_line=first + len(shown) - 1 if shown else 0,
        lines=len(lines),
        is_cut=len(shown) < len(selected),
        line_is_cut=bool(shown) and len(selected[len(shown) - 1]) > most_chars,
    )


_NOT_THERE = frozenset({Problem.NOT_FOUND, Problem.NO_FOLDER})
_NO_ROOM = frozenset({Problem.FULL, Problem.TOO_MANY, Problem.TOO_BIG})


class ReadArguments(BaseModel, frozen=True, extra="forbid"):
    path: str = Field(description="The file, such as notes/today.txt", min_length=1, max_length=1000)
    first_line: int = Field(default=1, ge=1, le=10_000_000, description="The first line to read")
    last_line: int | None = Field(default=None, ge=1, le=10_000_000, description="The last line to read")


class WriteArguments(BaseModel, frozen=True, extra="forbid"):
    path: str = Field(description="The file, such as notes/today.txt", min_length=1, max_length=1000)
    text: str = Field(description="What the file is to hold", max_length=1_000_000)
    append: bool = Field(default=False, description="Add to the end instead of replacing what is there")


@_reads(
    description="Read a text file in this chat's folder",
    examples=(
        "read the file {path}",
        "show me {path}",
        "what is in the file {path}",
        "read the file {path} from line {first_line} to {last_line}",
        "open the file {path}",
        "读一下文件{path}",
        "文件{path}里写了什么",
    ),
    commands=("file read", "文件 读"),
    ask={"path": "@files.ask_path"},
)
async def file_read(
    context: MessageContext, args: ReadArguments, *, workspaces: Workspaces, call: Call
) -> FunctionResult:
    """Read some lines; of many, the first that can be shown."""
    try:
        content = await call.threads.run(workspaces.of(context.chat).read, args.path)
    except WorkspaceError as fault:
        return _failed(fault, args.path, "path", call)
    if b"\0" in content:
        return _failed(WorkspaceError(Problem.NOT_TEXT), args.path, "path", call)
    shown = lines_shown(content.decode("utf-8", "replace"), args.first_line, args.last_line)
    return FunctionResult.say(_read_out(args.path, shown, call), data={"path": args.path, **shown.as_json()})


@_file_function(
    description="Write a text file in this chat's folder",
    examples=(
        "write {text} to the file {path}",
        "save {text} as {path}",
        "add {text} to the end of the file {path}",
        "put {text} into the file {path}",
        "create a file {path} with {text}",
        "把{text}写到文件{path}",
        "把{text}保存为{path}",
    ),
    commands=("file write", "文件 写"),
    roles="admin",
    touches="reaches_out",
    timeout_seconds=30,
    effect="once",
    ask={"path": "@files.ask_path", "text": "@files.ask_text"},
)
async def file_write(
    context: MessageContext, args: WriteArguments, *, workspaces: Workspaces, call: Call
) -> FunctionResult:
    """Write a file, whole or not at all."""
    try:
        content = args.text.encode()
    except UnicodeEncodeError:
        return _failed(WorkspaceError(Problem.NOT_TEXT), args.path, "text", call)
    try:
        size = await call.threads.run(workspaces.of(context.chat).write, args.path, content, append=args.append)
    except WorkspaceError as fault:
        return _failed(fault, args.path, "path", call)
    key = "files.appended" if args.append else "files.written"
    return FunctionResult.say(
        call.say(key, path=visible(args.path), size=_size(size, call)), data={"path": args.path, "bytes": size}
    )


@_reads(
    examples=(
        "list the files",
        "which files are there",
        "list the files in the folder {path}",
        "show me the files in {path}",
        "what files do we have",
        "列出文件",
        "文件夹{path}里有哪些文件",
    ),
    commands=("file list", "文件 列表"),
)
async def file_list(context: MessageContext, path: _Path = "", *, workspaces: Workspaces, call: Call) -> FunctionResult:
    """List the files in this chat's folder"""
    try:
        listing = await call.threads.run(workspaces.of(context.chat).list, path)
    except WorkspaceError as fault:
        return _failed(fault, path, "path", call)
    return _listed(listing, call.say("files.empty"), call)


@_reads(
    examples=(
        "find files like {pattern}",
        "which files match {pattern}",
        "search for files named {pattern}",
        "look for the files {pattern}",
        "list all files like {pattern}",
        "查找文件{pattern}",
        "哪些文件符合{pattern}",
    ),
    commands=("file find", "文件 查找"),
    ask={"pattern": "@files.ask_pattern"},
)
async def file_glob(
    context: MessageContext, pattern: _Pattern, *, workspaces: Workspaces, call: Call
) -> FunctionResult:
    """Find files in this chat's folder by a pattern of their paths"""
    try:
        listing = await call.threads.run(workspaces.of(context.chat).glob, pattern)
    except WorkspaceError as fault:
        return _failed(fault, pattern, "pattern", call)
    return _listed(listing, call.say("files.none_fits", pattern=visible(pattern)), call)


def _read_out(path: str, shown: LinesShown, call: Call) -> str:
    name = visible(path)
    if shown.lines == 0:
        return call.say("files.is_empty", path=name)
    if not shown.last_line:
        return call.say("files.so_short", path=name, lines=shown.lines)
    parts = {"path": name, "first": shown.first_line, "last": shown.last_line, "lines": shown.lines}
    title = "files.title_part" if shown.is_part else "files.title"
    text = f"{call.say(title, **parts)}\n{visible(shown.text)}"
    if shown.line_is_cut:
        return f"{text}…\n{call.say('files.line_cut', line=shown.last_line)}"
    return f"{text}\n{call.say('files.more_lines', next=shown.last_line + 1)}" if shown.is_cut else text


def _listed(listing: Listing, nothing: str, call: Call) -> FunctionResult:
    lines = [_line(entry, call) for entry in listing.entries] or [nothing]
    if listing.more:
        lines.append(call.say("files.more", count=listing.more))
    if listing.unnamed:
        lines.append(call.say("files.unnamed", count=listing.unnamed))
    files = [{"path": one.path, "folder": one.is_folder, "bytes": one.bytes} for one in listing.entries]
    return FunctionResult.say("\n".join(lines), data={"files": files, "more": listing.more})


def _line(entry: Entry, call: Call) -> str:
    if entry.is_folder:
        return call.say("files.folder_line", path=entry.path)
    return call.say("files.line", path=entry.path, size=_size(entry.bytes, call))


def _size(size: int, call: Call) -> str:
    if size < 1000:
        return call.say("files.bytes", count=size)
    if size < 1_000_000:
        return call.say("files.kilobytes", count=f"{size / 1000:.1f}")
    return call.say("files.megabytes", count=f"{size / 1_000_000:.1f}")


def _failed(fault: WorkspaceError, path: str, field: str, call: Call) -> FunctionResult:
    code = ErrorCode.BAD_ARGUMENTS
    if fault.problem in _NOT_THERE:
        code = ErrorCode.NOT_FOUND
    elif fault.problem in _NO_ROOM:
        code = ErrorCode.REFUSED
    text = call.say(f"files.problem.{fault.problem}", path=visible(path)[:200], **fault.values)
    return FunctionResult.fail(code, text, [field])
