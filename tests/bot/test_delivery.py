"""Delivery: order, rate limits, retries and expiry of messages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bot.delivery.outgoing import OutboundMessage
from bot.platforms.base import Limits, LinkState, Outgoing, Receipt, SendFailed
from bot.testing import FAMILY, Group, TestPlatform, a_group
from config.texts import Texts
from function_calls.context import Kind, Quoted
from function_calls.spec import Choice, FunctionResult, Message
from services.refs import ChatRef, MemberRef
from services.store.chats.history import HISTORY
from services.store.turns.outbox import OUTBOX
from tests.fakes.full_disk import FullDisk
from tests.fakes.functions import Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import kept

WORK = ChatRef("test", "bot", "work")
LIMITS = TestPlatform().limits


def a_failure(**changes: object) -> SendFailed:
    return SendFailed("not now", **{"retryable": True, **changes})  # type: ignore[arg-type]


async def tells(group: Group, text: str, chat: ChatRef = FAMILY) -> None:
    """Let the bot answer `text` in `chat`; returns when the answer is in the outbox."""
    group.model.says(text)
    await group.hear("Ann", "@Rollcall hello", chat=chat)
    await group.daemon.engine.idle()


def texts(group: Group, chat: ChatRef = FAMILY) -> list[str]:
    return [one.text for one in group.platform.sent if one.chat == chat]


async def test_a_failed_send_is_repeated_after_growing_pauses() -> None:
    async with a_group() as group:
        group.platform.failures = [a_failure() for _ in range(4)]
        await tells(group, "Hello.")
        moments: list[float] = []
        for _ in range(40):
            left = len(group.platform.failures)
            await group.clock.advance(0.5)
            if len(group.platform.failures) < left or (texts(group) and len(moments) < 4):
                moments.append(group.clock.monotonic())
        assert texts(group) == ["Hello."]
        assert moments == [1.0, 3.0, 7.0, 15.0]


async def test_the_pause_that_the_network_asks_for_is_kept() -> None:
    async with a_group() as group:
        group.platform.failures = [a_failure(retry_after_seconds=7.0)]
        await tells(group, "Hello.")
        await group.clock.advance(6.9)
        assert texts(group) == []
        await group.clock.advance(0.1)
        assert texts(group) == ["Hello."]


async def test_a_rate_limit_is_not_counted_as_a_failure() -> None:
    async with a_group() as group:
        group.platform.failures = [a_failure(retry_after_seconds=7.0) for _ in range(20)]
        await tells(group, "Hello.")
        await group.clock.advance(7 * 20 - 0.1)
        assert texts(group) == []
        await group.clock.advance(0.1)
        assert texts(group) == ["Hello."]
        assert group.daemon.delivery.failed == 0


async def test_a_rate_limit_of_the_account_pauses_all_its_chats_and_keeps_their_order() -> None:
    async with a_group() as group:
        group.platform.failures = [a_failure(retry_after_seconds=7.0, for_account=True)]
        await tells(group, "One.")
        await group.clock.settle()
        await tells(group, "Two.")
        await tells(group, "Elsewhere.", chat=WORK)
        await group.clock.advance(6.9)
        assert (texts(group), texts(group, WORK)) == ([], [])
        await group.clock.advance(0.1)
        assert (texts(group), texts(group, WORK)) == (["One.", "Two."], ["Elsewhere."])


async def test_the_order_in_a_chat_is_kept_and_other_chats_do_not_wait() -> None:
    async with a_group() as group:
        group.platform.failures = [a_failure(retry_after_seconds=7.0)]
        await tells(group, "One.")
        await group.clock.settle()
        await tells(group, "Two.")
        await tells(group, "Elsewhere.", chat=WORK)
        await group.clock.settle()
        assert (texts(group), texts(group, WORK)) == ([], ["Elsewhere."])
        await group.clock.advance(7)
        assert texts(group) == ["One.", "Two."]


@pytest.mark.parametrize(
    ("failures", "attempts"), [([a_failure(retryable=False)], 1), ([a_failure() for _ in range(20)], 8)]
)
async def test_what_no_network_takes_is_given_up_counted_and_does_not_hold_up_the_rest(
    failures: list[SendFailed], attempts: int
) -> None:
    async with a_group() as group:
        group.platform.failures = list(failures)
        await tells(group, "Lost.")
        await group.clock.advance(600)
        assert len(failures) - len(group.platform.failures) == attempts
        assert group.daemon.delivery.failed == 1
        assert b"rollcall_messages_given_up 1.0" in group.daemon.metrics.render()
        group.platform.failures = []
        await tells(group, "Found.")
        await group.settle()
        assert texts(group) == ["Found."]
        assert await kept(group, OUTBOX.c.state, OUTBOX.c.problem) == [("failed", "not now"), ("sent", "")]


async def test_a_message_to_a_network_that_is_gone_is_given_up(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        group.platform.failures = [a_failure()]
        await tells(group, "Hello.")
        await group.crash()

    class Other(TestPlatform):
        name = "other"

    async with a_group(home=tmp_path, platform=Other()) as group:
        await group.settle()
        assert await kept(group, OUTBOX.c.state, OUTBOX.c.problem) == [("failed", "there is no platform test:bot")]


async def test_more_than_the_rate_of_a_network_waits_and_nothing_is_dropped() -> None:
    platform = TestPlatform(replace(LIMITS, sends_per_minute=3))
    async with a_group(platform=platform) as group:
        for number in range(7):
            await tells(group, f"{number}")
        await group.clock.settle()
        assert texts(group) == ["0", "1", "2"]
        await tells(group, "elsewhere", chat=WORK)
        await group.clock.settle()
        assert texts(group, WORK) == ["elsewhere"]
        await group.clock.advance(60)
        assert texts(group) == ["0", "1", "2", "3", "4", "5"]
        await group.clock.advance(60)
        assert texts(group) == [str(number) for number in range(7)]


@pytest.mark.parametrize("idempotent", [True, False])
async def test_after_an_unknown_outcome_it_is_sent_again_and_says_so_where_the_network_knows_no_key(
    idempotent: bool,
) -> None:
    platform = TestPlatform(replace(LIMITS, sends_are_idempotent=idempotent))
    async with a_group(platform=platform) as group:
        platform.failures = [a_failure(unknown_outcome=True), a_failure(unknown_outcome=True)]
        await tells(group, "Hello.")
        await until(lambda: len(platform.failures) == 1)
        await group.clock.advance(60)
        await group.settle()
        mark = Texts().of("en").say("delivery.resent")
        assert texts(group) == ["Hello." if idempotent else f"Hello.\n{mark}"]
        assert group.daemon.delivery.failed == 0


class Distant(TestPlatform):
    """A network whose connection is controlled by the test."""

    def __init__(self) -> None:
        super().__init__(replace(LIMITS, sends_are_idempotent=False))
        self.is_up = asyncio.Event()
        self.asked = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()
        self.member_is_there = asyncio.Event()
        self.said_at_ms: list[int] = []

    async def until_reachable(self, outgoing: Outgoing, said_at_ms: int) -> None:
        self.said_at_ms.append(said_at_ms)
        self.asked.set()
        await self.is_up.wait()
        if outgoing.private_to is not None:
            await self.member_is_there.wait()

    def link(self) -> LinkState:
        return LinkState(self.is_up.is_set(), "as the test says", 3)

    async def send(self, outgoing: Outgoing) -> Receipt:
        await self.takes.wait()
        return await super().send(outgoing)


async def test_what_waits_for_a_connection_was_not_sent_and_is_not_marked_after_a_crash(tmp_path: Path) -> None:
    async with a_group(home=tmp_path, platform=(platform := Distant())) as group:
        await tells(group, "Hello.")
        await platform.asked.wait()
        assert await kept(group, OUTBOX.c.state, OUTBOX.c.attempts) == [("pending", 0)]
        assert b'rollcall_platform_connected{platform="test:bot"} 0.0' in group.daemon.metrics.render()
        assert b'rollcall_platform_losses_total{platform="test:bot"} 3.0' in group.daemon.metrics.render()
        await group.crash()
    async with a_group(home=tmp_path, platform=(platform := Distant())) as group:
        platform.is_up.set()
        await group.settle()
        assert texts(group) == ["Hello."]


async def test_what_waits_for_one_absent_member_holds_up_nobody_else_and_keeps_its_age_across_starts(
    tmp_path: Path,
) -> None:
    ann = MemberRef("test", "bot", "ann")
    both = FunctionResult(messages=(Message("A secret.", to=ann), Message("Hello, all.")))
    tell = Recorder("tell", commands=["tell"], gives=both).spec
    async with a_group([tell], home=tmp_path, platform=(platform := Distant())) as group:
        platform.is_up.set()
        await group.hear("Ann", "/tell")
        await until(lambda: texts(group) == ["Hello, all."])
        [said_at_ms] = set(platform.said_at_ms)
        await group.crash()
    async with a_group([tell], home=tmp_path, platform=(platform := Distant())) as group:
        platform.is_up.set()
        platform.member_is_there.set()
        await group.settle()
        assert (texts(group), platform.said_at_ms) == (["A secret."], [said_at_ms])


async def test_the_rate_of_a_chat_holds_over_what_is_for_single_members_too() -> None:
    members = [MemberRef("test", "bot", name) for name in ("ann", "bob", "cy", "di", "eve")]
    tell = Recorder(
        "tell", commands=["tell"], gives=FunctionResult(messages=tuple(Message("hi", to=one) for one in members))
    )
    platform = Distant()
    platform.limits = replace(platform.limits, sends_are_idempotent=True, sends_per_minute=2)
    platform.is_up.set()
    platform.member_is_there.set()
    async with a_group([tell.spec], platform=platform) as group:
        await group.hear("Ann", "/tell")
        await group.daemon.engine.idle()
        sent_by: list[int] = []
        for _ in range(4):
            await group.clock.settle()
            sent_by.append(len(platform.sent))
            await group.clock.advance(60)
    assert sent_by == [2, 4, 5, 5]


async def test_what_is_being_sent_at_the_end_is_sent_and_what_waits_behind_it_is_sent_after_the_next_start(
    tmp_path: Path,
) -> None:
    async with a_group(home=tmp_path, platform=(platform := Distant())) as group:
        platform.is_up.set()
        platform.takes.clear()
        await tells(group, "One.")
        await tells(group, "Two.")
        closing = asyncio.create_task(group.daemon.delivery.close(0.3))
        await until(lambda: group.daemon.delivery._is_closing)
        platform.takes.set()
        await closing
        assert texts(group) == ["One."]
        assert await kept(group, OUTBOX.c.state) == [("sent",), ("pending",)]
        await group.crash()
    async with a_group(home=tmp_path, platform=(platform := Distant())) as group:
        platform.is_up.set()
        await group.settle()
        assert texts(group) == ["Two."]


async def test_a_message_that_was_cut_to_fit_has_room_for_the_word_that_it_is_a_repetition() -> None:
    platform = TestPlatform(replace(LIMITS, text_chars=300, sends_are_idempotent=False))
    async with a_group(platform=platform) as group:
        platform.failures = [a_failure(unknown_outcome=True)]
        await tells(group, "word " * 200)
        await until(lambda: not platform.failures)
        await group.clock.advance(60)
        await group.settle()
        mark = Texts().of("en").say("delivery.resent")
        assert [text.endswith(mark) for text in texts(group)] == [True] + [False] * (len(texts(group)) - 1)
        assert max(map(len, texts(group))) <= 300


async def test_where_the_network_knows_no_keys_a_send_is_claimed_before_it_begins() -> None:
    platform = TestPlatform(replace(LIMITS, sends_are_idempotent=False))
    async with a_group(platform=platform) as group:
        platform.failures = [a_failure()]
        await tells(group, "Hello.")
        await until(lambda: not platform.failures)
        assert await kept(group, OUTBOX.c.state, OUTBOX.c.attempts) == [("sending", 1)]
        await group.clock.advance(1)
        await group.settle()
        assert await kept(group, OUTBOX.c.state) == [("sent",)]


async def test_a_full_disk_delays_a_send_and_loses_nothing() -> None:
    disk = FullDisk()
    platform = TestPlatform(replace(LIMITS, sends_are_idempotent=False))
    async with a_group(platform=platform, around_store=disk.under) as group:
        platform.failures = [a_failure(retry_after_seconds=7.0)]
        await tells(group, "One.")
        await until(lambda: not platform.failures)
        await tells(group, "Two.")
        disk.is_full = True
        await group.clock.advance(7)
        await until(lambda: disk.refused >= 2)
        disk.is_full = False
        await group.clock.advance(60)
        await group.settle()
        assert texts(group) == ["One.", "Two."]


async def test_what_was_not_sent_before_a_restart_is_sent_after_it_in_its_order(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        group.platform.failures = [a_failure() for _ in range(5)]
        await tells(group, "One.")
        await tells(group, "Two.")
        await group.crash()
    async with a_group(home=tmp_path) as group:
        await tells(group, "Three.")
        await group.settle()
        assert texts(group) == ["One.", "Two.", "Three."]


@pytest.mark.parametrize(("idempotent", "first"), [(True, "One."), (False, "One.\n(sent again after an interruption)")])
async def test_what_may_have_arrived_before_a_restart_says_so(tmp_path: Path, idempotent: bool, first: str) -> None:
    limits = replace(LIMITS, sends_are_idempotent=idempotent)
    async with a_group(home=tmp_path, platform=TestPlatform(limits)) as group:
        group.platform.failures = [a_failure()]
        await tells(group, "One.")
        await until(lambda: not group.platform.failures)
        await tells(group, "Two.")
        await group.crash()
    async with a_group(home=tmp_path, platform=TestPlatform(limits)) as group:
        await group.settle()
        assert texts(group) == [first, "Two."]


async def test_history_learns_the_networks_id_of_what_was_said() -> None:
    async with a_group() as group:
        await tells(group, "Hello.")
        await group.settle()
        (sent,) = group.platform.sent
        assert (1, f"sent-{sent.key}") in await kept(group, HISTORY.c.from_bot, HISTORY.c.native_id)


@pytest.mark.requirement("D44")
async def test_a_result_may_speak_to_a_member_alone_and_to_another_chat_and_mention_people() -> None:
    ann = MemberRef("test", "bot", "ann")
    result = FunctionResult(
        messages=(Message("Hello, @Ann.", mentions=(ann,)), Message("A secret.", to=ann), Message("News.", to=WORK))
    )
    function = Recorder("tell", commands=["tell"], gives=result)
    async with a_group([function.spec]) as group:
        await group.say("Ann", "/tell")
        here, secret, there = sorted(group.platform.sent, key=lambda one: one.key)
        assert (here.chat, here.mentions, here.private_to) == (FAMILY, (ann,), None)
        assert (secret.chat, secret.private_to, secret.reply_to) == (FAMILY, ann, None)
        assert (there.chat, there.text) == (WORK, "News.")
        said = await kept(group, HISTORY.c.chat, HISTORY.c.text)
        assert (FAMILY.key, "A secret.") not in said
        assert (WORK.key, "News.") in said


async def test_choices_are_buttons_or_words() -> None:
    result = FunctionResult(messages=(Message("Tea?", choices=(Choice("Yes", "yes"), Choice("No", "no"))),))
    function = Recorder("offer", commands=["offer"], gives=result)
    plain = Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=1000, choices=False)
    async with a_group([function.spec], platform=TestPlatform(plain)) as group:
        assert await group.say("Ann", "/offer") == ["Tea?\nReply with: yes / no"]
    async with a_group([function.spec]) as group:
        assert await group.say("Ann", "/offer") == ["Tea?"]
        assert len(group.platform.sent[0].choices) == 2


class Changeable(TestPlatform):
    """A network on which sent messages can be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.edits: list[tuple[str, Outgoing]] = []
        self.edit_failures: list[SendFailed] = []

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        if self.edit_failures:
            raise self.edit_failures.pop(0)
        self.edits.append((native_id, outgoing))

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        raise NotImplementedError


