"""Scripts with large values: their computation does not block others."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

import pytest

from bot.checks.scratch import scratch_daemon
from bot.checks.script_trial import Ended, Said, ScriptTrial, Trying, no_web
from bot.overrides import Overrides
from config.sections.basic import BasicSource
from config.sections.bots import ChatsSettings
from config.settings import Settings, SourcesSettings
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role

ROWS = 9000
_ANN = MemberRef("cli", "main", "ann")


async def tried(folder: Path, text: str) -> tuple[list[str], float, float]:
    """Messages of the script, and CPU seconds: the longest time that the event loop's thread was blocked, and the time
    of all threads."""
    (folder / "big.csv").write_text(
        "id,city,amount\n" + "".join(f"{n},city{n % 50},{n % 977}.5\n" for n in range(ROWS)), encoding="utf-8"
    )
    (folder / "work.bas").write_text(f'DESCRIPTION "Work"\nrows = FIND "big.csv" LIMIT {ROWS}\n{text}\n')
    settings = Settings(sources=SourcesSettings(basic=(BasicSource(path=folder),)), chats=ChatsSettings(allow=("*",)))
    clock = SystemClock()
    async with scratch_daemon(settings, Overrides(clock=clock, web=no_web("nothing is asked"))) as daemon:
        [spec] = [one for one in daemon.registry.of("default").specs if one.name == "work"]
        trial = ScriptTrial(daemon, clock, Trying(_ANN, "Ann", Role.OWNER, ChatRef("cli", "main", "club")))
        longest, says = [0.0], list[str]()

        async def others() -> None:
            while True:
                began = time.thread_time()
                await asyncio.sleep(0.001)
                longest[0] = max(longest[0], time.thread_time() - began)

        async def no_answer() -> None:
            return None

        gc.collect()
        gc.disable()  # a collection would traverse the objects of other tests, in any thread
        try:
            waiting, began = asyncio.create_task(others()), time.process_time()
            async for step in trial.steps(spec, {}, no_answer):
                if isinstance(step, Said):
                    says.append(step.message.text)
                elif isinstance(step, Ended):
                    assert step.result.error is None, says
            took = time.process_time() - began
            waiting.cancel()
        finally:
            gc.enable()
        return says, longest[0], took


@pytest.mark.requirement("A45", "C7")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("again = SLICE(rows, 0)\nIF again <> rows THEN TALK 0\nTALK COUNT(again)", "9000"),
        ('ordered = SORT(rows, "city")\nTALK ordered[0].city', "city0"),
        ("once = UNIQUE(rows)\nTALK COUNT(once)", "9000"),
        ("text = TOYAML(rows)\nTALK LEN(text) > 9000", "true"),
        ('parts = GROUP BY rows, "city", #{ all: "SUM(amount)" }\nTALK COUNT(parts)', "50"),
    ],
    ids=["compared", "sorted", "told apart", "written", "grouped"],
)
async def test_large_lists_are_worked_on_beside_everybody_else(tmp_path: Path, text: str, says: str) -> None:
    said, longest, took = await tried(tmp_path, text)
    assert said == [says]
    # Both are CPU times, which do not depend on the load of the machine: no work is done in the event loop's thread.
    assert longest < took / 5
