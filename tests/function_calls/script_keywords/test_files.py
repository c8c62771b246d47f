"""Script keywords for files of the chat."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from config.sections.basic import BasicWebSettings
from config.sections.processes import FilesSettings
from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules import files as keywords
from function_calls.basic.run.web import WebOfScripts
from services.clock import VirtualClock
from services.refs import ChatRef
from services.sandbox.workspace import Workspaces
from services.web.http import WebClient
from tests.fakes.builders import a_message
from tests.fakes.script_runs import Heard, a_run
from tests.fakes.web_server import Page, WebServer

OTHERS = ChatRef("test", "bot", "others")


@pytest.fixture
def files(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "chats", FilesSettings(most_files=20, file_kilobytes=600))


async def fault_of(work: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        await work
    return caught.value


async def test_what_is_written_is_read_again_in_this_chat_and_in_no_other(files: Workspaces) -> None:
    run = a_run()
    assert await keywords.write(run, "notes/a.txt", "Hæ\n", workspaces=files) == "notes/a.txt"
    assert not run.has_outside_text
    assert await keywords.read(run, "notes/a.txt", workspaces=files) == "Hæ\n"
    assert run.has_outside_text
    elsewhere = a_run(a_message(chat=OTHERS))
    assert (await fault_of(keywords.read(elsewhere, "notes/a.txt", workspaces=files))).code is RunCode.NO_SUCH_THING


async def test_values_are_written_as_they_are_said(files: Workspaces) -> None:
    await keywords.write(a_run(), "a.json", {"n": 2.0, "ok": True}, workspaces=files)
    assert await keywords.read(a_run(), "a.json", workspaces=files) == '{"n": 2, "ok": true}'


async def test_files_are_listed_copied_moved_and_deleted(files: Workspaces) -> None:
    run = a_run()
    assert await keywords.list_files(run, workspaces=files) == []
    await keywords.write(run, "a.txt", "one", workspaces=files)
    await keywords.copy(run, "a.txt", "old/b.txt", workspaces=files)
    assert await keywords.move(run, "a.txt", "c.txt", workspaces=files) == "c.txt"
    assert await keywords.list_files(run, workspaces=files) == ["c.txt", "old/"]
    assert await keywords.list_files(run, "old", workspaces=files) == ["old/b.txt"]
    assert await keywords.move(run, "c.txt", "c.txt", workspaces=files) == "c.txt"
    await keywords.delete_file(run, "old/b.txt", workspaces=files)
    assert await keywords.list_files(run, "old", workspaces=files) == []
    assert await keywords.read(run, "c.txt", workspaces=files) == "one"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".hidden", "a\\b", "", "a/../../b", "a\0b"])
async def test_no_path_leads_out_of_the_folder(files: Workspaces, path: str) -> None:
    await keywords.write(a_run(), "a", "x", workspaces=files)
    for work in (
        keywords.read(a_run(), path, workspaces=files),
        keywords.write(a_run(), path, "x", workspaces=files),
        keywords.copy(a_run(), "a", path, workspaces=files),
        keywords.move(a_run(), path, "b", workspaces=files),
        keywords.delete_file(a_run(), path, workspaces=files),
    ):
        assert (await fault_of(work)).code in (RunCode.BAD_VALUE, RunCode.NO_SUCH_THING)


async def test_what_is_not_there_or_no_text_or_too_much_is_said_plainly(files: Workspaces) -> None:
    run = a_run()
    missing = await fault_of(keywords.delete_file(run, "gone.txt", workspaces=files))
    assert (missing.code, "gone.txt" in missing.detail) == (RunCode.NO_SUCH_THING, True)
    big = await fault_of(keywords.write(run, "big.txt", "x" * 700_000, workspaces=files))
    assert (big.code, "600" in big.detail) == (RunCode.NOT_ALLOWED, True)
    await keywords.write(run, "a.bin", "a\0b", workspaces=files)
    assert (await fault_of(keywords.read(run, "a.bin", workspaces=files))).code is RunCode.BAD_VALUE
    assert (await fault_of(keywords.read(run, 5, workspaces=files))).code is RunCode.WRONG_TYPE
    assert (await fault_of(keywords.write(run, "a", "\ud800", workspaces=files))).code is RunCode.BAD_VALUE
    await keywords.write(run, "folder/a.txt", "x", workspaces=files)
    assert (await fault_of(keywords.delete_file(run, "folder", workspaces=files))).code is RunCode.BAD_VALUE


async def test_a_link_in_the_folder_is_not_deleted_through(files: Workspaces, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    await keywords.write(a_run(), "a.txt", "x", workspaces=files)
    folder = next((tmp_path / "chats").iterdir())
    (folder / "link").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    for path in ("link", "up/outside.txt"):
        assert (await fault_of(keywords.delete_file(a_run(), path, workspaces=files))).code is RunCode.BAD_VALUE
    assert outside.read_text() == "mine"


# DOWNLOAD


def a_web(settings: BasicWebSettings | None = None) -> WebOfScripts:
    return WebOfScripts(WebClient(allow_loopback=True), settings or BasicWebSettings(), VirtualClock())


async def test_a_page_is_put_into_a_file(files: Workspaces) -> None:
    run = a_run()
    pages = {"/lists/a%20b.csv": Page(b"a;b\xff"), "/": Page(b"home")}
    async with WebServer(pages) as server:
        link = server.url("/lists/a%20b.csv")
        assert await keywords.download(run, link, workspaces=files, web=a_web()) == "a b.csv"
        assert await keywords.download(run, link, "in/x.csv", workspaces=files, web=a_web()) == "in/x.csv"
        assert await keywords.download(run, server.url("/"), workspaces=files, web=a_web()) == "file.html"
    assert files.of(run.context.chat).read("in/x.csv") == b"a;b\xff"
    assert run.has_outside_text


async def test_what_cannot_be_had_or_may_not_leaves_no_file(files: Workspaces) -> None:
    run = a_run()
    async with WebServer({"/": Page(b"", 500), "/big": Page(b"x" * 3000)}) as server:
        broken = keywords.download(run, server.url("/"), "a", workspaces=files, web=a_web())
        assert (await fault_of(broken)).code is RunCode.UNAVAILABLE
        small = a_web(BasicWebSettings(answer_kilobytes=2))
        big = keywords.download(run, server.url("/big"), "a", workspaces=files, web=small)
        assert (await fault_of(big)).code is RunCode.UNAVAILABLE
        nowhere = a_web(BasicWebSettings(get_from=()))
        closed = keywords.download(run, server.url("/big"), "a", workspaces=files, web=nowhere)
        assert (await fault_of(closed)).code is RunCode.NOT_ALLOWED
    assert await keywords.list_files(run, workspaces=files) == []


# SEND FILE


async def sent(files: Workspaces, file: Any, caption: Any = None) -> tuple[str, str, str, bytes | None]:
    heard = Heard()
    await keywords.send_file(a_run(heard=heard), file, caption, workspaces=files)
    [message] = heard.messages
    [one] = message.attachments
    head, _, body = one.url.partition(",")
    content = base64.b64decode(body) if head.startswith("data:") else None
    return message.text, one.name, one.media_type, content


async def test_a_file_of_the_chat_is_sent(files: Workspaces) -> None:
    await keywords.write(a_run(), "out/report.csv", "a;b", workspaces=files)
    assert await sent(files, "out/report.csv", "Here:") == ("Here:", "report.csv", "text/csv", b"a;b")


async def test_a_text_a_data_address_and_a_members_file_are_sent(files: Workspaces) -> None:
    assert await sent(files, "one\ntwo") == ("", "text.txt", "text/plain", b"one\ntwo")
    assert await sent(files, "data:image/png;base64,iVBO") == ("", "file.png", "image/png", b"\x89PN")
    own = {"name": "../p.png", "type": "image/png", "url": "data:image/png;base64,iVBO"}
    assert await sent(files, own) == ("", "p.png", "image/png", b"\x89PN")


async def test_a_link_is_sent_as_a_link(files: Workspaces) -> None:
    heard = Heard()
    await keywords.send_file(a_run(heard=heard), "https://a.example/x/menu.pdf?v=1", workspaces=files)
    [one] = heard.messages[0].attachments
    assert (one.name, one.media_type, one.url) == ("menu.pdf", "application/pdf", "https://a.example/x/menu.pdf?v=1")


async def test_a_run_sends_five_files_and_does_two_hundred_things_with_files(files: Workspaces) -> None:
    heard = Heard()
    run = a_run(heard=heard)
    for _ in range(5):
        await keywords.send_file(run, "one\ntwo", workspaces=files)
    assert (await fault_of(keywords.send_file(run, "one\ntwo", workspaces=files))).code is RunCode.NOT_ALLOWED
    assert len(heard.messages) == 5
    for _ in range(200):
        await keywords.list_files(run, workspaces=files)
    assert (await fault_of(keywords.list_files(run, workspaces=files))).code is RunCode.NOT_ALLOWED


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("gone.txt", RunCode.NO_SUCH_THING),
        ("../x", RunCode.BAD_VALUE),
        ("", RunCode.WRONG_TYPE),
        (5, RunCode.WRONG_TYPE),
        ({"size": 3}, RunCode.WRONG_TYPE),
        ({"url": {"url": {"url": 1}}}, RunCode.WRONG_TYPE),
        ("data:text/plain;base64,!", RunCode.BAD_VALUE),
        ("file:///etc/passwd", RunCode.BAD_VALUE),
        ("https://a.example/a b", RunCode.BAD_VALUE),
        ({"url": "https://a.example/a", "type": "text/plain\r\nBcc: x@y.z"}, RunCode.BAD_VALUE),
        ({"url": "https://a.example/a", "type": "../.."}, RunCode.BAD_VALUE),
        ("data:text/plain," + "x" * 300_000, RunCode.NOT_ALLOWED),
    ],
)
async def test_what_is_no_file_is_said_to_be_none(files: Workspaces, file: Any, code: RunCode) -> None:
    assert (await fault_of(keywords.send_file(a_run(), file, workspaces=files))).code is code
