"""A program on mattermostautodriver works against the fake of Mattermost: it sees there what that library expects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.mattermost_server import ANN, BOT, GROUP, PRIVATE, TOKEN, FakeMattermost, limited
from tests.harness.foreign import python_of

PROGRAM = Path(__file__).parents[3] / "foreign" / "mattermost_driver.py"


class Driver:
    """The running program."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def reports(self, what: str) -> dict[str, Any]:
        """The next report of that kind, without its kind; earlier ones of other kinds are dropped."""
        assert self._process.stdout is not None
        async with asyncio.timeout(20):
            while line := await self._process.stdout.readline():
                report: dict[str, Any] = json.loads(line)
                if report.pop("what") == what:
                    return report
        raise AssertionError(f"the program ended without the report {what!r}")


@asynccontextmanager
async def a_driver() -> AsyncIterator[tuple[FakeMattermost, Driver]]:
    """A server, and the program connected to it."""
    python = python_of("mattermost_driver")
    pipe = asyncio.subprocess.PIPE
    async with FakeMattermost().running() as server:
        port = server.url.rpartition(":")[2]
        process = await asyncio.create_subprocess_exec(
            python, PROGRAM, port, TOKEN, GROUP, ANN, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            driver = Driver(process)
            assert await driver.reports("hello") == {"seq": 0}
            yield server, driver
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()


async def test_the_driver_receives_and_answers_events() -> None:
    async with a_driver() as (server, driver):
        server.refusals["posts"] = [limited(1)]
        native_id = await server.say(ANN, "please answer")
        assert await driver.reports("posted") == {"text": "please answer", "kind": "O", "type": "", "root": ""}
        assert (await driver.reports("posted"))["text"] == "Sure"
        assert [one.text for one in await server.shown()] == ["Sure"]
        await server.edit(ANN, native_id, "please do")
        assert await driver.reports("post_edited") == {"text": "please do"}
        await server.react(ANN, native_id, "👍")
        assert await driver.reports("reaction_added") == {"emoji": "+1"}
        await server.delete(ANN, native_id)
        assert await driver.reports("post_deleted") == {"text": "please do"}
        await server.enter("carl")
        assert (await driver.reports("user_added"))["channel"] == GROUP
        assert (await driver.reports("posted"))["type"] == "system_join_channel"
        await server.leave("carl")
        assert (await driver.reports("user_removed"))["user"].startswith("carl")
        await server.disconnect()
        await driver.reports("hello")
        await server.say(ANN, "after the loss", chat=PRIVATE)
        assert await driver.reports("posted") == {"text": "after the loss", "kind": "D", "type": "", "root": ""}


async def test_the_driver_understands_each_method_that_the_adapter_calls() -> None:
    async with a_driver() as (server, driver):
        await server.say(ANN, "call everything")
        assert await driver.reports("me") == {"id": BOT, "name": "rollcall", "is_bot": True}
        user = await driver.reports("user")
        assert (user["username"], user["zone"]["automaticTimezone"], user["same"]) == ("ann", "Europe/Oslo", True)
        lists = await driver.reports("lists")
        assert (lists["channels"], lists["teams"], lists["kind"]) == ([GROUP, PRIVATE], ["Home"], "O")
        assert (lists["members"], lists["roles"]) == ([BOT, ANN], ["channel_user", False, False])
        assert await driver.reports("posts") == {
            "texts": ["two", "one more"],
            "since": ["two", "one more"],
            "root": True,
        }
        assert await driver.reports("reactions") == {"names": ["+1"], "left": None}
        assert await driver.reports("file") == {"name": "a.txt", "size": 7, "content": "content"}
        assert await driver.reports("deleted") == {"status": "OK"}
        errors = [await driver.reports("error") for _ in range(3)]
        assert [one["kind"] for one in errors] == [
            "NotEnoughPermissions",
            "ResourceNotFound",
            "InvalidOrMissingParameters",
        ]
        await driver.reports("end")
        assert [(one.text, one.files) for one in await server.shown()] == [("one more", ()), ("A file", (b"content",))]
        assert [one.text for one in await server.shown(PRIVATE)] == ["In private"]
        assert BOT not in server.members[GROUP]
