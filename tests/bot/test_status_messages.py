"""Status messages of long turns on networks where the bot can edit its messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.base import Limits, Outgoing, Receipt, SendFailed
from bot.testing import FAMILY, Group, TestPlatform, a_group, call
from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.spec import FunctionResult, FunctionSpec, Message
from services.refs import ChatRef, MemberRef
from services.store.turns.outbox import OUTBOX
from tests.fakes.functions import Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import heard, kept

AFTER_SECONDS = 10
EDIT_SECONDS = 3
LIMITS = TestPlatform().limits
NO_KEYS = replace(LIMITS, sends_are_idempotent=False)


class EditingNetwork(TestPlatform):
    """A network on which the bot can change and delete its messages, with the messages that members see."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.shown: dict[str, str] = {}
        """Texts by native id, in order."""
        self.events: list[tuple[str, str]] = []
        """Each request with the text that it shows."""
        self.edit_failures: list[SendFailed] = []
        self.delete_failures: list[SendFailed] = []
        self.free = asyncio.Event()
        """While cleared, sends wait before they take effect."""
        self.free.set()

    @property
    def texts(self) -> list[str]:
        return list(self.shown.values())

    async def send(self, outgoing: Outgoing) -> Receipt:
        self.events.append(("send", outgoing.text))
        await self.free.wait()
        receipt = await super().send(outgoing)
        self.shown.setdefault(receipt.native_id, outgoing.text)
        return receipt

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        self.events.append(("edit", outgoing.text))
        if self.edit_failures:
            raise self.edit_failures.pop(0)
        if native_id not in self.shown:
            raise SendFailed("it is gone", retryable=False)
        self.shown[native_id] = outgoing.text

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        if self.delete_failures:
            raise self.delete_failures.pop(0)
        self.events.append(("delete", self.shown.pop(native_id, "")))


class Reporting:
    """Answers `/work <text>` after its release, and shows each text of `says` as its status."""

    def __init__(self, result: FunctionResult | str = "Done.") -> None:
        parameters = {"text": {"type": "string", "description": "Anything", "required": True}}
        self.spec: FunctionSpec = Recorder(
            "work", parameters, does=self._work, commands=["work"], timeout_seconds=110
        ).spec
        self._result = result
        self._says: asyncio.Queue[str] = asyncio.Queue()

    def says(self, *texts: str) -> None:
        """Show `texts`; an empty one ends the run."""
        for text in texts:
            self._says.put_nowait(text)

    async def _work(self, context: MessageContext, arguments: dict[str, Any], call: Call) -> FunctionResult | str:
        while text := await self._says.get():
            await call.status(text)
        return self._result


async def is_working(group: Group, text: str = "/work it", **facts: Any) -> None:
    """Ann asks, and the bot has worked for longer than the threshold."""
    before = len(group.platform.statuses)
    await group.hear("Ann", text, **facts)
    await until(lambda: len(group.platform.statuses) > before)
    await group.clock.advance(AFTER_SECONDS)


async def shows(group: Group, network: EditingNetwork, *texts: str) -> None:
    """Wait until members see these texts, and nothing is being sent."""
    await until(lambda: network.texts == list(texts))
    await group.daemon.delivery.idle()


async def test_a_long_turn_is_one_message_that_becomes_its_answer() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group, id="x1")
        await shows(group, network, "Working: /work …")
        work.says("reading page 2 of 5…")
        await group.clock.advance(EDIT_SECONDS)
        await shows(group, network, "Working: reading page 2 of 5 …")
        work.says("")
        await group.settle()
        assert network.texts == ["Done."]
        assert [event for event, _ in network.events] == ["send", "edit", "edit"]
        assert network.sent[0].reply_to == "x1"


async def test_a_turn_below_the_threshold_shows_no_status_message() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await group.hear("Ann", "/work it")
        await until(lambda: bool(network.statuses))
        await group.clock.advance(AFTER_SECONDS - 1)
        work.says("")
        await group.settle()
        await group.clock.advance(60)
        await group.settle()
        assert network.events == [("send", "Done.")]


