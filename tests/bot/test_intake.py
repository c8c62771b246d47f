"""Each incoming event is processed once: duplicates, edits and deletions in any order, and their history."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.platforms.base import Accepted
from bot.testing import FAMILY, Group, TestPlatform, a_group
from function_calls.context import Attachment, Kind
from services.refs import ChatRef, MemberRef
from services.store.chats import history
from services.store.chats.history import HISTORY
from services.store.port import StoreFull
from services.store.turns import audit
from services.store.turns.inbox import INBOX
from tests.fakes.full_disk import FullDisk
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import heard, kept, last_reason, reasons
from tests.fakes.slow_commit import SlowCommit


async def test_a_duplicate_is_answered_once() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.")
        assert await group.say("Ann", "@Rollcall hello", id="x1") == ["One."]
        assert await group.say("Ann", "@Rollcall hello", id="x1") == []
        assert await heard(group) == [("Ann", "hello"), ("Rollcall", "One.")]


async def test_duplicates_that_arrive_at_once_are_answered_once() -> None:
    once = Recorder("once", commands=["once"], effect="once")
    async with a_group([once.spec]) as group:
        context = group.message("Ann", "/once")
        accepted = await asyncio.gather(*(group.daemon.intake.accept(context) for _ in range(20)))
        await group.settle()
        assert sorted(accepted) == sorted([Accepted.NEW] + [Accepted.DUPLICATE] * 19)
        assert len(once.runs) == 1
        assert len(group.platform.sent) == 1


async def test_a_duplicate_is_known_after_a_restart(tmp_path: Path) -> None:
    once = Recorder("once", commands=["once"], effect="once")
    async with a_group([once.spec], home=tmp_path) as group:
        await group.say("Ann", "/once", id="x1")
    async with a_group([once.spec], home=tmp_path) as group:
        assert await group.hear("Ann", "/once", id="x1") is Accepted.DUPLICATE
        assert await group.say("Ann", "/once", id="m2") == ["done"]
    assert len(once.runs) == 2


async def test_the_same_id_in_another_chat_is_another_message() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.")
        await group.say("Ann", "@Rollcall hello", id="x1")
        assert await group.say("Ann", "@Rollcall hello", id="x1", chat=ChatRef("test", "bot", "work")) == ["Two."]


async def test_the_same_words_twice_are_two_messages() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.")
        assert await group.say("Ann", "@Rollcall hello") == ["One."]
        assert await group.say("Ann", "@Rollcall hello") == ["Two."]


async def test_what_a_platform_keeps_with_a_message_is_kept_for_a_duplicate_too() -> None:
    async with a_group() as group:
        context = group.message("Ann", "hello")
        assert await group.daemon.intake.accept(context, [audit.advance("test", "7", 1)]) is Accepted.NEW
        assert await group.daemon.intake.accept(context, [audit.advance("test", "8", 2)]) is Accepted.DUPLICATE
        assert await kept(group, HISTORY.c.text) == [("hello",)]
        assert (await group.daemon.store.read(audit.get("test")))[0]["value"] == "8"


@pytest.mark.requirement("D54")
async def test_history_has_every_message_once_whether_it_was_addressed_or_not() -> None:
    async with a_group() as group:
        group.model.says("Hello, all.")
        await group.say("Ann", "It is warm.")
        await group.say("Bob", "@Rollcall say hello")
        await group.say("Spam", "buy this", is_bot=True)
        await group.say("Eve", "from long ago", backfilled=True)
        await group.say("Dan", "", kind=Kind.JOIN)
        assert await heard(group) == [
            ("Ann", "It is warm."),
            ("Bob", "say hello"),
            ("Rollcall", "Hello, all."),
            ("Spam", "buy this"),
            ("Eve", "from long ago"),
        ]


async def test_who_joins_and_leaves_is_recorded() -> None:
    async with a_group() as group:
        await group.say("Dan", "", kind=Kind.JOIN)
        await group.say("Eve", "", kind=Kind.LEAVE)
        assert await kept(group, INBOX.c.sender_name, INBOX.c.kind) == [("Dan", "join"), ("Eve", "leave")]


async def test_history_is_pruned_to_what_the_settings_keep() -> None:
    async with a_group(settings={"store": {"history_per_chat": 10}, "chats": {"allow": ["*"]}}) as group:
        for number in range(205):
            await group.hear("Ann", f"line {number}")
        lines = [text for _, text in await heard(group)]
        assert lines[-10:] == [f"line {number}" for number in range(195, 205)]
        assert len(lines) <= 10 + 100


async def test_a_limit_that_was_lowered_deletes_the_rest_of_a_history_batch_by_batch() -> None:
    async with a_group(settings={"store": {"history_per_chat": 10}, "chats": {"allow": ["*"]}}) as group:
        said = [
            history.add_bot_message(
                id=number, chat=FAMILY.key, sender_name="Bot", text="", at_ms=0, reply_to=None, asked_by="", answers=0
            )
            for number in range(5000)
        ]  # fmt: skip
        await group.daemon.store.commit(said)
        await group.say("Ann", "a new one")
        assert 4400 < len(await heard(group)) < 5001


async def waiting(group: Group, held: Held, text: str, **facts: str) -> None:
    """Let `text` wait behind a held run."""
    await group.hear("Bob", "/hold first")
    await held.has_begun("first")
    await group.hear("Ann", text, **facts)


async def test_an_edit_of_a_message_that_waits_is_what_gets_answered() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await waiting(group, held, "/hold old", id="x1")
        await group.hear("Ann", "/hold new", id="x1", kind=Kind.EDIT)
        assert await last_reason(group) == ("edit_taken", "")
        held.let_go()
        await group.settle()
        assert held.begun == ["first", "new"]
        assert [text for _, text in await heard(group)] == ["/hold first", "/hold new", "done: first", "done: new"]


async def test_an_edit_that_waits_survives_a_restart(tmp_path: Path) -> None:
    held = Held()
    async with a_group([held.spec], home=tmp_path) as group:
        await waiting(group, held, "/hold old", id="x1")
        await group.hear("Ann", "/hold new", id="x1", kind=Kind.EDIT)
        await group.crash()
    held.let_go()
    async with a_group([held.spec], home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: first", "done: new"]


async def test_an_edit_after_the_answer_changes_history_alone() -> None:
    async with a_group() as group:
        group.model.says("Hello.", "Never said.")
        await group.say("Ann", "@Rollcall hello", id="x1")
        assert await group.say("Ann", "@Rollcall goodbye", id="x1", kind=Kind.EDIT) == []
        assert await last_reason(group) == ("edit_too_late", "")
        assert (await heard(group))[0] == ("Ann", "goodbye")


async def test_an_old_edit_that_is_delivered_again_does_not_undo_a_newer_one() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await waiting(group, held, "/hold one", id="x1")
        await group.hear("Ann", "/hold two", id="x1", kind=Kind.EDIT, revision="2")
        await group.hear("Ann", "/hold three", id="x1", kind=Kind.EDIT, revision="3")
        again = await group.hear("Ann", "/hold two", id="x1", kind=Kind.EDIT, revision="2")
        assert again is Accepted.DUPLICATE
        held.let_go()
        await group.settle()
        assert held.begun == ["first", "three"]
        assert ("Ann", "/hold three") in await heard(group)


async def test_a_message_that_waits_and_is_deleted_is_not_answered(tmp_path: Path) -> None:
    held = Held()
    async with a_group([held.spec], home=tmp_path) as group:
        await waiting(group, held, "/hold regretted", id="x1")
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        held.let_go()
        await group.settle()
        assert held.begun == ["first"]
        assert (await reasons(group))[1:] == [("deleted", ""), ("deleted", "")]
        assert ("Ann", "") in await heard(group)
    async with a_group([held.spec], home=tmp_path) as group:
        await group.settle()
        assert group.platform.sent == []


async def test_a_deleted_message_is_shown_to_no_model() -> None:
    async with a_group() as group:
        group.model.says("Hello.")
        await group.say("Ann", "my password is hunter2", id="x1")
        await group.say("Ann", "", id="x1", kind=Kind.DELETE)
        await group.say("Bob", "@Rollcall hello")
        assert all("hunter2" not in message.content for message in group.model.requests[0].messages)


async def test_an_edit_that_comes_before_its_message_is_what_gets_answered() -> None:
    held = Held()
    held.let_go()
    async with a_group([held.spec]) as group:
        await group.say("Ann", "/hold new", id="x1", kind=Kind.EDIT)
        assert await group.say("Ann", "/hold old", id="x1") == ["done: new"]
        assert (await heard(group))[0] == ("Ann", "/hold new")


async def test_a_message_whose_deletion_came_first_is_not_answered() -> None:
    async with a_group() as group:
        await group.say("Ann", "", id="x1", kind=Kind.DELETE)
        photo = (Attachment("photo.png", "image/png"),)
        assert await group.say("Ann", "@Rollcall look", id="x1", attachments=photo) == []
        assert await last_reason(group) == ("deleted", "")
        assert ("Ann", "look") not in await heard(group)


async def test_a_change_of_something_unknown_is_recorded_and_harmless() -> None:
    async with a_group() as group:
        assert await group.say("Ann", "hm", id="never", kind=Kind.EDIT) == []
        assert await group.say("Ann", "", id="never", kind=Kind.DELETE) == []
        assert await heard(group) == []
        assert [reason for reason, _ in await reasons(group)] == ["edit_too_late", "deleted"]


async def test_a_text_that_is_far_too_long_is_cut() -> None:
    async with a_group(settings={"limits": {"message_chars": 100}, "chats": {"allow": ["*"]}}) as group:
        await group.say("Ann", "x" * 1_000_000)
        assert await heard(group) == [("Ann", "x" * 100 + "\n(… the rest was too long)")]


@pytest.mark.parametrize("length", [99, 100])
async def test_a_text_that_just_fits_is_whole(length: int) -> None:
    async with a_group(settings={"limits": {"message_chars": 100}, "chats": {"allow": ["*"]}}) as group:
        await group.say("Ann", "x" * length)
        assert await heard(group) == [("Ann", "x" * length)]


async def test_a_model_is_told_that_a_text_was_cut() -> None:
    async with a_group(settings={"limits": {"message_chars": 100}, "chats": {"allow": ["*"]}}) as group:
        group.model.says("I see.")
        assert await group.say("Ann", "@Rollcall " + "x" * 1000) == ["I see."]
        assert group.model.requests[0].messages[-1].content.endswith("x\n(… the rest was too long)")


async def test_a_time_in_the_future_is_not_believed() -> None:
    async with a_group() as group:
        context = group.message("Ann", "hello")
        await group.clock.advance(-3600)
        await group.daemon.intake.accept(context)
        assert await kept(group, HISTORY.c.at_ms) == [(group.clock.now_ms(),)]


async def test_nothing_is_acknowledged_while_the_disk_is_full() -> None:
    disk = FullDisk()
    async with a_group(around_store=disk.under) as group:
        disk.is_full = True
        with pytest.raises(StoreFull):
            await group.hear("Ann", "hello", id="x1")
        disk.is_full = False
        assert await group.hear("Ann", "hello", id="x1") is Accepted.NEW
        assert await heard(group) == [("Ann", "hello")]


async def test_a_deletion_that_could_not_be_stored_applies_when_it_is_delivered_again() -> None:
    disk = FullDisk()
    held = Held()
    async with a_group([held.spec], around_store=disk.under) as group:
        await waiting(group, held, "/hold regretted", id="x1")
        disk.is_full = True
        with pytest.raises(StoreFull):
            await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        disk.is_full = False
        assert await group.hear("Ann", "", id="x1", kind=Kind.DELETE) is Accepted.NEW
        held.let_go()
        await group.settle()
        assert held.begun == ["first"]
        assert "waiting" not in [reason for reason, _ in await reasons(group)]


async def test_a_deletion_that_was_never_kept_changes_nothing() -> None:
    disk = FullDisk()
    held = Held()
    async with a_group([held.spec], around_store=disk.under) as group:
        await waiting(group, held, "/hold regretted", id="x1")
        disk.is_full = True
        with pytest.raises(StoreFull):
            await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        disk.is_full = False
        held.let_go()
        await group.settle()
        assert held.begun == ["first", "regretted"]


async def test_rights_are_those_of_the_moment_when_a_turn_begins(tmp_path: Path) -> None:
    held = Held(roles="admin")
    admin = {"chats": {"allow": ["*"]}, "members": {"test:bot:ann": "admin"}}
    async with a_group([held.spec], home=tmp_path, settings=admin) as group:
        await group.hear("Ann", "/hold x")
        await held.has_begun("x")
        await group.crash()
    async with a_group([held.spec], home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["Only admins and above can use “/hold”."]
    assert held.begun == ["x"]


@pytest.mark.parametrize("ticks", range(12))
async def test_a_deletion_during_the_intake_of_its_message_applies(ticks: int) -> None:
    """Wherever it meets it, except in a turn that runs already."""
    once = Recorder("once", commands=["once"], effect="once", status_text="Going once")

    async def take_back(group: Group) -> None:
        for _ in range(ticks):
            await asyncio.sleep(0)
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)

    slow = SlowCommit()
    async with a_group([once.spec], around_store=slow.under) as group:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(group.hear("Ann", "/once", id="x1"))
            tasks.create_task(take_back(group))
            await slow.holds_a_commit()
            for _ in range(30):
                await asyncio.sleep(0)
            slow.let_go()
        await group.settle()
        assert once.runs == []
        assert [reason for reason, _ in await reasons(group)] == ["deleted", "deleted"]


async def test_an_edit_that_meets_its_message_on_the_way_in_is_what_gets_answered() -> None:
    held = Held()
    slow = SlowCommit()
    async with a_group([held.spec], around_store=slow.under) as group:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(group.hear("Ann", "/hold old", id="x1"))
            tasks.create_task(group.hear("Ann", "/hold new", id="x1", kind=Kind.EDIT))
            await slow.holds_a_commit()
            for _ in range(30):
                await asyncio.sleep(0)
            slow.let_go()
        held.let_go()
        await group.settle()
        assert held.begun == ["new"]


async def test_history_is_pruned_after_a_restart_however_few_messages_come(tmp_path: Path) -> None:
    settings = {"store": {"history_per_chat": 10}, "chats": {"allow": ["*"]}}
    for _ in range(4):
        async with a_group(home=tmp_path, settings=settings) as group:
            for number in range(12):
                await group.hear("Ann", f"line {number}")
            assert len(await heard(group)) <= 10 + 12


async def test_the_text_of_a_message_is_kept_in_history_alone_once_it_is_answered() -> None:
    once = Recorder("once", commands=["once"], effect="once")
    async with a_group([once.spec]) as group:
        await group.say("Ann", "/once", id="x1")
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        assert await kept(group, INBOX.c.body) == [("",), ("",)]
        assert ("Ann", "/once") not in await heard(group)


async def test_the_text_of_a_message_that_is_deleted_while_it_waits_is_forgotten() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await waiting(group, held, "/hold regretted", id="x1")
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        assert "regretted" not in str(await kept(group, INBOX.c.body))
        held.let_go()


async def test_the_text_of_a_message_that_is_deleted_while_it_is_answered_is_forgotten_with_its_end() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold regretted", id="x1")
        await held.has_begun("regretted")
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        held.let_go()
        await group.settle()
        assert await kept(group, INBOX.c.body) == [("",), ("",)]


async def test_what_is_said_to_the_bot_alone_is_shown_to_nobody_else() -> None:
    whisper = Recorder("whisper", CITY, commands=["whisper"])
    async with a_group([whisper.spec]) as group:
        group.model.says("Noted.", "I do not know.")
        assert await group.say("Ann", "my PIN is 4711", reply_to_bot=True, private=True) == ["Noted."]
        assert await group.say("Ann", "/whisper", private=True) != []
        assert await group.say("Ann", "4711", private=True) == ["done"]
        assert [one.private_to for one in group.platform.sent] == [group.message("Ann", "").sender.ref] * 3
        assert await heard(group) == []
        assert "4711" not in "".join(await group.say("Bob", "/why 5"))
        await group.say("Bob", "@Rollcall what is the PIN of Ann?")
        assert group.platform.sent[-1].private_to is None
        assert "4711" not in str(group.model.requests[-1].messages)


@pytest.mark.parametrize("private", [True, False])
async def test_a_word_that_may_not_be_shown_is_not_shown_as_an_unknown_command(private: bool) -> None:
    async with a_group() as group:
        await group.say("Ann", "/pin4711", id="x1", private=private, reply_to_bot=True)
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        assert await reasons(group) == [("unknown_command", "pin4711"), ("deleted", "")]
        assert "4711" not in "".join(await group.say("Bob", "/why"))


async def test_what_is_said_to_the_bot_alone_stays_so_through_a_restart(tmp_path: Path) -> None:
    held = Held()
    async with a_group([held.spec], home=tmp_path) as group:
        await group.hear("Ann", "/hold it", private=True)
        await held.has_begun("it")
        await group.crash()
    held.let_go()
    async with a_group([held.spec], home=tmp_path) as group:
        await group.settle()
        assert [one.private_to for one in group.platform.sent] == [group.message("Ann", "").sender.ref]
        assert await heard(group) == []


async def test_a_message_older_than_the_limit_is_recorded_and_not_answered() -> None:
    async with a_group(settings={"limits": {"answer_within_minutes": 30}}) as group:
        group.model.says("Here.")
        asked = group.clock.now()
        await group.clock.advance(30 * 60 + 1)
        old = replace(group.message("Ann", "@Rollcall hello"), sent_at=asked)
        assert await group.daemon.intake.accept(old) is Accepted.NEW
        await group.daemon.intake.accept(replace(group.message("Ben", "@Rollcall hi"), sent_at=asked))
        await group.settle()
        assert [one.text for one in group.platform.sent] == [
            "I was away for a while, so I don't answer what you wrote long ago. Please ask again if you still need it."
        ]
        assert await reasons(group) == [("backfilled", "limits.answer_within_minutes")] * 2
        assert [said for _, said in await heard(group)] == ["hello", "hi"]
        recent = replace(group.message("Ann", "@Rollcall hello again"), sent_at=asked + timedelta(seconds=2))
        await group.daemon.intake.accept(recent)
        await group.settle()
        assert group.platform.sent[-1].text == "Here."


async def test_a_time_zone_that_the_network_knows_is_used_until_the_member_sets_one() -> None:
    async with a_group() as group:
        message = group.message("Ann", "/remind at 6pm take the pizza out")
        message = replace(message, sender=replace(message.sender, zone="Asia/Tokyo"))
        await group.daemon.intake.accept(message)
        await group.settle()
        assert "Tokyo" in (await group.say("Ann", "/timezone"))[0]
        await group.say("Ann", "/timezone Europe/Oslo")
        again = group.message("Ann", "/timezone")
        await group.daemon.intake.accept(replace(again, sender=replace(again.sender, zone="Asia/Tokyo")))
        await group.settle()
        assert "Oslo" in group.platform.sent[-1].text


async def test_the_bot_says_what_it_records_when_it_is_added_and_leaves_a_chat_that_is_not_served() -> None:
    async with a_group(settings={"chats": {"allow": ["test:bot:family"]}}, platform=LeavingPlatform()) as group:
        assert isinstance(group.platform, LeavingPlatform)
        (welcome,) = await group.say("Ann", "", kind=Kind.ADDED)
        assert "I also store the latest messages" in welcome
        assert group.platform.left == []
        (refusal,) = await group.say("Eve", "", kind=Kind.ADDED, chat=ChatRef("test", "bot", "strangers"))
        assert "test:bot:strangers" in refusal
        assert group.platform.left == ["strangers"]


class LeavingPlatform(TestPlatform):
    """A network that lets the bot leave its chats."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[str] = []

    async def members(self, chat: ChatRef) -> list[MemberRef]:
        return []

    async def leave(self, chat: ChatRef) -> None:
        self.left.append(chat.native)
