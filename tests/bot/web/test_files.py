"""Files of messages on the page and over the HTTP API: limits, storage, and who may read them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.platforms.base import FileUnavailable, Outgoing
from bot.web.page import TOKEN_HEADER
from function_calls.context import Attachment
from services.refs import ChatRef, MemberRef
from tests.bot.web.test_page import joined, said, seen
from tests.bot.web_world import BEARER, a_post, a_world
from tests.fakes.files import png, wav

LIMIT = 100_000


def a_file(name: str = "dot.png", type: str = "image/png", content: bytes = b"") -> dict[str, str]:  # noqa: A002
    return {"name": name, "type": type, "data": base64.b64encode(content or png()).decode()}


async def posted(client: httpx2.AsyncClient, *files: dict[str, str], **fields: Any) -> httpx2.Response:
    body = a_post("look", **fields) | {"attachments": list(files)}
    return await client.post("/api/v1/chats/family/messages", json=body, headers=BEARER)


async def test_a_posted_file_is_stored_with_its_message_and_survives_a_restart(tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=LIMIT) as world, world.client() as client:
        assert (await posted(client, a_file(), a_file("v.wav", "audio/wav", wav()))).status_code == 202
        assert (await posted(client, a_file())).json() == {"accepted": True, "duplicate": True}
        (context,) = world.daemon.received
        picture, sound = context.attachments
        assert (picture.name, picture.media_type, picture.size_bytes) == ("dot.png", "image/png", len(png()))
    async with a_world(tmp_path, upload_bytes=LIMIT) as world:
        assert await world.http.read_file(picture, 10_000) == png()
        assert await world.http.read_file(sound, 10_000) == wav()
        with pytest.raises(FileUnavailable, match="larger than 10 bytes"):
            await world.http.read_file(picture, 10)
        with pytest.raises(FileUnavailable, match="not stored"):
            await world.http.read_file(Attachment("x", "", "network:../x"), 10)


@pytest.mark.parametrize(
    ("files", "status", "code"),
    [
        ([a_file(content=b"x" * (LIMIT + 1))], 413, "too_large"),
        ([a_file(content=b"x" * 60_000), a_file(content=b"x" * 60_000)], 413, "too_large"),
        ([a_file(content=b"x" * 300_000)], 413, "too_large"),
        ([a_file()] * 11, 400, "bad_request"),
        ([{**a_file(), "data": "no base64!"}], 400, "bad_request"),
        ([{**a_file(), "data": ""}], 400, "bad_request"),
        ([{**a_file(), "type": "image"}], 400, "bad_request"),
        ([{**a_file(), "name": ""}], 400, "bad_request"),
        ([{**a_file(), "url": "http://127.0.0.1/"}], 400, "bad_request"),
    ],
)
async def test_files_beyond_the_limits_are_refused_clearly(
    files: list[dict[str, str]], status: int, code: str, tmp_path: Path
) -> None:
    async with a_world(tmp_path, upload_bytes=LIMIT) as world, world.client() as client:
        answer = await posted(client, *files)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.json()["error"]["message"]
        assert world.daemon.received == []


async def test_no_files_are_taken_without_a_model_for_them(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        answer = await posted(client, a_file())
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no_files")
        assert (await client.get("/api/v1/page")).json()["upload_bytes"] == 0
        assert world.daemon.received == []


async def test_members_of_the_room_see_a_file_and_others_do_not(tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=LIMIT) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        assert (await said(client, ann, "look", attachments=[a_file()])).status_code == 202
        ((_, event),) = enumerate(await seen(client, ben))
        (file,) = event["attachments"]
        assert (file["name"], file["type"], file["size"]) == ("dot.png", "image/png", len(png()))
        shown = await client.get(file["url"], headers={TOKEN_HEADER: ben["token"]})
        assert (shown.status_code, shown.content, shown.headers["content-type"]) == (200, png(), "image/png")
        assert (await client.get(file["url"])).status_code == 401
        # The same id in another chat, and in the chat of another platform.
        other = file["url"].replace("/lobby/", "/kitchen/")
        assert (await client.get(other, headers={TOKEN_HEADER: ben["token"]})).status_code == 404
        assert (await client.get(file["url"], headers=BEARER)).status_code == 404
        private = f"/api/v1/chats/dm-{ann['id']}/files/{file['id']}"
        assert (await client.get(private, headers={TOKEN_HEADER: ben["token"]})).status_code == 403


async def test_a_file_of_a_private_answer_is_for_its_member_alone(tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=LIMIT) as world, world.client() as client:
        ann, ben = await joined(client, "Ann"), await joined(client, "Ben")
        url = f"data:image/png;base64,{a_file()['data']}"
        chat, member = ChatRef("web", "main", "lobby"), MemberRef("web", "main", ann["id"])
        file = Attachment("dot.png", "image/png", url)
        await world.web.send(Outgoing(chat, "k1", "For you.", attachments=(file,), private_to=member))
        (event,) = await seen(client, ann)
        (shown,) = event["attachments"]
        assert (await client.get(shown["url"], headers={TOKEN_HEADER: ann["token"]})).content == png()
        assert (await client.get(shown["url"], headers={TOKEN_HEADER: ben["token"]})).status_code == 404


@pytest.mark.parametrize(
    ("file", "media_type", "disposition"),
    [
        (a_file("x.html", "text/html", b"<script>alert(1)</script>"), "application/octet-stream", "attachment"),
        (a_file("x.svg", "image/svg+xml", b"<svg/>"), "application/octet-stream", "attachment"),
        (a_file("x.png", "image/png", b"<script>"), "application/octet-stream", "attachment"),
        (a_file("v.wav", "audio/wav", wav()), "audio/wav", "inline"),
        (a_file("x.txt", "text/html", png()), "image/png", "inline"),
    ],
)
async def test_a_browser_never_runs_a_file(
    file: dict[str, str], media_type: str, disposition: str, tmp_path: Path
) -> None:
    async with a_world(tmp_path, upload_bytes=LIMIT) as world, world.client() as client:
        ann = await joined(client, "Ann")
        await said(client, ann, "look", attachments=[file])
        (event,) = await seen(client, ann)
        shown = await client.get(event["attachments"][0]["url"], headers={TOKEN_HEADER: ann["token"]})
        assert shown.headers["content-type"] == media_type
        assert shown.headers["content-disposition"].startswith(disposition)
        assert shown.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert world.daemon.received


async def test_a_quoted_message_comes_with_its_files(tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=LIMIT) as world, world.client() as client:
        ann = await joined(client, "Ann")
        await said(client, ann, "look", attachments=[a_file()])
        (event,) = await seen(client, ann)
        await said(client, ann, "what is this?", reply_to=event["id"])
        quoted = world.daemon.received[1].reply_to
        assert quoted is not None
        assert await world.web.read_file(quoted.attachments[0], 10_000) == png()
