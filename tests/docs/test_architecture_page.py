"""docs/architecture.md, and the packages that it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import rooms_map

MOST_WORDS = 1800
MOST_MODULES = 20
UNLIMITED = {"services/store/migrations/versions"}
ROOMS = dict(rooms_map.rooms())


def test_the_map_of_rooms_is_up_to_date() -> None:
    text = rooms_map.PAGE.read_text(encoding="utf-8")
    assert rooms_map.page() == text, "run python -m tests.rooms_map --write"
    assert "function_calls/rounds" in text


def test_the_page_stays_short() -> None:
    assert len(rooms_map.PAGE.read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for(room: str) -> None:
    assert re.match(r"[A-Z].*\.$", ROOMS[room]), f"{room}/__init__.py has no paragraph"


@pytest.mark.parametrize("room", sorted(ROOMS.keys() - UNLIMITED))
def test_a_room_has_few_modules(room: str) -> None:
    modules = [one for one in (rooms_map.ROOT / room).glob("*.py") if one.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES, [one.name for one in modules]


def test_every_folder_with_modules_is_a_room() -> None:
    folders = {file.parent for floor in rooms_map.FLOORS for file in (rooms_map.ROOT / floor).rglob("*.py")}
    assert {Path(rooms_map.ROOT / room) for room in ROOMS} >= folders
