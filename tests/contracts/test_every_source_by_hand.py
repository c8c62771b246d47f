"""For every source of functions, `rollcall call` in a separate process applies the same checks and writes the same
records as other entry points."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.bot.cli.running import a_settings_file, an_environment
from tests.conftest import REPOSITORY
from tests.contracts.test_every_source import CASES, MARKED, SOURCES, TOOLS, Source, a_file
from tests.harness.forked_processes import Ended, forked


def a_mapping_by_name(folder: Path) -> Source:
    """A definition whose handler is given by its import path, because a separate process cannot get an object."""
    package = folder / "mapped"
    package.mkdir()
    (package / "spoken.py").write_text(TOOLS.partition("def tools")[0], encoding="utf-8")
    definitions = "def tools" + TOOLS.partition("def tools")[2]
    named = definitions.replace('"handler": echo', '"handler": "mapped.spoken:echo"')
    (package / "__init__.py").write_text(named, encoding="utf-8")
    return Source({"sources": {"python": [str(package)]}})


BY_NAME = {**SOURCES, "a mapping": a_mapping_by_name}
BY_HAND = {"it runs": 0, "the role is too weak": 1, "a number is none": 1}
"""Cases, with the exit status of `rollcall call`."""


async def by_hand(*arguments: str) -> Ended:
    async with asyncio.timeout(30):
        return await forked("bot", *arguments, env=an_environment())


@pytest.mark.requirement("D6", "D29", "E35")
@pytest.mark.parametrize("source", BY_NAME.values(), ids=BY_NAME)
async def test_a_process_of_its_own_checks_and_records_as_every_way_does(
    tmp_path: Path, source: Callable[[Path], Source]
) -> None:
    made = source(tmp_path)
    cases = [CASES[how] for how in BY_HAND]
    async with made.running() as own:
        file = a_settings_file(tmp_path, "".join(f"{key}: {json.dumps(value)}\n" for key, value in own.items()))
        ended = [
            await by_hand(
                *("call", made.name, "--json", json.dumps(case.arguments), "--role", case.role.value),
                *("--config", str(file)),
            )
            for case in cases
        ]
    assert [one.status for one in ended] == list(BY_HAND.values()), ended
    ran, *others = [json.loads(one.out) for one in ended]
    # A command tool returns the output of each step.
    assert ran["reply"].splitlines()[-1] == "hi hi"
    assert [[one["error"]] for one in others] == [case.outcomes for case in cases[1:]]
    with closing(sqlite3.connect(tmp_path / "var" / "rollcall.sqlite")) as database:
        rows = database.execute("SELECT function, chat, effect, code, arguments FROM ledger").fetchall()
    assert [row[:4] for row in rows] == [(made.name, "cli:main:terminal", "once", "ok")]
    assert json.loads(rows[0][4]) == cases[0].arguments
    lines = map(json.loads, (tmp_path / "logs" / "function_calls.jsonl").read_text(encoding="utf-8").splitlines())
    assert [(one["function"], one["path"], [one["outcome"]]) for one in lines] == [
        (made.name, "cli", case.outcomes) for case in cases
    ]


async def test_a_process_off_another_one_says_what_one_that_is_started_alone_says(tmp_path: Path) -> None:
    made = a_file(tmp_path, MARKED)
    file = a_settings_file(tmp_path, f"sources: {json.dumps(made.settings['sources'])}\n")
    call = ("call", "echo", "--json", '{"text": "hi", "times": 2}', "--config", str(file))
    alone = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", *call),
        cwd=REPOSITORY,
        env=an_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, err = await alone.communicate()
    assert (alone.returncode, out.decode(), err.decode()) == await by_hand(*call)
    assert json.loads(out)["reply"] == "hi hi"