@pytest.mark.parametrize("limits", [replace(LIMITS, shows_status=True), replace(LIMITS, is_paced=True)])
async def test_networks_that_show_the_status_or_are_slow_get_no_status_message(limits: Limits) -> None:
    network, work = EditingNetwork(limits), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        work.says("")
        await group.settle()
        assert network.events == [("send", "Done.")]


async def test_a_network_without_edits_keeps_the_typing_indicator_only() -> None:
    work = Reporting()
    async with a_group([work.spec]) as group:
        await is_working(group)
        work.says("")
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["Done."]


async def test_the_setting_changes_the_threshold_and_zero_disables_it() -> None:
    for seconds, count in ((0, 0), (2, 1)):
        network, work = EditingNetwork(), Reporting()
        settings = {"router": {"status_after_seconds": seconds}, "chats": {"allow": ["*"]}}
        async with a_group([work.spec], platform=network, settings=settings) as group:
            await group.hear("Ann", "/work it")
            await until(lambda network=network: bool(network.statuses))  # type: ignore[misc]
            await group.clock.advance(2)
            await until(lambda network=network, count=count: len(network.events) == count)  # type: ignore[misc]
            work.says("")
            await group.settle()
            assert network.texts == ["Done."]


async def test_a_message_that_nobody_else_sees_shows_no_status_in_the_group() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group, private=True)
        work.says("")
        await group.settle()
        assert network.events == [("send", "Done.")]


async def test_intermediate_statuses_are_dropped() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        for number in range(1, 61):
            work.says(f"{number} of 60")
            await group.clock.advance(0.1)
        await group.clock.advance(EDIT_SECONDS)
        await shows(group, network, "Working: 60 of 60 …")
        assert len(network.events) <= 4
        before = list(network.events)
        await group.clock.advance(60)
        assert network.events == before
        work.says("")


async def test_calls_of_an_answer_are_counted_in_the_status() -> None:
    network, held = EditingNetwork(), Held(effect="idempotent")
    async with a_group([held.spec], platform=network) as group:
        group.model.says([call("hold", text="a"), call("hold", text="b")], "Both are done.")
        await group.hear("Ann", "@Rollcall hold a and b")
        await held.has_begun("a")
        held.let_go("a")
        await held.has_begun("b")
        await until(lambda: bool(network.statuses))
        await group.clock.advance(AFTER_SECONDS)
        await shows(group, network, "Working: /hold (2 of 2) …")
        held.let_go()
        await group.settle()
        assert network.texts == ["done: a", "done: b", "Both are done."]


async def test_the_status_is_in_the_language_of_the_chat() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network, settings={"language": "zh", "chats": {"allow": ["*"]}}) as group:
        await is_working(group)
        await shows(group, network, "正在处理：/work……")
        work.says("")
        await group.settle()


async def test_a_status_is_neither_history_nor_shown_to_the_model() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await until(lambda: len(network.shown) == 1)
        work.says("")
        await group.settle()
        assert [text for _, text in await heard(group)] == ["/work it", "Done."]
        group.model.says("Hello.")
        await group.say("Bob", "@Rollcall hello")
        assert all("Working" not in message.content for message in group.model.requests[-1].messages)


@pytest.mark.parametrize("text", ["/stop", "@Rollcall stop"])
async def test_stop_replaces_the_status(text: str) -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        await group.say("Ann", text)
        assert network.texts == ["Stopped."]


LONG = FunctionResult(messages=(Message("word " * 1500),))
SEVERAL = FunctionResult(messages=(Message("One."), Message("Two.")))
FILE = FunctionResult(messages=(Message("Here.", attachments=(Attachment("a.txt", "text/plain", "data:,a"),)),))
SECRET = FunctionResult(messages=(Message("Only for you.", to=MemberRef("test", "bot", "ann")),))


