"""Accounts of one person on several networks, linked by a code that both accounts confirm."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from bot.testing import Group, TestPlatform, a_group
from config.texts import Texts
from function_calls.context import MessageContext, MessageKey, Sender
from services.chats.member_links import CODE_MINUTES, MOST_ACCOUNTS, MOST_ATTEMPTS_PER_DAY, MOST_CODES_PER_DAY
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from services.store.chats.member_links import CODES
from services.store.port import Statement
from tests.harness.audit import answers
from tests.harness.nursery import Nursery
from tests.harness.outside import Said, an_outside

EN, ZH = Texts().of("en"), Texts().of("zh")
CODE = "[2-9A-Z]{4}-[2-9A-Z]{4}"
NOT_VALID = EN.say("links.problems.unknown_code")


class Second(TestPlatform):
    """Another network."""

    name = "second"


@dataclass
class Person:
    """An account in its private chat with the bot."""

    group: Group
    network: TestPlatform
    name: str
    role: Role = Role.MEMBER
    zone: str = ""

    @property
    def ref(self) -> MemberRef:
        return MemberRef(self.network.name, "bot", self.name.lower())

    @property
    def chat(self) -> ChatRef:
        return ChatRef(self.network.name, "bot", f"dm-{self.name.lower()}")

    def message(self, text: str, **facts: Any) -> MessageContext:
        found = self.group.message(self.name, text, **{"chat": self.chat, "is_group": False, **facts})
        key = MessageKey(found.chat, found.key.native_id)
        return replace(found, key=key, sender=Sender(self.ref, self.name, self.role, zone=self.zone))

    async def say(self, text: str, **facts: Any) -> str:
        """Say something; returns the bot's texts in this chat."""
        before = len(self.network.sent)
        await self.group.daemon.intake.accept(self.message(text, **facts))
        await self.group.settle()
        chat = facts.get("chat", self.chat)
        return "\n".join(one.text for one in self.network.sent[before:] if one.chat == chat)

    @property
    def read(self) -> list[str]:
        """All texts of the bot in this chat."""
        return [one.text for one in self.network.sent if one.chat == self.chat]

    async def code(self) -> str:
        return code_in(await self.say("/link"))

    async def link(self, other: Person) -> None:
        """Link `other` with this account."""
        code = await self.code()
        await other.say(f"/link {code}")
        assert "is now linked" in await self.say(f"/link accept {code}")

    async def linked(self) -> str:
        """The accounts that /link lists."""
        return (await self.say("/link")).partition(EN.say("links.accounts"))[2].strip()


def code_in(text: str) -> str:
    found = re.search(f"/link ({CODE})", text)
    assert found is not None, text
    return found[1]


def linked_with(*accounts: str) -> str:
    return "\n".join([EN.say("links.linked"), *(f"• {one}" for one in accounts)])


@asynccontextmanager
async def two_networks(**world: Any) -> AsyncIterator[tuple[Group, Person, Person]]:
    """A daemon on two networks: Ann on the first, and Anna on the second."""
    second = Second()
    async with a_group(other_platforms=[second], **world) as group:
        yield group, Person(group, group.platform, "Ann"), Person(group, second, "Anna")


async def test_accounts_on_two_networks_are_linked_when_both_have_confirmed() -> None:
    async with two_networks() as (_, ann, anna):
        code = await ann.code()
        asked = await anna.say(f"/link {code}")
        assert "Ann (test:bot:ann)" in asked
        question = ann.network.sent[-1]
        assert (question.chat, "Anna (second:bot:anna)" in question.text) == (ann.chat, True)
        assert await anna.linked() == ""
        accept, _ = question.choices
        assert await ann.say(accept.value) == linked_with("Anna (second:bot:anna)")
        assert anna.read[-1] == linked_with("Ann (test:bot:ann)")
        assert await ann.linked() == "• Anna (second:bot:anna)"
        assert await anna.linked() == "• Ann (test:bot:ann)"


async def test_the_question_is_in_the_language_of_the_chat_that_gets_it() -> None:
    chinese = {"test:*": {"language": "zh"}}
    async with two_networks(settings={"chats": {"allow": ["*"], "settings": chinese}}) as (_, ann, anna):
        code = code_in(await ann.say("/绑定"))
        assert "I've asked Ann" in await anna.say(f"/link {code}")
        question = ann.network.sent[-1]
        assert question.text == ZH.say("links.question", name="Anna", member=anna.ref.key)
        assert [one.label for one in question.choices] == [ZH.say("links.accept"), ZH.say("links.reject")]
        assert await ann.say(f"/绑定 同意 {code}") == f"{ZH.say('links.linked')}\n• Anna（second:bot:anna）"
        assert anna.read[-1] == linked_with("Ann (test:bot:ann)")


