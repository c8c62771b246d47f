"""A day of real group chat, replayed on a real IRC server by ten users at once, with commands in it."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import orjson

from tests.bot.platforms.irc.test_a_day_on_irc import on_every_server
from tests.harness.irc_client import Person, a_person
from tests.harness.irc_daemon import an_irc_daemon, rows
from tests.harness.irc_servers import an_irc_server

DAY = "F_group_chat/irc_disentanglement_dev.jsonl.gz"
PEOPLE = 10
ADDRESSED_EVERY = 25
CHANNELS = ("#ubuntu", "#family")
_LONGEST = 350


def a_day(file: Path, count: int) -> list[str]:
    """Its first lines, each followed by a number; some are commands."""
    texts: list[str] = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, row in zip(range(count), map(orjson.loads, lines), strict=False):
            said = re.sub(r"[\x00-\x1f]", " ", row["text"])[:_LONGEST].strip() or "…"
            texts.append(f"Rollcall: calc {number}*1" if number % ADDRESSED_EVERY == 0 else f"{said} ~{number}~")
    return texts


async def is_said(person: Person, lines: list[tuple[str, str]]) -> None:
    """Send `lines` as `person`, each to its channel, as fast as the server accepts them."""
    for number, (channel, text) in enumerate(lines):
        person.say(channel, text)
        if number % 20 == 19:
            await person.settled()
    await person.settled()


async def check(kind: str, home: Path, texts: list[str], seconds: float) -> None:
    lines = [(CHANNELS[number % len(CHANNELS)], text) for number, text in enumerate(texts)]
    async with (
        an_irc_server(kind, home) as server,
        an_irc_daemon(home, server, *CHANNELS) as daemon,
        AsyncExitStack() as stack,
    ):
        opening = [a_person(server.port, f"person{number}", *CHANNELS) for number in range(PEOPLE)]
        people = await asyncio.gather(*(stack.enter_async_context(one) for one in opening))
        for channel in CHANNELS:
            await people[0].sees(channel, "Rollcall")
        await asyncio.gather(*(is_said(one, lines[place::PEOPLE]) for place, one in enumerate(people)))
        async with asyncio.timeout(seconds):
            while rows(home, "SELECT count(*) FROM history WHERE from_bot = 0")[0][0] < len(texts):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await daemon.settled()
        await people[0].settled()
        answers = people[0].heard("Rollcall")
        assert await daemon.stop() == 0
    said = Counter(text for (text,) in rows(home, "SELECT text FROM history WHERE from_bot = 0"))
    numbers = Counter(
        int(found[1]) for text in said.elements() if (found := re.search(r"(?:~|calc )(\d+)(?:~|\*1)$", text))
    )
    assert numbers == Counter(range(len(texts)))
    addressed = range(0, len(texts), ADDRESSED_EVERY)
    assert Counter(answers) == Counter(f"{number}*1 = {number}" for number in addressed)
    reasons = dict(rows(home, "SELECT reason, count(*) FROM inbox WHERE kind = 'message' GROUP BY reason"))
    assert reasons["command"] == len(addressed)
    assert set(reasons) <= {"command", "not_addressed", "unknown_command"}


@on_every_server
async def test_fifteen_hundred_lines_are_each_kept_once_and_each_command_is_answered_once(
    kind: str, tmp_path: Path, data: Callable[[str], Path]
) -> None:
    await check(kind, tmp_path, a_day(data(DAY), 1500), 60)


async def test_a_whole_day_is_kept_without_loss(tmp_path: Path, data: Callable[[str], Path]) -> None:
    texts = a_day(data(DAY), 20_000)
    assert len(texts) > 10_000
    await check("inspircd", tmp_path, texts, 120)
