"""A group whose bot has command tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import orjson

from bot.testing import Group
from config.diagnostics import Diagnostic
from tests.fakes.wired_model import a_group

UNISOLATED = {"unisolated": ["steps", "own", "another", "deploy", "other"]}
"""Tools with parameters and `sandbox: off` in the tests."""


def write(folder: Path, text: str, name: str = "tools.yaml") -> Path:
    """Write a file in `folder` with the dedented `text`."""
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return file


@asynccontextmanager
async def a_group_with(
    folder: Path, tools: str, python: str = "", *, may_be_faulty: bool = False, **group: Any
) -> AsyncIterator[Group]:
    """The group. `tools`: the file of tools; `python`: the file `./own.py` in the same folder."""
    place = folder / "commands"
    write(place, tools)
    if python:
        write(place, python, "own.py")
    settings = {"sources": {"commands": [str(place)]}, "sandbox": UNISOLATED, **group.pop("settings", {})}
    async with a_group(settings=settings, **group) as made:
        faults = made.daemon.functions.faults
        assert may_be_faulty or not faults, "\n".join(map(str, faults))
        yield made


async def faults_of(folder: Path, tools: str, python: str = "") -> list[Diagnostic]:
    """Problems of the file."""
    async with a_group_with(folder, tools, python, may_be_faulty=True) as group:
        return list(group.daemon.functions.faults)


async def until(true: Callable[[], bool]) -> None:
    """Poll until a condition in another process is true. Raises TimeoutError after ten seconds."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


def told(group: Group, number: int = -1) -> str:
    """The last message of the model request with that number."""
    return group.model.requests[number].messages[-1].content


def data_of(group: Group) -> Mapping[str, Any]:
    """The last function result in a model request, without its fence."""
    text = told(group)
    inside = text.split("\n", 1)[1].rsplit("\n", 1)[0] if text.startswith("<data") else text
    result: Mapping[str, Any] = orjson.loads(inside)
    return result
