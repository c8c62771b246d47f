"""UPDATE with values computed from columns of the row."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.checks.scripts_check import check_scripts
from config.sections.basic import BasicSource
from config.settings import Settings
from tests.bot.basic_group import a_group_with, write_scripts

ROWS = 'INSERT INTO t (name, n) VALUES ("Ann", 1)\nINSERT INTO t (name, n) VALUES ("Ben", 5)\n'
TOLD = '\nFOR EACH row IN FIND("t")\n  said = said + row.name + " " + row.n + "; "\nNEXT\nTALK TRIM(said)'


def warnings_of(folder: Path, script: str) -> list[str]:
    write_scripts(folder, {"look": script})
    return [one.code for one in check_scripts(Settings(), [BasicSource(path=folder)]).findings]


@pytest.mark.parametrize(
    ("update", "says"),
    [
        ("UPDATE t SET n = n + 1 WHERE n > 2", "Ann 1; Ben 6; "),
        ("UPDATE t SET N = n * 2, name = Name + \"!\"", "Ann! 2; Ben! 10; "),
        ("UPDATE t SET n = LEN(name) + n", "Ann 4; Ben 8; "),
        ("UPDATE t SET n = n, name = n", "1 1; 5 5; "),
        ('UPDATE t SET name = "${name}-${n}"', "Ann-1 1; Ben-5 5; "),
        ("UPDATE t SET n = IIF(n > 2 AND name = \"Ben\", -n, n)", "Ann 1; Ben -5; "),
        ("more = 10\nUPDATE t SET n = n + more", "Ann 11; Ben 15; "),
        ("n = 10\nUPDATE t SET n = n + 1", "Ann 11; Ben 11; "),
        ('UPDATE t SET name = ["row", "x"][0]', "row 1; row 5; "),
        ('it = ["row", []]\nUPDATE t SET name = it', '["row", []] 1; ["row", []] 5; '),
        ("UPDATE t SET n = Twice(4)\nFUNCTION Twice(of)\n  RETURN of * 2\nEND FUNCTION", "Ann 8; Ben 8; "),
    ],
)  # fmt: skip
async def test_a_name_that_is_no_variable_is_the_column_of_the_row(tmp_path: Path, update: str, says: str) -> None:
    script = f'said = ""\n{ROWS}{update}{TOLD}'
    assert warnings_of(tmp_path / "checked", script) == []
    async with a_group_with(tmp_path / "scripts", look=script) as group:
        assert await group.say("Ann", "/look") == [says.strip()]


async def test_what_the_settings_give_a_script_comes_before_the_column(tmp_path: Path) -> None:
    script = f'said = ""\n{ROWS}UPDATE t SET n = n + fee{TOLD}'
    settings = {"bots": {"default": {"parameters": {"fee": 100}}}}
    async with a_group_with(tmp_path / "scripts", settings=settings, look=script) as group:
        assert await group.say("Ann", "/look") == ["Ann 101; Ben 105;"]


async def test_a_row_that_cannot_be_reckoned_leaves_all_rows_as_they_were(tmp_path: Path) -> None:
    script = f'said = ""\n{ROWS}ON ERROR RESUME NEXT\nUPDATE t SET n = 10 / (5 - n){TOLD}'
    async with a_group_with(tmp_path / "scripts", look=script) as group:
        assert await group.say("Ann", "/look") == ["Ann 1; Ben 5;"]


async def test_what_all_rows_take_together_is_bounded(tmp_path: Path) -> None:
    script = (
        'FOR i = 1 TO 200\n  SAVE "t", i, #{n: i}\nNEXT\n'
        'big = REPEAT("abc ", 200000)\nUPDATE t SET n = LEN(REPLACE(big, "a", "" + n)) + n\nTALK "done"'
    )
    async with a_group_with(tmp_path / "scripts", look=script) as group:
        (said,) = await group.say("Ann", "/look")
        assert said.startswith("look took t")


def test_what_stops_a_run_cannot_be_asked_for_each_row(tmp_path: Path) -> None:
    script = "UPDATE t SET n = Twice(n)\nFUNCTION Twice(of)\n  RETURN of * 2\nEND FUNCTION"
    write_scripts(tmp_path, {"look": script})
    (found,) = check_scripts(Settings(), [BasicSource(path=tmp_path)]).findings
    assert (found.severity, found.line) == ("error", 2)
    assert "`n` is a column here" in found.message


def test_a_column_that_is_written_nearly_as_a_variable_is_told(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, "amount = 3\nUPDATE t SET n = amout") == ["basic.unknown_variable"]
    assert warnings_of(tmp_path, "amount = 3\nUPDATE t SET old_price = price, n = amount") == []
