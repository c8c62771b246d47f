"""Checks that every set of functions passes; each check can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.check import self_check
from config.sections.models import ModelSettings
from config.settings import Settings
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model

HEAD = """\
from pydantic import BaseModel, Field
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

class Arguments(BaseModel):
    count: int = Field(description="How many"{schema})
    {more}

@tool_function(name="{name}", description="Does something")
async def handler(context: MessageContext, args: Arguments) -> str:
    return {value}
"""


def a_function(folder: Path, name: str = "own", schema: str = "", more: str = "", value: str = "''") -> Path:
    """A file with one function, valid unless the test changes it."""
    path = folder / "own.py"
    path.write_text(HEAD.format(name=name, schema=schema, more=more, value=value))
    return path


@pytest.mark.requirement("D68")
def test_the_bots_own_functions_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    function = a_function(tmp_path)
    printed = command(
        capsys, "selfcheck", "--config", a_settings_file(tmp_path, f"sources: {{python: [{function}]}}\n")
    )
    assert (printed.status, printed.err) == (0, "")
    assert [line.split()[0] for line in printed.out.splitlines()] == ["ok"] * 4


@pytest.mark.requirement("D68", "D13", "D46")
@pytest.mark.parametrize(
    ("changes", "check", "line"),
    [
        ({"name": "calculate"}, 0, 9),
        ({"schema": ', json_schema_extra={"minimum": "low"}'}, 1, 9),
        ({"value": "context.text"}, 2, 11),
        ({"more": "raw_text: str = Field(description='All')"}, 2, 9),
    ],
    ids=["taken name", "bad schema", "reads text", "raw text"],
)
def test_a_function_that_breaks_a_promise_is_found_at_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, str], check: int, line: int
) -> None:
    function = a_function(tmp_path, **changes)
    printed = command(
        capsys, "selfcheck", "--config", a_settings_file(tmp_path, f"sources: {{python: [{function}]}}\n")
    )
    verdicts = [text for text in printed.out.splitlines() if not text.startswith("  ")]
    (found,) = [text.strip() for text in printed.out.splitlines() if text.startswith("  ")]
    assert printed.status == 1
    assert [text.split()[0] for text in verdicts] == ["ERROR" if at == check else "ok" for at in range(4)]
    assert found.startswith(f"{function}:{line}:1 functions.")


async def test_models_without_function_calling_are_found() -> None:
    without = ModelSettings.model_construct(name="m", model="m", protocol="prose")
    found = await self_check(Settings().model_copy(update={"models": (without,)}))
    assert [len(one) for one in found.values()] == [0, 0, 0, 1]


@pytest.mark.requirement("D68")
def test_models_without_function_calling_are_found_at_their_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = a_settings_file(tmp_path, "models:\n  - {name: small, model: small-1, protocol: json_text}\n")
    printed = command(capsys, "selfcheck", "--config", settings)
    assert printed.status == 1
    [found] = [line.strip() for line in printed.out.splitlines() if line.startswith("  ")]
    assert found.startswith(f"{settings}:4:1 models.no_native_protocol ")
