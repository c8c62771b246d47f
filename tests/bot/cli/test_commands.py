"""Common behaviour of all commands: help, exit statuses, invalid settings, pipes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bot.cli.commands import COMMANDS
from tests.bot.cli.running import PYTHON, a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY

NAMES = list(COMMANDS)
ARGUMENTS = {
    "call": ["roll_dice"],
    "cluster": ["status"],
    "migrate": ["--to", "sqlite"],
    "mcp": ["list"],
    "replay": ["cases.jsonl"],
    "plan": ["new.yaml"],
}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    printed = command(capsys, name, "--help")
    assert printed.status == 0
    assert f"usage: rollcall {name}" in printed.out


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    printed = command(capsys, "--help")
    assert printed.status == 0
    assert re.findall(r"^    (\w+)(?:  |$)", printed.out, re.MULTILINE) == NAMES


def test_who_only_asks_for_help_waits_for_no_settings_no_database_and_no_functions() -> None:
    program = "import sys; from bot.__main__ import main; sys.argv[1:] = ['--help']\n"
    program += "try: main()\nfinally: print(*sys.modules)"
    command = [PYTHON, "-c", program]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=30)
    imported = set(told.stdout.splitlines()[-1].split())
    assert "bot.cli.commands" in imported
    assert imported.isdisjoint({"pydantic", "sqlalchemy", "asyncio", "structlog", "bot.cli.run", "config.settings"})


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert command(capsys, "--version").out == f"rollcall {project['version']}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["call"],
        ["call", "roll_dice", "--role", "king"],
        ["call", "roll_dice", "--as", "ann"],
        ["call", "roll_dice", "--chat", "family"],
        ["call", "roll_dice", "--json", "{"],
        ["call", "roll_dice", "--json", '[["dice", "2d6"]]'],
        ["functions", "--format", "yaml"],
        ["run", "--port", "99999"],
        ["run", "--port", "http"],
        ["stats", "--hours", "0"],
        ["stats", "--hours", "nan"],
        ["stats", "--hours", "long"],
        ["why", "--count", "-1"],
        ["replay"],
    ],
)
def test_a_command_line_that_means_nothing_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    printed = command(capsys, *arguments)
    assert (printed.status, printed.out) == (2, "")
    assert printed.err.startswith("usage: rollcall")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("init", "schema")])
def test_settings_that_cannot_be_used_are_told_with_all_their_faults_and_nothing_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    settings = a_settings_file(tmp_path, "router: {max_rounds: 0}\nplatforms: {web: {porrt: 1}}\n")
    printed = command(capsys, name, *ARGUMENTS.get(name, []), "--config", settings)
    lines = (printed.out + printed.err).splitlines()
    assert printed.status == 1
    assert [line.split()[0] for line in lines] == [f"{settings}:4:22", f"{settings}:5:19"]
    assert "max_rounds" in lines[0]
    assert "'port'" in lines[1]
    assert list(tmp_path.iterdir()) == [settings]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("init", "schema")])
def test_settings_that_are_not_there_are_said_to_be_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    printed = command(capsys, name, *ARGUMENTS.get(name, []), "--config", tmp_path / "absent.yaml")
    assert printed.status == 1
    assert "absent.yaml:1:1 settings.unreadable" in printed.out + printed.err


def test_the_environment_may_name_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLCALL_CONFIG", str(tmp_path / "named.yaml"))
    assert "named.yaml" in command(capsys, "check").out


def test_from_any_folder_the_settings_are_those_that_came_with_the_program(tmp_path: Path) -> None:
    done = in_a_process(tmp_path, "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "config/bot.yaml: no problems found\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["schema", "check"])
def test_a_reader_that_has_seen_enough_causes_no_complaint(tmp_path: Path, name: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = in_a_process(tmp_path, name, stdout=closed)
    assert (done.returncode, done.stderr) == (0, "")


SCRIPT = "import sys\n\nfrom bot.__main__ import main\n\nsys.exit(main())\n"


@pytest.mark.parametrize("path", [f"{REPOSITORY}", f":{REPOSITORY}", f".:{REPOSITORY}"], ids=["set", "empty", "dot"])
@pytest.mark.parametrize("start", [("-m", "bot"), ("rollcall",)], ids=["module", "script"])
def test_no_module_of_the_working_folder_is_imported(tmp_path: Path, start: tuple[str, ...], path: str) -> None:
    for name in ("__future__", "config", "services", "function_calls", "json", "uuid", "openai", "structlog"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('imported {name} of the working folder')\n")
    script = tmp_path / "rollcall"
    script.write_text(SCRIPT)
    functions = tmp_path / "own" / "greetings.py"
    functions.parent.mkdir()
    functions.write_text(
        "import sys\n\ndef tools():\n    return [{'name': 'path', 'handler': lambda args: sys.path}]\n"
    )
    settings = a_settings_file(tmp_path, f"sources: {{python: [{functions}]}}\n")
    arguments = ("call", "path", "--config", str(settings))
    done = in_a_process(tmp_path, *arguments, start=start, PYTHONPATH=path)
    assert done.stderr == ""
    folders = json.loads(done.stdout)["result"]
    assert str(tmp_path) not in folders
    assert "" not in folders


def test_a_folder_that_the_operator_names_stays_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "own_tools.py").write_text(
        "def tools():\n    return [{'name': 'mine', 'handler': lambda args: 'yes'}]\n"
    )
    settings = a_settings_file(tmp_path, "sources: {modules: [own_tools]}\n")
    done = in_a_process(tmp_path, "call", "mine", "--config", str(settings), PYTHONPATH=f"{tmp_path}:{REPOSITORY}")
    assert (done.returncode, done.stderr) == (0, "")


def in_a_process(
    folder: Path,
    *arguments: str,
    start: tuple[str, ...] = ("-m", "bot"),
    stdout: Any = subprocess.PIPE,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, *start, *arguments],
        cwd=folder,
        env=an_environment(**variables),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments", [["check"], ["functions"], ["call", "broken"], ["call", "calculate"]], ids=" ".join
)
def test_a_function_that_cannot_be_used_is_told_once_and_in_no_line_of_a_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    settings = a_settings_file(tmp_path, f"sources: {{python: [{broken}]}}\n")
    printed = command(capsys, *arguments, "--config", settings)
    said = printed.out + printed.err
    assert said.count(f"{broken}:1:") == (arguments[-1] != "calculate")
    assert "function_unusable" not in said
