"""Failures and misbehaviour of IRC servers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from bot.platforms.adapter import Host
from bot.platforms.base import Accepted, Outgoing, Receipt, SendFailed
from bot.platforms.irc.platform import IrcPlatform
from config.sections.irc import IrcSettings
from function_calls.context import Kind, MessageContext
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.port import Store, StoreError, StoreFull, Write
from services.store.turns import audit
from services.store.turns.audit import AUDIT, CURSORS
from tests.fakes.irc_server import ALL_CAPS, ISUPPORT, FakeIrcServer
from tests.fakes.sqlite_store import a_store

FAMILY = ChatRef("irc", "test", "#family")
TABLES = [AUDIT, CURSORS]
caps_or_none = pytest.mark.parametrize(
    "caps", [ALL_CAPS, "echo-message message-tags", ""], ids=["labels", "echo", "none"]
)


@dataclass
class World:
    """The bot and its server."""

    server: FakeIrcServer
    platform: IrcPlatform
    clock: VirtualClock
    heard: list[MessageContext] = field(default_factory=list)
    more: asyncio.Condition = field(default_factory=asyncio.Condition)
    fails: list[Exception] = field(default_factory=list)

    async def deliver(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        if self.fails:
            raise self.fails.pop(0)
        async with self.more:
            self.heard.append(context)
            self.more.notify_all()
        return Accepted.NEW

    async def hears(self, count: int) -> list[MessageContext]:
        """Delivered messages, after there are `count`."""
        async with asyncio.timeout(10), self.more:
            await self.more.wait_for(lambda: len(self.heard) >= count)
        return self.heard

    async def joined(self, chat: ChatRef = FAMILY) -> None:
        """Wait until the bot is in the channel."""
        async with asyncio.timeout(10):
            await self.may_say(chat)

    async def may_say(self, chat: ChatRef, private_to: MemberRef | None = None, created_ms: int | None = None) -> None:
        """Wait until delivery may send a message there; the default time of the message is now."""
        at_ms = self.clock.now_ms() if created_ms is None else created_ms
        await self.platform.until_reachable(Outgoing(chat, "1:0:0", "Tea.", private_to=private_to), at_ms)

    async def passes(self, holds: Callable[[], object], step: float = 0.5) -> None:
        """Advance the clock until `holds()`, with pauses for the real network."""
        async with asyncio.timeout(10):
            while not holds():
                await self.clock.advance(step)
                await asyncio.sleep(0.005)

    async def send(self, text: str, key: str = "1:0:0", **more: Any) -> Receipt:
        return await self.platform.send(Outgoing(more.pop("chat", FAMILY), key, text, **more))

    async def fails_to_send(self, text: str, key: str = "1:0:0", **more: Any) -> SendFailed:
        with pytest.raises(SendFailed) as failed:
            await self.send(text, key, **more)
        return failed.value


@asynccontextmanager
async def a_world(
    settings: dict[str, Any] | None = None,
    *,
    waits: bool = True,
    clock: VirtualClock | None = None,
    store: Store | None = None,
    **server: Any,
) -> AsyncIterator[World]:
    clock = clock or VirtualClock()
    async with AsyncExitStack() as opened:
        fake = await opened.enter_async_context(FakeIrcServer(**server))
        home = Path(opened.enter_context(TemporaryDirectory()))
        store = store or await opened.enter_async_context(a_store(home, clock, TABLES))
        given: dict[str, Any] = {
            "account": "test",
            "host": "127.0.0.1",
            "port": fake.port,
            "tls": False,
            "channels": [{"name": "#family"}],
            "flood": {"seconds_per_line": 0},
            **(settings or {}),
        }
        host = Host(store, Ids(clock), clock, ["Rollcall", "小助手"], home)
        platform = IrcPlatform(IrcSettings.model_validate(given), host, lambda low, high: high)
        world = World(fake, platform, clock)
        running = asyncio.create_task(platform.run(world.deliver))
        try:
            if waits:
                await world.joined()
            yield world
            assert not running.done(), running
        finally:
            running.cancel()
            await asyncio.wait([running])
            closing = asyncio.create_task(platform.close())
            while not closing.done():
                await clock.advance(1)
                await asyncio.sleep(0.005)
            assert fake.connections == 0 or platform.link().is_up is False


# Getting in


async def test_a_nick_that_is_taken_is_replaced_and_taken_back_when_it_gets_free() -> None:
    names = {"nick": "Rollcall", "alternatives": ["Rollbot"]}
    async with a_world(names, taken=["rollcall", "rollbot"]) as world:
        assert world.server.nick == "Rollcall_"
        assert "connected as Rollcall_" in world.platform.link().words
        world.server.write(":ann!a@b PRIVMSG #family :Rollcall_: hello", ":ann!a@b PRIVMSG #family :Rollcall, hello")
        assert [(one.text, one.mentions_bot) for one in await world.hears(2)] == [("hello", True)] * 2
        world.server.taken.clear()
        await world.passes(lambda: world.server.nick == "Rollcall", 10)


async def test_a_nick_is_taken_back_at_once_when_its_holder_is_seen_to_go() -> None:
    async with a_world(taken=["rollcall"]) as world:
        world.server.taken.clear()
        world.server.write(":Rollcall!x@y QUIT :bye")
        await world.server.until(lambda line: line == "NICK :Rollcall", 2)


async def test_a_server_without_a_word_of_capabilities_will_do() -> None:
    async with a_world(knows_caps=False) as world:
        assert (await world.send("Hello.")).native_id
        assert world.server.has("PRIVMSG #family :Hello.")


async def test_the_account_is_proved_before_the_end_of_the_introduction() -> None:
    sasl = {"mechanism": "plain", "account": "bot", "password": "secret"}
    async with a_world({"sasl": sasl}, caps="sasl=PLAIN,EXTERNAL multi-prefix", accounts={"bot": "secret"}) as world:
        received = world.server.received
        assert received.index("AUTHENTICATE :Ym90AGJvdABzZWNyZXQ=") < received.index("CAP :END")


async def test_a_refused_password_is_said_and_tried_again_much_later() -> None:
    sasl = {"mechanism": "plain", "account": "bot", "password": "wrong-password"}
    async with a_world({"sasl": sasl}, waits=False, caps="sasl", accounts={"bot": "right"}) as world:
        await world.passes(lambda: "SASL: the account or its password is refused" in world.platform.link().words, 0)
        assert "wrong-password" not in world.platform.link().words
        await world.clock.advance(299)
        assert world.server.connections == 1
        world.server.accounts["bot"] = "wrong-password"
        await world.passes(lambda: world.platform.link().is_up)


async def test_without_the_proof_it_goes_on_where_the_settings_say_so() -> None:
    sasl = {"mechanism": "plain", "account": "bot", "password": "secret-word", "required": False}
    async with a_world({"sasl": sasl}) as world:
        assert world.platform.link().is_up


async def test_a_channels_key_is_sent_and_a_refused_channel_is_tried_less_and_less_often() -> None:
    channels = [{"name": "#family"}, {"name": "#ops", "key": "s3cret"}, {"name": "#closed"}]
    async with a_world({"channels": channels}, waits=False, isupport=f"{ISUPPORT} TARGMAX=JOIN:") as world:
        world.server.refused_joins["#closed"] = "474"
        await world.joined()
        assert world.server.has("JOIN") == ["JOIN #ops,#family,#closed :s3cret"]
        closed = ChatRef("irc", "test", "#closed")
        await world.joined(closed)
        assert "#closed: the bot is banned from it" in world.platform.link().words
        failure = await world.fails_to_send("Hello.", chat=closed)
        assert (failure.retryable, "banned" in str(failure)) == (False, True)
        await world.clock.advance(600)
        assert 5 <= len(world.server.has("JOIN :#closed")) <= 7
        world.server.refused_joins.clear()
        await world.passes(lambda: "#closed" not in world.platform.link().words, 60)


# Being cut off


async def test_a_lost_connection_is_tried_again_after_growing_pauses_and_says_how_long_it_was_deaf() -> None:
    async with a_world() as world:
        world.server.is_refusing = True
        world.server.drop()
        moments: list[float] = []
        for number in range(6):
            await world.passes(lambda wanted=number + 2: world.platform.link().losses >= wanted, 1)
            moments.append(world.clock.monotonic())
        pauses = [round(later - sooner) for sooner, later in pairwise(moments)]
        assert pauses == [4, 8, 16, 32, 64]
        assert "the server says: Closing link: (go away); connecting again in 128 s" in world.platform.link().words
        world.server.is_refusing = False
        await world.passes(lambda: world.platform.link().is_up, 10)
        assert "s without a connection is not known" in world.platform.link().words
        await world.joined()


async def test_the_server_is_told_that_the_bot_leaves() -> None:
    async with a_world() as world:
        pass
    assert world.server.has("QUIT") == ["QUIT :shutting down"]


async def test_messages_that_cannot_be_stored_for_a_while_are_accepted_later_in_order() -> None:
    async with a_world() as world:
        world.fails = [StoreError("the database is away"), StoreFull("no room"), StoreError("the database is away")]
        world.server.write(":ann!a@b PRIVMSG #family :one", ":ann!a@b PRIVMSG #family :two")
        await world.passes(lambda: len(world.heard) == 2, 1)
        assert [one.text for one in world.heard] == ["one", "two"]
        assert world.platform.link().losses == 0


async def test_how_long_no_process_was_there_is_said_as_well(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with a_store(tmp_path, clock, TABLES) as store:
        async with a_world(store=store, clock=clock) as world:
            assert "is not known" not in world.platform.link().words
            await clock.advance(3600)
            world.server.write("PING :still-here")
            await world.server.gets("PONG :still-here")
            assert await noted(store) == clock.now_ms()
            clock.jump(-1800)
            await clock.advance(60)
            world.server.write("PING :and-after-the-clock-was-set-back")
            await world.server.gets("PONG :and-after-the-clock-was-set-back")
            assert await noted(store) == clock.now_ms()
            await clock.advance(30)
        assert await noted(store) >= clock.now_ms() - 5000
        before = clock.monotonic()
        await clock.advance(7200)
        async with a_world(store=store, clock=clock) as world:
            words = world.platform.link().words
            found = re.search(r"what was said within (\d+) s without a connection is not known", words)
            assert found, words
            assert 7200 <= int(found[1]) <= clock.monotonic() - before + 5


async def noted(store: Store) -> int:
    """Time of the bot's last presence, as stored for a later process."""
    await store.commit([audit.advance("of somebody else", "", 0)])
    [row] = await store.read(audit.get("platform:irc:test"))
    return int(row["value"])