async def test_a_rejected_account_is_not_linked_and_the_code_is_used_up() -> None:
    async with two_networks() as (_, ann, anna):
        code = await ann.code()
        await anna.say(f"/link {code}")
        assert await ann.say(f"/link reject {code}") == EN.say("links.rejected", name="Anna")
        assert anna.read[-1] == EN.say("links.was_rejected", name="Ann", member=ann.ref.key)
        assert await ann.say(f"/link accept {code}") == NOT_VALID
        assert await anna.say(f"/link {code}") == NOT_VALID
        assert await anna.linked() == ""


async def test_unlink_removes_the_links_and_notifies_the_other_account() -> None:
    async with two_networks() as (_, ann, anna):
        await ann.link(anna)
        assert "• Ann (test:bot:ann)" in await anna.say("/unlink")
        assert ann.read[-1] == EN.say("links.were_removed", name="Anna", member=anna.ref.key)
        assert (await ann.linked(), await anna.linked()) == ("", "")
        assert await ann.say("/link remove") == EN.say("links.none")


async def test_links_are_made_in_private_chats_only() -> None:
    async with two_networks() as (_, ann, _anna):
        group = ChatRef("test", "bot", "family")
        text = await ann.say("/link", chat=group, is_group=True)
        assert "private" in text
        assert not re.search(CODE, text)


async def test_a_code_expires_and_so_does_its_redemption() -> None:
    async with two_networks() as (group, ann, anna):
        code = await ann.code()
        await group.clock.advance(CODE_MINUTES * 60)
        assert await anna.say(f"/link {code}") == NOT_VALID
        code = await ann.code()
        await group.clock.advance(CODE_MINUTES * 60 - 1)
        assert "I've asked Ann" in await anna.say(f"/link {code}")
        await group.clock.advance(CODE_MINUTES * 60)
        assert await ann.say(f"/link accept {code}") == NOT_VALID
        assert await ann.linked() == ""


async def test_a_new_code_replaces_the_old_one_and_its_redemption() -> None:
    async with two_networks() as (_, ann, anna):
        first = await ann.code()
        await anna.say(f"/link {first}")
        second = await ann.code()
        assert await ann.say(f"/link accept {first}") == NOT_VALID
        assert await ann.say(f"/link accept {second}") == NOT_VALID
        assert await ann.linked() == ""


async def test_codes_that_are_guessed_are_limited_per_account_and_day() -> None:
    async with two_networks() as (group, ann, anna):
        code = await ann.code()
        for number in range(MOST_ATTEMPTS_PER_DAY):
            assert await anna.say(f"/link ABCD-EF{number + 10}") == NOT_VALID
        assert await anna.say(f"/link {code}") == EN.say("links.problems.too_many_attempts")
        await group.clock.advance(24 * 3600)
        assert "I've asked Ann" in await anna.say(f"/link {await ann.code()}")


async def test_codes_that_are_requested_are_limited_per_account_and_day() -> None:
    async with two_networks() as (_, ann, _anna):
        assert len({await ann.code() for _ in range(MOST_CODES_PER_DAY)}) == MOST_CODES_PER_DAY
        assert await ann.say("/link") == EN.say("links.problems.too_many_codes")


@pytest.mark.parametrize("word", ["accept", "reject"])
async def test_only_the_account_that_got_the_code_decides_on_it(word: str) -> None:
    async with two_networks() as (group, ann, anna):
        mallory = Person(group, ann.network, "Mallory")
        code = await ann.code()
        await anna.say(f"/link {code}")
        for other in (anna, mallory):
            assert await other.say(f"/link {word} {code}") == NOT_VALID
        assert await anna.linked() == ""
        assert "is now linked" in await ann.say(f"/link accept {code}")


async def test_a_code_that_nobody_has_redeemed_cannot_be_accepted() -> None:
    async with two_networks() as (_, ann, _anna):
        assert await ann.say(f"/link accept {await ann.code()}") == NOT_VALID


async def test_an_account_is_not_linked_with_itself_or_twice() -> None:
    async with two_networks() as (_, ann, anna):
        code = await ann.code()
        assert await ann.say(f"/link {code}") == EN.say("links.problems.own_code")
        await anna.say(f"/link {code}")
        await ann.say(f"/link accept {code}")
        again = await anna.code()
        assert await ann.say(f"/link {again}") == EN.say("links.problems.already_linked")


