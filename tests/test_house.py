"""The house as it was agreed: its folders, its doors, and what must not come back."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_top_level_folders_stand_beside_the_project_file() -> None:
    assert (ROOT / "pyproject.toml").is_file()
    for folder in ("bot", "function_calls", "services", "config", "tests", "logs"):
        assert (ROOT / folder).is_dir(), folder


@pytest.mark.requirement("D17")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("function_calls.spec", "FunctionSpec"),
        ("function_calls.spec", "FunctionResult"),
        ("function_calls.context", "MessageContext"),
        ("function_calls.registry", "FunctionRegistry"),
        ("function_calls.llm", "FunctionCallLLM"),
        ("function_calls.router", "FunctionCallRouter"),
    ],
)
def test_what_others_build_on_is_where_it_was_agreed(module: str, name: str) -> None:
    assert isinstance(getattr(importlib.import_module(module), name), type)


@pytest.mark.requirement("D39")
def test_there_is_one_road_to_a_function_and_no_folder_of_commands_beside_it() -> None:
    python = [path for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    assert not [path for path in python if path.parent.name == "commands"]
    assert not (ROOT / "commands").exists()