async def test_a_server_that_has_fallen_silent_is_noticed() -> None:
    async with a_world() as world:
        world.server.is_silent = True
        await world.clock.advance(89)
        assert world.platform.link().is_up
        await world.passes(lambda: world.platform.link().losses, 1)
        assert world.server.has("PING :still-there")
        assert "nothing was heard for 90 s" in world.platform.link().words


async def test_a_server_that_never_lets_us_in_is_left() -> None:
    async with a_world(waits=False) as world:
        world.server.is_silent = True
        await world.server.gets("USER")
        await world.passes(lambda: world.platform.link().losses, 5)
        assert "did not let the bot in in time" in world.platform.link().words


@caps_or_none
async def test_a_line_that_was_not_answered_when_the_connection_broke_has_an_unknown_outcome(caps: str) -> None:
    async with a_world(caps=caps) as world:
        world.server.drops = lambda line: "PRIVMSG" in line
        failure = await world.fails_to_send("Hello.")
        assert (failure.retryable, failure.unknown_outcome) == (True, True)


async def test_what_cannot_be_sent_for_want_of_a_connection_was_surely_not_sent() -> None:
    async with a_world(waits=False) as world:
        failure = await world.fails_to_send("Hello.")
        assert (failure.retryable, failure.unknown_outcome) == (True, False)