async def test_a_third_account_joins_and_all_accounts_are_notified() -> None:
    async with two_networks() as (group, ann, anna):
        await ann.link(anna)
        third = Person(group, anna.network, "Third")
        await third.link(anna)
        assert ann.read[-1] == linked_with("Anna (second:bot:anna)", "Third (second:bot:third)")
        assert anna.read[-1] == linked_with("Third (second:bot:third)", "Ann (test:bot:ann)")
        assert await ann.linked() == "• Anna (second:bot:anna)\n• Third (second:bot:third)"
        assert await third.linked() == "• Anna (second:bot:anna)\n• Ann (test:bot:ann)"
        await ann.say("/unlink")
        assert (await third.linked(), await anna.linked()) == ("", "")


async def test_persons_with_several_accounts_become_one_up_to_the_limit() -> None:
    async with two_networks() as (group, ann, anna):
        people = [Person(group, anna.network, f"P{number}") for number in range(MOST_ACCOUNTS)]
        for one in people[1:]:
            await people[0].link(one)
        assert (await people[-1].linked()).count("•") == MOST_ACCOUNTS - 1
        code = await people[3].code()
        assert await ann.say(f"/link {code}") == EN.say("links.problems.too_many_accounts")


async def test_the_limit_holds_for_accounts_that_are_linked_before_the_answer() -> None:
    async with two_networks() as (group, ann, anna):
        code = await ann.code()
        await anna.say(f"/link {code}")
        people = [Person(group, anna.network, f"P{number}") for number in range(MOST_ACCOUNTS - 1)]
        for one in people:
            await one.link(anna)
        assert await ann.say(f"/link accept {code}") == EN.say("links.problems.too_many_accounts")


async def test_links_are_made_and_shared_on_postgresql(new_postgres_database: str) -> None:
    async with two_networks(settings={"store": {"url": new_postgres_database}}) as (group, ann, anna):
        await ann.say("/timezone Kathmandu")
        await ann.link(anna)
        third = Person(group, anna.network, "Third")
        fourth = Person(group, ann.network, "Fourth")
        await third.link(fourth)
        await fourth.link(anna)
        assert (await third.linked()).count("•") == 3
        assert "Asia/Kathmandu" in await third.say("/timezone")
        code = await ann.code()
        assert await anna.say(f"/link {code}") == EN.say("links.problems.already_linked")
        await anna.say("/unlink")
        assert await third.linked() == ""
        assert "You haven't set a time zone" in await third.say("/timezone")


async def test_links_can_be_disabled_as_the_page_for_operators_describes() -> None:
    disabled = {"functions": {"link": {"enabled": False}, "link_accept": {"enabled": False}}}
    async with two_networks(settings=disabled) as (_, ann, _anna):
        assert not re.search(CODE, await ann.say("/link"))


async def test_of_two_accounts_that_redeem_one_code_at_once_one_is_asked_about() -> None:
    async with two_networks() as (group, ann, anna):
        bob = Person(group, ann.network, "Bob")
        code = await ann.code()
        accept = group.daemon.intake.accept
        await asyncio.gather(*[accept(one.message(f"/link {code}")) for one in (anna, bob)])
        await group.settle()
        asked = [one for one in ann.read if "has used your code" in one]
        assert len(asked) == 1
        assert sorted([anna.read[-1] == NOT_VALID, bob.read[-1] == NOT_VALID]) == [False, True]
        await ann.say(f"/link accept {code}")
        assert (await ann.linked()).count("•") == 1


async def test_a_second_press_after_an_unlink_does_not_link_again() -> None:
    async with two_networks() as (_, ann, anna):
        code = await ann.code()
        await anna.say(f"/link {code}")
        await ann.say(f"/link accept {code}")
        await anna.say("/unlink")
        assert await ann.say(f"/link accept {code}") == NOT_VALID
        assert await ann.linked() == ""


async def test_an_account_that_unlinks_withdraws_its_code_and_the_code_that_it_has_redeemed() -> None:
    async with two_networks() as (_, ann, anna):
        code = await ann.code()
        await ann.say("/unlink")
        assert await anna.say(f"/link {code}") == NOT_VALID
        code = await ann.code()
        await anna.say(f"/link {code}")
        await anna.say("/unlink")
        assert await ann.say(f"/link accept {code}") == NOT_VALID


