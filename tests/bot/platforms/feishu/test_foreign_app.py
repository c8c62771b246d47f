"""An app on lark_oapi works against the fake of Feishu: what it sees there is what Feishu's own SDK expects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.feishu_server import (
    ANN,
    APP_ID,
    APP_SECRET,
    BEN,
    ENCRYPT_KEY,
    GROUP,
    SCOPES,
    VERIFICATION_TOKEN,
    FakeFeishu,
)
from tests.harness.foreign import python_of

PROGRAM = Path(__file__).parents[3] / "foreign" / "lark_oapi_app.py"


class App:
    """The running program."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def reports(self, what: str) -> dict[str, Any]:
        """The next report of that kind; earlier ones of other kinds are dropped."""
        assert self._process.stdout is not None
        async with asyncio.timeout(90):
            while line := await self._process.stdout.readline():
                report: dict[str, Any] = json.loads(line)
                if report["what"] == what:
                    return report
        raise AssertionError(f"the app ended without the report {what!r}")

    async def requests(self, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
        """What the app answers to a request of the webhook."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([body.decode(), headers]).encode() + b"\n")
        return await self.reports("answered")


@asynccontextmanager
async def an_app() -> AsyncIterator[tuple[FakeFeishu, App]]:
    """A tenant, and the app connected to it."""
    python = python_of("lark_oapi")
    async with FakeFeishu().running() as feishu:
        arguments = (feishu.url, APP_ID, APP_SECRET, ENCRYPT_KEY, VERIFICATION_TOKEN, GROUP)
        process = await asyncio.create_subprocess_exec(
            python,
            PROGRAM,
            *arguments,
            env={},  # without proxies
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            app = App(process)
            await app.reports("connected")
            yield feishu, app
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()


async def test_the_sdk_understands_events_calls_and_requests() -> None:
    async with an_app() as (feishu, app):
        await feishu.until(lambda: feishu.pings > 0)
        feishu.fragment_bytes = 100
        await feishu.say(ANN, "ask")
        heard = await app.reports("received")
        assert (heard["content"], heard["by"], heard["chat_type"]) == ({"text": "ask"}, ANN, "group")
        asked = (await app.reports("asked"))["id"]
        (shown,) = await feishu.shown()
        assert (shown.text, shown.buttons) == ("Sure?", ("Go", "Stay"))
        event = await feishu.press(BEN, asked, "Go")
        assert await app.reports("pressed") == {"what": "pressed", "by": BEN, "chat": GROUP}
        assert (await feishu.acknowledged(event))["code"] == 200
        assert [(one.text, one.buttons) for one in await feishu.shown()] == [("Done: Go", ())]

        thread = await feishu.open_thread(ANN, "inside")
        assert (await app.reports("received"))["content"] == {"text": "Drinks"}
        inside = await app.reports("received")
        assert f"{GROUP},{inside['thread']}" == thread
        native_id = await feishu.say(ANN, "look", file=("dot.png", b"content"))
        assert (await app.reports("received"))["kind"] == "post"
        await feishu.react(BEN, native_id, "👍")
        assert await app.reports("reacted") == {"what": "reacted", "name": "THUMBSUP", "by": BEN}
        await feishu.react(BEN, native_id, "👍", is_removed=True)
        assert (await app.reports("unreacted"))["id"] == native_id
        await feishu.delete(ANN, native_id)
        assert (await app.reports("recalled"))["id"] == native_id
        await feishu.enter("carl")
        assert (await app.reports("joined"))["name"] == "Carl"
        await feishu.leave("carl")
        assert (await app.reports("left"))["name"] == "Carl"
        other = await feishu.add_bot(BEN)
        assert await app.reports("added") == {"what": "added", "chat": other, "by": BEN}

        await feishu.say(ANN, "do everything")
        assert (await app.reports("sent"))["is_same"]
        replied = await app.reports("replied")
        assert replied["parent"]
        assert replied["thread"].startswith("omt_")
        message = await app.reports("message")
        assert message["content"]["zh_cn"]["content"] == [[{"tag": "text", "text": "changed"}]]
        assert (message["sender"], message["chat"]) == ("app", GROUP)
        assert await app.reports("reaction") == {"what": "reaction", "by": APP_ID, "is_same": True}
        assert (await app.reports("files"))["content"] == "picture"
        chats = await app.reports("chats")
        assert (chats["listed"], chats["owner"]) == ([GROUP, other], "ou_olga")
        assert (chats["mode"], chats["members"]) == ("group", ["Ann", "Ben"])
        assert (await app.reports("history"))["counts"] == [9, 2]
        assert (await app.reports("scopes"))["names"] == list(SCOPES)
        assert (await app.reports("user"))["name"] == "Ann"
        assert [(await app.reports("error"))["code"] for _ in range(2)] == [230001, 230001]
        await app.reports("end")
        assert not feishu.chats[GROUP]["has_bot"]

        (drinks,) = [one for one in feishu.messages if "Drinks" in one["body"]["content"]]
        body, headers = feishu.signed(feishu.event("im.message.receive_v1", feishu.message_event(drinks)))
        assert (await app.requests(body, headers))["status"] == 200
        assert (await app.requests(body, headers | {"X-Lark-Signature": "wrong"}))["status"] == 500
        test = {"type": "url_verification", "challenge": "c", "token": VERIFICATION_TOKEN}
        assert (await app.requests(feishu.signed(test)[0], {}))["body"] == {"challenge": "c"}

        await feishu.disconnect()
        await feishu.until(lambda: feishu.connections == 2)
        await feishu.say(ANN, "after the loss")
        assert (await app.reports("received"))["content"] == {"text": "after the loss"}