@caps_or_none
async def test_a_message_that_broke_off_goes_on_with_the_line_that_is_in_doubt(caps: str) -> None:
    async with a_world(caps=caps) as world:
        world.server.drops = lambda line: "three" in line
        failure = await world.fails_to_send("one\ntwo\nthree\nfour")
        assert failure.unknown_outcome
        world.server.drops = lambda line: False
        await world.passes(lambda: world.platform.link().is_up)
        await world.joined()
        await world.send("one\ntwo\nthree\nfour\n(sent again)")
        said = [line.rpartition(":")[2] for line in world.server.has("PRIVMSG")]
        assert said == ["one", "two", "three", "three", "four", "(sent again)"]


async def test_a_server_that_swallows_a_line_is_not_waited_for_without_end() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        world.server.swallows_texts = True
        sending = asyncio.create_task(world.fails_to_send("Hello."))
        await world.server.gets("PRIVMSG")
        await world.passes(sending.done, 5)
        assert (await sending).unknown_outcome


async def test_a_line_that_a_server_with_echoes_told_to_nobody_is_known_to_be_lost() -> None:
    async with a_world(caps="echo-message") as world:
        world.server.swallows_texts = True
        failure = await world.fails_to_send("Hello.")
        assert (failure.retryable, failure.unknown_outcome) == (False, False)


