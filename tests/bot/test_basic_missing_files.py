"""Files of rows that are not there: the check says so, and the log once."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.scripts_check import check_scripts
from config.basic import BasicSource
from config.settings import Settings
from tests.bot.basic_group import a_group_with, write_scripts

LOOK = 'rows = FIND "guests.csv"\nTALK "rows: " + UBOUND(rows)'
WARNING = "basic.no_such_file"


def codes(folder: Path) -> list[tuple[str, int]]:
    found = check_scripts(Settings(), [BasicSource(path=folder)]).findings
    return [(Path(one.file).stem, one.line) for one in found if one.code == WARNING]


def test_a_check_names_the_place_that_reads_a_file_which_is_not_there(tmp_path: Path) -> None:
    write_scripts(tmp_path, {"look": LOOK})
    assert codes(tmp_path) == [("look", 2)]
    (tmp_path / "guests.csv").write_text("name\n")
    assert codes(tmp_path) == []


@pytest.mark.parametrize(
    "fills",
    [
        'SAVE "Guests.csv", #{name: "Ann"}',
        'INSERT INTO "guests.csv" (name) VALUES ("Ann")',
        'MERGE "guests.csv" WITH [#{id: 1}] BY "id"',
        'PARAM name AS string LIKE "guests.csv" DESCRIPTION "Which"\nDESCRIPTION "Fills it"\nSAVE name, #{name: "Ann"}',
    ],
)
def test_a_table_that_another_script_of_the_bot_fills_is_no_missing_file(tmp_path: Path, fills: str) -> None:
    write_scripts(tmp_path, {"look": LOOK, "fill": fills})
    assert codes(tmp_path) == []


def test_what_only_looks_fills_nothing(tmp_path: Path) -> None:
    write_scripts(tmp_path, {"look": LOOK, "change": 'UPDATE "guests.csv" SET age = 3'})
    assert codes(tmp_path) == [("look", 2)]


async def test_the_log_says_once_that_a_file_is_not_there(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with a_group_with(
            tmp_path / "scripts", look=LOOK, fill='SAVE "own.csv", #{a: 1}\nx = FIND "own.csv"'
        ) as group:
            for _ in range(3):
                assert await group.say("Ann", "/look") == ["rows: 0"]
            await group.say("Ann", "/fill")
    missed = [(one["file"], one["log_level"]) for one in logs if one["event"] == "script_found_no_file"]
    assert missed == [("guests.csv", "warning")]
