"""Malicious scripts: protection by the host of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.testing import a_group
from config.texts import Texts
from services.refs import Role
from tests.bot.basic_group import a_group_with, write_scripts
from tests.fakes.functions import Recorder

EN = Texts().of("en")
TEXT = {"text": {"type": "string", "description": "What"}, "to": {"type": "string", "description": "Where"}}


@pytest.fixture
def rows(data: Callable[[str], Path]) -> dict[str, str]:
    """The scripts by id."""
    lines = data("G_faults/basic_malicious.jsonl").read_text("utf-8").splitlines()
    return {row["id"]: row["source_code"] for row in map(json.loads, lines)}


async def test_a_call_of_an_address_calls_nothing(tmp_path: Path, rows: dict[str, str]) -> None:
    async with a_group_with(tmp_path, evil=rows["bas-013"]) as group:
        [said] = await group.say("Olga", "/evil", role=Role.OWNER)
        assert said.endswith(EN.say("basic.call.unknown", name="12345"))


async def test_a_wait_for_input_is_a_question_that_holds_up_nothing_and_expires(
    tmp_path: Path, rows: dict[str, str]
) -> None:
    async with a_group_with(tmp_path, evil=rows["bas-015"], fine='TALK "fine"') as group:
        assert await group.say("Ann", "/evil") == [EN.say("questions.input")]
        assert await group.say("Bob", "/fine") == ["fine"]
        await group.clock.advance(301)
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert len(group.platform.sent) == 2


async def test_a_mention_of_all_is_text_and_mentions_nobody(tmp_path: Path, rows: dict[str, str]) -> None:
    async with a_group_with(tmp_path, evil=rows["bas-026"]) as group:
        await group.say("Ann", "/evil")
        assert [one.mentions for one in group.platform.sent] == [()]


async def test_a_message_to_another_group_is_denied(tmp_path: Path, rows: dict[str, str]) -> None:
    send = Recorder("send", TEXT, effect="once", touches=())
    async with a_group_with(tmp_path, [send.spec], evil=rows["bas-028"]) as group:
        [said] = await group.say("Olga", "/evil", role=Role.OWNER)
        assert said.endswith(EN.say("basic.call.not_granted", name="send"))
    assert send.runs == []


async def test_chance_is_allowed(tmp_path: Path, rows: dict[str, str]) -> None:
    async with a_group_with(tmp_path, fair=rows["bas-030"]) as group:
        [said] = await group.say("Ann", "/fair")
        assert 0 <= float(said) < 1


async def test_a_script_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    write_scripts(tmp_path, {"evil": 'PRINT "x"\n' * 200_000, "fine": 'TALK "fine"'})
    async with a_group(settings={"sources": {"basic": [str(tmp_path)]}}) as group:
        [fault] = [str(one) for one in group.daemon.functions.faults if one.severity == "error"]
        assert "basic.too_long" in fault
        assert await group.say("Ann", "/fine") == ["fine"]


REFUSED = {"bas-010", "bas-012"}
STOPPED = {
    "bas-002": ("steps", "time", "memory"),
    "bas-003": ("memory",),
    "bas-013": ("no_such_thing",),
    "bas-019": ("division",),
    "bas-028": ("not_allowed",),
}
SAYS = {"bas-015", "bas-026", "bas-030"}
TOO_LONG = {"bas-024"}
"""The corpus does not contain its text; test_a_script_that_is_too_long_is_not_read has a similar one."""


async def test_each_of_them_is_refused_stopped_or_harmless_and_the_bot_goes_on(
    tmp_path: Path, rows: dict[str, str]
) -> None:
    assert set(rows) == {*REFUSED, *STOPPED, *SAYS, *TOO_LONG}
    names = {row: row.replace("-", "") for row in rows if row not in TOO_LONG}
    write_scripts(tmp_path, {names[row]: rows[row] for row in names} | {"fine": 'TALK "fine"'})
    send = Recorder("send", TEXT, effect="once", touches=())
    async with a_group([send.spec], settings={"sources": {"basic": [str(tmp_path)]}}) as group:
        broken = [str(one) for one in group.daemon.functions.faults if one.severity == "error"]
        assert len(broken) == len(REFUSED)
        for row in REFUSED:
            assert any(f"{names[row]}.bas:2:" in one and "basic.unknown_statement" in one for one in broken)
        for row, codes in STOPPED.items():
            said = (await group.say("Olga", f"/{names[row]}", role=Role.OWNER))[-1]
            endings = [EN.say(f"basic.stopped.{code}", name=names[row], line=2) for code in codes]
            assert any(said.startswith(one) for one in endings), said
            assert await group.say("Ann", "/fine") == ["fine"]
        for row in SAYS:
            assert len(await group.say("Ann", f"/{names[row]}")) == 1
    assert send.runs == []