@caps_or_none
@pytest.mark.parametrize("numeric", ["401", "403", "404", "442"])
async def test_a_refusal_says_its_reason_and_is_not_tried_again(caps: str, numeric: str) -> None:
    async with a_world(caps=caps) as world:
        world.server.refused_texts["#family"] = numeric
        failure = await world.fails_to_send("Hello.")
        assert (failure.retryable, failure.unknown_outcome) == (False, False)
        assert numeric in str(failure)


async def test_who_was_kicked_comes_back_after_a_pause() -> None:
    async with a_world() as world:
        world.server.write(":ann!a@b KICK #family Rollcall :out")
        await world.passes(lambda: "the bot was kicked" in world.platform.link().words, 0)
        failure = await world.fails_to_send("Hello.")
        assert not failure.retryable
        await world.clock.advance(9)
        assert len(world.server.has("JOIN")) == 1
        await world.passes(lambda: "kicked" not in world.platform.link().words)
        await world.send("Hello.")


# Bad bytes


async def test_lines_may_come_in_any_pieces_and_any_encoding() -> None:
    async with a_world() as world:
        for byte in ":ann!a@b PRIVMSG #family :Rollcall: grüß dich\r\n".encode():
            world.server.write(bytes([byte]))
            await asyncio.sleep(0)
        world.server.write(":ann!a@b PRIVMSG #family :caf\xe9\r\n".encode("latin-1"))
        world.server.write(
            b"\r\n\r\n:\r\n@\r\n:x \r\nPRIVMSG\r\n:ann!a@b PRIVMSG #family\r\n:ann!a@b JOIN\r\n:!@ NICK\r\n"
        )
        world.server.write(b":ann!a@b PRIVMSG #family :" + b"x" * 20_000 + b"\r\n", ":ann!a@b PRIVMSG #family :end")
        assert [one.text for one in await world.hears(4)] == ["grüß dich", "café", "", "end"]


async def test_a_flood_is_handed_over_whole_and_in_order_while_pings_are_answered() -> None:
    async with a_world() as world:
        world.server.write(*(f":ann!a@b PRIVMSG #family :line {number}" for number in range(5000)), "PING :now")
        await world.server.gets("PONG :now")
        assert [one.text for one in await world.hears(5000)] == [f"line {number}" for number in range(5000)]
        assert len({one.key for one in world.heard}) == 5000


async def test_a_message_waits_while_the_disk_is_full() -> None:
    async with a_world() as world:
        world.fails = [StoreFull("no room"), StoreFull("no room")]
        world.server.write(":ann!a@b PRIVMSG #family :one", ":ann!a@b PRIVMSG #family :two")
        await world.passes(lambda: len(world.heard) == 2, 1)
        assert [one.text for one in world.heard] == ["one", "two"]


# Talking


async def test_two_equal_lines_are_two_messages_and_one_with_an_id_is_itself() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        line = ":ann!a@b PRIVMSG #family :hello"
        world.server.write(line, line, f"@msgid=m1 {line}", f"@msgid=m1 {line}")
        first, second, third, fourth = await world.hears(4)
        assert len({first.key, second.key, third.key}) == 3
        assert third.key == fourth.key
        assert third.key.native_id == "m1"


async def test_what_the_bot_says_never_comes_in() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        assert (await world.send("Rollcall: hello")).native_id == "id1"
        world.server.write(":rollcall!r@h PRIVMSG #family :Rollcall: hello", ":ann!a@b PRIVMSG #family :hi")
        assert [one.text for one in await world.hears(1)] == ["hi"]


