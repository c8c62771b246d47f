"""docs/on-request.md: its Python code works, and its statements about chats are true."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bot.testing import a_group, call
from config.loader import check_settings
from function_calls.handlers.chat.on_request import MOST_ACTIVE
from function_calls.questions.input_questions import MOST_QUESTIONS, MOST_STATE_BYTES
from services.refs import Role
from tests.docs.documents import Block, Page

PAGE = Page("docs/on-request.md")


@pytest.fixture
def example() -> Iterator[ModuleType]:
    """All Python code of the page, as one module."""
    module = ModuleType("example")
    sys.modules["example"] = module
    for block in PAGE.of("python"):
        # Keep line numbers, so that failures show the line of the page.
        exec(compile("\n" * (block.line - 1) + block.text, PAGE.path, "exec"), module.__dict__)
    yield module
    del sys.modules["example"]


async def test_the_function_on_request_is_called_once_its_group_is_at_hand(example: ModuleType) -> None:
    async with a_group([example.sonar]) as group:
        assert await group.say("Ann", "@deep") == ["Now in use in this chat: deep."]
        group.model.says(call("sonar", place="Bergen"), "Quiet.")
        assert await group.say("Ann", "@Rollcall listen off Bergen") == ["Quiet."]


async def test_the_messages_of_the_page_do_what_it_says(example: ModuleType) -> None:
    [block] = PAGE.of("text", "On request")
    async with a_group([example.sonar]) as group:
        group.model.says("All quiet.")
        answers = [await group.say(*line.split(": ", 1)) for line in block.text.splitlines()]
    assert answers[0] == ["All quiet."]
    assert answers[1] == ["Already in use in this chat: sonar."]
    assert answers[2][0].startswith("In use in this chat:\n• sonar: Listen for whales")
    assert answers[3] == ["No longer in use in this chat: sonar."]


async def test_the_commands_of_the_page_are_commands() -> None:
    [table] = re.findall(r"^\| command \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    async with a_group() as group:
        functions = group.daemon.registry.of("default")
        for line in re.findall(r"`(/[^`]+)`", table):
            assert functions.command_line(line, bare=False) is not None, line


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: block.where)
async def test_settings_of_the_page_keep_it_to_moderators(block: Block, tmp_path: Path, example: ModuleType) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(block.text, encoding="utf-8")
    settings, problems = check_settings(path, dict(os.environ))
    assert problems == []
    assert settings is not None
    restricted = settings.model_dump(exclude_unset=True)["functions"]
    async with a_group([example.sonar], settings={"functions": restricted}) as group:
        assert "moderator" in (await group.say("Ann", "@sonar"))[0]
        assert await group.say("Bob", "@sonar", role=Role.MODERATOR) == ["Now in use in this chat: sonar."]


async def test_the_function_that_asks_goes_on_with_the_answer(example: ModuleType) -> None:
    async with a_group([example.book]) as group:
        assert await group.say("Ann", "/book Bergen") == ["There are two ways to Bergen. Which one?"]
        assert await group.say("Ann", "on foot") == ["By ferry or by train?"]
        assert await group.say("Bob", "train") == []
        assert await group.say("Ann", "train") == ["Booked: Bergen by train."]
        await group.say("Ann", "/book Oslo")
        assert await group.say("Ann", "By ferry") == ["Booked: Oslo by ferry."]
        await group.say("Ann", "/book Oslo")
        assert await group.say("Ann", "never mind") == ["Then we stay at home."]


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    assert (MOST_ACTIVE, MOST_QUESTIONS, MOST_STATE_BYTES) == (20, 50, 512_000)
    for words in ("Twenty names", "fifty times", "512,000 bytes"):
        assert words in PAGE.text
