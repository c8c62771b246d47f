"""`rollcall basic new` and `rollcall basic run`: create and try a script without a chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model

ASKS = """\
PARAM who AS string LIKE "Ann" DESCRIPTION "Who is greeted"
PARAM times AS integer LIKE 2 DESCRIPTION "How often" DEFAULT 1
DESCRIPTION "Greets somebody"
FOR i = 1 TO times
    TALK "Hello " + who
NEXT
TALK "Which size?"
HEAR size AS "Small", "Large"
RETURN #{size: size}
"""


def a_script(folder: Path, text: str, name: str = "greet") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.bas"
    file.write_text(text, encoding="utf-8")
    return file


# -- new


@pytest.mark.requirement("A51")
def test_a_new_script_is_clean_and_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = command(capsys, "basic", "new", "salute", "--folder", tmp_path / "scripts")
    file = tmp_path / "scripts" / "salute.bas"
    assert (made.status, made.err) == (0, "")
    assert str(file) in made.out
    assert command(capsys, "basic", "check", file) == (0, "1 script: none broken, no warnings\n", "")
    settings = a_settings_file(tmp_path)
    tried = command(capsys, "basic", "run", file, "--arg", "who=Bo", "--answer", "yes", "--config", settings)
    assert tried.status == 0
    assert "TALK Hello Bo!" in tried.out
    assert 'RESULT "greeted Bo"' in tried.out


def test_a_script_that_is_there_is_never_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = a_script(tmp_path, "mine", "salute")
    made = command(capsys, "basic", "new", "salute.bas", "--folder", tmp_path)
    assert made.status == 1
    assert "already exists" in made.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", ["weather", "Help"])
def test_a_name_that_another_function_has_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    made = command(capsys, "basic", "new", name, "--folder", tmp_path / "scripts")
    assert (made.status, f"{name!r} is taken" in made.err) == (1, True)
    assert not (tmp_path / "scripts").exists()


@pytest.mark.parametrize("name", ["2fast", "a b", "../x", "ä", "x" * 65])
def test_a_name_that_no_function_can_have_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    assert command(capsys, "basic", "new", name, "--folder", tmp_path).status == 2
    assert list(tmp_path.iterdir()) == []


# -- run


@pytest.mark.requirement("A52")
def test_a_run_is_shown_with_its_questions_answers_rows_and_result(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, settings = a_script(tmp_path / "s", ASKS), a_settings_file(tmp_path)
    tried = command(
        capsys, "basic", "run", file, "--arg", "who=Ann", "--arg", "times=2", "--answer", "huge", "--answer", "2",
        "--config", settings,
    )  # fmt: skip
    assert tried.status == 0
    assert tried.out.splitlines() == [
        "TALK Hello Ann",
        "TALK Hello Ann",
        "ASK Which size?  [Small | Large]",
        "ANSWER huge",
        "ASK Please choose one of these: Small, Large.  [Small | Large]",
        "ANSWER 2",
        'RESULT {"size": "Large"}',
    ]
    assert not (tmp_path / "var").exists()


def test_what_a_run_keeps_is_shown_and_gone_afterwards(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("function_calls.basic.keyword_modules.records")
    settings = a_settings_file(tmp_path)
    text = (
        'DESCRIPTION "Keeps"\nwho = "Ann"\nSAVE "orders", who\nSET BOT MEMORY "last", who\nTALK COUNT(FIND "orders")\n'
    )
    for _ in range(2):
        tried = command(capsys, "basic", "run", a_script(tmp_path, text, "keeps"), "--config", settings)
        assert tried.status == 0
        talk, saved, remembered = tried.out.splitlines()
        assert talk == "TALK 1"
        assert saved.startswith("SAVED orders: {")
        assert '"who":"Ann"' in saved.replace(" ", "")
        assert remembered == 'REMEMBERED last: "Ann"'


@pytest.mark.requirement("A52")
def test_what_fails_or_waits_ends_with_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path)
    waits = command(capsys, "basic", "run", a_script(tmp_path, ASKS), "--arg", "who=Ann", "--config", settings)
    assert waits.status == 1
    assert waits.out.endswith("WAITING for an answer; give it with --answer TEXT\n")
    bad = a_script(tmp_path, 'DESCRIPTION "Fails"\nTALK "a"\nx = 1 / 0\n', "bad")
    failed = command(capsys, "basic", "run", bad, "--config", settings)
    assert (failed.status, failed.out.splitlines()) == (
        1,
        [
            "TALK a",
            "TALK bad stopped at line 3: it divided by zero.",
            "STOPPED line 3, column 7: division by 0",
        ],
    )
    silent = a_script(tmp_path, 'DESCRIPTION "Fails"\nx = 1 / 0\n', "silent")
    failed = command(capsys, "basic", "run", silent, "--config", settings)
    assert failed.status == 1
    assert failed.out == (
        "TALK silent stopped at line 2: it divided by zero.\nSTOPPED line 2, column 7: division by 0\n"
    )
    broken = a_script(tmp_path, "TALK )\n", "broken")
    unread = command(capsys, "basic", "run", broken, "--config", settings)
    assert (unread.status, unread.out) == (1, "")
    assert "broken.bas:1:" in unread.err


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ('TALK "abc" * 2', "`*` needs numbers, not a text"),
        ("a = [1, 2] : TALK a[5]", "no item 5: the last item of this list is 1"),
        ('TALK MID("abc", 0, 2)', "MID: the start must be at least 1"),
        ('TALK DATEVALUE("31.02.2026")', "DATEVALUE needs a date, not a text"),
    ],
)
def test_an_author_is_told_why_the_language_stopped_a_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, statement: str, why: str
) -> None:
    file = a_script(tmp_path, f'DESCRIPTION "Stops"\n{statement}\n', "stops")
    tried = command(capsys, "basic", "run", file, "--config", a_settings_file(tmp_path))
    said, stopped = tried.out.splitlines()
    assert why not in said
    assert stopped.startswith("STOPPED line 2, column ")
    assert why in stopped


def test_an_argument_that_is_missing_or_wrong_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, settings = a_script(tmp_path, ASKS), a_settings_file(tmp_path)
    missing = command(capsys, "basic", "run", file, "--config", settings)
    assert missing.status == 1
    assert "who" in missing.out
    unknown = command(capsys, "basic", "run", file, "--arg", "whom=x", "--config", settings)
    assert (unknown.status, unknown.err) == (2, "greet has no parameter 'whom'; its parameters: who, times\n")
    assert command(capsys, "basic", "run", file, "--arg", "who", "--config", settings).status == 2
    assert command(capsys, "basic", "run", tmp_path / "none.bas", "--config", settings).status == 2


def test_nothing_is_reached_without_being_allowed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from function_calls.declaration import tool_function\nfrom function_calls.context import MessageContext\n"
        '@tool_function(name="own")\ndef own(context: MessageContext) -> str:\n    """Does it."""\n    return "done"\n'
    )
    settings = a_settings_file(tmp_path, f"sources: {{python: ['{own}']}}\n")
    file = a_script(tmp_path, 'DESCRIPTION "Calls"\nTALK CALL("own")\n', "calls")
    assert command(capsys, "basic", "run", file, "--config", settings).status == 1
    assert command(capsys, "basic", "run", file, "--network", "--config", settings)[:2] == (0, "TALK done\n")


def test_who_tries_it_and_where_can_be_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, settings = (
        a_script(tmp_path, 'DESCRIPTION "Who"\nTALK from + " " + chat + " " + role\n'),
        a_settings_file(tmp_path),
    )
    tried = command(
        capsys, "basic", "run", file, "--as", "irc:net:ann", "--role", "member", "--chat", "irc:net:#ops",
        "--config", settings,
    )  # fmt: skip
    assert tried.out == "TALK irc:net:ann irc:net:#ops member\n"


def test_a_script_of_a_bot_finds_what_that_bot_has(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path, "bots: {shop: {parameters: {town: Bergen}}}\n")
    folder = tmp_path / "shop.gbai" / "shop.gbdialog"
    file = a_script(folder, 'DESCRIPTION "Says"\nTALK bot + " in " + town\n')
    assert command(capsys, "basic", "run", file, "--config", settings)[:2] == (0, "TALK shop in Bergen\n")


def test_what_begins_a_conversation_can_be_tried(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = a_script(tmp_path, 'TALK "Welcome"\n', "start")
    assert command(capsys, "basic", "run", file, "--config", a_settings_file(tmp_path))[:2] == (0, "TALK Welcome\n")