@pytest.mark.parametrize(
    ("result", "texts"),
    [(LONG, 2), (SEVERAL, 2), (FILE, 1), (SECRET, 1)],
    ids=["too long", "two messages", "a file", "private"],
)
async def test_the_status_is_deleted_if_the_answer_is_not_one_plain_message(result: FunctionResult, texts: int) -> None:
    network, work = EditingNetwork(replace(LIMITS, attachments=True)), Reporting(result)
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        work.says("")
        await group.settle()
        assert len(network.texts) == texts
        assert not any("Working" in text for text in network.texts)
        assert [event for event, _ in network.events].count("edit") == 0
        assert await kept(group, OUTBOX.c.state) == [("dropped",), *[("sent",)] * texts, ("dropped",)]


@pytest.mark.parametrize("failures", [2, 8])
async def test_a_deletion_that_fails_is_repeated_and_is_no_dead_letter(failures: int) -> None:
    network, work = EditingNetwork(), Reporting(SEVERAL)
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        network.delete_failures = [SendFailed("not now", retryable=True) for _ in range(failures)]
        work.says("")
        await group.daemon.engine.idle()
        for _ in range(10):
            await group.clock.advance(60)
        await group.settle()
        assert network.texts[-2:] == ["One.", "Two."]
        assert len(network.texts) == (2 if failures == 2 else 3)
        assert {state for (state,) in await kept(group, OUTBOX.c.state)} == {"dropped", "sent"}


async def test_a_status_that_the_network_no_longer_changes_is_deleted_and_the_answer_sent() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        network.edit_failures = [SendFailed("too old", retryable=False)]
        work.says("")
        await group.settle()
        assert network.texts == ["Done."]
        assert [event for event, _ in network.events] == ["send", "edit", "delete", "send"]


async def test_a_status_beyond_the_age_for_edits_is_not_edited() -> None:
    network, work = EditingNetwork(replace(LIMITS, edit_seconds=30)), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        await group.clock.advance(31)
        work.says("late news")
        await group.clock.advance(EDIT_SECONDS)
        work.says("")
        await group.settle()
        assert network.texts == ["Done."]
        assert [event for event, _ in network.events] == ["send", "delete", "send"]


async def test_an_edit_that_fails_for_a_moment_is_repeated_without_a_note() -> None:
    network, work = EditingNetwork(NO_KEYS), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        network.edit_failures = [SendFailed("no answer", retryable=True, unknown_outcome=True)]
        work.says("")
        await group.daemon.engine.idle()
        await until(lambda: not network.edit_failures)
        await group.clock.advance(5)
        await group.settle()
        assert network.texts == ["Done."]


async def test_statuses_take_at_most_a_quarter_of_the_rate() -> None:
    network, work = EditingNetwork(replace(LIMITS, sends_per_minute=12)), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        for number in range(10):
            work.says(f"part {number}")
            await group.clock.advance(EDIT_SECONDS)
        assert [event for event, _ in network.events] == ["send", "edit", "edit"]
        for number in range(9):
            await group.hear("Bob", "/stop", id=f"s{number}")
        await until(lambda: len(network.texts) == 10)
        work.says("")


async def test_a_status_does_not_wait_behind_a_reply_that_fails() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        await group.hear("Ann", "/work it")
        await until(lambda: bool(network.statuses))
        network.failures = [SendFailed("busy", retryable=True, retry_after_seconds=60)]
        await group.hear("Bob", "/stop")
        await until(lambda: not network.failures)
        await group.clock.advance(AFTER_SECONDS + 20)
        assert [text for _, text in network.events if "Working" in text] == []
        work.says("")
        await group.daemon.engine.idle()
        await group.clock.advance(60)
        await group.settle()
        assert network.texts == ["I'm not working on anything of yours right now.", "Done."]


async def test_an_answer_during_the_post_of_the_status_replaces_it() -> None:
    network, work = EditingNetwork(), Reporting()
    async with a_group([work.spec], platform=network) as group:
        network.free.clear()
        await is_working(group)
        await until(lambda: bool(network.events))
        work.says("")
        await group.daemon.engine.idle()
        network.free.set()
        await group.settle()
        assert network.texts == ["Done."]


