"""Ways of addressing the bot, and talk about it, in groups. `addressing.jsonl` has a half that the rules were written
with (`tuned`) and a half that they were not (`held`)."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.platforms.mentions import mention_parser
from bot.testing import a_group
from tests.fakes.kept import last_reason

NAMES = {"bots": {"default": {"name": "Rollcall", "aliases": ["Rolly", "小助手"]}}, "chats": {"allow": ["test:*"]}}
ROWS = [json.loads(line) for line in Path(__file__).with_name("addressing.jsonl").read_text("utf-8").splitlines()]


async def addressed(texts: list[str]) -> set[str]:
    """Those of `texts` that start a turn in a group."""
    started = set()
    async with a_group(settings=NAMES) as group:
        for text in texts:
            group.model.says("Yes?")
            await group.say("Ann", text)
            if (await last_reason(group))[0] != "not_addressed":
                started.add(text)
    return started


def texts_of(half: str, *, to_bot: bool) -> list[str]:
    return [row["text"] for row in ROWS if row["half"] == half and row["to_bot"] is to_bot]


@pytest.mark.parametrize("half", ["tuned", "held"])
async def test_most_ways_of_addressing_the_bot_start_a_turn(half: str) -> None:
    texts = texts_of(half, to_bot=True)
    heard = await addressed(texts)
    missed = [text for text in texts if text not in heard]
    assert len(missed) <= 0.05 * len(texts), missed


@pytest.mark.parametrize("half", ["tuned", "held"])
async def test_talk_about_the_bot_starts_no_turn(half: str) -> None:
    assert await addressed(texts_of(half, to_bot=False)) == set()


def test_a_group_that_does_not_know_the_bot_never_addresses_it(data: Callable[[str], Path]) -> None:
    parse = mention_parser(["Rollcall", "Rolly", "小助手"])
    with gzip.open(data("F_group_chat/irc_disentanglement_dev.jsonl.gz"), "rt", encoding="utf-8") as lines:
        texts = [json.loads(line).get("text") or "" for line in lines]
    assert [text for text in texts if parse(text).mentions_bot] == []


@pytest.mark.parametrize(
    "text", ["小助手" + " " * 8000, "hey Rollcall " + "so " * 2600, "." * 8000 + "Rollcall", ",Rollcall" * 900]
)
def test_a_long_text_is_parsed_like_a_short_one(text: str) -> None:
    assert len(mention_parser(["Rollcall", "小助手"])(text).text) <= len(text)
