"""Diagnostics of `rollcall check` for functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.checks.functions_check import Code, check_functions, text_reads
from config.diagnostics import Diagnostic
from config.settings import Settings
from config.yaml_document import read_yaml

HEAD = """\
from pydantic import BaseModel, Field
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
"""


async def found(folder: Path, source: str = "", **settings: Any) -> list[Diagnostic]:
    """Diagnostics for the built-in functions and those in `source`."""
    (folder / "own.py").write_text(HEAD + source)
    sources = {"python": [str(folder / "own.py")] if source else []}
    return await check_functions(Settings.model_validate({"sources": sources, **settings}))


async def test_the_built_in_functions_give_no_reason_for_complaint(tmp_path: Path) -> None:
    assert await found(tmp_path) == []


async def test_a_function_without_words_for_the_model_is_doubtful(tmp_path: Path) -> None:
    source = """
class Arguments(BaseModel):
    raw_text: str

@tool_function()
async def own(context: MessageContext, args: Arguments) -> str:
    return ""
"""
    findings = await found(tmp_path, source)
    assert [one.code for one in findings] == [Code.NO_DESCRIPTION, Code.UNDESCRIBED_PARAMETER, Code.RAW_TEXT]
    assert {(one.file, one.line, one.severity) for one in findings} == {(str(tmp_path / "own.py"), 8, "warning")}


@pytest.mark.parametrize(
    "settings",
    [
        {"functions": {"wether": {"enabled": True}}},
        {"bots": {"default": {"functions": {"wether": {"enabled": True}}}}},
        {"chats": {"settings": {"web:*": {"functions": {"wether": {"enabled": True}}}}}},
        {"approvals": {"required": [{"functions": ["wether"]}]}},
        {"router": {"pinned": ["wether", "help"]}},
        {"budgets": {"functions": {"wether": 1, "help": 1}}},
        {"functions": {"wether": {}}, "bots": {"default": {"functions": {"wether": {}}}}},
    ],
)
async def test_settings_for_a_function_that_there_is_not_are_doubtful_in_every_place(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    findings = await found(tmp_path, **settings)
    assert [one.code for one in findings] == [Code.UNKNOWN] * len(settings)
    places = [one.message.split(":")[0] for one in findings]
    assert all(place.split(".")[0] == key for place, key in zip(places, settings, strict=True))


async def test_a_rule_for_approvals_by_a_tag_that_nothing_has_is_an_error(tmp_path: Path) -> None:
    rules = [{"tags": ["todo"]}, {"tags": ["todos"]}]
    [finding] = await found(tmp_path, approvals={"required": rules})
    assert (finding.code, finding.severity) == (Code.UNKNOWN, "error")
    assert finding.message == "approvals.required[1].tags: no function has the tag 'todos'"


async def test_an_example_that_leads_to_another_function_is_contested(tmp_path: Path) -> None:
    source = """
@tool_function(description="Heads or tails", examples=("flip a coin",))
async def own(context: MessageContext) -> str:
    return ""
"""
    findings = await found(tmp_path, source)
    assert {one.code for one in findings} == {Code.CONTESTED_EXAMPLE}
    assert any("'own'" in one.message and "'flip_coin'" in one.message for one in findings)


async def test_everything_that_is_wrong_with_a_definition_is_an_error(tmp_path: Path) -> None:
    source = """
@tool_function(name="has spaces", effect="sometimes", scope="moon")
async def own(context: MessageContext) -> str:
    return ""
"""
    findings = await found(tmp_path, source)
    assert len(findings) == 3
    assert {(one.code, one.severity, one.file) for one in findings} == {
        ("functions.unusable", "error", str(tmp_path / "own.py"))
    }


def test_only_the_text_of_the_message_counts_as_read() -> None:
    source = """
async def one(context: MessageContext, args: A) -> str:
    return context.text + args.text + context.sender.name

async def two(message: MessageContext) -> str:
    quoted = message.reply_to.text
    def inner() -> str:
        return message.text
    return inner()

def three(context: Other) -> str:
    return context.text
"""
    assert text_reads(source) == [3, 8]


async def test_programs_that_this_machine_does_not_have_are_doubtful_at_their_places(tmp_path: Path) -> None:
    tools = tmp_path / "tools.yaml"
    tools.write_text(
        "tools:\n"
        "  - name: own\n"
        "    description: Run something that is not there.\n"
        "    parameters: {word: {type: string, description: The program}}\n"
        "    tags: [own]\n"
        "    examples: [grumble loudly at the moon]\n"
        "    commands: [own]\n"
        "    cmds: [[no_such_program_x], [python3, -V]]\n"
    )
    servers = [{"name": "tiny", "command": ["no_such_server_x"]}, {"name": "there", "command": ["python3"]}]
    text = f"sources: {{commands: [{tools}]}}\nmcp:\n  servers:\n    - name: tiny\n      command: [no_such_server_x]\n"
    document = read_yaml(text, "bot.yaml")
    settings = Settings.model_validate({"sources": {"commands": [str(tools)]}, "mcp": {"servers": servers}})
    found = [one for one in await check_functions(settings, document) if one.code == Code.NO_PROGRAM]
    assert [(one.file, one.line, one.severity) for one in found] == [
        (str(tools), 2, "warning"),
        ("bot.yaml", 5, "warning"),
    ]
    assert "'own': there is no program no_such_program_x" in found[0].message
    assert "mcp.servers[0].command: there is no program no_such_server_x" in found[1].message


async def test_the_plugins_that_come_with_it_give_no_reason_for_complaint_either(tmp_path: Path) -> None:
    assert await found(tmp_path, plugins=["file", "shell", "human"]) == []
