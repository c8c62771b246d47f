"""Chime-in over twenty thousand lines of real group chat."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from bot.testing import FAMILY, a_group
from services.store.chats.history import HISTORY
from tests.bot.test_speaking import Chatty
from tests.fakes.kept import kept, reasons

IRC = "F_group_chat/irc_disentanglement_dev.jsonl.gz"
LINES = 20_000


class Outcome(NamedTuple):
    """Counts of a run."""

    eligible: int
    answered: int
    in_a_row: int
    """Messages of the bot that follow directly on another one."""


def irc_lines(file: Path) -> Iterator[tuple[str, str]]:
    """Sender and text of each line, repeated without end."""
    while True:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(orjson.loads, lines):
                yield row["sender"] or "*", row["text"]


async def run(file: Path, chime_in: str) -> Outcome:
    settings = {
        "chats": {"allow": ["*"], "settings": {FAMILY.key: {"chime_in": chime_in}}},
        "store": {"history_per_chat": 100_000},
    }
    async with a_group(settings=settings, model=Chatty()) as group:
        for number, (sender, text) in enumerate(islice(irc_lines(file), LINES)):
            await group.say(sender, text, id=f"m{number}")
        found = [code for code, _ in await reasons(group)]
        from_bot = [is_bot for (is_bot,) in await kept(group, HISTORY.c.from_bot)]
        assert len(found) == LINES
        assert len(group.platform.sent) == found.count("chimed_in")
    answered = found.count("chimed_in")
    in_a_row = sum(first and second for first, second in pairwise(from_bot))
    return Outcome(answered + found.count("not_chimed_in"), answered, in_a_row)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.1])
async def test_the_configured_share_of_the_eligible_lines_is_answered(rate: float, data: Callable[[str], Path]) -> None:
    outcome = await run(data(IRC), f"chance {rate:%}" if rate else "off")
    assert outcome.in_a_row == 0
    if rate:
        assert abs(outcome.answered / outcome.eligible / rate - 1) <= 0.1
    else:
        assert outcome.answered == 0
