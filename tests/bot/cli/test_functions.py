"""`rollcall functions`, in every format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "cli"
FORMATS = ["table", "openai", "openai-bare", "anthropic", "mcp", "markdown"]


@pytest.fixture
def parcels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings with an operator's own functions."""
    # Paths of functions are printed relative to the current folder.
    monkeypatch.chdir(GOLDEN)
    return a_settings_file(tmp_path, f"sources: {{python: [{GOLDEN / 'parcels.py'}]}}\n")


@pytest.mark.requirement("A27", "A28", "B1", "D15", "E40", "E41")
@pytest.mark.parametrize("style", FORMATS)
def test_a_function_is_shown_in_every_spelling(capsys: pytest.CaptureFixture[str], parcels: Path, style: str) -> None:
    printed = command(capsys, "functions", "parcel_quote", "--format", style, "--config", parcels)
    golden = GOLDEN / f"functions.{style}"
    assert (printed.status, printed.err) == (0, "")
    assert printed.out == golden.read_text(encoding="utf-8")


@pytest.mark.requirement("D15")
def test_the_inventory_has_every_function_with_its_callers_place_services_and_manner_of_running(
    capsys: pytest.CaptureFixture[str], parcels: Path
) -> None:
    printed = command(capsys, "functions", "--format", "markdown", "--config", parcels).out
    sections = {text.partition("\n")[0]: text for text in printed.removeprefix("## ").split("\n## ")}
    names = {line.split()[0] for line in command(capsys, "functions", "--config", parcels).out.splitlines()[1:]}
    assert sections.keys() == names
    assert [
        name for name, text in sections.items() if not re.search(r"^- effect: \w+; where: \w+; who: ", text, re.M)
    ] == []
    assert "- called by: model, command, timer, mcp, api\n- runs: async; needs: OpenMeteo" in sections["weather"]
    assert "- called by: timer\n" in sections["remind"]
    assert "effect: once; where: both; who: everybody" in sections["parcel_send"]
    assert "- runs: thread; needs: nothing" in sections["parcel_send"]


@pytest.mark.requirement("D3")
def test_the_abilities_of_the_group_bot_that_came_before_are_registered_functions(
    capsys: pytest.CaptureFixture[str], parcels: Path
) -> None:
    names = {line.split()[0] for line in command(capsys, "functions", "--config", parcels).out.splitlines()[1:]}
    assert names >= {
        "weather", "news", "search", "reminder_create", "reminder_list", "reminder_delete", "help", "summary",
        "clear_messages",
    }  # fmt: skip


def test_without_a_name_all_functions_are_listed(capsys: pytest.CaptureFixture[str], parcels: Path) -> None:
    printed = command(capsys, "functions", "--config", parcels)
    names = [line.split()[0] for line in printed.out.splitlines()[1:]]
    assert {"calculate", "help", "parcel_quote", "parcel_send"} <= set(names)
    told = command(capsys, "functions", "--format", "openai", "--config", parcels).json
    assert [one["function"]["name"] for one in told] == names


def test_a_bot_has_its_own_functions(capsys: pytest.CaptureFixture[str], parcels: Path) -> None:
    assert command(capsys, "functions", "--bot", "default", "--config", parcels).status == 0
    unknown = command(capsys, "functions", "--bot", "nobody", "--config", parcels)
    assert (unknown.status, unknown.out) == (1, "")
    assert "'nobody'" in unknown.err
    assert "default" in unknown.err


def test_an_unknown_function_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str], parcels: Path) -> None:
    printed = command(capsys, "functions", "parcel_quota", "--config", parcels)
    assert (printed.status, printed.out) == (1, "")
    assert "'parcel_quota'" in printed.err


def test_functions_that_cannot_be_used_are_told_with_their_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    printed = command(capsys, "functions", "--config", a_settings_file(tmp_path, f"sources: {{python: [{broken}]}}\n"))
    assert printed.status == 1
    assert str(broken) in printed.err
