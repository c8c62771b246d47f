"""An app on slack_bolt works against the fake of Slack: what it sees there is what Slack's own SDK expects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.slack_server import ANN, APP_TOKEN, BEN, BOT_TOKEN, GROUP, SCOPES, FakeSlack, limited
from tests.harness.foreign import python_of

PROGRAM = Path(__file__).parents[3] / "foreign" / "slack_bolt_app.py"


class App:
    """The running program."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def reports(self, what: str) -> dict[str, Any]:
        """The next report of that kind; earlier ones of other kinds are dropped."""
        assert self._process.stdout is not None
        async with asyncio.timeout(20):
            while line := await self._process.stdout.readline():
                report: dict[str, Any] = json.loads(line)
                if report["what"] == what:
                    return report
        raise AssertionError(f"the app ended without the report {what!r}")


@asynccontextmanager
async def an_app() -> AsyncIterator[tuple[FakeSlack, App]]:
    """A workspace, and the app connected to it."""
    python = python_of("slack_bolt")
    async with FakeSlack().running() as slack:
        process = await asyncio.create_subprocess_exec(
            python,
            PROGRAM,
            f"{slack.url}/api/",
            BOT_TOKEN,
            APP_TOKEN,
            env={},  # without proxies
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            app = App(process)
            await app.reports("connected")
            yield slack, app
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()


async def test_bolt_receives_and_answers_events() -> None:
    async with an_app() as (slack, app):
        slack.refusals["chat.postMessage"] = [limited(1)]
        await slack.say(ANN, "please ask")
        said = await app.reports("said")
        assert (said["heard"], said["channel_type"]) == ("please ask", "channel")
        assert [name for name, _ in slack.calls].count("chat.postMessage") == 2
        (shown,) = await slack.shown()
        assert (shown.text, shown.buttons) == ("Sure {@UANN}?", ("Go",))
        await slack.press(BEN, said["ts"], "Go")
        assert (await app.reports("updated"))["by"] == BEN
        assert [(one.text, one.buttons) for one in await slack.shown()] == [("Done: gone", ())]
        await slack.until_acknowledged(slack._last["envelope_id"])

        native_id = await slack.say(ANN, "hello", mention=True)
        assert (await app.reports("mentioned"))["text"] == "<@UBOT> hello"
        await slack.edit(ANN, native_id, "hallo")
        assert (await app.reports("changed"))["text"] == "hallo"
        await slack.react(ANN, native_id, "👍")
        assert (await app.reports("reacted"))["name"] == "+1"
        await slack.delete(ANN, native_id)
        assert (await app.reports("deleted"))["ts"] == native_id
        await slack.say(ANN, "look", file=("dot.png", b"content"))
        assert (await app.reports("shared"))["files"] == ["dot.png"]
        await slack.enter("carl")
        assert (await app.reports("joined"))["user"] == "UCARL"
        await slack.leave("carl")
        assert (await app.reports("left"))["user"] == "UCARL"

        await slack.refresh()
        await asyncio.wait_for(slack.connected(2), 20)
        await slack.say(ANN, "ask after the refresh")
        await app.reports("said")
        await slack.disconnect()
        await asyncio.wait_for(slack.connected(3), 20)
        await slack.say(ANN, "ask after the loss")
        await app.reports("said")


async def test_the_sdk_understands_each_method_that_the_adapter_calls() -> None:
    async with an_app() as (slack, app):
        for text in ("one", "two", "call everything"):
            await slack.say(ANN, text)
        auth = await app.reports("auth")
        assert (auth["user"], auth["bot"], auth["team"], auth["scopes"]) == ("UBOT", "BBOT", "T1", SCOPES)
        assert await app.reports("user") == {"what": "user", "name": "Ann", "zone": "Europe/Oslo"}
        assert await app.reports("lists") == {
            "what": "lists",
            "channels": [GROUP, "DANN"],
            "members": ["UBOT", "UANN", "UBEN", "UROBOT"],
            "texts": ["call everything", "two", "one"],
        }
        assert (await app.reports("replies"))["texts"] == ["call everything", "In the thread"]
        assert (await app.reports("reactions"))["reactions"] == [{"name": "+1", "users": ["UBOT"], "count": 1}]
        assert (await app.reports("file"))["name"] == "a.txt"
        errors = [(await app.reports("error"))["code"] for _ in range(4)]
        assert errors == ["channel_not_found", "message_not_found", "user_not_found", "invalid_blocks"]
        await app.reports("end")
        assert [(one.text, one.files) for one in await slack.shown()] == [("A file", (b"content",))]
        assert [one.text for one in await slack.shown("DANN")] == ["In private"]
        assert "UBOT" not in slack.channels[GROUP]
