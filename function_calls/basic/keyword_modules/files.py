"""Files of the chat: READ, WRITE, COPY, MOVE, DELETE FILE, LIST FILES, DOWNLOAD, SEND FILE. All are in the chat's own
folder, within its limits."""

from __future__ import annotations

import re

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.session import count_up, translated_error
from function_calls.basic.run.web import WebOfScripts, file_name, in_folder, loaded, media_type_of, name_in, text_in
from function_calls.basic.values import text_of
from function_calls.context import Attachment
from function_calls.spec import Message
from services.patterns import visible_line
from services.sandbox.workspace import Workspaces
from services.web.content import data_url

_MOST_SENT_BYTES = 256 * 1024
_MOST_SENT = 5
"""Limit on files per run."""
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,100}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,100}\Z")
_CHANGES = ("reaches_out",)
_MOVES = ("reads_outside", "reaches_out")


@basic_keyword("READ {path}", effect="read", touches=["reads_outside"])
async def read(run: ScriptRun, path: Value, *, workspaces: Workspaces) -> Value:
    """Read the text of a file of this chat."""
    name = _path(path)
    run.has_outside_text = True
    return text_in(run, await in_folder(run, workspaces, name, lambda folder: folder.read(name)), name)


@basic_keyword("WRITE {path}, {content}", effect="idempotent", touches=_CHANGES)
async def write(run: ScriptRun, path: Value, content: Value, *, workspaces: Workspaces) -> Value:
    """Write a text to a file of this chat, replacing its content."""
    return await _written(run, workspaces, _path(path), _bytes_of(run, content))


@basic_keyword("COPY {source} TO {target}", "COPY {source}, {target}", effect="idempotent", touches=_MOVES)
async def copy(run: ScriptRun, source: Value, target: Value, *, workspaces: Workspaces) -> Value:
    """Copy a file."""
    path = _path(source)
    content = await in_folder(run, workspaces, path, lambda folder: folder.read(path))
    return await _written(run, workspaces, _path(target), content)


@basic_keyword("MOVE {source} TO {target}", "MOVE {source}, {target}", effect="once", touches=_MOVES)
async def move(run: ScriptRun, source: Value, target: Value, *, workspaces: Workspaces) -> Value:
    """Move or rename a file."""
    before, after = _path(source), _path(target)
    content = await in_folder(run, workspaces, before, lambda folder: folder.read(before))
    if before != after:
        await _written(run, workspaces, after, content)
        await in_folder(run, workspaces, before, lambda folder: folder.remove(before))
    return after


@basic_keyword("DELETE FILE {path}", effect="once", touches=_CHANGES)
async def delete_file(run: ScriptRun, path: Value, *, workspaces: Workspaces) -> None:
    """Delete a file of this chat."""
    name = _path(path)
    await in_folder(run, workspaces, name, lambda folder: folder.remove(name))


@basic_keyword("LIST FILES [{folder}]", "LIST {folder}", "DIR {folder}", effect="read", touches=["reads_outside"])
async def list_files(run: ScriptRun, folder: Value = "", *, workspaces: Workspaces) -> Value:
    """The paths in the chat's folder, or in a folder of it; paths of folders end with /."""
    path = "" if folder in (None, "", "/", ".") else _path(folder)
    run.has_outside_text = True
    listing = await in_folder(run, workspaces, path, lambda own: own.list(path))
    return [f"{entry.path}/" if entry.is_folder else entry.path for entry in listing.entries]


@basic_keyword("DOWNLOAD {url} [, {path}]", effect="idempotent", touches=["reads_outside", "reaches_out", "sends_out"])
async def download(
    run: ScriptRun, url: Value, path: Value = None, *, workspaces: Workspaces, web: WebOfScripts
) -> Value:
    """Download a web address to a file of this chat. Returns the path of the file."""
    if not isinstance(url, str):
        raise RunError(RunCode.WRONG_TYPE, 'a web address must be a text, such as "https://example.com/list.csv"')
    answer = await web.fetch(run, url)
    return await _written(run, workspaces, name_in(answer.url) if path is None else _path(path), answer.body)


@basic_keyword("SEND FILE {file} [, {caption}]", effect="idempotent", touches=["reads_outside"])
async def send_file(run: ScriptRun, file: Value, caption: Value = None, *, workspaces: Workspaces) -> None:
    """Send a file to the chat: a file of the chat by its path, a file that a member sent, a web address, or a text of
    several lines."""
    count_up(run, "files.sent", _MOST_SENT, "files.too_many_sent")
    run.say(Message(text_of(caption), attachments=(await _attachment(run, workspaces, file),)))


async def _attachment(run: ScriptRun, workspaces: Workspaces, file: Value) -> Attachment:
    given = file if isinstance(file, dict) else {"url": file}
    url = given.get("url")
    if isinstance(url, str) and url.lower().startswith(("https://", "http://")):
        name = file_name(str(given.get("name") or ""), "text/html") if given.get("name") else name_in(url)
        return Attachment(name, _media_type(run, given.get("type")) or media_type_of(name), _link(run, url))
    found = await loaded(run, workspaces, file)
    if len(found.content) > _MOST_SENT_BYTES:
        raise translated_error(run, RunCode.NOT_ALLOWED, "files.too_big", most=_MOST_SENT_BYTES // 1024)
    return Attachment(
        found.name, found.media_type, data_url(found.content, found.media_type), size_bytes=len(found.content)
    )


def _media_type(run: ScriptRun, given: Value) -> str:
    """The media type given by a script, or empty. Raises RunError if it is invalid."""
    said = text_of(given).partition(";")[0].strip()
    if said and not _MEDIA_TYPE.match(said):
        raise translated_error(run, RunCode.BAD_VALUE, "files.no_media_type", found=visible_line(said)[:60])
    return said


def _link(run: ScriptRun, url: str) -> str:
    if not url.isprintable() or " " in url or len(url) > 2000:
        raise translated_error(run, RunCode.BAD_VALUE, "files.unreadable")
    return url


async def _written(run: ScriptRun, workspaces: Workspaces, path: str, content: bytes) -> str:
    await in_folder(run, workspaces, path, lambda folder: folder.write(path, content))
    return path


def _bytes_of(run: ScriptRun, content: Value) -> bytes:
    try:
        return text_of(content).encode()
    except UnicodeEncodeError:
        raise translated_error(run, RunCode.BAD_VALUE, "no_text") from None


def _path(path: Value) -> str:
    if not isinstance(path, str):
        raise RunError(RunCode.WRONG_TYPE, 'a file name must be a text, such as "notes/today.txt"')
    return path
