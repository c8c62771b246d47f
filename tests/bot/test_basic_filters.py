"""Filters built by scripts from members' texts: a text is always a value, whatever it contains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.basic_group import a_group_with

FILL = """
SAVE "orders", 1, #{ owner: "Ann", total: 10 }
SAVE "orders", 2, #{ owner: "Bob", total: 20 }
SAVE "orders", 3, #{ owner: "O'Neil", total: 30 }
SAVE "orders", 4, #{ owner: "x' OR owner <> '", total: 40 }
"""
OWNER = "x' OR owner <> '"
"""A member with this name is found only by the whole name."""
ASK = 'TALK "whose?"\nHEAR who\n'
SHOW = '\nlist = ""\nFOR EACH row IN found\n list = list + row.id + " "\nNEXT\nTALK "found " + list'
WAYS = [
    """found = FIND "orders", "owner = '" + who + "'" """,
    """found = FIND "orders", "owner=" + who""",
    """found = FIND "orders", "owner = '${who}'" """,
    """found = FIND "orders", "owner = ${who}" """,
    """found = FIND "orders", "(owner='" & who & "') AND total > 0" """,
    """found = FIND "orders" WHERE "owner = '" + who + "'" """,
    """found = FILTER "orders", "owner = '" + who + "' ORDER BY id" """,
    """wanted = "owner = '" + who + "'"\nfound = FIND "orders", wanted""",
    """wanted = "owner = '${who}'"\nwanted = wanted + " AND total > 0"\nother = wanted\nfound = FIND "orders", other""",
    """wanted = "total > 0"\nIF who <> "" THEN wanted = wanted + " AND owner = '" + who + "'"\n"""
    """found = FIND "orders", "id > 0 AND " + wanted""",
    """said = TRIM(who)\nfound = FIND "orders", "owner = '" + said + "'" """,
    """SUB look(name)\n found = FIND "orders", "owner = '" + name + "'"\nEND SUB\nfound = []\nlook who""",
    """found = FIND "orders" WHERE owner = who""",
    """found = FIND "orders", "owner", who""",
]
EVIL = [
    "y' OR owner <> '",
    "x OR owner <> y",
    "Ann' OR 'a' = 'a",
    "Ann') OR (total > 0",
    "' ORDER BY total LIMIT 1",
    'x" OR owner <> "',
]


@pytest.mark.parametrize("way", WAYS)
async def test_what_a_member_says_is_a_value_and_no_part_of_the_filter(tmp_path: Path, way: str) -> None:
    async with a_group_with(tmp_path / "scripts", fill=FILL, look=ASK + way + SHOW) as group:
        await group.say("Ann", "/fill")
        for words, found in (("Ann", "1"), ("O'Neil", "3"), *((one, "") for one in EVIL), (OWNER, "4")):
            assert await group.say("Ann", "/look") == ["whose?"]
            assert [one.strip() for one in await group.say("Ann", words)] == [f"found {found}".strip()], words


CHANGES = {
    "update": """UPDATE "orders", "owner='" + who + "'", #{ total: 0 }""",
    "delete_from": """DELETE FROM "orders", "owner = '" + who + "'" """,
    "delete": """DELETE "orders", "owner='${who}'" """,
    "delete_where": """DELETE FROM "orders" WHERE "owner='${who}'" """,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_nothing_but_what_was_meant_is_changed(tmp_path: Path, change: str) -> None:
    left = 'TALK AGGREGATE("SUM", "orders", "total")'
    async with a_group_with(tmp_path / "scripts", fill=FILL, change=ASK + change, left=left) as group:
        await group.say("Ann", "/fill")
        for words, left_over in (*((one, "100") for one in EVIL), (OWNER, "60")):
            await group.say("Ann", "/change")
            await group.say("Ann", words)
            assert await group.say("Ann", "/left") == [left_over], words
