"""State that several daemons on one database share: a change by one of them applies to the others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from config.texts import Texts
from services.chats.member_links import Account
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Query, Row, Store, StoreHealth, Write
from tests.bot.basic_group import write_scripts
from tests.bot.test_vouching import functions, is_asked
from tests.fakes.functions import CITY, Recorder
from tests.fakes.slow_commit import SlowCommit
from tests.services.llm.test_failover import DOWN

EN = Texts().of("en")
TOLD = EN.say("model.provider_error")
OTHERS = ChatRef("test", "bot", "others")


class Shared:
    """A store that uses `other`, except that it closes the store it was opened with."""

    def __init__(self, own: Store, other: Store) -> None:
        self._own = own
        self._other = other

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        return self._other.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        self._other.post(writes)

    async def read(self, query: Query) -> list[Row]:
        return await self._other.read(query)

    def health(self) -> StoreHealth:
        return self._other.health()

    async def check(self) -> None:
        await self._other.check()

    async def close(self) -> None:
        await self._own.close()


class LateRead:
    """Passes on everything. While held, returns the rows of the statement `at` only after the release."""

    def __init__(self, at: str) -> None:
        self._at = at
        self._free = asyncio.Event()
        self._free.set()
        self.has_read = asyncio.Event()

    def under(self, store: Store) -> Store:
        """This store, wrapped around `store`."""
        self._inner = store
        self.commit, self.post, self.health = store.commit, store.post, store.health
        self.check, self.close = store.check, store.close
        return self

    def hold(self) -> None:
        self._free.clear()
        self.has_read.clear()

    def let_go(self) -> None:
        self._free.set()

    async def read(self, query: Query) -> list[Row]:
        rows = await self._inner.read(query)
        if query.statement.name == self._at:
            self.has_read.set()
            await self._free.wait()
        return rows


@asynccontextmanager
async def two_daemons(*functions: Any, **options: Any) -> AsyncIterator[tuple[Group, Group]]:
    """Two daemons on one database, whose clocks differ by a second so that their ids do."""
    async with a_group(functions, **options) as first:
        later = VirtualClock(datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC))

        def around(own: Store) -> Store:
            return Shared(own, first.daemon.store)

        async with a_group(functions, **options, clock=later, around_store=around) as second:
            yield first, second


async def notice(*groups: Group) -> None:
    for group in groups:
        await group.daemon.housekeeping.notice_changes()


def code_in(texts: Sequence[str]) -> str:
    """The code of the approval question or of the only grant."""
    [code] = re.findall(r"#([0-9a-f]{5})|• ([0-9a-f]{6}):", texts[-1])
    return "".join(code)


async def test_a_standing_approval_and_its_end_apply_to_other_daemons() -> None:
    post = Recorder("post", CITY, commands=["post"], gives="posted")
    settings = {"approvals": {"required": [{"functions": ["post"], "by": "admin"}]}}
    async with two_daemons(post.spec, settings=settings) as (first, second):
        await notice(first, second)
        code = code_in(await first.say("Ann", "/post Oslo"))
        heard = await first.say("Bob", f"always {code}", role=Role.ADMIN)
        assert "posted" in heard
        await notice(first, second)
        assert await first.say("Ann", "/post Oslo") == ["posted"]
        assert await second.say("Cleo", "/post Oslo") == ["posted"]
        grant = code_in(await second.say("Bob", "/grants", role=Role.ADMIN))
        await second.say("Bob", f"/grants revoke {grant}", role=Role.ADMIN)
        await notice(first, second)
        for group in (first, second):
            assert "posted" not in await group.say("Cleo", "/post Oslo")
        assert len(post.runs) == 3


async def test_a_reload_during_a_revocation_does_not_restore_the_approval() -> None:
    slow, late = SlowCommit("grants.revoke"), LateRead("grants.holding")
    async with a_group(around_store=lambda store: late.under(slow.under(store))) as group:
        grants, bob = group.daemon.grants, MemberRef("test", "bot", "bob")
        await grants.add(OTHERS, "digest", function="post", arguments="", by=bob, by_name="Bob")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(grants.revoke(OTHERS, "digest", bob))
            await slow.holds_a_commit()
            # This reload ends before the commit, the other one after it.
            await grants.load()
            late.hold()
            tasks.create_task(grants.load())
            await late.has_read.wait()
            slow.let_go()
            await group.daemon.store.commit([])
            late.let_go()
        assert not grants.holds(OTHERS, "digest")


async def test_links_of_accounts_and_their_erasure_apply_to_other_daemons() -> None:
    ann, anna = (
        Account(MemberRef("test", "bot", name), name, ChatRef("test", "bot", f"dm-{name}"), "en")
        for name in ("ann", "anna")
    )

    def is_linked(group: Group) -> bool:
        return group.daemon.links.person_of(ann.member.key) == group.daemon.links.person_of(anna.member.key)

    async with two_daemons() as (first, second):
        links = first.daemon.links
        code = await links.new_code(ann)
        await links.claim(code, anna, call_key="1")
        await links.accept(code, ann, call_key="2")
        await notice(first, second)
        assert (is_linked(first), is_linked(second)) == (True, True)
        await first.daemon.member_data.erase(anna.member, None, 0)
        await notice(first, second)
        assert (is_linked(first), is_linked(second)) == (False, False)


async def test_a_start_script_runs_in_one_daemon_and_again_after_begin(tmp_path: Path) -> None:
    write_scripts(tmp_path, {"start": 'TALK "Welcome"'})
    settings = {"sources": {"basic": [{"path": str(tmp_path)}]}}
    async with two_daemons(settings=settings) as (first, second):
        await notice(first, second)
        first.model.says("Hello.", "Hello.")
        second.model.says("Hello.", "Hello.")
        assert await first.say("Ann", "@Rollcall hello") == ["Welcome", "Hello."]
        assert await second.say("Ann", "@Rollcall hello") == ["Hello."]
        assert await second.say("Ann", "@Rollcall hello", chat=OTHERS) == ["Welcome", "Hello."]
        await second.say("Bob", "/begin again", role=Role.ADMIN)
        await notice(first, second)
        assert await first.say("Ann", "@Rollcall hello") == ["Welcome", "Hello."]


async def test_daemons_notify_a_chat_once_of_an_outage_which_the_next_answer_ends() -> None:
    async with two_daemons() as (first, second):
        first.model.says(DOWN, DOWN, "Here I am.")
        second.model.says(DOWN, "Here I am.", DOWN, DOWN)
        assert await first.say("Ann", "@Rollcall hello") == [TOLD]
        assert await second.say("Ann", "@Rollcall hello") == []
        await notice(first, second)
        assert await second.say("Ann", "@Rollcall hello", chat=OTHERS) == ["Here I am."]
        assert await first.say("Ann", "@Rollcall hello") == [TOLD]
        assert await second.say("Ann", "@Rollcall hello") == []
        # A daemon that has not reloaded yet does not repeat the notice either.
        assert await first.say("Ann", "@Rollcall hello", chat=OTHERS) == ["Here I am."]
        assert await second.say("Ann", "@Rollcall hello") == [TOLD]


async def test_a_restart_repeats_no_notice_of_an_outage(tmp_path: Path) -> None:
    clock = VirtualClock()
    for expected in ([TOLD], []):
        async with a_group(home=tmp_path, clock=clock) as group:
            group.model.says(DOWN)
            assert await group.say("Ann", "@Rollcall hello") == expected
    async with a_group(home=tmp_path, clock=clock) as group:
        await notice(group)
        group.model.says("Here I am.", DOWN)
        assert await group.say("Ann", "@Rollcall hello") == ["Here I am."]
        assert await group.say("Ann", "@Rollcall hello") == [TOLD]


@pytest.mark.parametrize("counted_by", ["member", "chat"])
async def test_runs_in_all_daemons_count_for_one_limit(counted_by: str) -> None:
    note = Recorder("note", commands=["note"])
    limits = {"calls_per_minute": 3, "counted_by": counted_by}
    refused = [EN.say("filters.too_often", name="note")]
    async with two_daemons(note.spec, settings={"filters": {"call": [{"limits": limits}]}}) as (first, second):
        said = [await group.say("Ann", "/note") for group in (first, second, first, second)]
        assert said == [["done"]] * 3 + [refused]
        assert await first.say("Bob", "/note") == (["done"] if counted_by == "member" else refused)
        for group in (first, second):
            await group.clock.advance(20)
        said = [await group.say("Ann", "/note") for group in (second, first)]
        assert said == [["done"], refused]


async def test_a_restart_does_not_lift_a_limit_and_a_clock_set_back_does_not_extend_it(tmp_path: Path) -> None:
    note = Recorder("note", commands=["note"])
    settings = {"filters": {"call": [{"limits": {"calls_per_minute": 1}}]}}
    clock = VirtualClock()
    for expected in (["done"], [EN.say("filters.too_often", name="note")]):
        async with a_group([note.spec], settings=settings, home=tmp_path, clock=clock) as group:
            assert await group.say("Ann", "/note") == expected
    clock.jump(-7200)
    async with a_group([note.spec], settings=settings, home=tmp_path, clock=clock) as group:
        assert await group.say("Ann", "/note") == ["done"]


async def test_a_follow_up_of_an_approved_run_needs_no_question_in_another_daemon() -> None:
    transfer = functions()["transfer"]
    change = call("transfer", recipient="Tom", amount=9)
    async with two_daemons(transfer.spec) as (first, second):
        first.model.says(call("transfer", recipient="Tom", amount=20), "Done.", change, "Done.")
        assert is_asked(await first.say("Ann", "@Rollcall do what is needed"))
        await first.say("Ann", "yes")
        second.model.says(change, "Done.", call("transfer", recipient="Eve", amount=9), "Done.", change, "Done.")
        assert not is_asked(await second.say("Ann", "@Rollcall make it 9"))
        assert transfer.runs == [{"recipient": "Tom", "amount": 20}, {"recipient": "Tom", "amount": 9}]
        # Neither a value that the approval does not have, nor another member is covered.
        assert is_asked(await second.say("Ann", "@Rollcall and 9 more"))
        second.model.says(change)
        assert is_asked(await second.say("Bob", "@Rollcall make it 9"))
        await first.clock.advance(700)
        first.model.says(change)
        assert is_asked(await first.say("Ann", "@Rollcall make it 9"))
