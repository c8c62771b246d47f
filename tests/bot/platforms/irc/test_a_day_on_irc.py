"""The daemon on real IRC servers with talking users, through every kind of failure."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from config.texts import Texts
from tests.harness.irc_client import Person, a_person
from tests.harness.irc_daemon import an_irc_daemon, log, rows
from tests.harness.irc_servers import an_irc_server

KINDS = ["inspircd", "ngircd"]
MARK = Texts().of("en").say("delivery.resent")
on_every_server = pytest.mark.parametrize("kind", KINDS)


def sums(lines: Iterable[str]) -> Counter[int]:
    """Number of answers to each sum."""
    return Counter(int(found[1]) for line in lines if (found := re.search(r"(\d+)\*1 = \1\b", line)))


def asked_by(home: Path) -> set[int]:
    """Sums that the daemon has accepted."""
    return {int(found[1]) for text in said_by_people(home) if (found := re.search(r"calc (\d+)\*1$", text))}


def said_by_people(home: Path) -> set[str]:
    """Texts in the history."""
    return {text for (text,) in rows(home, "SELECT text FROM history WHERE from_bot = 0")}


async def until(holds: Callable[[], bool]) -> None:
    """Poll until `holds()`; the daemon is another process and provides no event."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def answered(ann: Person, home: Path, before: Iterable[str] = ()) -> tuple[Counter[int], int]:
    """Number of answers to each accepted sum, after all are answered; and number of lines marked as a repetition."""

    def seen() -> list[str]:
        return [*before, *ann.heard("Rollcall", "#family")]

    await until(lambda: set(sums(seen())) >= asked_by(home))
    return sums(seen()), sum(MARK in line for line in seen())


@on_every_server
async def test_two_people_talk_with_the_bot_in_a_channel_and_in_private(kind: str, tmp_path: Path) -> None:
    async with (
        an_irc_server(kind, tmp_path) as server,
        an_irc_daemon(tmp_path, server) as daemon,
        a_person(server.port, "ann", "#family") as ann,
        a_person(server.port, "Bob", "#family") as bob,
    ):
        await ann.sees("#family", "Rollcall")
        ann.say("#family", "bob: did you sleep well?")
        bob.say("#family", "ann, yes, 6*7 hours")
        ann.say("#family", "Rollcall: calc 6*7")
        assert await bob.hears("Rollcall", target="#family") == ["6*7 = 42"]
        bob.say("#family", "/calc 2+3")
        assert await ann.hears("Rollcall", 2, target="#family") == ["6*7 = 42", "2+3 = 5"]
        bob.say("Rollcall", "calc 10/4")
        assert await bob.hears("Rollcall", target="Bob") == ["10/4 = 2.5"]
        ann.send("PRIVMSG #family :\x01ACTION asks Rollcall nothing\x01")
        bob.say("#family", "/me\x02 is bold\x02")
        await until(lambda: {"* ann asks Rollcall nothing", "/me is bold"} <= said_by_people(tmp_path))
        await daemon.settled()
        assert ann.heard("Rollcall", "ann") == []
        chats = {chat for (chat,) in rows(tmp_path, "SELECT DISTINCT chat FROM history")}
        assert chats == {"irc:test:#family", "irc:test:~bob"}
        assert await daemon.link() == "connected as Rollcall, in 1 channels"
        assert 'rollcall_platform_connected{platform="irc:test"} 1.0' in (await daemon.told("/metrics")).text
        assert await daemon.stop() == 0
        await ann.until(lambda one: one.command == "QUIT" and one.nick == "Rollcall")


@on_every_server
async def test_after_the_server_was_killed_all_that_was_accepted_is_answered(kind: str, tmp_path: Path) -> None:
    async with an_irc_server(kind, tmp_path) as server, an_irc_daemon(tmp_path, server) as daemon:
        async with a_person(server.port, "ann", "#family") as ann:
            await ann.sees("#family", "Rollcall")
            for number in range(100, 130):
                ann.say("#family", f"Rollcall: calc {number}*1")
            await ann.hears("Rollcall", 5, target="#family")
            await server.kill()
            await ann.is_cut_off()
            seen = ann.heard("Rollcall", "#family")
        await until(lambda: '"disconnected"' in log(tmp_path))
        await server.start()
        # Joins first, as bots do. It misses messages while it is away.
        await daemon.is_back()
        async with a_person(server.port, "ann", "#family") as ann:
            await ann.sees("#family", "Rollcall")
            ann.say("#family", "Rollcall: calc 999*1")
            await until(lambda: 999 in sums(ann.heard("Rollcall")))
            await daemon.settled()
            await ann.settled()
            seen += ann.heard("Rollcall", "#family")
        counts, marked = sums(seen), sum(MARK in line for line in seen)
        # A line sent when the server died may have been lost: its repetition is marked as such.
        assert sum(counts.values()) - len(counts) <= marked <= 1, (counts, marked)
        # The server may also have accepted a line without delivering it.
        assert len(asked_by(tmp_path) - set(counts)) <= 1, counts
        assert rows(tmp_path, "SELECT key FROM outbox WHERE state != 'sent'") == []
        assert '"disconnected"' in log(tmp_path)
        assert re.search(
            r'"event": ?"irc_connected".*"gap_seconds": ?\d|"gap_seconds": ?\d.*irc_connected', log(tmp_path)
        )
        assert "what was said within" in await daemon.link()


@on_every_server
async def test_after_the_bot_was_killed_all_that_was_accepted_is_answered(kind: str, tmp_path: Path) -> None:
    async with an_irc_server(kind, tmp_path) as server, a_person(server.port, "ann", "#family") as ann:
        async with an_irc_daemon(tmp_path, server) as daemon:
            await ann.sees("#family", "Rollcall")
            for number in range(100, 130):
                ann.say("#family", f"Rollcall: calc {number}*1")
            await ann.hears("Rollcall", 5, target="#family")
            await daemon.kill()
        await ann.until(lambda one: one.command == "QUIT" and one.nick == "Rollcall")
        async with an_irc_daemon(tmp_path, server) as daemon:
            counts, marked = await answered(ann, tmp_path)
            await daemon.settled()
            counts = sums(ann.heard("Rollcall", "#family"))
            assert sum(counts.values()) - len(counts) <= marked <= 1, (counts, marked)
            assert "what was said within" in await daemon.link()
            assert await daemon.stop() == 0
        assert rows(tmp_path, "SELECT key FROM outbox WHERE state != 'sent'") == []


async def test_a_bot_that_is_told_to_stop_ends_its_sentence_and_says_the_rest_after_its_next_start(
    tmp_path: Path,
) -> None:
    async with an_irc_server("inspircd", tmp_path) as server, a_person(server.port, "ann", "#family") as ann:
        async with an_irc_daemon(tmp_path, server) as daemon:
            await ann.sees("#family", "Rollcall")
            for number in range(100, 200):
                ann.say("#family", f"Rollcall: calc {number}*1")
            await ann.hears("Rollcall", 1, target="#family")
            assert await daemon.stop() == 0
        await ann.settled()
        assert asked_by(tmp_path)
        async with an_irc_daemon(tmp_path, server) as daemon:
            counts, marked = await answered(ann, tmp_path)
            assert await daemon.stop() == 0
        assert (set(counts), set(counts.values()), marked) == (asked_by(tmp_path), {1}, 0)
        assert rows(tmp_path, "SELECT key FROM outbox WHERE state != 'sent'") == []