async def a_vote(group: Group, platform: TestPlatform) -> None:
    """Ann starts a poll, and Ben presses the button of its second option."""
    await group.say("Ann", "/poll Where do we eat? pizza, sushi")
    poll = platform.sent[-1]
    pressed = Quoted(f"sent-{poll.key}", "Rollcall", poll.text, from_bot=True)
    await group.say("Ben", poll.choices[1].value, kind=Kind.CHOICE, reply_to=pressed)


async def test_a_vote_by_button_changes_the_message_of_the_poll() -> None:
    platform = Changeable()
    async with a_group(platform=platform) as group:
        await a_vote(group, platform)
        assert len(platform.sent) == 1
        (native_id, board), *others = platform.edits
        assert native_id == f"sent-{platform.sent[0].key}"
        assert board.text.splitlines() == [
            "📊 Poll 1: Where do we eat?",
            "1. pizza: 0 (0%)",
            "2. sushi: 1 (100%)",
            "sushi is ahead.",
            "Ben votes for sushi.",
        ]
        assert [choice.label for choice in board.choices] == ["pizza", "sushi"]
        assert others == []


@pytest.mark.parametrize("can_edit", [True, False])
async def test_a_vote_is_a_message_where_the_poll_cannot_be_changed(can_edit: bool) -> None:
    platform = Changeable() if can_edit else TestPlatform()
    async with a_group(platform=platform) as group:
        if isinstance(platform, Changeable):
            platform.edit_failures = [a_failure(retryable=False)]
        await a_vote(group, platform)
        await group.settle()
        assert "Ben votes for sushi." in platform.sent[1].text
        assert ("Where do we eat?" in platform.sent[1].text) is can_edit


