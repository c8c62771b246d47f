"""Scripts that mean no good, as far as the host of a run holds them."""

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
    """The scripts, by their ids."""
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
    send = Recorder("send", TEXT, effect="once")
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
