"""Reminders on real IRC servers are sent once to their channel, even if server or daemon die before they are due."""

from __future__ import annotations

from pathlib import Path

from tests.bot.platforms.irc.test_a_day_on_irc import on_every_server, until
from tests.harness.irc_client import Person, a_person
from tests.harness.irc_daemon import an_irc_daemon, rows
from tests.harness.irc_servers import an_irc_server


def said(ann: Person) -> list[str]:
    """Reminder texts in the channel."""
    return [line for line in ann.heard("Rollcall", "#family") if "tea is ready" in line and "OK" not in line]


async def set_one(ann: Person, when: str) -> None:
    """Ask for a reminder and wait for the confirmation."""
    before = len(ann.heard("Rollcall", "#family"))
    ann.say("#family", f"/remind {when} tea is ready")
    lines = await ann.hears("Rollcall", before + 1, target="#family")
    assert "OK, reminder" in lines[-1], lines


def states(home: Path) -> list[str]:
    """State of each occurrence."""
    return [state for (state,) in rows(home, "SELECT state FROM occurrences")]


@on_every_server
async def test_a_reminder_is_said_to_whoever_set_it(kind: str, tmp_path: Path) -> None:
    async with (
        an_irc_server(kind, tmp_path) as server,
        an_irc_daemon(tmp_path, server) as daemon,
        a_person(server.port, "ann", "#family") as ann,
    ):
        await ann.sees("#family", "Rollcall")
        await set_one(ann, "in 2 seconds")
        await until(lambda: bool(said(ann)))
        await daemon.settled()
        assert said(ann) == ["⏰ ann: tea is ready"]


@on_every_server
async def test_a_reminder_that_comes_while_the_server_is_dead_is_said_once_when_it_is_back(
    kind: str, tmp_path: Path
) -> None:
    async with an_irc_server(kind, tmp_path) as server, an_irc_daemon(tmp_path, server) as daemon:
        async with a_person(server.port, "ann", "#family") as ann:
            await ann.sees("#family", "Rollcall")
            await set_one(ann, "in 2 seconds")
            await server.kill()
            await ann.is_cut_off()
            # On a slow machine it may already have been sent.
            before = said(ann)
        await until(lambda: states(tmp_path) == ["fired"])
        await server.start()
        # Joins first, as bots do; its messages wait for people.
        await daemon.is_back()
        async with a_person(server.port, "ann", "#family") as ann:
            await until(lambda: bool(before or said(ann)))
            await until(lambda: rows(tmp_path, "SELECT key FROM outbox WHERE state != 'sent'") == [])
            assert len(before) + len(said(ann)) == 1


@on_every_server
async def test_a_reminder_that_comes_while_the_bot_is_dead_is_said_once_after_its_next_start(
    kind: str, tmp_path: Path
) -> None:
    async with an_irc_server(kind, tmp_path) as server, a_person(server.port, "ann", "#family") as ann:
        async with an_irc_daemon(tmp_path, server) as daemon:
            await ann.sees("#family", "Rollcall")
            await set_one(ann, "in 2 seconds")
            await daemon.kill()
        await ann.until(lambda one: one.command == "QUIT" and one.nick == "Rollcall")
        assert states(tmp_path) == ["due"]
        async with an_irc_daemon(tmp_path, server) as daemon:
            await until(lambda: bool(said(ann)))
            await daemon.settled()
            assert len(said(ann)) == 1
            assert states(tmp_path) == ["fired"]
            assert await daemon.stop() == 0