async def test_a_reply_to_the_bot_calls_it_and_a_reply_of_the_bots_says_to_whom() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        receipt = await world.send("It is six o'clock.")
        world.server.write(f"@msgid=m7;+draft/reply={receipt.native_id} :ann!a@b PRIVMSG #family :and now?")
        [context] = await world.hears(1)
        assert context.reply_to is not None
        assert (context.reply_to.text, context.calls_bot) == ("It is six o'clock.", True)
        await world.send("Seven.", "2:0:0", reply_to="m7", mentions=(MemberRef("irc", "test", "~bob"),))
        [said] = world.server.has("Seven.")
        assert "+draft/reply=m7" in said
        assert said.endswith("PRIVMSG #family :ann, bob: Seven.")


async def test_ctcp_is_answered_three_times_a_minute_and_notices_never() -> None:
    async with a_world() as world:
        for number in range(5):
            world.server.write(f":p{number}!a@b PRIVMSG Rollcall :\x01VERSION\x01")
        world.server.write(
            ":ann!a@b NOTICE Rollcall :\x01VERSION\x01",
            ":ann!a@b NOTICE Rollcall :hello",
            ":ann!a@b PRIVMSG #family :\x01PING 1\x01",
            ":ann!a@b PRIVMSG Rollcall :\x01DCC SEND x 1 2 3\x01",
            ":ann!a@b NOTICE #family :Rollcall: hello",
            "PING :end",
        )
        await world.server.gets("PONG :end")
        await world.server.gets("NOTICE", 3)
        [only] = await world.hears(1)
        assert (only.text, only.sender.is_bot) == ("hello", True)
        assert world.server.has("NOTICE") == [f"NOTICE p{number} :\x01VERSION Rollcall\x01" for number in range(3)]


async def test_lines_go_out_in_a_burst_then_one_by_one_and_pongs_pass_them() -> None:
    async with a_world({"flood": {"burst_lines": 4, "seconds_per_line": 2}}) as world:
        await world.clock.advance(60)
        sending = asyncio.create_task(world.send("\n".join(f"line {number}" for number in range(7))))
        await world.server.gets("PRIVMSG", 4)
        world.server.write("PING :now")
        await world.server.gets("PONG :now")
        assert len(world.server.has("PRIVMSG")) == 4
        await world.passes(lambda: len(world.server.has("PRIVMSG")) == 5, 0.5)
        assert 1.5 <= world.clock.monotonic() - 60 <= 3
        await world.passes(sending.done, 1)
        assert [line.rpartition(" ")[2] for line in world.server.has("PRIVMSG")] == [str(number) for number in range(7)]


async def test_no_line_is_longer_than_what_the_server_passes_on() -> None:
    mask = "rollcall@a-rather-long-host.name.test"
    async with a_world(caps=ALL_CAPS, mask=mask) as world:
        text = "你好 👨‍👩‍👧 " * 200
        await world.send(text)
        said = [line.partition(" PRIVMSG ")[2] for line in world.server.has("PRIVMSG")]
        lengths = [len(f":Rollcall!{mask} PRIVMSG {line}\r\n".encode()) for line in said]
        assert max(lengths) <= 512
        assert min(lengths[:-1]) > 480
        assert "".join(line.partition(" :")[2] for line in said).replace(" ", "") == text.replace(" ", "")


async def test_typing_is_shown_where_the_server_passes_it_on_and_not_too_often() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        for status in ("…", "looking it up", "", ""):
            await world.platform.typing(FAMILY, status)
        await world.server.gets("TAGMSG", 2)
        assert world.server.has("TAGMSG") == ["@+typing=active TAGMSG :#family", "@+typing=done TAGMSG :#family"]


async def test_what_was_said_before_we_came_is_marked() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        world.server.write(
            ":irc.test BATCH +7 chathistory #family",
            "@batch=7;msgid=h1 :ann!a@b PRIVMSG #family :Rollcall: yesterday",
            ":irc.test BATCH -7",
            ":ann!a@b PRIVMSG #family :Rollcall: today",
        )
        assert [(one.text, one.backfilled) for one in await world.hears(2)] == [("yesterday", True), ("today", False)]


