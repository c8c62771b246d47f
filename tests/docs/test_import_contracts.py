"""The import contracts of pyproject.toml pass, each can fail, and they cover all modules."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"
PLANTED = {
    "rollcall -> bot -> function_calls -> services -> config, never back": (
        "services/calc/dice.py",
        "function_calls.spec",
    ),
    "openai, sqlalchemy and their like are imported in services alone": ("bot/turns/turns.py", "psycopg"),
    "a handler knows no other handler": ("function_calls/handlers/small/dice.py", "function_calls.handlers.chat.help"),
    "a module of tools knows no other module of tools": (
        "function_calls/tool_modules/file.py",
        "function_calls.tool_modules.shell",
    ),
    "a source of functions knows no other source": (
        "function_calls/sources/yaml_commands.py",
        "function_calls.sources.mcp_servers",
    ),
    "a platform knows no other platform": ("bot/platforms/http/wire.py", "bot.platforms.irc.wire"),
    "a model protocol knows no other protocol": (
        "services/llm/protocols/own_provider.py",
        "services.llm.protocols.openai_chat",
    ),
    "BASIC is imported through its package": ("bot/turns/turns.py", "function_calls.basic.machine.machine"),
    "no cycles": ("services/llm/model.py", "services.llm.resilient"),
}


def lint(folder: Path) -> tuple[int, str]:
    """Exit status and output of import-linter in `folder`."""
    finished = subprocess.run(
        [sys.executable, "-c", LINT, "--no-logo", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return finished.returncode, finished.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project's code, to be changed."""
    for package in ("rollcall", "bot", "function_calls", "services", "config"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_kept() -> None:
    status, words = lint(ROOT)
    assert status == 0, words
    assert f"{len(CONTRACTS)} kept, 0 broken" in words


def test_every_contract_notices_an_import_that_it_forbids(copy: Path) -> None:
    for file, module in PLANTED.values():
        with (copy / file).open("a", encoding="utf-8") as source:
            source.write(f"\nimport {module}\n")
    status, words = lint(copy)
    broken = re.findall(r"^(.+?) BROKEN", words, re.MULTILINE)
    assert status == 1
    assert sorted(broken) == sorted(PLANTED)


def test_every_contract_has_such_an_import() -> None:
    assert sorted(contract["name"] for contract in CONTRACTS) == sorted(PLANTED)


def test_a_new_platform_is_covered_without_a_line_of_configuration(copy: Path) -> None:
    (copy / "bot/platforms/matrix.py").write_text("import bot.platforms.irc.wire\n", encoding="utf-8")
    status, words = lint(copy)
    assert status == 1
    assert re.findall(r"^(.+?) BROKEN", words, re.MULTILINE) == ["a platform knows no other platform"]
