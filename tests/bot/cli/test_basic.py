"""`rollcall basic check` and `recompile`, and reports on scripts by other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.function_calls.script_library.libraries import ORDER

GOOD = 'PARAM who AS string LIKE "Ann" DESCRIPTION "Who is greeted"\nDESCRIPTION "Greets somebody"\nTALK "Hi, " + who\n'
FACTS = {"file", "line", "column", "code", "message", "severity"}


def a_folder(folder: Path, **scripts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        (folder / f"{name}.bas").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.requirement("A51")
def test_good_scripts_are_said_to_be_good(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drive = a_folder(tmp_path / "drive", hello=GOOD, salute=GOOD)
    assert command(capsys, "basic", "check", drive) == (0, "2 scripts: none broken, no warnings\n", "")


@pytest.mark.requirement("A36", "A39", "A51")
def test_every_mistake_is_a_line_and_one_broken_script_hides_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drive = a_folder(tmp_path / "drive", a=GOOD, b='DESCRIPTION "Says hello"\n\nTALK )\n', c=GOOD)
    printed = command(capsys, "basic", "check", drive)
    assert printed.status == 1
    assert printed.out.splitlines()[0].startswith(f"{drive / 'b.bas'}:3:")
    assert printed.out.splitlines()[-1] == "3 scripts: 1 broken, no warnings"


@pytest.mark.requirement("A51")
def test_a_folder_that_is_not_there_is_said_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    printed = command(capsys, "basic", "check", tmp_path / "nowhere")
    assert (printed.status, printed.out) == (2, "")
    assert printed.err == f"{tmp_path / 'nowhere'}: no such file or folder; create it, or correct the path\n"


@pytest.mark.requirement("A53", "A54", "A55")
def test_doubts_are_warnings_and_no_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drive = a_folder(tmp_path / "drive", hello='PARAM x AS string DESCRIPTION "Who is meant"\nTALK "Hello, " + x\n')
    printed = command(capsys, "basic", "check", drive, "--json")
    assert (printed.status, printed.err) == (0, "")
    assert {one["code"] for one in printed.json} == {
        "basic.missing_description",
        "basic.unclear_name",
        "basic.missing_like",
    }
    assert {one["severity"] for one in printed.json} == {"warning"}
    assert all(set(one) == FACTS for one in printed.json)


@pytest.mark.requirement("A51", "A59")
def test_the_strict_profile_allows_less(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = 'PARAM mail AS email LIKE "a@b.c" DESCRIPTION "Whose"\nDESCRIPTION "Says who it is"\nTALK mail\n'
    drive = a_folder(tmp_path / "drive", hello=text)
    assert command(capsys, "basic", "check", drive).status == 0
    printed = command(capsys, "basic", "check", drive, "--profile", "strict", "--json")
    assert printed.status == 1
    assert ("email" in printed.json[0]["message"], printed.json[0]["line"]) == (True, 1)


def test_the_current_folder_is_a_folder_and_a_script_that_is_given_twice_is_checked_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = a_folder(tmp_path / "drive", hello=GOOD, salute=GOOD)
    monkeypatch.chdir(drive)
    assert command(capsys, "basic", "check", ".") == (0, "2 scripts: none broken, no warnings\n", "")
    paths = [".", "hello.bas", drive, "../drive/salute.bas"]
    assert command(capsys, "basic", "check", *paths) == (0, "2 scripts: none broken, no warnings\n", "")


@pytest.mark.requirement("B31")
def test_two_files_with_one_name_are_both_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for inner in ("a", "b"):
        a_folder(tmp_path / "drive" / "crm.gbai" / f"{inner}.gbdialog", order=GOOD)
    printed = command(capsys, "basic", "check", tmp_path / "drive", "--json")
    [found] = printed.json
    assert (printed.status, found["code"]) == (1, "basic.duplicate_tool")
    assert "a.gbdialog/order.bas" in found["message"]
    assert "b.gbdialog/order.bas" in found["message"]


def test_a_name_that_another_function_or_command_has_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drive = a_folder(tmp_path / "drive", weather=GOOD, Help=GOOD, mine=GOOD)
    printed = command(capsys, "basic", "check", drive)
    help_line, weather_line, summary = printed.out.splitlines()
    assert help_line.startswith(f"{drive / 'Help.bas'}:1:1 functions.taken 'Help' is taken: it is a command of ")
    assert weather_line.startswith(
        f"{drive / 'weather.bas'}:1:1 functions.taken 'weather' is taken: it is the function"
    )
    assert (printed.status, summary) == (1, "3 scripts: 1 broken, 1 warning")


def test_bots_that_there_are_not_are_told_where_settings_are_at_hand(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    a_folder(tmp_path / "drive" / "green.gbai" / "green.gbdialog", one=GOOD, two=GOOD)
    assert command(capsys, "basic", "check", tmp_path / "drive").out == "2 scripts: none broken, no warnings\n"
    file = a_settings_file(tmp_path, "bots: {red: {name: Red}}\n")
    told, summary = command(capsys, "basic", "check", tmp_path / "drive", "--config", file).out.splitlines()
    assert "no bot 'green', so its 2 scripts are not used" in told
    assert summary == "2 scripts: none broken, 1 warning"


def test_a_file_that_is_no_text_or_too_long_is_told_where(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drive = a_folder(tmp_path / "drive")
    (drive / "latin.bas").write_bytes('DESCRIPTION "One"\nTALK "Caf\xe9"\n'.encode("latin-1"))
    (drive / "long.bas").write_text("REM\n" * 20_000, encoding="utf-8")
    found = command(capsys, "basic", "check", drive, "--json").json
    assert [(Path(one["file"]).name, one["line"], one["column"], one["code"]) for one in found] == [
        ("latin.bas", 2, 10, "basic.unreadable"),
        ("long.bas", 1, 1, "basic.too_long"),
    ]


def test_where_there_are_no_scripts_that_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    printed = command(capsys, "basic", "check", tmp_path / "empty")
    assert printed.status == 1
    [line] = printed.out.splitlines()
    assert "there are no scripts" in line


def test_without_a_path_the_scripts_of_the_settings_are_checked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command(capsys, "basic", "check").status == 1
    drive = a_folder(tmp_path / "drive", order=GOOD)
    file = a_settings_file(tmp_path, f"sources: {{basic: [{{path: {drive}, profile: strict}}]}}\n")
    printed = command(capsys, "basic", "check", "--config", file)
    assert (printed.status, printed.out) == (0, "1 script: none broken, no warnings\n")


@pytest.mark.requirement("A51")
def test_check_finds_mistakes_and_doubts_of_scripts_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drive = a_folder(tmp_path / "drive", broken="TALK )\n", doubtful='TALK "Hi"\n')
    printed = command(capsys, "check", a_settings_file(tmp_path, f"sources: {{basic: [{drive}]}}\n"))
    assert printed.status == 1
    assert f"{drive / 'broken.bas'}:1:" in printed.out
    assert f"{drive / 'doubtful.bas'}:1:1 basic.missing_description" in printed.out


@pytest.mark.requirement("A27", "A28", "B2", "B3", "B10", "B22", "B32")
def test_functions_shows_a_script_in_every_spelling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drive = a_folder(tmp_path / "drive", process_order=ORDER)
    file = a_settings_file(tmp_path, f"sources: {{basic: [{drive}]}}\n")
    shown = {
        style: command(capsys, "functions", "process_order", "--format", style, "--config", file)
        for style in ("table", "openai-bare", "mcp", "anthropic", "markdown")
    }
    assert {one.status for one in shown.values()} == {0}
    schema = shown["openai-bare"].json[0]["parameters"]
    assert list(schema["properties"]) == schema["required"] == ["customer_name", "order_amount", "shipping_address"]
    assert schema["properties"]["order_amount"] == {
        "type": "number",
        "description": "Total order amount",
        "example": 99.99,
    }
    assert shown["mcp"].json[0]["inputSchema"] == shown["anthropic"].json[0]["input_schema"] == schema
    assert "Process a new customer order" in shown["table"].out
    assert "order_amount" in shown["markdown"].out


@pytest.mark.requirement("A52")
def test_call_runs_a_script_by_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drive = a_folder(tmp_path / "drive", process_order=ORDER)
    file = a_settings_file(tmp_path, f"sources: {{basic: [{drive}]}}\n")
    given = {"customer_name": "Ann", "order_amount": 3, "shipping_address": "here"}
    printed = command(capsys, "call", "process_order", "--json", json.dumps(given), "--config", file)
    assert (printed.status, printed.json["reply"]) == (0, "Processing order for Ann")


@pytest.mark.requirement("A31")
def test_recompile_names_what_there_is_when_it_does_not_know_the_tool(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drive = a_folder(tmp_path / "drive", process_order=ORDER)
    file = a_settings_file(tmp_path, f"sources: {{basic: [{drive}]}}\n")
    absent = command(capsys, "basic", "recompile", "--config", file)
    assert (absent.status, "there is no database" in absent.err) == (1, True)
    arguments = json.dumps({"customer_name": "Ann", "order_amount": 3, "shipping_address": "here"})
    command(capsys, "call", "process_order", "--json", arguments, "--config", file)
    assert command(capsys, "basic", "recompile", "--config", file).status == 0
    unknown = command(capsys, "basic", "recompile", "default", "proces_order", "--config", file)
    assert (unknown.status, "did you mean process_order?" in unknown.err) == (1, True)
    nobody = command(capsys, "basic", "recompile", "nobody", "--config", file)
    assert (nobody.status, "default" in nobody.err) == (1, True)
    tool = command(capsys, "basic", "recompile", "process_order", "--config", file)
    assert (tool.status, "rollcall basic recompile default process_order" in tool.err) == (1, True)


def test_check_says_nothing_of_the_description_of_what_begins_chats(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drive = a_folder(tmp_path / "drive", start='TALK "Hi"\n')
    file = a_settings_file(tmp_path, f"sources: {{basic: [{drive}]}}\n")
    assert command(capsys, "check", file) == (0, f"{file}: no problems found\n", "")


def test_the_schema_of_the_settings_knows_what_scripts_may(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.dumps(command(capsys, "schema").json)
    for name in ("may_call", "shared_tables", "shared_memory"):
        assert f'"{name}"' in shown
