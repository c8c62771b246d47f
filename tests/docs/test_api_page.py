"""docs/api.md contains all public names, and its Python code works."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import rollcall
from tests.docs.documents import Page
from tests.docs.test_readme import calls, says
from tests.fakes.openai_server import OpenAIServer

PAGE = Page("docs/api.md")


@pytest.fixture
def example() -> Iterator[ModuleType]:
    """All Python code of the page, as one module."""
    module = ModuleType("api_example")
    sys.modules["api_example"] = module
    for block in PAGE.of("python"):
        # Keep line numbers, so that failures show the line of the page.
        exec(compile("\n" * (block.line - 1) + block.text, PAGE.path, "exec"), module.__dict__)
    yield module
    del sys.modules["api_example"]


def test_every_public_name_is_on_the_page_with_a_sentence() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([A-Z].*\.) \|$", PAGE.text, re.MULTILINE))
    assert sorted(rows) == sorted(rollcall.__all__)


async def test_the_router_of_the_page_answers_with_a_model(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with OpenAIServer([calls("weather", '{"city": "Oslo"}'), says("Sunny.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        await example.main()
        assert len(server.requests) == 2
        assert "sunny in Oslo, you" in str(server.requests[1].json["messages"])
    assert capsys.readouterr().out == "Sunny.\n"


@pytest.mark.requirement("E36")
async def test_the_direct_runs_of_the_page_work(example: ModuleType) -> None:
    await example.run_directly()
    assert example.add(rollcall.a_message(), example.Sum(numbers=[1, 2])) == 3
