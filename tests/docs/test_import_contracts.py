"""The import contracts of pyproject.toml hold, each can fail, and none has forgotten a module."""

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
    "bot -> function_calls -> services -> config, never back": ("services/dice.py", "function_calls.spec"),
    "openai, sqlalchemy and their like are imported in services alone": ("bot/turns.py", "psycopg"),
    "a handler knows no other handler": ("function_calls/handlers/dice.py", "function_calls.handlers.help"),
    "a module of tools knows no other module of tools": (
        "function_calls/tool_modules/file.py",
        "function_calls.tool_modules.shell",
    ),
    "a source of functions knows no other source": (
        "function_calls/sources/mappings.py",
        "function_calls.sources.python_functions",
    ),
    "the console knows no other platform": ("bot/platforms/console.py", "bot.platforms.http_wire"),
    "the HTTP platform knows no other platform": ("bot/platforms/http_feed.py", "bot.platforms.console"),
    "the IRC platform knows no other platform": ("bot/platforms/irc_wire.py", "bot.platforms.console"),
    "a model protocol knows no other protocol": ("services/llm/offline.py", "services.llm.openai_chat"),
    "no cycles": ("services/llm/model.py", "services.llm.encoding"),
}
SHARED_BY_PLATFORMS = {"base", "mentions", "__init__"}


def lint(folder: Path) -> tuple[int, str]:
    """The exit status and the words of import-linter in `folder`."""
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
    """The code of the project, to be spoiled."""
    for package in ("bot", "function_calls", "services", "config"):
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


def test_no_platform_is_forgotten() -> None:
    modules = {file.stem for file in (ROOT / "bot/platforms").glob("*.py")} - SHARED_BY_PLATFORMS
    about = [one for one in CONTRACTS if "platform" in one["name"]]
    named = {module.rpartition(".")[2] for one in about for module in one["source_modules"]}
    assert named == modules
