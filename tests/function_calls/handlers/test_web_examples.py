"""Functions that read the web or the chat history: example messages, and results for a model."""

from __future__ import annotations

import pytest

from bot.testing import a_group
from function_calls.encodings import openai_tool
from function_calls.spec import TAINTING
from services.refs import Effect

NAMES = ("news", "search", "summary", "clear_messages", "read", "define", "translate", "research")


@pytest.mark.parametrize("name", NAMES)
async def test_each_can_be_asked_for_in_both_languages_by_words_and_by_command(name: str) -> None:
    async with a_group() as group:
        spec = next(one for one in group.daemon.registry.specs if one.name == name)
    chinese = [example for example in spec.prompt.examples if any("\u4e00" <= sign <= "\u9fff" for sign in example)]
    assert len(spec.prompt.examples) - len(chinese) >= 5
    assert len(chinese) >= 2
    assert any(word.isascii() for word in spec.command.words)
    assert any(not word.isascii() for word in spec.command.words)


async def test_what_gives_words_of_others_says_so_and_changes_nothing() -> None:
    async with a_group() as group:
        specs = {spec.name: spec for spec in group.daemon.registry.specs}
    for name in ("news", "search", "summary", "read", "define", "translate", "research"):
        assert specs[name].execution.effect is Effect.READ
        assert not specs[name].execution.touches.isdisjoint(TAINTING)


async def test_a_model_is_told_of_them_in_few_bytes() -> None:
    async with a_group() as group:
        specs = {spec.name: spec for spec in group.daemon.registry.specs}
    sizes = {name: len(str(openai_tool(specs[name]))) for name in NAMES}
    assert sizes["summary"] <= 1000
    assert sizes["translate"] <= 500
    assert max(size for name, size in sizes.items() if name not in ("summary", "translate")) <= 400