async def test_codes_and_links_survive_a_crash_of_the_daemon(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with two_networks(home=tmp_path, clock=clock) as (group, ann, _anna):
        code = await ann.code()
        await group.crash()
    async with two_networks(home=tmp_path, clock=clock) as (group, ann, anna):
        assert "I've asked Ann" in await anna.say(f"/link {code}")
        await group.crash()
    async with two_networks(home=tmp_path, clock=clock) as (group, ann, _anna):
        assert "is now linked" in await ann.say(f"/link accept {code}")
        await group.crash()
    async with two_networks(home=tmp_path, clock=clock) as (group, ann, anna):
        assert await anna.linked() == "• Ann (test:bot:ann)"


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery") / "stderr") as started:
        yield started


@pytest.mark.parametrize("point", ["tool.after_call_before_result_record", "reply.before_outbox"])
async def test_a_step_that_a_kill_interrupts_after_its_commit_is_completed_after_the_restart(
    point: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with an_outside(tmp_path, nursery) as outside:

        async def run(said: Said, faults: str = "") -> str:
            pid = await outside.start(faults)
            outside.redeliver()
            outside.deliver(said)
            if faults:
                assert await outside.died(pid) == -signal.SIGKILL
                pid = await outside.start()
                outside.redeliver()
            await outside.settled()
            assert await outside.stop(pid) == 0
            return "\n".join(answers(outside)[said.id])

        code = code_in(await run(Said("m1", "dm-ann", "Ann", "/link")))
        claim = Said("m2", "dm-bob", "Bob", f"/link {code}")
        said = await run(claim, f"{point}=kill")
        assert [said.count(one) for one in ("I've asked Ann", "Bob", NOT_VALID)] == [1, 1, 0]
        said = await run(Said("m3", "dm-ann", "Ann", f"/link accept {code}"), f"{point}=kill")
        assert said.count(EN.say("links.linked")) == 2


async def test_linked_accounts_share_the_time_zone_that_was_set_last() -> None:
    async with two_networks() as (group, ann, anna):
        anna.zone = "Europe/Paris"
        await ann.say("/timezone Kathmandu")
        assert "Europe/Paris" in await anna.say("/timezone")
        await ann.link(anna)
        assert "Asia/Kathmandu" in await anna.say("/timezone")
        await group.clock.advance(1)
        await anna.say("/timezone Oslo")
        assert "Europe/Oslo" in await ann.say("/timezone")
        await group.clock.advance(1)
        await ann.say("/timezone off")
        assert "You haven't set a time zone" in await anna.say("/timezone")
        await group.clock.advance(1)
        await anna.say("/timezone Oslo")
        await ann.say("/unlink")
        assert "You haven't set a time zone" in await ann.say("/timezone")
        assert "Europe/Oslo" in await anna.say("/timezone")


async def test_a_role_stays_with_its_account() -> None:
    async with two_networks(settings={"members": {"test:bot:ann": "owner"}}) as (_, ann, anna):
        ann.network.roles[ann.ref] = anna.network.roles[anna.ref] = Role.MEMBER
        await ann.link(anna)
        assert "language" in await ann.say("/settings")
        assert "Your role in this chat: owner" in await ann.say("/roles")
        family = ChatRef("second", "bot", "family")
        for place in ({}, {"chat": family, "is_group": True}):
            assert "language" not in await anna.say("/settings", **place)
            assert "Your role in this chat: member" in await anna.say("/roles", **place)


async def test_linked_accounts_share_one_daily_budget() -> None:
    async with two_networks(settings={"budgets": {"member": {"requests": 1}}}) as (group, ann, anna):
        await ann.link(anna)
        group.model.says("Hi.")
        assert await ann.say("how are you") == "Hi."
        assert await anna.say("how are you") == EN.say("budgets.model_member", name="Anna")
        await anna.say("/unlink")
        group.model.says("Hi again.")
        assert await anna.say("how are you") == "Hi again."


async def test_private_reminders_of_linked_accounts_are_listed_in_private_chats_only() -> None:
    async with two_networks() as (_, ann, anna):
        family = ChatRef("second", "bot", "family")
        await ann.say("/remind in 2 hours call mum")
        await ann.say("/remind in 3 hours water", chat=ChatRef("test", "bot", "club"), is_group=True)
        assert "call mum" not in await anna.say("/reminders")
        await ann.link(anna)
        listed = await anna.say("/reminders")
        assert "call mum" in listed.partition(EN.say("reminders.elsewhere", name="Ann", member=ann.ref.key))[2]
        assert "water" not in listed
        assert "call mum" not in await anna.say("/reminders", chat=family, is_group=True)
        assert "call mum" not in await anna.say("/reminder delete 1")
        assert "call mum" in await ann.say("/reminders")
        await anna.say("/unlink")
        assert "call mum" not in await anna.say("/reminders")


async def test_expired_codes_are_deleted() -> None:
    async with two_networks() as (group, ann, _anna):
        await ann.code()
        await group.clock.advance(25 * 3600)
        await group.daemon.housekeeping.forget()
        assert await group.daemon.store.read(Statement("tests.codes", select(CODES)).query()) == []
