"""The examples in CONTRIBUTING.md work."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from function_calls.loading.python_functions import specs_of
from services.calc.dice import Dice
from tests.fakes.builders import a_call, a_message

GUIDE = Path(__file__).parent.parent / "CONTRIBUTING.md"


@pytest.fixture
def example() -> ModuleType:
    """All Python code of the guide, as one module."""
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    module = ModuleType("example")
    exec(compile("\n".join(blocks), str(GUIDE), "exec"), module.__dict__)
    return module


@pytest.mark.requirement("D8", "D42")
async def test_the_guides_function_is_loaded_and_runs(example: ModuleType) -> None:
    [spec] = specs_of(example, {Dice: Dice(Random(7))})
    assert (spec.name, spec.description, spec.command.words) == ("roll", "Roll a die.", ("roll",))
    result = await spec.handler(a_message(), spec.arguments.parse({"sides": 2}), a_call())
    assert result.reply in ("1", "2")


async def test_the_guides_test_passes(example: ModuleType) -> None:
    await example.test_a_die_shows_one_of_its_sides()


def test_the_guide_is_short() -> None:
    assert len(GUIDE.read_text(encoding="utf-8").split()) <= 1000
