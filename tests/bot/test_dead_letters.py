"""Dead letters are stored, counted, reported to operators, and retried or dropped with a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.base import SendFailed
from bot.testing import FAMILY, Group, a_group
from config.texts import Texts
from function_calls.context import Kind
from services.refs import ChatRef, Role
from services.store.turns.ledger import LEDGER
from tests.bot.cli.running import Printed, a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.fakes.drafts import later
from tests.fakes.functions import Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import kept, reasons
from tests.fakes.noting import a_note
from tests.fakes.timers import ask, pass_time, states

OPS = ChatRef("test", "bot", "ops")
DAY = 86_400.0
EN = Texts().of("en")
ONE_ATTEMPT: dict[str, Any] = {"limits": {"attempts_per_turn": 1}, "chats": {"allow": ["*"]}}
Dead = Callable[..., Printed]


@pytest.fixture
def dead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Dead:
    """`rollcall dead` on the database of groups with the home `tmp_path / "var"`."""
    file = a_settings_file(tmp_path)
    return lambda *arguments: command(capsys, "dead", *arguments, "--config", file)


def ids(dead: Dead) -> list[int]:
    return [one["id"] for one in dead("--json").json]


async def interrupted(home: Path, held: Held, text: str, **facts: Any) -> None:
    """Stop a daemon while it answers `text`, during the run of `held`."""
    async with a_group([held.spec], home=home, settings=ONE_ATTEMPT) as group:
        await group.hear("Ann", text, id="m1", **facts)
        await until(lambda: bool(held.begun))
        await group.crash()


async def noticed(group: Group) -> list[str]:
    """Messages sent after the daemon has noticed the changes of a command."""
    before = len(group.platform.sent)
    await group.daemon.housekeeping.notice_changes()
    await group.settle()
    return [one.text for one in group.platform.sent[before:]]


async def test_a_message_that_was_given_up_is_listed_and_answered_when_it_is_retried(
    tmp_path: Path, dead: Dead
) -> None:
    held = Held()
    await interrupted(tmp_path / "var", held, "/hold it")
    async with a_group([held.spec], home=tmp_path / "var", settings=ONE_ATTEMPT) as group:
        await group.settle()
        [listed] = dead("--json").json
        assert (listed["kind"], listed["chat"], listed["name"]) == ("turn", FAMILY.key, "Ann")
        assert listed["why"] == "limits.attempts_per_turn"
        assert b'rollcall_dead_letters{kind="turn"} 1.0' in group.daemon.metrics.render()
        shown = dead("show", listed["id"])
        assert "    from: Ann\n    text: '/hold it'\n" in shown.out
        held.let_go()
        assert dead("retry", listed["id"]).out == f"{listed['id']}: retried\n"
        assert await noticed(group) == ["done: it"]
        assert await reasons(group) == [("command", "hold")]
        assert [one.text for one in group.platform.sent] == [EN.say("failures.gave_up"), "done: it"]
        assert ids(dead) == []
        assert b'rollcall_dead_letters{kind="turn"} 0.0' in group.daemon.metrics.render()


async def test_a_retry_while_no_daemon_runs_is_taken_up_at_the_next_start(tmp_path: Path, dead: Dead) -> None:
    held = Held()
    await interrupted(tmp_path / "var", held, "/hold it")
    async with a_group([held.spec], home=tmp_path / "var", settings=ONE_ATTEMPT) as group:
        await group.settle()
    held.let_go()
    assert dead("retry", *ids(dead)).status == 0
    async with a_group([held.spec], home=tmp_path / "var", settings=ONE_ATTEMPT) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: it"]
        assert await noticed(group) == []


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_retry_does_not_repeat_what_may_happen_once(tmp_path: Path, dead: Dead, language: str) -> None:
    pay = Held("pay", effect="once")
    texts = Texts().of(language)
    settings = {**ONE_ATTEMPT, "language": language}
    unknown = texts.say("failures.unknown_outcome", name="/pay")
    await interrupted(tmp_path / "var", pay, "/pay rent")
    async with a_group([pay.spec], home=tmp_path / "var", settings=settings) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == [unknown, texts.say("failures.gave_up_after")]
        pay.let_go()
        dead("retry", *ids(dead))
        assert await noticed(group) == [unknown]
    assert pay.begun == ["rent"]


async def test_a_retry_has_the_rights_of_now(tmp_path: Path, dead: Dead) -> None:
    held = Held(roles="admin", effect="idempotent")
    await interrupted(tmp_path / "var", held, "/hold it", role=Role.ADMIN)
    async with a_group([held.spec], home=tmp_path / "var", settings=ONE_ATTEMPT) as group:
        await group.settle()
        held.let_go()
        dead("retry", *ids(dead))
        [refused] = await noticed(group)
    assert held.begun == ["it"]
    assert "admin" in refused


async def test_a_message_that_was_deleted_or_dropped_cannot_be_retried(tmp_path: Path, dead: Dead) -> None:
    held = Held()
    await interrupted(tmp_path / "var", held, "/hold it")
    await interrupted(tmp_path / "var", held, "/hold that", chat=OPS)
    async with a_group([held.spec], home=tmp_path / "var", settings=ONE_ATTEMPT) as group:
        await group.settle()
        first, second = ids(dead)
        await group.hear("Ann", "", id="m1", kind=Kind.DELETE)
        assert ids(dead) == [second]
        assert dead("drop", second).out == f"{second}: dropped\n"
        assert ids(dead) == []
        retried = dead("retry", first, second)
        assert (retried.status, retried.err.count("there is no dead letter")) == (1, 2)
        assert await noticed(group) == []


async def test_a_reply_that_no_network_took_is_sent_when_it_is_retried(tmp_path: Path, dead: Dead) -> None:
    async with a_group([Recorder("note", commands=["note"]).spec], home=tmp_path / "var") as group:
        group.platform.failures.append(SendFailed("not now", retryable=False))
        assert await group.say("Ann", "/note") == []
        await kept(group, LEDGER.c.function)
        [listed] = dead("--json").json
        assert (listed["kind"], listed["chat"], listed["why"]) == ("message", FAMILY.key, "not now")
        assert dead("show", listed["id"], "--json").json["text"] == "done"
        dead("retry", listed["id"])
        assert await noticed(group) == ["done"]
        assert await noticed(group) == []
        assert ids(dead) == []


async def test_a_timer_that_could_not_be_delivered_is_fired_when_it_is_retried(tmp_path: Path, dead: Dead) -> None:
    home, off = tmp_path / "var", {"chats": {"allow": [FAMILY.key], "settings": {FAMILY.key: {"enabled": False}}}}
    async with a_group([a_note().spec], home=home, settings=off) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        assert await pass_time(group, 6) == []
        [listed] = dead("--json").json
        assert (listed["kind"], listed["chat"], listed["why"]) == ("timer", FAMILY.key, "chat_off")
        assert dead("show", listed["id"], "--json").json["text"] == "tea"
    async with a_group([a_note().spec], home=home) as group:
        dead("retry", listed["id"])
        await group.daemon.housekeeping.notice_changes()
        [said] = await pass_time(group, 10)
        assert said.splitlines()[-1] == "⏰ tea"
        assert await states(group) == ["fired"]
        assert ids(dead) == []


async def test_operators_are_told_of_each_dead_letter_once_and_of_none_in_their_own_chat(
    tmp_path: Path, dead: Dead
) -> None:
    note = Recorder("note", commands=["note"])
    settings = {"operators": {"chat": OPS.key}}
    async with a_group([note.spec], home=tmp_path / "var", settings=settings) as group:
        group.platform.failures += [SendFailed("no", retryable=False)] * 2
        await group.say("Ann", "/note")
        await group.clock.settle()
        await group.clock.advance(2)
        await group.settle()
        # The operator message fails as well, and causes no further one.
        group.platform.failures.append(SendFailed("no", retryable=False))
        await group.say("Ann", "/note")
        await group.clock.settle()
        await group.clock.advance(3600)
        await group.settle()
        await kept(group, LEDGER.c.function)
        assert len(ids(dead)) == 3
        line = EN.say("operators.dead_message", id=ids(dead)[-1], chat=FAMILY.key)
        told = EN.say("operators.dead_letters", lines=line)
        assert [(one.chat, one.text) for one in group.platform.sent] == [(OPS, told)]


async def test_a_dead_letter_is_kept_with_what_its_turn_did_for_as_long_as_days_kept_after_it_was_given_up(
    tmp_path: Path, dead: Dead
) -> None:
    pay = Held("pay", effect="once")
    settings = {**ONE_ATTEMPT, "store": {"days_kept": 3}}
    await interrupted(tmp_path / "var", pay, "/pay rent")
    async with a_group([pay.spec], home=tmp_path / "var", settings=settings) as group:
        await group.settle()
        for days, is_kept in ((2.5, True), (1.0, False)):
            await group.clock.advance(days * DAY)
            await group.daemon.housekeeping.forget()
            assert len(ids(dead)) == is_kept
            # The turn's other rows are deleted later.
            await group.daemon.housekeeping.forget()
            assert len(await kept(group, LEDGER.c.function)) == is_kept


def test_without_dead_letters_the_command_says_so(tmp_path: Path, dead: Dead) -> None:
    assert (dead().status, dead().err.count("there is no database")) == (1, 1)
