"""docs/basic-keywords.md: its keywords and scripts work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bot.registration.basic_scripts import own_keyword_modules
from bot.testing import a_group
from function_calls.schema.definition import DefinitionError
from tests.docs.documents import Page

PAGE = Page("docs/basic-keywords.md")
_FILE = re.compile(r"# ~/my-bot/(\S+)\n")


def written(folder: Path) -> dict[str, Any]:
    """Settings with the keywords and scripts of the page, which are written into `folder`."""
    keywords: list[str] = []
    for block in PAGE.of("python"):
        named = _FILE.match(block.text)
        assert named is not None, block.where
        file = folder / named[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        keywords.append(str(file))
    scripts = folder / "scripts"
    scripts.mkdir()
    for name, block in zip(("handover", "rating"), PAGE.of("basic"), strict=True):
        (scripts / f"{name}.bas").write_text(block.text, encoding="utf-8")
    return {"sources": {"basic": [str(scripts)], "basic_keywords": keywords}}


async def test_the_keywords_of_the_page_serve_its_scripts(tmp_path: Path) -> None:
    async with a_group(settings=written(tmp_path)) as group:
        assert [str(one) for one in group.daemon.functions.faults] == []
        command, *said = PAGE.of("text")[0].text.splitlines()
        heard = await group.say("Ann", command)
        assert heard == [line.removeprefix("→ ") for line in said]
        assert await group.say("Ann", "/rating") == ["How many stars?"]
        assert await group.say("Ann", "4") == ["Thank you for 4 stars."]


def test_a_keyword_that_cannot_be_used_is_named_with_its_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_the_kind\n")
    with pytest.raises(DefinitionError, match=r"sources\.basic_keywords\[0\].*broken\.py:1"):
        own_keyword_modules([str(broken)])
    with pytest.raises(DefinitionError, match="there is no Python file"):
        own_keyword_modules([str(tmp_path / "none.py")])
    with pytest.raises(DefinitionError, match="cannot be imported"):
        own_keyword_modules(["no_such_module_of_keywords"])


def test_a_folder_and_an_installed_module_may_be_named(tmp_path: Path) -> None:
    written(tmp_path)
    found = own_keyword_modules([str(tmp_path / "more"), "function_calls.basic.keyword_modules.talk"])
    assert [module.__name__.rpartition(".")[2] for module in found] == ["ratings", "talk"]
