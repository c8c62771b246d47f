"""Python programs of others, each in an environment of its own: see tests/foreign/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def python_of(name: str) -> Path:
    """The interpreter of the environment `name`. Skips the test if it is not installed as locked."""
    folder = _ROOT / ".foreign" / name
    lock, installed = _ROOT / "tests" / "foreign" / f"{name}.txt", folder / "installed.txt"
    if not installed.exists() or installed.read_bytes() != lock.read_bytes():
        pytest.skip(f"the environment {name} is not installed: run tests/foreign/install {name}")
    return folder / "bin" / "python"