@pytest.mark.parametrize("may_have_arrived", [True, False])
@pytest.mark.parametrize("limits", [LIMITS, NO_KEYS], ids=["keys", "no keys"])
async def test_a_status_that_cannot_be_posted_is_not_repeated(limits: Limits, may_have_arrived: bool) -> None:
    network, work = EditingNetwork(limits), Reporting()
    async with a_group([work.spec], platform=network) as group:
        network.failures = [SendFailed("no", retryable=True, unknown_outcome=may_have_arrived)]
        await is_working(group)
        await until(lambda: not network.failures)
        work.says("more")
        await group.clock.advance(60)
        assert len(network.events) == 1
        work.says("")
        await group.settle()
        assert network.texts == ["Done."]
        assert "sending" not in {state for (state,) in await kept(group, OUTBOX.c.state)}


async def restarted(home: Path, network: EditingNetwork, work: Reporting, texts: Sequence[str]) -> None:
    """Another daemon on the data of `home` ends what the first one has begun."""
    again = EditingNetwork(network.limits)
    again.shown, again.sent = network.shown, network.sent
    async with a_group([work.spec], platform=again, home=home) as group:
        work.says("")
        await group.settle()
        assert again.texts == list(texts)
        assert "sending" not in {state for (state,) in await kept(group, OUTBOX.c.state)}


@pytest.mark.parametrize("limits", [LIMITS, NO_KEYS], ids=["keys", "no keys"])
@pytest.mark.parametrize(("result", "texts"), [("Done.", ["Done."]), (SEVERAL, ["One.", "Two."])])
async def test_the_status_of_an_interrupted_turn_is_replaced_or_deleted_by_the_repeated_turn(
    tmp_path: Path, limits: Limits, result: FunctionResult | str, texts: list[str]
) -> None:
    network, work = EditingNetwork(limits), Reporting(result)
    async with a_group([work.spec], platform=network, home=tmp_path) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        await group.crash()
    await restarted(tmp_path, network, Reporting(result), texts)


async def test_a_repeated_turn_continues_the_status_of_the_first_attempt(tmp_path: Path) -> None:
    network, work = EditingNetwork(NO_KEYS), Reporting()
    async with a_group([work.spec], platform=network, home=tmp_path) as group:
        await is_working(group)
        await shows(group, network, "Working: /work …")
        await group.crash()
    again, work = EditingNetwork(NO_KEYS), Reporting()
    again.shown = network.shown
    async with a_group([work.spec], platform=again, home=tmp_path) as group:
        await until(lambda: bool(again.statuses))
        work.says("second attempt")
        await group.clock.advance(AFTER_SECONDS)
        await shows(group, again, "Working: second attempt …")
        work.says("")
        await group.settle()
        assert again.texts == ["Done."]
        assert [event for event, _ in again.events] == ["edit", "edit"]


async def test_two_turns_of_a_chat_have_a_status_each() -> None:
    network, held = EditingNetwork(), Held(immediate=True)
    async with a_group([held.spec], platform=network) as group:
        for text in ("a", "b"):
            await group.hear("Ann", f"/hold {text}")
            await held.has_begun(text)
        await until(lambda: len(network.statuses) == 2)
        await group.clock.advance(AFTER_SECONDS)
        # The second status is posted now, or at its next change if the first one is being sent.
        await until(lambda: bool(network.texts))
        await group.daemon.delivery.idle()
        await group.clock.advance(EDIT_SECONDS)
        await shows(group, network, "Working: /hold …", "Working: /hold …")
        held.let_go("b")
        await shows(group, network, "Working: /hold …", "done: b")
        held.let_go()
        await group.settle()
        assert network.texts == ["done: a", "done: b"]
        assert {one.chat for one in network.sent} == {FAMILY}
