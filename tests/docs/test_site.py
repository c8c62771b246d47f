"""The documentation site: its navigation has every page, and its links lead to pages of the site."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.docs.documents import ROOT
from tests.harness.foreign import python_of

CONFIGURATION = ROOT / "zensical.toml"
DOCS = ROOT / "docs"
MOST_IMAGE_BYTES = 250_000
PROJECT = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]


def named(entries: list[Any]) -> Iterator[str]:
    """The pages in a part of the navigation."""
    for entry in entries:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(target, list):
            yield from named(target)
        else:
            yield target


def build(folder: Path) -> tuple[Path, int, str]:
    """The site built as by deploy/docs-site in `folder`, which has the documentation; exit status and output."""
    shutil.copy(CONFIGURATION, folder)
    program = python_of("zensical").with_name("zensical")
    command = [program, "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return folder / PROJECT["site_dir"], done.returncode, done.stdout + done.stderr


def test_the_navigation_has_every_page_once() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/") and "/0001-" not in page}
    assert sorted(named(PROJECT["nav"])) == sorted(pages - decisions - set(PROJECT["plugins"]["exclude"]["glob"]))


def test_pictures_of_pages_are_small() -> None:
    assert [path.name for path in (DOCS / "images").glob("*.png") if path.stat().st_size > MOST_IMAGE_BYTES] == []


def test_the_script_builds_strictly() -> None:
    script = (ROOT / "deploy" / "docs-site").read_text(encoding="utf-8")
    assert script.endswith("build --clean --strict\n")


def test_every_link_of_the_site_leads_to_a_file_of_the_site(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    site, status, output = build(tmp_path)
    assert status == 0, output
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    anchors = {page: {unquote(name) for name in re.findall(r' id="([^"]*)"', text)} for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            path, _, anchor = unquote(link).partition("#")
            if not re.match(r"[a-z]+:|//", path):
                target = (page.parent / path.partition("?")[0]).resolve() if path else page
                is_there = target.exists() and site in (target, *target.parents)
                if not is_there or (anchor and target in anchors and anchor not in anchors[target]):
                    broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []
    assert "Each of" in (site / "start.html").read_text(encoding="utf-8")


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n[nothing](nothing.md)\n")
    _, status, output = build(tmp_path)
    assert status != 0
    assert "page does not exist" in output
