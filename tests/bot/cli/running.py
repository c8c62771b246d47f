"""Runs commands of the command line, in this process or in a separate one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog

from bot.__main__ import main
from tests.conftest import REPOSITORY

PYTHON = sys.executable


class Printed(NamedTuple):
    """Exit code and output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output parsed as JSON."""
        return json.loads(self.out)


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> Printed:
    """Run `rollcall` with `arguments` in this process."""
    capsys.readouterr()
    logs_before = structlog.get_config()
    try:
        status = main([str(one) for one in arguments])
    except SystemExit as ended:
        status = int(ended.code or 0)
    finally:
        structlog.configure(**logs_before)
    out, err = capsys.readouterr()
    return Printed(status, out, err)


def a_settings_file(folder: Path, text: str = "") -> Path:
    """Settings with their state and logs below `folder`, followed by `text`. Written atomically, because a daemon may
    be watching the file."""
    path, written = folder / "bot.yaml", folder / ".bot.yaml.new"
    written.write_text(
        f"config_version: 1\nhome: {folder / 'var'}\nlogging: {{folder: {folder / 'logs'}, level: info}}\n{text}",
        encoding="utf-8",
    )
    return written.replace(path)


def an_environment(**changes: str) -> Mapping[str, str]:
    """Environment for a separate process, without the models and settings of the user who runs the tests."""
    theirs = ("OPENAI_", "ROLLCALL_", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "error", **changes}


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the user's API keys and settings from the environment."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ROLLCALL_")) and name != "ROLLCALL_DATA":
            monkeypatch.delenv(name)
