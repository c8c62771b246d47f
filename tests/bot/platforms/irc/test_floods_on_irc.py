"""A member with very long answers does not delay others on a real IRC server, and dropped lines are reported."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.harness.irc_client import Person, a_person
from tests.harness.irc_daemon import an_irc_daemon, log, rows
from tests.harness.irc_servers import an_irc_server

on_every_server = pytest.mark.parametrize("kind", ["inspircd", "ngircd"])
_LISTING = '''\
from pydantic import BaseModel

from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult


class Lines(BaseModel, frozen=True):
    count: int


@tool_function(commands=("lines",), effect="read")
async def lines(context: MessageContext, args: Lines) -> FunctionResult:
    """Say many lines."""
    return FunctionResult.say("\\n".join(f"line {number}" for number in range(args.count)))
'''


def a_listing(folder: Path) -> Sequence[Path]:
    """A file with the function `lines`."""
    file = folder / "listing.py"
    file.write_text(_LISTING)
    return [file]


def dropped(lines: Sequence[str]) -> list[int]:
    """Numbers in the lines that report dropped lines."""
    return [int(found[1].replace(",", "")) for line in lines if (found := re.search(r"… ([\d,]+) more lines?", line))]


@on_every_server
async def test_3000_lines_for_one_member_do_not_hold_up_another_member_of_the_channel(
    kind: str, tmp_path: Path
) -> None:
    async with (
        an_irc_server(kind, tmp_path) as server,
        an_irc_daemon(tmp_path, server, seconds_per_line=0.1, functions=a_listing(tmp_path)) as daemon,
        a_person(server.port, "ann", "#family") as ann,
        a_person(server.port, "bob", "#family") as bob,
    ):
        await bob.sees("#family", "Rollcall")
        for _ in range(250):
            ann.say("#family", "Rollcall: /lines 12")
        await until(
            lambda: (
                rows(tmp_path, "SELECT count(*) FROM inbox WHERE reason IN ('command', 'reply_dropped')") == [(250,)]
            )
        )
        before = await _asks(bob)
        assert before <= 24, f"{before} lines for ann were sent before the answer for bob"
        await daemon.settled()
        await bob.settled()
        heard = bob.heard("Rollcall", "#family")
        said = sum(re.search(r"line \d+$", line) is not None for line in heard)
        assert said + sum(dropped(heard)) == 3000
        assert said <= 200
        assert rows(tmp_path, "SELECT DISTINCT problem FROM outbox WHERE state = 'dropped'") == [
            ("delivery.lines_per_member",)
        ]
        assert "delivery.lines_per_member" in log(tmp_path)


async def until(holds: Callable[[], bool]) -> None:
    """Poll until `holds()`; the daemon is another process and provides no event."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def _asks(bob: Person) -> int:
    """Ask for a sum; returns the number of other lines before the answer."""
    start = len(bob.heard("Rollcall", "#family"))
    bob.say("#family", "Rollcall: calc 6*7")
    await bob.until(lambda one: one.nick == "Rollcall" and "6*7 = 42" in one.text)
    return next(place for place, line in enumerate(bob.heard("Rollcall", "#family")[start:]) if "6*7 = 42" in line)
