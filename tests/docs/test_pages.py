"""Rules for all pages: names of files, settings and commands in them exist."""

from __future__ import annotations

import functools
import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, Page

PAGES = ["README.md", "README.zh.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", *sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if path.name != "requirements.md"
)]  # fmt: skip
DECISIONS = [page for page in PAGES if page.startswith("docs/decisions/")]
RUN_BY_TESTS = {
    "README.md",
    "README.zh.md",
    "CONTRIBUTING.md",
    "docs/api.md",
    "docs/basic.md",
    "docs/basic-keywords.md",
    "docs/basic-reference.md",
    "docs/command-tools.md",
    "docs/files-and-shell.md",
    "docs/functions.md",
    "docs/irc.md",
    "docs/mail.md",
    "docs/mcp-servers.md",
    "docs/mcp-server.md",
    "docs/media.md",
    "docs/knowledge.md",
    "docs/memory.md",
    "docs/modules.md",
    "docs/news-and-search.md",
    "docs/on-request.md",
    "docs/operators.md",
    "docs/platforms/mattermost.md",
    "docs/platforms/matrix.md",
    "docs/platforms/discord.md",
    "docs/platforms/feishu.md",
    "docs/platforms/onebot.md",
    "docs/platforms/satori.md",
    "docs/platforms/slack.md",
    "docs/platforms/telegram.md",
    "docs/platforms/writing-one.md",
    "docs/platforms/xmpp.md",
    "docs/postgresql.md",
    "docs/reminders.md",
    "docs/scaling.md",
    "docs/schedules.md",
    "docs/start.md",
}
NO_FILES = {
    "rules.md",
    "letter.txt",
    "notes.txt",
    "reminder.txt",
    "ruamel.yaml",
    "discord.py",
    "./own.py",
    "./file.py",
    "bot.py",
    "calendar.py",
    "config.py",
    "helpers.py",
    "services.py",
}
"""Names that are not files, or files of authors."""


_INSTALLED = {".venv", ".foreign", ".git", "node_modules", "build"}


@functools.cache
def _names() -> frozenset[str]:
    """Names of all files in the project's folders, except installed and built ones."""
    found: set[str] = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _INSTALLED]
        found.update(files if folder != str(ROOT) else ())
    return frozenset(found)


@pytest.mark.parametrize("path", PAGES)
def test_every_file_that_a_page_names_exists(path: str) -> None:
    page = Page(path)
    known = _names()
    missing = [
        name
        for name in sorted(page.files() - NO_FILES)
        if not (ROOT / name).exists() and not ("/" not in name and name in known)
    ]
    assert missing == []


@pytest.mark.parametrize("path", PAGES)
def test_every_link_of_a_page_leads_somewhere(path: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / path).read_text(encoding="utf-8"))
    here = (ROOT / path).parent
    assert [link for link in links if "://" not in link and not (here / link).exists()] == []


@pytest.mark.parametrize("path", PAGES)
def test_every_block_of_a_page_is_of_a_kind_that_is_checked(path: str) -> None:
    kinds = {block.language for block in Page(path).blocks}
    assert kinds <= {"python", "yaml", "json", "console", "text", "basic", "sql", "nginx"}
    assert kinds <= {"text"} or path in RUN_BY_TESTS


def test_a_name_of_no_file_would_be_noticed() -> None:
    page = Page("README.md")
    page.text += "\nThe rest is in `function_calls/nonsense.py`.\n"
    assert {name for name in page.files() if not (ROOT / name).exists()} >= {"function_calls/nonsense.py"}


@pytest.mark.parametrize("path", DECISIONS)
def test_a_decision_says_context_decision_and_cost(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    number = Path(path).name[:4]
    assert text.startswith(f"# {number} ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]


def test_the_index_of_decisions_lists_each_page_with_its_title() -> None:
    index = (ROOT / DECISIONS[0]).read_text(encoding="utf-8")
    titles = [
        (Path(path).name, (ROOT / path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# "))
        for path in DECISIONS[1:]
    ]
    listed = re.findall(r"^- \[(\d{4})\]\(([\w.-]+)\) (.+)$", index, re.MULTILINE)
    assert [(name, f"{number} {title}") for number, name, title in listed] == titles


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [Path(path).name[:4] for path in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [
        *project["project"]["dependencies"],
        *(one for extra in project["project"]["optional-dependencies"].values() for one in extra),
        *(one for group in project["dependency-groups"].values() for one in group),
    ]
    names = {re.split(r"[\[<>=~! ]", one)[0] for one in wanted}
    page = (ROOT / "docs/decisions/0002-dependencies.md").read_text(encoding="utf-8")
    taken = page.partition("Not taken:")[0]
    assert sorted(name for name in names if f"`{name}`" not in taken) == []
    table = set(re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE))
    assert table <= names
