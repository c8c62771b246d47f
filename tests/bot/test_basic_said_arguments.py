"""Script arguments in natural language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.testing import call
from tests.bot.basic_group import a_group_with


def a_script(kind: str) -> str:
    return f'PARAM it AS {kind} DESCRIPTION "It"\nDESCRIPTION "Says it"\nTALK "got " + TOJSON(it)'


@pytest.mark.parametrize(
    ("kind", "said", "value"),
    [
        ("date", "24.12.2026", '"2026-12-24"'),
        ("date", "2026-12-24", '"2026-12-24"'),
        ("time", "3 pm", '"15:00"'),
        ("datetime", "24.12.2026 15:30", '"2026-12-24 15:30:00"'),
        ("money", "12,50", "12.5"),
        ("money", "12,50 €", "12.5"),
        ("number", "1.234,5", "1234.5"),
        ("percent", "5%", "5"),
        ("email", "ann@example.com", '"ann@example.com"'),
        ("phone", "+1 555 123 4567", '"+1 555 123 4567"'),
        ("url", "example.com", '"https://example.com"'),
    ],
)
async def test_what_people_write_is_read_as_answers_are(tmp_path: Path, kind: str, said: str, value: Any) -> None:
    async with a_group_with(tmp_path, it=a_script(kind)) as group:
        answers = await group.say("Ann", f"/it {said}")
        asked = await group.say("Ann", "/it")
        later = await group.say("Ann", said)
    assert answers == [f"got {value}"]
    assert asked != answers
    assert later == answers


async def test_tomorrow_is_a_date_of_the_chat(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, it=a_script("date")) as group:
        [today] = await group.say("Ann", "/it today")
        [tomorrow] = await group.say("Ann", "/it tomorrow")
    assert today.startswith('got "20')
    assert today < tomorrow


@pytest.mark.parametrize(
    ("kind", "words"), [("date", "a date, such as 2026-12-24"), ("time", "a time of day, such as 15:00")]
)
async def test_a_refusal_names_the_kind_with_an_example(tmp_path: Path, kind: str, words: str) -> None:
    async with a_group_with(tmp_path, it=a_script(kind)) as group:
        [answer] = await group.say("Ann", "/it nonsense")
        group.model.says(call("it", it="2026-99-99"), "No.")
        await group.say("Ann", "@Rollcall please do what I want")
        schema = repr(group.model.requests[-1])
    assert words in answer
    assert "x-said-as" not in schema