async def test_what_only_operators_are_told_is_answered_to_them_alone() -> None:
    async with a_world() as world:
        world.server.write(":ann!a@b PRIVMSG @#family :Rollcall: who is on duty?")
        [context] = await world.hears(1)
        assert (context.chat, context.private, context.is_group) == (FAMILY, True, True)
        await world.send("You are.", private_to=context.sender.ref)
        assert world.server.has("PRIVMSG") == ["PRIVMSG ann :You are."]


async def test_people_who_come_and_go_are_told_of() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        world.server.write(
            ":cleo!c@d JOIN #family cleo :Cleo",
            ":cleo!c@d NICK :cleopatra",
            ":cleopatra!c@d QUIT :bye",
            ":bob!c@d PART #family :bye",
            ":ann!c@d KICK #family dora :bye",
        )
        seen = [(one.kind, one.sender.ref.native) for one in await world.hears(4)]
        assert seen == [(Kind.JOIN, "cleo"), (Kind.LEAVE, "cleo"), (Kind.LEAVE, "~bob"), (Kind.LEAVE, "~dora")]
        assert len({one.key for one in world.heard}) == 4


# Identity


async def test_only_an_account_makes_somebody_more_than_a_member() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        ann, by_nick = MemberRef("irc", "test", "annie"), MemberRef("irc", "test", "~ann")
        world.server.write(":ann!a@b PRIVMSG #family :one", "@account=Annie :ann!a@b PRIVMSG #family :two")
        first, second = await world.hears(2)
        assert (first.sender.ref, first.sender.role) == (by_nick, Role.MEMBER)
        assert (second.sender.ref, second.sender.role) == (ann, Role.MODERATOR)
        assert await world.platform.role(FAMILY, ann) is Role.MODERATOR
        assert await world.platform.role(FAMILY, by_nick) is None
        world.server.write(":bob!c@d MODE #family +q-o ann ann", ":irc.test PING :x", "PING :moded")
        await world.server.gets("PONG :moded")
        assert await world.platform.role(FAMILY, ann) is Role.ADMIN
        world.server.write(":ann!a@b ACCOUNT *", "PING :gone")
        await world.server.gets("PONG :gone")
        assert await world.platform.role(FAMILY, ann) is None
        assert await world.platform.role(FAMILY, by_nick) is Role.MEMBER


async def test_a_private_answer_goes_to_the_owner_of_the_account_and_not_to_a_new_user_of_the_nick() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        world.server.write("@account=zoe :zo!a@b PRIVMSG Rollcall :psst")
        [context] = await world.hears(1)
        assert (context.chat.native, context.is_group) == ("zoe", False)
        world.server.whois["zo"] = "zoe"
        await world.send("Yes?", chat=context.chat)
        assert world.server.has("PRIVMSG")[0].endswith("PRIVMSG zo :Yes?")
        assert await world.platform.role(context.chat, context.sender.ref) is Role.MEMBER
        world.server.whois["zo"] = "mallory"
        failure = await world.fails_to_send("A secret.", "2:0:0", chat=context.chat)
        assert not failure.retryable
        assert not world.server.has("A secret.")
        assert await world.platform.role(context.chat, context.sender.ref) is None


async def test_a_bare_nick_that_somebody_with_an_account_took_is_told_nothing() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        world.server.write(":dora!a@b PRIVMSG Rollcall :psst")
        [context] = await world.hears(1)
        await world.send("Yes?", chat=context.chat)
        world.server.write(
            ":mallory!m@h JOIN #family mallory :M", ":mallory!m@h NICK dora", ":irc.test PING :x", "PING :taken"
        )
        await world.server.gets("PONG :taken")
        assert not (await world.fails_to_send("A secret.", "2:0:0", chat=context.chat)).retryable
        assert not world.server.has("A secret.")


async def test_the_same_nick_in_other_letters_is_the_same_person() -> None:
    async with a_world() as world:
        world.server.write(":Ann[1]!a@b PRIVMSG #Family :one", ":ann{1}!a@b PRIVMSG #FAMILY :two")
        first, second = await world.hears(2)
        assert first.sender.ref == second.sender.ref
        assert first.chat == second.chat == FAMILY
