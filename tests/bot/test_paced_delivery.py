"""On slow networks members take turns, queues are limited, and dropped messages are reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.testing import FAMILY, Group, TestPlatform, a_group
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult, Message
from services.refs import ChatRef, MemberRef
from services.store.chats import outcomes
from services.store.turns.outbox import OUTBOX
from tests.fakes.functions import Recorder
from tests.fakes.kept import kept, last_reason, reasons

WORK = ChatRef("test", "bot", "work")
TEXTS = Texts().of("en")
PACED = replace(
    TestPlatform().limits,
    sends_per_minute=1,
    is_paced=True,
    line_bytes=400,
    max_lines=12,
)


async def _say(context: MessageContext, arguments: dict[str, Any], call: Call) -> str:
    return "\n".join(f"{arguments['word']} {number}" for number in range(arguments["count"]))


LINES = Recorder(
    "lines",
    {"word": {"type": "string", "required": True}, "count": {"type": "integer", "required": True}},
    commands=["lines"],
    does=_say,
).spec


def limits(member: int = 60, chat: int = 180) -> Mapping[str, Any]:
    return {"delivery": {"lines_per_member": member, "lines_per_chat": chat}}


@asynccontextmanager
async def a_busy_group(home: Path | None = None, **most: int) -> AsyncIterator[Group]:
    """A group whose chats have used their message of this minute."""
    async with a_group([LINES], platform=TestPlatform(PACED), settings=limits(**most), home=home) as group:
        for chat in (FAMILY, WORK):
            await asks(group, "Zoe", "/lines zoe 1", chat=chat)
        await group.settle()
        group.platform.sent.clear()
        yield group


async def asks(group: Group, who: str, text: str, chat: ChatRef = FAMILY) -> None:
    """Send `text` as `who`; returns when the answer is queued."""
    await group.hear(who, text, chat=chat)
    await group.daemon.engine.idle()


async def sent(group: Group, minutes: int = 30) -> list[str]:
    """Messages sent within `minutes`."""
    for _ in range(minutes):
        await group.clock.advance(60)
        # A send may have to be claimed in the store first.
        await group.daemon.store.commit([])
    return [one.text for one in group.platform.sent]


async def test_members_take_turns_and_each_is_answered_in_order() -> None:
    async with a_group([LINES], platform=TestPlatform(PACED)) as group:
        for word in ("a1", "a2", "a3", "a4"):
            await asks(group, "Ann", f"/lines {word} 1")
        await asks(group, "Bob", "/lines b1 1")
        await asks(group, "Cy", "/lines c1 1")
        await asks(group, "Bob", "/lines b2 1")
        assert await sent(group) == ["a1 0", "a2 0", "b1 0", "c1 0", "a3 0", "b2 0", "a4 0"]


async def test_elsewhere_answers_keep_the_order_of_the_chat() -> None:
    platform = TestPlatform(replace(PACED, is_paced=False))
    async with a_group([LINES], platform=platform) as group:
        for who in ("Ann", "Ann", "Ann", "Bob", "Cy", "Bob"):
            await asks(group, who, f"/lines {who} 1")
        assert await sent(group) == ["Ann 0", "Ann 0", "Ann 0", "Bob 0", "Cy 0", "Bob 0"]


async def test_what_is_over_the_limit_of_a_member_is_dropped_and_reported_once() -> None:
    async with a_busy_group(member=15) as group:
        for word in ("one", "two", "three", "four"):
            await asks(group, "Ann", f"/lines {word} 10")
        await asks(group, "Bob", "/lines bob 2")
        said = await sent(group)
        assert [text.split("\n")[0] for text in said] == ["one 0", "bob 0", "two 0"]
        assert said[2].split("\n")[4:] == ["two 4", TEXTS.say("delivery.dropped", count="25")]
        why = ("reply_dropped", "delivery.lines_per_member")
        assert (await reasons(group))[2:] == [("command", "lines"), why, why, why, ("command", "lines")]
        assert await group.daemon.store.read(outcomes.EVERYTHING) == []
        dropped = ("dropped", "delivery.lines_per_member")
        assert (await kept(group, OUTBOX.c.state, OUTBOX.c.problem))[4:6] == [dropped, dropped]
        assert b"rollcall_reply_lines_dropped 25.0" in group.daemon.metrics.render()


async def test_why_names_the_setting() -> None:
    async with a_busy_group(member=3) as group:
        await asks(group, "Ann", "/lines one 5")
        await sent(group)
        await asks(group, "Ann", "/why")
        assert "delivery.lines_per_member" in (await sent(group))[-1]


async def test_after_the_report_is_sent_there_is_room_again() -> None:
    async with a_busy_group(member=2) as group:
        await asks(group, "Ann", "/lines one 5")
        await sent(group)
        await asks(group, "Ann", "/lines two 2")
        assert (await sent(group))[1:] == ["two 0\ntwo 1"]


async def test_a_member_has_one_limit_for_all_chats_and_a_chat_has_one_for_all_members() -> None:
    async with a_busy_group(member=4, chat=6) as group:
        await asks(group, "Ann", "/lines ann 3")
        await asks(group, "Ann", "/lines ann 3", chat=WORK)
        assert await last_reason(group) == ("reply_dropped", "delivery.lines_per_member")
        await asks(group, "Bob", "/lines bob 3")
        assert await last_reason(group) == ("command", "lines")
        await asks(group, "Cy", "/lines cy 3")
        assert await last_reason(group) == ("reply_dropped", "delivery.lines_per_chat")
        said = await sent(group)
        assert f"ann 0\n{TEXTS.say('delivery.dropped', count='2')}" in said
        assert TEXTS.say("delivery.dropped", count="3") in said


async def test_short_notices_to_a_member_count_as_well() -> None:
    async with a_busy_group(member=5) as group:
        for _ in range(40):
            await asks(group, "Ann", "approve #1a2b3")
        said = await sent(group)
        assert len(said) == 6
        assert said[-1] == TEXTS.say("delivery.dropped", count="35")


async def test_after_a_restart_the_limits_hold_for_what_waits(tmp_path: Path) -> None:
    async with a_busy_group(home=tmp_path) as group:
        for number in range(5):
            await asks(group, "Ann", f"/lines {number} 10")
        await asks(group, "Bob", "/lines bob 1")
        await group.crash()
    platform = TestPlatform(PACED)
    async with a_group([LINES], home=tmp_path, platform=platform, settings=limits(member=12)) as group:
        said = await sent(group)
        assert [text.split("\n")[0] for text in said] == ["0 0", "bob 0", "1 0"]
        assert said[-1].split("\n")[1:] == ["1 1", TEXTS.say("delivery.dropped", count="38")]


async def test_reminders_are_sent_however_much_waits() -> None:
    async with a_busy_group(member=1) as group:
        await asks(group, "Ann", "/remind in 5 minutes tea")
        await sent(group, minutes=4)
        group.platform.sent.clear()
        for _ in range(3):
            await asks(group, "Ann", "/lines a 1")
        group.clock.jump(90)
        await group.daemon.timers.tick()
        async with asyncio.timeout(10):
            while not any("tea" in text for text in await sent(group, minutes=1)):
                pass


async def test_a_long_reply_ends_with_how_much_was_cut() -> None:
    async with a_group([LINES], platform=TestPlatform(PACED)) as group:
        await asks(group, "Ann", "/lines x 3000")
        [text] = await sent(group)
        assert text.split("\n")[11:] == ["x 11", TEXTS.say("delivery.cut_lines", lines=12, count="2,988")]


async def test_a_function_may_have_a_brief_answer_for_such_networks() -> None:
    both = FunctionResult(messages=(Message("A long answer.", brief="Short."),))
    told = Recorder("tell", commands=["tell"], gives=both).spec
    async with a_group([told], platform=TestPlatform(PACED)) as group:
        await asks(group, "Ann", "/tell")
        assert await sent(group) == ["Short."]
    async with a_group([told]) as group:
        assert await group.say("Ann", "/tell") == ["A long answer."]


async def test_help_has_three_lines() -> None:
    without_buttons = replace(PACED, choices=False)
    async with a_group(platform=TestPlatform(without_buttons)) as group:
        await asks(group, "Ann", "/help")
        [text] = await sent(group)
        lines = text.split("\n")
        assert len(lines) == 3
        assert "/remind" in lines[1]
        assert "/help find out" in lines[2]
        assert all(len(line.encode()) <= PACED.line_bytes for line in lines)


async def test_help_in_private_is_as_short() -> None:
    async with a_group(platform=TestPlatform(PACED)) as group:
        await group.hear("Ann", "/help", is_group=False, private=True)
        await group.daemon.engine.idle()
        assert [text.count("\n") for text in await sent(group)] == [1]
        assert group.platform.sent[0].private_to == MemberRef("test", "bot", "ann")
