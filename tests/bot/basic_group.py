"""A group whose bot has BASIC scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.testing import Group, a_group

HEADER = 'DESCRIPTION "Does what this test wants."\n'


def write_scripts(folder: Path, scripts: Mapping[str, str]) -> None:
    """Write each script into a file with its name; a default description is added if it has none."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        described = text if "DESCRIPTION" in text else HEADER + text
        (folder / f"{name}.bas").write_text(described, encoding="utf-8")


@asynccontextmanager
async def a_group_with(
    folder: Path, functions: list[Any] | None = None, *, settings: Mapping[str, Any] | None = None, **more: Any
) -> AsyncIterator[Group]:
    """The group, with `folder` as a source of scripts. `more`: scripts by name, or options of `a_group`."""
    scripts = {name: text for name, text in more.items() if isinstance(text, str)}
    options = {name: value for name, value in more.items() if name not in scripts}
    write_scripts(folder, scripts)
    own = dict(settings or {})
    source = {"path": str(folder), **own.pop("source", {})}
    sources = {"basic": [source], **own.pop("sources", {})}
    async with a_group(functions or [], settings={**own, "sources": sources}, **options) as group:
        assert [str(one) for one in group.daemon.functions.faults if one.severity == "error"] == []
        yield group
