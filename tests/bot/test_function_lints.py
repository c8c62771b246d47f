"""Hints of `rollcall check` for working functions, with the author's file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.checks.functions_check import Code, check_functions, lints
from config.diagnostics import Diagnostic
from config.settings import Settings
from config.yaml_document import read_yaml
from function_calls.registry import BotFunctions
from function_calls.schema.mappings import new_spec

HEAD = """\
from pydantic import BaseModel, Field
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

class Arguments(BaseModel):
    {parameter}

@tool_function({options})
async def water_plants(context: MessageContext, args: Arguments) -> str:
    return {value}
"""
GOOD = {"description": "Water the plants in the office", "examples": ("water the {plant} in the office",)}
LINE_OF_FUNCTION = 8


async def found(
    folder: Path,
    *,
    parameter: str = 'plant: str = Field(description="Which of the plants")',
    value: str = "''",
    **options: Any,
) -> list[Diagnostic]:
    """Diagnostics of one function, which is valid except for the changes by the test."""
    merged = {key: value for key, value in {**GOOD, **options}.items() if value is not None}
    (folder / "own.py").write_text(
        HEAD.format(
            parameter=parameter, value=value, options=", ".join(f"{key}={value!r}" for key, value in merged.items())
        )
    )
    return await check_functions(Settings.model_validate({"sources": {"python": [str(folder / "own.py")]}}))


async def test_a_function_that_says_everything_is_good(tmp_path: Path) -> None:
    assert await found(tmp_path) == []
    said = {"effect": "once", "tags": "garden", "timeout_seconds": 30, "touches": "sends_out"}
    assert await found(tmp_path, **said) == []


@pytest.mark.requirement("B27", "D46", "E47", "E48", "E49", "E51")
@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"description": None}, Code.NO_DESCRIPTION, "no description"),
        ({"description": "Waters"}, Code.THIN_DESCRIPTION, "'Waters'"),
        ({"description": "浇水"}, Code.THIN_DESCRIPTION, "'浇水'"),
        ({"description": "Water the plants"}, Code.THIN_DESCRIPTION, "hardly says more than the name"),
        ({"parameter": "plant: str"}, Code.UNDESCRIBED_PARAMETER, "'plant'"),
        ({"parameter": "plant: str = Field(description='The plant')"}, Code.THIN_DESCRIPTION, "'plant'"),
        (
            {"parameter": "p: str = Field(description='Which plant')", "examples": ("water {p}, please",)},
            Code.UNCLEAR_PARAMETER,
            "'p'",
        ),
        (
            {"parameter": "raw_text: str = Field(description='All')", "examples": ("see to {raw_text} in the office",)},
            Code.RAW_TEXT,
            "raw_text",
        ),
        ({"value": "context.text"}, Code.READS_TEXT, "reads the text"),
        ({"examples": None}, Code.NO_EXAMPLES, "examples"),
        ({"effect": "idempotent"}, Code.NO_TAGS, "tags"),
        ({"effect": "once", "tags": "garden"}, Code.NO_TIMEOUT, "30 seconds"),
        ({"touches": "sends_out"}, Code.NO_TIMEOUT, "timeout_seconds"),
        ({"name": "water.plants"}, Code.REFUSED_NAME, "'water_plants'"),
        ({"name": "浇水"}, Code.REFUSED_NAME, "it is offered to models as '"),
        (
            {
                "parameter": "植物: str = Field(description='Which of them')",
                "examples": ("water the {植物} in the office",),
            },
            Code.REFUSED_NAME,
            "'植物'",
        ),
    ],
)
async def test_what_would_leave_somebody_guessing_is_a_warning_at_its_line(
    tmp_path: Path, changes: dict[str, Any], code: Code, words: str
) -> None:
    [finding] = await found(tmp_path, **changes)
    line = LINE_OF_FUNCTION + 2 if code is Code.READS_TEXT else LINE_OF_FUNCTION
    assert (finding.code, finding.severity) == (code, "warning")
    assert (finding.file, finding.line) == (str(tmp_path / "own.py"), line)
    assert words in finding.message


@pytest.mark.parametrize(
    "options",
    [{"offered_to": ["command"], "commands": ("water",)}, {"activation": "on_request"}],
    ids=["commands only", "on request"],
)
async def test_only_a_function_that_is_offered_by_itself_needs_examples(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    assert await found(tmp_path, examples=None, **options) == []


def test_functions_of_other_programs_are_left_alone() -> None:
    foreign = new_spec("mcp.act", print, "", parameters={"x": {"type": "string"}}, effect="once")
    assert lints([foreign], {"default": BotFunctions([foreign])}) == []


async def test_a_fault_about_functions_in_the_settings_is_told_at_its_place() -> None:
    text = "functions:\n  wether: {enabled: false}\nrouter:\n  pinned: [help, wether]\n"
    document = read_yaml(text, "mine.yaml")
    settings = Settings.model_validate(
        {"functions": {"wether": {"enabled": False}}, "router": {"pinned": ["help", "wether"]}}
    )
    findings = await check_functions(settings, document)
    assert [(one.file, one.line, one.column, one.code) for one in findings] == [
        ("mine.yaml", 2, 3, Code.UNKNOWN),
        ("mine.yaml", 4, 18, Code.UNKNOWN),
    ]
