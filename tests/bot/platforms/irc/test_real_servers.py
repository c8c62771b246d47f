"""Real servers accept the bot's commands and react as expected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import Accepted, Outgoing, SendFailed
from bot.platforms.irc.platform import IrcPlatform, probe
from function_calls.context import MessageContext
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.port import Store, Write
from services.store.turns.audit import AUDIT, CURSORS
from tests.fakes.sqlite_store import a_store
from tests.harness.irc_client import a_person
from tests.harness.irc_servers import IrcServer, a_certificate, an_irc_server, irc_settings
from tests.harness.irc_services import services

FAMILY = ChatRef("irc", "test", "#family")
on_every_server = pytest.mark.parametrize("kind", ["inspircd", "ngircd"])


class Bot:
    """The platform on a server, and its delivered messages."""

    def __init__(self, server: IrcServer, store: Store, **more: Any) -> None:
        clock = SystemClock()
        self.platform = IrcPlatform(
            irc_settings(server, **more), Host(store, Ids(clock), clock, ["Rollcall"], server.folder)
        )
        self.heard: asyncio.Queue[MessageContext] = asyncio.Queue()

    async def deliver(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        self.heard.put_nowait(context)
        return Accepted.NEW

    async def hears(self, text: str) -> MessageContext:
        """The next message with this text."""
        async with asyncio.timeout(10):
            while (context := await self.heard.get()).text != text:
                pass
        return context

    async def send(self, text: str, key: str = "1:0:0", **more: Any) -> str:
        return (await self.platform.send(Outgoing(more.pop("chat", FAMILY), key, text, **more))).native_id

    async def is_in(self) -> None:
        async with asyncio.timeout(10):
            await self.platform.until_reachable(Outgoing(FAMILY, "1:0:0", "Tea."), SystemClock().now_ms())


@asynccontextmanager
async def a_bot(server: IrcServer, *, waits: bool = True, **more: Any) -> AsyncIterator[Bot]:
    async with a_store(server.folder, SystemClock(), [AUDIT, CURSORS]) as store:
        bot = Bot(server, store, **more)
        running = asyncio.create_task(bot.platform.run(bot.deliver))
        try:
            if waits:
                await bot.is_in()
            yield bot
        finally:
            running.cancel()
            await asyncio.wait([running])
            await bot.platform.close()


@on_every_server
async def test_a_long_answer_arrives_whole_and_no_line_is_cut_by_the_server(kind: str, tmp_path: Path) -> None:
    text = "Grüße 你好 👨‍👩‍👧 and some words " * 40
    async with (
        an_irc_server(kind, tmp_path) as server,
        a_person(server.port, "ann", "#family") as ann,
        a_bot(server) as bot,
    ):
        await bot.send(text)
        await ann.settled()
        lines = ann.heard("Rollcall")
        assert len(lines) > 4
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert "\ufffd" not in "".join(lines)


@on_every_server
async def test_a_nick_is_taken_back_from_whoever_had_it(kind: str, tmp_path: Path) -> None:
    async with an_irc_server(kind, tmp_path) as server, a_person(server.port, "ann", "#family") as ann:
        holder = a_person(server.port, "rollcall", "#family")
        await holder.__aenter__()
        async with a_bot(server, alternatives=["Rollbot"]) as bot:
            assert "connected as Rollbot" in bot.platform.link().words
            ann.say("#family", "Rollbot: are you Rollcall?")
            assert (await bot.hears("are you Rollcall?")).mentions_bot
            await holder.__aexit__(None, None, None)
            await ann.until(lambda one: one.command == "NICK" and one.nick == "Rollbot" and one.text == "Rollcall")
            ann.say("#family", "Rollcall: are you?")
            assert (await bot.hears("are you?")).mentions_bot
            await bot.send("I am.")
            assert await ann.hears("Rollcall", target="#family") == ["I am."]


@on_every_server
async def test_after_a_kick_it_is_back_and_after_a_ban_it_says_so(kind: str, tmp_path: Path) -> None:
    async with an_irc_server(kind, tmp_path) as server, a_person(server.port, "ann", "#family") as ann:
        async with a_bot(server) as bot:
            ann.send("MODE #family +b Rollcall!*@*")
            ann.send("KICK #family Rollcall :out")
            await ann.until(lambda one: one.command == "KICK")
            async with asyncio.timeout(10):
                while "kicked" not in bot.platform.link().words:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            with pytest.raises(SendFailed, match="the bot was kicked") as failed:
                await bot.send("Hello?")
            assert not failed.value.retryable
        async with a_bot(server, waits=False) as bot:
            await bot.is_in()
            assert "#family: the bot is banned from it" in bot.platform.link().words


@on_every_server
async def test_a_channel_that_takes_no_messages_is_a_refusal_and_so_is_nobody(kind: str, tmp_path: Path) -> None:
    async with (
        an_irc_server(kind, tmp_path) as server,
        a_person(server.port, "ann", "#family") as ann,
        a_bot(server) as bot,
    ):
        ann.send("MODE #family +m")
        await ann.settled()
        with pytest.raises(SendFailed, match="takes no messages from the bot") as failed:
            await bot.send("Hello?")
        assert (failed.value.retryable, failed.value.unknown_outcome) == (False, False)
        ann.send("MODE #family +v Rollcall")
        await ann.settled()
        assert await bot.send("Hello!", "2:0:0")
        with pytest.raises(SendFailed, match="no user has that name"):
            await bot.send("Hello?", "3:0:0", chat=ChatRef("irc", "test", "~nobody"))


@on_every_server
async def test_a_wrong_password_is_said_in_words(kind: str, tmp_path: Path) -> None:
    async with an_irc_server(kind, tmp_path, password="open-sesame") as server:
        assert "lets the bot in as Rollcall" in await probe(irc_settings(server, password="open-sesame"), SystemClock())
        with pytest.raises(CannotOpen) as problem:
            await probe(irc_settings(server, password="wrong-word"), SystemClock())
        assert "wrong-word" not in str(problem.value)


async def test_a_certificate_is_checked_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    async with an_irc_server("inspircd", tmp_path, tls=True) as server:
        more = {"port": server.tls_port, "tls": True}
        with pytest.raises(CannotOpen, match="certificate is not accepted"):
            await probe(irc_settings(server, **more), SystemClock())
        known = irc_settings(server, **more, ca_file=server.folder / "server.pem")
        assert "lets the bot in" in await probe(known, SystemClock())
        assert "lets the bot in" in await probe(irc_settings(server, **more, tls_verify=False), SystemClock())
        other = a_certificate(tmp_path, "other")
        with pytest.raises(CannotOpen, match="certificate is not accepted"):
            await probe(irc_settings(server, **more, ca_file=other), SystemClock())
        with pytest.raises(CannotOpen):
            await probe(irc_settings(server, **more, ca_file=tmp_path / "absent.pem"), SystemClock())


async def test_replies_and_typing_pass_a_server_that_knows_them(tmp_path: Path) -> None:
    async with (
        an_irc_server("inspircd", tmp_path) as server,
        a_person(server.port, "ann", "#family", caps="message-tags echo-message batch") as ann,
        a_bot(server) as bot,
    ):
        native_id = await bot.send("It is six.")
        [said] = await ann.until(lambda one: one.nick == "Rollcall" and one.command == "PRIVMSG")
        assert said.tags["msgid"] == native_id
        assert "bot" in "".join(said.tags)
        ann.say("#family", "and now?", f"+draft/reply={native_id}")
        asked = await bot.hears("and now?")
        assert asked.reply_to is not None
        assert (asked.reply_to.from_bot, asked.reply_to.text, asked.calls_bot) == (True, "It is six.", True)
        await bot.platform.typing(FAMILY, "…")
        await ann.until(lambda one: one.command == "TAGMSG" and one.tags.get("+typing") == "active")
        await bot.send("Seven.", "2:0:0", reply_to=asked.key.native_id)
        [_, answer] = await ann.until(lambda one: one.nick == "Rollcall" and one.command == "PRIVMSG", 2)
        assert (answer.text, answer.tags["+draft/reply"]) == ("ann: Seven.", asked.key.native_id)


async def test_accounts_of_real_services_are_who_people_are(tmp_path: Path) -> None:
    async with (
        an_irc_server("inspircd", tmp_path) as server,
        services(server) as known,
        a_person(server.port, "ann", "#family") as ann,
        a_person(server.port, "Bob", "#family") as bob,
    ):
        known.gives_account("ann", "Annie")
        sasl = {"mechanism": "plain", "account": "rollcall", "password": "a-password"}
        async with a_bot(server, sasl=sasl) as bot:
            assert known.proofs == ["rollcall a-password"]
            ann.say("#family", "hello from ann")
            bob.say("#family", "hello from bob")
            by_account, by_nick = await bot.hears("hello from ann"), await bot.hears("hello from bob")
            assert by_account.sender.ref == MemberRef("irc", "test", "annie")
            assert by_account.sender.role is Role.MODERATOR
            assert by_nick.sender.ref == MemberRef("irc", "test", "~bob")
            ann.send("MODE #family +o Bob")
            ann.send("MODE #family -o ann")
            bob.say("#family", "an operator now")
            assert (await bot.hears("an operator now")).sender.role is Role.MEMBER
            assert await bot.platform.role(FAMILY, MemberRef("irc", "test", "annie")) is Role.MEMBER
            ann.send("PART #family")
            ann.say("Rollcall", "psst")
            private = await bot.hears("psst")
            assert (private.chat.native, private.is_group) == ("annie", False)
            await bot.send("Yes?", "9:0:0", chat=private.chat)
            assert await ann.hears("Rollcall", target="ann") == ["Yes?"]
