"""Commands as a person starts them: in this process where that is enough, in one of their own where it matters."""

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
    """How a command ended and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stands on standard output, as JSON."""
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
    """Settings whose state and logs are below `folder`, with `text` after them. Written at one stroke, as editors do: a
    daemon may be watching."""
    path, written = folder / "bot.yaml", folder / ".bot.yaml.new"
    written.write_text(
        f"config_version: 1\nhome: {folder / 'var'}\nlogging: {{folder: {folder / 'logs'}, level: info}}\n{text}",
        encoding="utf-8",
    )
    return written.replace(path)


def an_environment(**changes: str) -> Mapping[str, str]:
    """The environment of a process of its own, without any model or settings of whoever runs the tests."""
    theirs = ("OPENAI_", "ROLLCALL_", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "error", **changes}


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's key or settings reach a command of a test."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ROLLCALL_")) and name != "ROLLCALL_DATA":
            monkeypatch.delenv(name)