async def test_a_vote_by_command_is_answered() -> None:
    platform = Changeable()
    async with a_group(platform=platform) as group:
        await group.say("Ann", "/poll Where do we eat? pizza, sushi")
        assert (await group.say("Ben", "/vote 2"))[0].startswith("Ben votes for sushi.")
        assert platform.edits == []


async def test_a_long_answer_is_sent_in_pieces_in_their_order() -> None:
    platform = TestPlatform(replace(LIMITS, text_chars=200))
    async with a_group(platform=platform) as group:
        group.platform.failures = [a_failure()]
        await tells(group, " ".join(f"word{number}" for number in range(100)))
        await group.clock.advance(2)
        await group.settle()
        assert " ".join(texts(group)).split() == [f"word{number}" for number in range(100)]
        assert all(len(text) <= 200 for text in texts(group))


async def test_an_answer_quotes_its_message_where_others_spoke_meanwhile() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.say("Ann", "/id", id="x1")
        await group.hear("Ann", "/hold it", id="x2")
        await group.hear("Bob", "anyway")
        held.let_go()
        await group.settle()
        assert [one.reply_to for one in group.platform.sent] == [None, "x2"]


async def test_what_comes_at_the_very_end_of_a_send_is_sent_too() -> None:
    async with a_group() as group:
        for ticks in range(12):
            for number in range(2):
                outgoing = Outgoing(FAMILY, f"{ticks}:{number}", f"{ticks} {number}")
                group.daemon.delivery.hand_over([OutboundMessage(0, outgoing, None, claimed=True, created_ms=0)])
                for _ in range(ticks):
                    await asyncio.sleep(0)
        await group.daemon.delivery.idle()
        assert texts(group) == [f"{ticks} {number}" for ticks in range(12) for number in range(2)]
