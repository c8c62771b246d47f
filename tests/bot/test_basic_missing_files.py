"""Missing data files, and filters of members: a check is silent, and the log mentions a file once."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from bot.checks.scripts_check import check_scripts
from config.sections.basic import BasicSource
from config.settings import Settings
from tests.bot.basic_group import a_group_with, write_scripts

LOOK = 'rows = FIND "guests.csv"\nTALK "rows: " + UBOUND(rows)'


def test_a_check_is_silent_on_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    write_scripts(tmp_path, {"look": f'DESCRIPTION "Counts guests"\n{LOOK}'})
    assert check_scripts(Settings(), [BasicSource(path=tmp_path)]).findings == []


def test_a_check_is_silent_on_a_filter_that_a_member_says(tmp_path: Path) -> None:
    script = 'PARAM filter AS string LIKE "city = Oslo" DESCRIPTION "Who"\nDESCRIPTION "Finds"\nx = FIND "t", filter'
    write_scripts(tmp_path, {"look": script})
    assert check_scripts(Settings(), [BasicSource(path=tmp_path)]).findings == []


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
