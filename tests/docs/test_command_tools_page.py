"""docs/command-tools.md: its tools are valid, its Python code runs, and conversations are as shown."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.testing import Group, a_group
from config.sections.command_tools import StepSettings, ToolOptions
from function_calls.command_tools.outcomes import WORDS
from tests.config.files import settings_of
from tests.docs.documents import ROOT, Page

PAGE = Page("docs/command-tools.md")
TALKS = [block.text for block in PAGE.of("text") if block.text.startswith("Ann: ")]


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[Group]:
    """A group with all tools of the page."""
    for block in PAGE.of("yaml"):
        (tmp_path / f"{block.line:04}.yaml").write_text(block.text, encoding="utf-8")
    python = "\n\n".join(block.text for block in PAGE.of("python"))
    (tmp_path / "own.py").write_text(f"from __future__ import annotations\n{python}", encoding="utf-8")
    async with a_group(settings={"sources": {"commands": [str(tmp_path)]}}) as made:
        assert made.daemon.functions.faults == ()
        yield made


def exchanges(text: str) -> Iterator[tuple[str, str]]:
    """Ann's messages and the bot's answers in a conversation."""
    for said, answer in re.findall(r"^Ann: (.*)\nRollcall: ((?:(?!Ann: ).*\n)+)", text, re.MULTILINE):
        yield said, answer.rstrip("\n")


@pytest.mark.parametrize("talk", TALKS)
async def test_the_bot_says_what_the_page_shows(group: Group, talk: str) -> None:
    shown = list(exchanges(talk))
    assert shown
    for said, answer in shown:
        assert await group.say("Ann", said) == [answer], said


async def test_the_settings_of_the_page_are_good(tmp_path: Path) -> None:
    [block] = PAGE.of("text", "A first tool")[:1]
    assert block.text.startswith("sources:")
    assert settings_of(tmp_path, block.text).sources.commands == (Path.home() / "my-bot" / "commands",)


async def test_the_group_of_the_page_has_functions_of_the_page(group: Group) -> None:
    [texts] = group.daemon.registry.groups
    known = group.daemon.registry.of("default")
    assert [name for name in texts.functions if known.find(name) is None] == []


def column(head: str) -> set[str]:
    """Names in the first column of the table with that header."""
    [table] = re.findall(rf"^\| {head} \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:])))


def test_the_tables_leave_nothing_out() -> None:
    assert column("key") == set(StepSettings.model_fields)
    assert column("option of `opts`") == set(ToolOptions.model_fields)
    [section] = re.findall(r"^## Output\n(.*?)^## ", PAGE.text, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"\$\{(\w+)\}", section)) == WORDS


async def test_the_shipped_tools_are_good_and_wait_to_be_taken_to_hand() -> None:
    async with a_group(settings={"sources": {"commands": [str(ROOT / "config/commands")]}}) as group:
        assert group.daemon.functions.faults == ()
        known = group.daemon.registry.of("default")
        specs = [spec for spec in known.specs if spec.origin.source.rpartition(":")[0].endswith(".yaml")]
        assert {spec.prompt.activation for spec in specs} == {"on_request"}
        [machine] = known.groups.values()
        assert set(machine.functions) == {spec.name for spec in specs}
