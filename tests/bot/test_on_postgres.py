"""A whole daemon on PostgreSQL gives the same guarantees as on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bot.database.opening import DATABASE, operator_connection_of
from bot.platforms.base import Limits, Outgoing, Receipt, SendFailed
from bot.testing import Group, TestPlatform, a_group, call
from config.settings import Settings
from config.texts import Texts
from function_calls.call import Call
from function_calls.spec import FunctionResult, Message
from services.llm.model import ModelAnswer, Usage
from services.refs import Role
from services.store.chats import outcomes
from services.store.sqlite.lock import StoreInUse
from services.store.turns import audit
from tests.bot.basic_group import write_scripts
from tests.bot.test_outages import TOLD
from tests.bot.test_vouching import functions, is_asked
from tests.fakes.functions import Recorder
from tests.fakes.held import Held, until
from tests.fakes.timers import pass_time
from tests.services.llm.test_failover import DOWN

UNKNOWN = Texts().of("en").say("failures.unknown_outcome", name="/hold")
Opens = Callable[..., AbstractAsyncContextManager[Group]]


@pytest.fixture
def home(tmp_path: Path, new_postgres_database: str) -> Opens:
    """Opens groups whose daemon uses the same database on the server."""

    def open_group(functions: list[Any] | None = None, **settings: Any) -> AbstractAsyncContextManager[Group]:
        settings = {"store": {"url": new_postgres_database}, **settings}
        return a_group(functions or [], home=tmp_path, settings=settings)

    return open_group


async def test_what_is_said_is_answered_by_commands_and_by_the_model(home: Opens, tmp_path: Path) -> None:
    pay = Recorder("pay", effect="once", gives="paid", commands=["pay"])
    async with home([pay.spec]) as group:
        assert await group.say("Ann", "/pay") == ["paid"]
        group.model.says([call("pay")], "All done.")
        assert await group.say("Bob", "@Rollcall see to the rent, please") == ["paid", "All done."]
        assert await group.say("Eve", "nobody is meant") == []
        duplicate = group.message("Ann", "/pay", id="same")
        assert await group.daemon.intake.accept(duplicate) is not await group.daemon.intake.accept(duplicate)
        await group.settle()
    assert len(pay.runs) == 3
    assert not (tmp_path / DATABASE).exists()


async def test_what_runs_once_is_told_as_unknown_after_a_crash_and_not_run_again(home: Opens) -> None:
    held = Held(effect="once")
    async with home([held.spec]) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.crash()
    for said in ([UNKNOWN], []):
        async with home([held.spec]) as group:
            await group.settle()
            assert [one.text for one in group.platform.sent] == said
    assert held.begun == ["it"]


async def test_a_stored_answer_of_the_model_is_used_again_after_a_crash(home: Opens) -> None:
    held = Held(effect="idempotent")
    async with home([held.spec]) as group:
        group.model.says([call("hold", text="it")])
        await group.hear("Ann", "@Rollcall wait")
        await held.has_begun("it")
        await group.crash()
    held.let_go()
    async with home([held.spec]) as group:
        group.model.says("All done.")
        await until(lambda: len(group.platform.sent) == 2)
        assert [one.text for one in group.platform.sent] == ["done: it", "All done."]
        assert len(group.model.requests) == 1


async def test_a_reminder_outlives_the_daemon_and_is_said_once(home: Opens) -> None:
    async with home() as group:
        await group.say("Ann", "/remind me in 5 minutes to drink")
        await group.crash()
        clock = group.clock
    async with home() as group:
        group.clock.jump(clock.monotonic())
        said = await pass_time(group, 360, step=30)
        assert [one for one in said if "drink" in one] == said
        assert len(said) == 1
        await group.crash()
    async with home() as group:
        group.clock.jump(600)
        assert await pass_time(group, 60, step=30) == []


async def test_what_a_chat_keeps_is_there_after_a_restart(home: Opens) -> None:
    async with home() as group:
        await group.say("Ann", "/todo add milk")
        await group.say("Ann", "/todo add bread")
    async with home() as group:
        (listed,) = await group.say("Ann", "/todo")
        assert "milk" in listed
        assert "bread" in listed
        (why,) = await group.say("Ann", "/why")
        assert why


async def test_a_second_daemon_on_the_same_database_is_refused(home: Opens) -> None:
    async with home():
        with pytest.raises(StoreInUse):
            async with home():
                pass


async def test_a_daemon_makes_its_own_tables_in_an_empty_database(postgres_server: Any, tmp_path: Path) -> None:
    url = postgres_server.new_database()
    async with a_group(home=tmp_path, settings={"store": {"url": url}}) as group:
        assert await group.say("Ann", "/todo add milk") != []
    with psycopg.connect(url) as database:
        assert database.execute("SELECT text FROM todos").fetchall() == [("milk",)]


def test_the_address_of_the_database_is_a_secret() -> None:
    from bot.live.settings import secrets_of

    url = "postgresql://bot:hunter%402@db/rollcall"
    secrets = secrets_of(Settings.model_validate({"store": {"url": url}}))
    assert {url, "hunter%402", "hunter@2"} <= set(secrets)


async def test_what_is_older_than_the_settings_keep_is_deleted(home: Opens, new_postgres_database: str) -> None:
    pay = Recorder("pay", effect="once", gives="paid", commands=["pay"])
    async with home([pay.spec]) as group:
        assert await group.say("Ann", "/pay") == ["paid"]
        await group.clock.advance(31 * 24 * 3600)
        await group.daemon.housekeeping.forget()
    with psycopg.connect(new_postgres_database) as database:
        tables = ("inbox", "history", "ledger", "outbox")
        counts = [database.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() for table in tables]
    assert counts == [(0,)] * 4


async def test_what_was_given_up_is_retried_beside_the_daemon(home: Opens) -> None:
    held = Held(effect="idempotent")
    for attempt in range(1, 4):
        async with home([held.spec]) as group:
            if attempt == 1:
                await group.hear("Ann", "/hold it")
            await until(lambda wanted=attempt: len(held.begun) == wanted)  # type: ignore[misc]
            await group.crash()
    held.let_go()
    async with home([held.spec]) as group:
        await group.settle()
        group.platform.failures.append(SendFailed("not now", retryable=False))
        assert await group.say("Bob", "/hold that") == []
        await group.daemon.store.commit([])
        with operator_connection_of(group.daemon.live.now, writes=True) as database:
            rows = database.rows(outcomes.EVERYTHING)
            assert [row["kind"] for row in rows] == ["turn", "message"]
            for row in rows:
                assert database.commit([*outcomes.retry(row, ""), audit.touch(outcomes.COUNTER)])[0] == 1
        await group.daemon.housekeeping.notice_changes()
        await group.settle()
        assert sorted(one.text for one in group.platform.sent[1:]) == ["done: it", "done: that"]
        assert group.daemon.dead_letters.counts.total() == 0


@pytest.mark.parametrize("idempotent", [True, False], ids=["with keys", "without keys"])
async def test_a_message_is_stored_as_being_sent_before_it_is_sent(
    tmp_path: Path, new_postgres_database: str, idempotent: bool
) -> None:
    limits = replace(TestPlatform().limits, sends_are_idempotent=idempotent)
    platform = Watched(limits, new_postgres_database)
    count = Recorder("count", does=three_messages, commands=["count"])
    settings = {"store": {"url": new_postgres_database}}
    async with a_group([count.spec], home=tmp_path, settings=settings, platform=platform) as group:
        assert await group.say("Ann", "/count") == ["One.", "Two.", "Three."]
    assert platform.states == ["sending"] * 3


class Watched(TestPlatform):
    """A network that reads the database with a separate connection at each send."""

    def __init__(self, limits: Limits, url: str) -> None:
        super().__init__(limits)
        self._url = url
        self.states: list[str | None] = []

    async def send(self, outgoing: Outgoing) -> Receipt:
        with psycopg.connect(self._url) as looking:
            row = looking.execute("SELECT state FROM outbox WHERE key = %s", (outgoing.key,)).fetchone()
        self.states.append(row[0] if row else None)
        return await super().send(outgoing)


async def three_messages(context: object, arguments: dict[str, Any], call: Call) -> FunctionResult:
    return FunctionResult(messages=tuple(Message(text) for text in ("One.", "Two.", "Three.")))


async def test_notes_are_replaced_restored_and_deleted(home: Opens) -> None:
    async with home() as group:
        for word in ("Oslo", "Bergen", "Rome"):
            await group.say("Ann", f"/remember I live in {word}")
        assert await group.say("Ann", "/memory forget 3 restore=true") == [
            "🗑 Forgotten: #3\nNoted again: #2 I live in Bergen"
        ]
        assert await group.say("Ann", "/memory forget bergen") == ["🗑 Forgotten: #2"]
        assert await group.say("Ann", "/memory forget 1") == ["There is no note 1 here. /memory shows them."]
    async with home() as group:
        assert "#4 I live in Rome" in "".join(await group.say("Ann", "/remember I live in Rome")).replace("(#4):", "#4")
        assert await group.say("Ann", "/memory forget 4") == ["🗑 Forgotten: #4"]
        await group.daemon.housekeeping.forget()


async def test_use_of_models_is_counted_and_shown_by_member_of_the_chat(home: Opens) -> None:
    async with home() as group:
        for who, words in (("Ann", 20), ("Anna", 30), ("Ann", 20)):
            group.model.says(ModelAnswer("Hi.", usage=Usage(100, words)))
            await group.say(who, "@Rollcall hello")
        assert "today 2× asked, 240 tokens" in (await group.say("Ann", "/usage"))[0]
        shown = await group.say("Ann", "/usage all", role=Role.ADMIN)
        assert [line.partition(":")[0] for line in shown[0].splitlines()] == ["Ann", "Anna"]


async def test_a_member_is_forgotten_and_left_out(home: Opens) -> None:
    async with home() as group:
        await group.say("Ann", "/todo add milk")
        group.model.says("You said hello.", "Fine.")
        await group.say("Ann", "@Rollcall hello")
        await group.say("Ann", "/forget me")
        (answer,) = await group.say("Ann", "yes")
        assert "messages: 4" in answer
        assert "milk" not in "".join(await group.say("Bob", "/todo"))
        await group.say("Ann", "/optout")
        await group.say("Ann", "canary")
        await group.say("Bob", "@Rollcall hi")
        assert "canary" not in "".join(one.content for one in group.model.requests[-1].messages)


async def test_limits_outages_start_scripts_and_approved_runs_are_stored(home: Opens, tmp_path: Path) -> None:
    write_scripts(tmp_path / "scripts", {"start": 'TALK "Welcome"'})
    sources = {"basic": [{"path": str(tmp_path / "scripts")}]}
    transfer = functions()["transfer"]
    filters = {"call": [{"limits": {"calls_per_minute": 4}}]}
    async with home([transfer.spec], sources=sources, filters=filters) as group:
        group.model.says("Hello.", DOWN, DOWN, call("transfer", recipient="Tom", amount=20), "Done.", "Done.")
        said = [await group.say("Ann", "@Rollcall hello") for _ in range(3)]
        assert said == [["Welcome", "Hello."], [TOLD], []]
        assert is_asked(await group.say("Ann", "@Rollcall do what is needed"))
        await group.say("Ann", "yes")
    async with home([transfer.spec], sources=sources, filters=filters) as group:
        group.model.says(*[call("transfer", recipient="Tom", amount=9), "Done."] * 3, DOWN)
        for _ in range(3):
            assert not is_asked(await group.say("Ann", "@Rollcall make it 9"))
        assert [run["amount"] for run in transfer.runs] == [20, 9, 9]
        assert await group.say("Ann", "@Rollcall hello") == [TOLD]
