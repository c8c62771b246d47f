"""The fake implementation, certified by clients of others: aiocqhttp accepts its connection, nonebot connects to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.platforms.contract import PNG, WAIT_SECONDS
from tests.bot.platforms.onebot.test_contract import a_free_port
from tests.fakes.onebot_server import ANN, BEN, GROUP, SELF_ID, TOKEN, OneBotServer
from tests.harness.foreign import python_of

_PROGRAMS = Path(__file__).resolve().parents[3] / "foreign"


class Program:
    """A bot of others, which prints JSON lines."""

    def __init__(self, output: asyncio.StreamReader) -> None:
        self._output = output
        self.noted: list[dict[str, Any]] = []

    async def notes(self, **facts: Any) -> dict[str, Any]:
        """The next line that has these facts. A fact `...` has any value."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                line = await self._output.readline()
                assert line, f"the program has ended; it noted only {self.noted}"
                if not line.startswith(b"{"):
                    continue
                found = json.loads(line)
                self.noted.append(found)
                if all(key in found and value in (..., found[key]) for key, value in facts.items()):
                    return dict(found)


@asynccontextmanager
async def a_program(name: str, *arguments: str) -> AsyncIterator[Program]:
    """Run `tests/foreign/<name>_bot.py` in its environment."""
    command = [str(python_of(name)), str(_PROGRAMS / f"{name}_bot.py"), *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=_PROGRAMS)
    assert process.stdout is not None
    try:
        yield Program(process.stdout)
    finally:
        process.kill()
        await process.wait()


async def test_aiocqhttp_understands_the_fake_that_connects_to_it() -> None:
    port = a_free_port()
    server = OneBotServer(strings=True)
    async with (
        server.serving(),
        a_program("aiocqhttp", str(port), TOKEN) as program,
        server.dialling(f"ws://127.0.0.1:{port}/ws/"),
    ):
        await program.notes(event="meta_event.lifecycle.connect")
        asked = await server.say(ANN, "call", mention=True)
        noted = await program.notes(event="message.group.normal", text=" call")
        assert noted["segments"] == [["at", {"qq": SELF_ID}], ["text", {"text": " call"}]]
        assert (await program.notes(failed=...))["failed"] == 1200
        assert (await program.notes(failed=...))["failed"] == 1404
        did = await program.notes(sent=...)
        assert did["login"] == {"user_id": int(SELF_ID), "nickname": "Rollcall"}
        assert [one["group_id"] for one in did["groups"]] == [int(GROUP)]
        assert [one["user_id"] for one in did["friends"]] == [int(ANN)]
        assert did["status"]["online"]
        assert (did["found"]["user_id"], did["member"]["role"]) == (int(SELF_ID), "owner")
        assert (did["members"], did["history"]) == (4, 2)
        [shown] = await server.shown()
        assert (shown.text, shown.reply_to, shown.files) == (f"@{ANN} [CQ:at,qq=all] & more", asked, (PNG,))
        assert [one.text for one in await server.shown(f"private-{ANN}")] == ["in private"]
        assert await server.reactions(asked) == ["👍"]

        codes = "a [CQ:at,qq=1], b & c ] 你好"
        await server.say(BEN, codes, file=("dot.png", PNG))
        noted = await program.notes(event="message.group.normal")
        assert noted["segments"][0] == ["text", {"text": codes}]
        assert (noted["segments"][1][0], noted["segments"][1][1]["file"]) == ("image", "dot.png")
        await server.delete(ANN, asked)
        assert (await program.notes(event="notice.group_recall"))["operator"] == int(ANN)
        await server.enter("carl")
        await program.notes(event="notice.group_increase.approve")
        await server.leave("carl")
        await program.notes(event="notice.group_decrease.leave")
        await server.invite_bot(ANN)
        await program.notes(event="request.group.invite", user=int(ANN))
        await server.heartbeat()
        await program.notes(event="meta_event.heartbeat")
        await server.disconnect()
        await program.notes(event="meta_event.lifecycle.connect")


async def test_nonebot_understands_the_fake_that_it_connects_to() -> None:
    async with OneBotServer().serving() as server, a_program("nonebot", server.url, TOKEN) as program:
        await program.notes(event="LifecycleMetaEvent")
        before = await server.say(ANN, "before")
        await server.say(ANN, "Hi", mention=True, reply_to=before)
        noted = await program.notes(event="GroupMessageEvent", text="Hi")
        assert (noted["to_me"], noted["reply"]) == (True, "Ann")
        await server.say(ANN, "Hello", chat=f"private-{ANN}")
        await program.notes(event="PrivateMessageEvent", text="Hello")
        await server.react(ANN, before, "👍")
        await program.notes(event="NoticeEvent", name="notice.group_msg_emoji_like")
        await server.delete(ANN, before)
        await program.notes(event="GroupRecallNoticeEvent")
        private = await server.say(ANN, "oops", chat=f"private-{ANN}")
        await server.delete(ANN, private)
        await program.notes(event="FriendRecallNoticeEvent")
        await server.enter("carl")
        await program.notes(event="GroupIncreaseNoticeEvent")
        await server.leave("carl")
        await program.notes(event="GroupDecreaseNoticeEvent")
        await server.heartbeat()
        await program.notes(event="HeartbeatMetaEvent")
        group = await server.invite_bot(ANN)
        assert (await program.notes(groups=...))["groups"] == [int(GROUP), int(group)]
        asked = await server.say(ANN, "call")
        assert (await program.notes(failed=...))["failed"] == 1200
        did = await program.notes(sent=...)
        assert (did["member"], did["history"], did["login"]["user_id"]) == ("owner", 2, int(SELF_ID))
        [shown] = await server.shown()
        assert (shown.text, shown.reply_to) == (f"@{ANN} [CQ:at,qq=all]", asked)
        assert SELF_ID not in server.groups[GROUP]
