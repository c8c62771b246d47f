"""Contract of all chat networks, as a pytest plugin.

An adapter's tests subclass `PlatformContract` and define `open`, which starts the other side (a real server, or a fake
that a foreign client has certified) and yields a `Network`. A capability that the network does not have is declared by
the platform (by its protocols and `Limits`) or in `lacks`.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

import orjson
import pytest

from bot.platforms.adapter import Host
from bot.platforms.base import (
    Accepted,
    ChatPlatform,
    CommandMenus,
    Editing,
    Files,
    FileUnavailable,
    Linked,
    Membership,
    Moderating,
    Outgoing,
    Reacting,
    SendFailed,
)
from function_calls.context import Attachment, Kind, MessageContext
from function_calls.ports import Measure, ModerationRequest
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, JsonObject, MemberRef, Role
from services.store.all_tables import all_tables
from services.store.ids import Ids
from services.store.port import Store, StoreError, Write
from services.store.sqlite.store import SqliteStore
from services.store.sqlite.upgrade import upgrade
from services.store.turns import outbox

WAIT_SECONDS = 20.0
BOT_NAMES = ("Rollcall", "小助手")
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
"""A picture of one pixel."""


class Failure(StrEnum):
    """Ways in which the network rejects the bot's next send."""

    RATE_LIMITED = "rate limited"  # HTTP 429 with `Retry-After: 7`, or the network's form of it
    SERVER_ERROR = "server error"  # HTTP 500; nothing was sent
    DELIVERED_WITHOUT_ANSWER = "delivered without answer"  # the message is shown, and the connection breaks
    REMOVED = "removed"  # the bot is no longer in the chat
    NO_SUCH_CHAT = "no such chat"
    REPLY_IS_GONE = "reply is gone"  # the message that is replied to was deleted; without a reply the send succeeds
    BAD_MARKUP = "bad markup"  # the formatting is rejected; as plain text the send succeeds


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as members see it."""

    text: str
    native_id: str = ""
    buttons: tuple[str, ...] = ()
    """Labels."""
    reply_to: str = ""
    files: tuple[bytes, ...] = ()


class OtherSide(Protocol):
    """Members and operators of the network. Members are named by their native ids, `who`; ids are native. A method of a
    capability that the network does not have raises NotImplementedError. The network has a group with the bot and the
    members `ann` and `ben`, a private chat with `ann`, and a bot that is not ours, `robot`, in the group."""

    async def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "",
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
    ) -> str:
        """Send a message to the group, or to `chat`; returns its id. `mention`: begins with the network's own mention
        of the bot. `file`: name and content."""

    async def edit(self, who: str, native_id: str, text: str) -> None: ...  # edit a member's message in the group
    async def delete(self, who: str, native_id: str) -> None: ...  # delete a member's message in the group
    async def react(self, who: str, native_id: str, emoji: str) -> None: ...  # react to a message in the group
    # Press a button of the bot's message in the group.
    async def press(self, who: str, native_id: str, label: str) -> None: ...
    async def enter(self, who: str) -> None: ...  # a new member joins the group
    async def leave(self, who: str) -> None: ...  # a member leaves the group
    # `who` adds the bot to another group; returns the native id of that chat.
    async def add_bot(self, who: str) -> str: ...
    # Give a member of the group the network's form of `role`.
    async def promote(self, who: str, role: Role) -> None: ...
    async def empower(self) -> None: ...  # give the bot the rights to moderate the group
    async def repeat(self) -> None: ...  # deliver the last event again
    async def send_garbage(self) -> None: ...  # deliver an event that no parser expects
    async def disconnect(self) -> None: ...  # break the bot's connection; new ones are accepted
    async def fail_next(self, failure: Failure) -> None: ...  # reject the bot's next send
    # Start a thread or topic in the group with a message; returns the native id of the thread's chat.
    async def open_thread(self, who: str, text: str) -> str: ...
    # The bot's messages that are visible now in the group, or in `chat`, oldest first.
    async def shown(self, chat: str = "") -> list[Shown]: ...
    async def reactions(self, native_id: str) -> list[str]: ...  # the bot's reactions to a message in the group


@dataclass(slots=True)
class Network:
    """A platform under test, and its other side."""

    platform: ChatPlatform
    side: OtherSide
    group: str = "family"
    """Native id of the group."""
    private: str = ""
    """Native id of the private chat with Ann; empty if it is her own id."""
    ann: str = "ann"
    """Native ids of members."""
    ben: str = "ben"
    robot: str = "robot"
    reopen: Callable[[], ChatPlatform] | None = None
    """A platform for the same account and store, as after a restart. None: the platform keeps no state."""

    @property
    def chat(self) -> ChatRef:
        """The group."""
        return ChatRef(self.platform.name, self.platform.account, self.group)

    def member(self, native: str) -> MemberRef:
        """A member of the network."""
        return MemberRef(self.platform.name, self.platform.account, native)

    def outgoing(self, text: str = "Hello.", key: str = "1:0:0", **facts: object) -> Outgoing:
        """A message to the group."""
        return Outgoing(self.chat, key, text, **facts)  # type: ignore[arg-type]


@dataclass(slots=True)
class Daemon:
    """Accepts what a platform delivers, each event once, with its writes."""

    store: Store
    received: list[MessageContext] = field(default_factory=list)
    repeated: int = 0
    failures: list[Exception] = field(default_factory=list)
    """Raised for the next events, one each, which are not accepted."""
    _keys: set[str] = field(default_factory=set)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def deliver(self, context: MessageContext, writes: Sequence[Write]) -> Accepted:
        """See `Deliver`."""
        if self.failures:
            raise self.failures.pop(0)
        await self.store.commit(list(writes))
        async with self._changed:
            is_new = context.key.text not in self._keys
            if is_new:
                self._keys.add(context.key.text)
                self.received.append(context)
            else:
                self.repeated += 1
            self._changed.notify_all()
        return Accepted.NEW if is_new else Accepted.DUPLICATE

    async def until(self, condition: Callable[[Daemon], bool]) -> None:
        """Return when `condition` holds. Raises TimeoutError after WAIT_SECONDS, with what was received."""
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._changed:
                await self._changed.wait_for(lambda: condition(self))
        except TimeoutError:
            raise TimeoutError(f"received only {self.received}") from None

    async def gets(self, kind: Kind = Kind.MESSAGE, text: str = "") -> MessageContext:
        """The first event of that kind with `text` in its text, as soon as it is received."""

        def found() -> list[MessageContext]:
            return [one for one in self.received if one.kind is kind and text in one.text]

        await self.until(lambda _: bool(found()))
        return found()[0]

    @property
    def texts(self) -> list[str]:
        """Texts of the received messages."""
        return [one.text for one in self.received if one.kind is Kind.MESSAGE]


@asynccontextmanager
async def a_host(home: Path, names: Sequence[str] = BOT_NAMES) -> AsyncIterator[Host]:
    """A host with a new store in `home`, or the one that is there, on the system's clock."""
    clock = SystemClock()
    path = home / "contract.sqlite"
    if not path.exists():
        upgrade(path, backups=home, clock=clock, tables=all_tables())
    store = await SqliteStore.open(path, clock=clock)
    try:
        yield Host(store, Ids(clock), clock, names, home / "account")
    finally:
        await store.close()


@asynccontextmanager
async def receiving(platform: ChatPlatform, store: Store, *failures: Exception) -> AsyncIterator[Daemon]:
    """Run `platform` with a daemon, connected, until the end of the block. `failures`: see `Daemon.failures`."""
    daemon = Daemon(store, failures=list(failures))
    running = asyncio.create_task(platform.run(daemon.deliver))
    try:
        if isinstance(platform, Linked):
            await until(lambda: platform.link().is_up, lambda: platform.link().words)
        yield daemon
    finally:
        running.cancel()
        await asyncio.wait([running])
        if not running.cancelled() and running.exception() is not None:
            raise running.exception() or AssertionError


async def until(condition: Callable[[], bool], words: Callable[[], str] = str) -> None:
    """Return when `condition` holds. Raises TimeoutError with `words` after WAIT_SECONDS."""
    for _ in range(round(WAIT_SECONDS / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError(words())


_MODERATION = (Measure.KICK, Measure.BAN, Measure.SILENCE, Measure.PIN, Measure.INVITE)
_NEEDS: dict[str, frozenset[str]] = {}
"""Capabilities that each test requires of a network, by the name of the test."""
_Test = TypeVar("_Test", bound=Callable[..., object])


def needs(*what: str) -> Callable[[_Test], _Test]:
    """Leave a test of the contract out for networks that lack one of `what`; see `PlatformContract.lacks`."""

    def mark(test: _Test) -> _Test:
        _NEEDS[test.__name__] = frozenset(what)
        return test

    return mark


class PlatformContract:
    """The contract. Subclasses define `open`."""

    lacks: frozenset[str] = frozenset()
    """Names of methods of `OtherSide` that the network has no event for, as the adapter's docs say, and failures that
    it has no form of. "say": only sending is tested, as for a terminal; "exact text": every text is read as Markdown.
    Tests that need one of them are left out."""

    def __init_subclass__(cls) -> None:
        for name, needed in _NEEDS.items():
            if needed & cls.lacks:
                setattr(cls, name, None)

    def open(self, home: Path) -> AbstractAsyncContextManager[tuple[Network, Host]]:
        """Start the network, with files in the empty folder `home`."""
        raise NotImplementedError

    # Sending

    async def test_what_is_sent_is_shown_and_has_an_id(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            first = await network.platform.send(network.outgoing())
            second = await network.platform.send(network.outgoing("Bye.", "2:0:0"))
            assert first.native_id
            assert first.native_id != second.native_id
            shown = [one.text for one in await network.side.shown()]
            assert [("Hello." in text, "Bye." in text) for text in shown] == [(True, False), (False, True)]

    async def test_a_second_send_with_the_same_key_is_dropped_where_that_is_promised(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            for _ in range(2):
                receipt = await network.platform.send(network.outgoing())
            assert receipt.native_id
            expected = 1 if network.platform.limits.sends_are_idempotent else 2
            assert len(await network.side.shown()) == expected

    async def test_a_text_as_long_as_the_limit_is_sent_whole(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            text = "x" * network.platform.limits.text_chars
            await network.platform.send(network.outgoing(text))
            shown = (await network.side.shown())[0].text
            assert text in shown, shown

    @needs("exact text")
    async def test_a_text_of_any_characters_is_shown_as_it_is(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            text = "5 < 6 & *a* _b_ <b>c</b> [d](e) `f` @here @everyone 你好 👋"
            await network.platform.send(network.outgoing(text))
            shown = (await network.side.shown())[0].text
            assert text in shown, shown

    async def test_everything_that_delivery_may_hand_over_is_taken(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            choices = (Choice("Yes", "yes"),) if network.platform.limits.choices else ()
            outgoing = network.outgoing(
                "你好 👨‍👩‍👧",
                reply_to="999999",
                mentions=(network.member(network.ann),),
                choices=choices,
                private_to=network.member(network.ann),
                markdown=True,
            )
            assert (await network.platform.send(outgoing)).native_id

    async def test_files_are_sent_where_the_network_takes_them(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            if not network.platform.limits.attachments or network.platform.limits.file_bytes == 0:
                return
            picture = Attachment("dot.png", "image/png", _data_url(PNG, "image/png"), len(PNG))
            await network.platform.send(network.outgoing("A dot.", attachments=(picture,)))
            note = Attachment("note.txt", "text/plain", "data:text/plain,5%20%3C%206")
            await network.platform.send(network.outgoing("A note.", "2:0:0", attachments=(note,)))
            shown = await network.side.shown()
            files = [content for one in shown for content in one.files]
            assert PNG in files
            assert b"5 < 6" in files
            assert "A dot." in "".join(one.text for one in shown)

    async def test_a_sent_message_can_be_changed_and_deleted_where_that_is_promised(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            platform = network.platform
            if not isinstance(platform, Editing):
                return
            choices = (Choice("Tea", "tea"),) if platform.limits.choices else ()
            sent = await platform.send(network.outgoing("1 vote", choices=choices))
            for _ in range(2):
                await platform.edit(sent.native_id, network.outgoing("2 votes"))
            (shown,) = await network.side.shown()
            assert "2 votes" in shown.text
            assert shown.buttons == ()
            for _ in range(2):
                await platform.delete(network.chat, sent.native_id)
            assert await network.side.shown() == []
            with pytest.raises(SendFailed) as failed:
                await platform.edit(sent.native_id, network.outgoing("3 votes"))
            assert not failed.value.retryable

    async def test_the_bot_reacts_where_that_is_promised(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            platform = network.platform
            if not isinstance(platform, Reacting):
                return
            said = await network.side.say(network.ann, "Done.")
            await platform.react(network.chat, said, "👍")
            assert await network.side.reactions(said) == ["👍"]
            await platform.react(network.chat, said, "")
            assert await network.side.reactions(said) == []

    @pytest.mark.parametrize("failure", [Failure.RATE_LIMITED, Failure.SERVER_ERROR])
    @needs("fail_next")
    async def test_a_temporary_failure_may_be_retried(self, tmp_path: Path, failure: Failure) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            if failure in self.lacks:
                return
            await network.side.fail_next(failure)
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(network.outgoing())
            assert failed.value.retryable
            wanted = 7 if failure is Failure.RATE_LIMITED else None
            assert failed.value.retry_after_seconds == wanted
            assert (await network.platform.send(network.outgoing())).native_id
            assert len(await network.side.shown()) == 1

    @needs("fail_next", Failure.DELIVERED_WITHOUT_ANSWER)
    async def test_a_send_without_an_answer_has_an_unknown_outcome(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            await network.side.fail_next(Failure.DELIVERED_WITHOUT_ANSWER)
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(network.outgoing())
            assert failed.value.retryable
            assert failed.value.unknown_outcome
            await network.platform.send(network.outgoing())
            expected = 1 if network.platform.limits.sends_are_idempotent else 2
            assert len(await network.side.shown()) == expected

    @pytest.mark.parametrize("failure", [Failure.REMOVED, Failure.NO_SUCH_CHAT])
    @needs("fail_next")
    async def test_a_send_to_a_chat_that_the_bot_is_not_in_is_given_up(self, tmp_path: Path, failure: Failure) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            if failure in self.lacks:
                return
            await network.side.fail_next(failure)
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(network.outgoing())
            assert not failed.value.retryable

    @pytest.mark.parametrize("failure", [Failure.REPLY_IS_GONE, Failure.BAD_MARKUP])
    @needs("fail_next")
    async def test_a_detail_that_the_network_rejects_is_left_out(self, tmp_path: Path, failure: Failure) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            if failure in self.lacks:
                return
            await network.side.fail_next(failure)
            await network.platform.send(network.outgoing("*Hello*", reply_to="999999", markdown=True))
            assert "Hello" in (await network.side.shown())[0].text

    @pytest.mark.parametrize("status", ["…", "looking it up", ""])
    async def test_typing_never_fails(self, tmp_path: Path, status: str) -> None:
        async with self.open(tmp_path) as (network, host), _connected(network, host):
            await network.platform.typing(network.chat, status)
            nowhere = ChatRef(network.platform.name, network.platform.account, "nowhere")
            await network.platform.typing(nowhere, status)

    # Receiving

    @needs("say")
    async def test_a_message_is_received_with_its_facts(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            native_id = await network.side.say(network.ann, "Tea at 5?")
            context = await daemon.gets(text="Tea")
            assert context.text == "Tea at 5?"
            assert context.key == (context.chat, native_id, Kind.MESSAGE, "")
            assert context.chat == network.chat
            assert context.is_group
            assert context.sender.ref == network.member(network.ann)
            assert context.sender.name
            assert not context.sender.is_bot
            assert not context.mentions_bot
            assert not context.backfilled
            assert abs(context.sent_at - host_now()) < timedelta(minutes=5)

    @needs("say")
    async def test_a_private_message_is_for_the_bot(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.side.say(network.ann, "Hi there.", chat=network.private or network.ann)
            context = await daemon.gets(text="Hi")
            assert not context.is_group
            assert context.calls_bot

    @needs("say")
    async def test_a_mention_of_the_bot_is_removed_from_the_text(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.side.say(network.ann, "roll a die", mention=True)
            context = await daemon.gets(text="roll")
            assert context.text == "roll a die"
            assert context.mentions_bot
            await network.side.say(network.ann, "Rollcall, flip a coin")
            context = await daemon.gets(text="flip")
            assert context.text == "flip a coin"
            assert context.mentions_bot

    @needs("say", "reply_to")
    async def test_a_reply_to_the_bot_is_for_the_bot(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            sent = await network.platform.send(network.outgoing("Which city?"))
            await network.side.say(network.ann, "Oslo", reply_to=sent.native_id)
            context = await daemon.gets(text="Oslo")
            assert context.reply_to is not None
            assert context.reply_to.native_id == sent.native_id
            assert context.reply_to.from_bot

    @needs("say")
    async def test_messages_of_bots_are_marked_and_own_ones_left_out(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.platform.send(network.outgoing("I am the bot."))
            if network.platform.limits.bots_are_marked:
                await network.side.say(network.robot, "beep")
            await network.side.say(network.ann, "end")
            await daemon.gets(text="end")
            assert [one.text for one in daemon.received if not one.sender.is_bot and one.kind is Kind.MESSAGE] == [
                "end"
            ]
            assert "I am the bot." not in daemon.texts

    @needs("say", "edit")
    async def test_edits_are_received(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            native_id = await network.side.say(network.ann, "in Olso")
            await network.side.edit(network.ann, native_id, "in Oslo")
            edited = await daemon.gets(Kind.EDIT)
            assert (edited.key.native_id, edited.text) == (native_id, "in Oslo")

    @needs("say", "delete")
    async def test_deletions_are_received(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            native_id = await network.side.say(network.ann, "in Rome")
            await network.side.delete(network.ann, native_id)
            assert (await daemon.gets(Kind.DELETE)).key.native_id == native_id

    @needs("say", "react")
    async def test_a_reaction_names_its_message(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            sent = await network.platform.send(network.outgoing("Delete all?"))
            await network.side.react(network.ann, sent.native_id, "👍")
            context = await daemon.gets(Kind.REACTION)
            assert (context.key.native_id, context.text) == (sent.native_id, "👍")
            assert context.sender.ref == network.member(network.ann)

    @needs("say")
    async def test_a_button_gives_its_value(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            if not network.platform.limits.choices:
                return
            long = "the long way round " * 10
            choices = (Choice("Yes", "yes"), Choice("Long", long), Choice("Undo", "/undo 12", stays=True))
            outgoing = network.outgoing("Go?", choices=choices)
            await daemon.store.commit([outbox_row(outgoing)])
            sent = await network.platform.send(outgoing)
            assert (await network.side.shown())[0].buttons == ("Yes", "Long", "Undo")
            for label, value in (("Undo", "/undo 12"), ("Long", long)):
                await network.side.press(network.ann, sent.native_id, label)
                context = await daemon.gets(Kind.CHOICE, value)
                assert context.text == value
                assert context.sender.ref == network.member(network.ann)
                assert context.reply_to is not None
                assert (context.reply_to.native_id, context.reply_to.from_bot) == (sent.native_id, True)
            await network.platform.send(network.outgoing("Closed.", "2:0:0", closes=(sent.native_id,)))
            assert (await network.side.shown())[0].buttons == ()

    @needs("say", "enter")
    async def test_members_come_and_go(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.side.enter("carl")
            assert (await daemon.gets(Kind.JOIN)).chat == network.chat
            await network.side.leave("carl")
            assert (await daemon.gets(Kind.LEAVE)).chat == network.chat

    @needs("say", "add_bot")
    async def test_the_bot_hears_who_added_it_and_can_leave(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            other = await network.side.add_bot(network.ann)
            context = await daemon.gets(Kind.ADDED)
            assert context.chat.native == other
            assert context.sender.ref == network.member(network.ann)
            if isinstance(network.platform, Membership):
                for _ in range(2):
                    await network.platform.leave(context.chat)

    @needs("say", "promote")
    async def test_roles_are_read_when_they_are_needed(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, _):
            platform = network.platform
            assert await platform.role(network.chat, network.member("999999")) is None
            assert await platform.role(network.chat, network.member(network.ben)) is Role.MEMBER
            await network.side.promote(network.ben, Role.ADMIN)
            assert await platform.role(network.chat, network.member(network.ben)) is Role.ADMIN
            await network.side.promote(network.ben, Role.MEMBER)
            assert await platform.role(network.chat, network.member(network.ben)) is Role.MEMBER

    @needs("say", "promote")
    async def test_a_message_of_an_admin_carries_the_role(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.side.promote(network.ben, Role.ADMIN)
            await network.side.say(network.ben, "as an admin", mention=True)
            assert (await daemon.gets(text="as an admin")).sender.role.rank >= Role.ADMIN.rank

    @needs("say", "empower")
    async def test_members_are_moderated_where_that_is_promised(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, _):
            platform, ben = network.platform, network.member(network.ben)
            if not isinstance(platform, Moderating):
                return
            await network.side.empower()
            sent = await platform.send(network.outgoing())
            ways = {
                Measure.LINK: ModerationRequest(network.chat, Measure.LINK),
                Measure.PIN: ModerationRequest(network.chat, Measure.PIN, message_id=sent.native_id),
                Measure.SILENCE: ModerationRequest(network.chat, Measure.SILENCE, ben, seconds=3600),
                Measure.KICK: ModerationRequest(network.chat, Measure.KICK, ben),
            }
            for measure, request in ways.items():
                if measure in platform.measures:
                    assert bool(await platform.moderate(request)) == (measure is Measure.LINK)
            await _until_gone(platform, network.chat, ben)

    @needs("say", "empower")
    async def test_a_banned_member_is_gone(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, _):
            platform, ben = network.platform, network.member(network.ben)
            if isinstance(platform, Moderating) and Measure.BAN in platform.measures:
                await network.side.empower()
                await platform.moderate(ModerationRequest(network.chat, Measure.BAN, ben))
                await _until_gone(platform, network.chat, ben)

    @needs("say", "empower")
    async def test_a_measure_that_the_network_rejects_is_not_done(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, _):
            platform, stranger = network.platform, network.member(f"{network.ben}9")
            if isinstance(platform, Moderating) and Measure.KICK in platform.measures:
                await network.side.empower()
                with pytest.raises(SendFailed) as failed:
                    await platform.moderate(ModerationRequest(network.chat, Measure.KICK, stranger))
                assert not failed.value.retryable
                assert not failed.value.unknown_outcome

    @needs("say")
    async def test_files_of_members_are_read_up_to_a_limit(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            platform = network.platform
            if not isinstance(platform, Files):
                return
            await network.side.say(network.ann, "Look", file=("dot.png", PNG))
            await daemon.until(lambda all_: any(one.attachments for one in all_.received))
            (file,) = next(one.attachments for one in daemon.received if one.attachments)
            assert file.name == "dot.png" or file.media_type.startswith("image/")
            assert await platform.read_file(file, 10_000) == PNG
            with pytest.raises(FileUnavailable):
                await platform.read_file(file, 10)

    @needs("say", "open_thread")
    async def test_a_thread_is_a_chat_of_its_own(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            thread = await network.side.open_thread(network.ann, "About tea")
            context = await daemon.gets(text="About tea")
            assert context.chat.native == thread
            assert thread.startswith(f"{network.group},")
            await network.platform.send(Outgoing(context.chat, "3:0:0", "In the thread."))
            assert ["In the thread." in one.text for one in await network.side.shown(thread)] == [True]

    @needs("say", "send_garbage")
    async def test_an_event_that_cannot_be_read_holds_up_nothing(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.side.send_garbage()
            await network.side.say(network.ann, "still here")
            assert (await daemon.gets(text="still")).text == "still here"

    @needs("say", "repeat")
    async def test_an_event_that_comes_twice_has_the_same_key(self, tmp_path: Path) -> None:
        async with self._both(tmp_path) as (network, daemon):
            await network.side.say(network.ann, "once")
            await daemon.gets(text="once")
            await network.side.repeat()
            await network.side.say(network.ann, "end")
            await daemon.gets(text="end")
            assert daemon.texts == ["once", "end"]

    @needs("say")
    async def test_an_event_that_was_not_accepted_comes_again(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host):
            if not network.platform.limits.catches_up:
                return
            async with receiving(network.platform, host.store) as daemon:
                daemon.failures.append(StoreError("the database is away"))
                await network.side.say(network.ann, "first")
                await network.side.say(network.ann, "second")
                await daemon.gets(text="second")
                assert daemon.texts == ["first", "second"]

    @needs("say", "disconnect")
    async def test_a_broken_connection_is_restored(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host):
            platform = network.platform
            if not isinstance(platform, Linked):
                return
            async with receiving(platform, host.store) as daemon:
                await network.side.say(network.ann, "before")
                await daemon.gets(text="before")
                await network.side.disconnect()
                await until(lambda: platform.link().losses > 0, lambda: "the loss was not noticed")
                await until(lambda: platform.link().is_up, lambda: platform.link().words)
                await network.side.say(network.ann, "after")
                await daemon.gets(text="after")
                assert daemon.texts == ["before", "after"]

    @needs("say")
    async def test_messages_of_the_time_away_are_received_in_order_where_that_is_promised(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host):
            if network.reopen is None:
                return
            await network.side.say(network.ann, "before the bot came")
            async with receiving(network.platform, host.store) as daemon:
                await network.side.say(network.ann, "seen")
                await daemon.gets(text="seen")
                assert daemon.texts == ["seen"], "the first start reads no history"
            await network.platform.close()
            for number in range(30):
                await network.side.say(network.ben, f"away {number}")
            again = network.reopen()
            async with receiving(again, host.store) as daemon:
                await network.side.say(network.ann, "back")
                await daemon.gets(text="back")
                away = [f"away {number}" for number in range(30)] if again.limits.catches_up else []
                assert [text for text in daemon.texts if text != "seen"] == [*away, "back"]
            await again.close()

    # Ending

    async def test_receiving_ends_when_it_is_cancelled(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host):
            running = asyncio.create_task(network.platform.run(Daemon(host.store).deliver))
            await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running], timeout=WAIT_SECONDS)
            assert running.done()

    async def test_replies_can_be_sent_after_receiving_has_ended(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, host):
            async with receiving(network.platform, host.store):
                pass
            assert (await network.platform.send(network.outgoing())).native_id

    async def test_closing_twice_is_harmless(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, _):
            await network.platform.close()
            await network.platform.close()

    @needs("say")
    async def test_limits_make_sense(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as (network, _):
            limits = network.platform.limits
            assert limits.text_chars >= 100
            assert limits.sends_per_minute >= 1
            assert ":" not in network.platform.name + network.platform.account

    @asynccontextmanager
    async def _both(self, home: Path) -> AsyncIterator[tuple[Network, Daemon]]:
        """The network, and a daemon that receives from it."""
        async with self.open(home) as (network, host), receiving(network.platform, host.store) as daemon:
            yield network, daemon


@asynccontextmanager
async def _connected(network: Network, host: Host) -> AsyncIterator[None]:
    """Connect a platform that needs a connection for sending."""
    if isinstance(network.platform, Linked):
        async with receiving(network.platform, host.store), asyncio.timeout(WAIT_SECONDS):
            await network.platform.until_reachable(network.outgoing(), host.clock.now_ms())
            yield
    else:
        yield


def outbox_row(outgoing: Outgoing) -> Write:
    """The write of the delivery before it sends a message, as far as platforms read it."""
    content: JsonObject = {"chat": outgoing.chat.key, "choices": [one.to_json() for one in outgoing.choices]}
    content |= {"private_to": outgoing.private_to.key} if outgoing.private_to else {}
    body = orjson.dumps(content).decode()
    facts = {"turn_id": 1, "history_id": None, "state": "pending", "epoch": 1, "at_ms": 0}
    return outbox.put(id=1, key=outgoing.key, chat=outgoing.chat.key, body=body, **facts)  # type: ignore[arg-type]


async def _until_gone(platform: ChatPlatform, chat: ChatRef, member: MemberRef) -> None:
    """Return when the network says that the member is not in the chat. Raises TimeoutError after WAIT_SECONDS."""
    for _ in range(round(WAIT_SECONDS / 0.05)):
        if await platform.role(chat, member) is None:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError(f"{member.key} is still there")


def _data_url(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{b64encode(content).decode()}"


def host_now() -> datetime:
    """The current time, aware."""
    return SystemClock().now()


def capabilities(network: Network, lacks: frozenset[str]) -> dict[str, str]:
    """Capabilities of a network that lacks `lacks`, by name, as the contract tests them: `yes`, empty, or a number."""
    platform, limits, has = network.platform, network.platform.limits, lacks.isdisjoint
    able = {
        "messages of the time away arrive": limits.catches_up,
        "the bot's messages change in place": isinstance(platform, Editing),
        "buttons": limits.choices,
        "reactions of members": has({"react"}),
        "reactions of the bot": isinstance(platform, Reacting),
        "edits of members": has({"edit"}),
        "deletions by members": has({"delete"}),
        "replies": has({"reply_to"}),
        "threads": has({"open_thread"}),
        "files from members": isinstance(platform, Files),
        "files from the bot": limits.attachments and limits.file_bytes > 0,
        "current roles": has({"promote"}),
        "members come and go": has({"enter"}),
        "who added the bot": has({"add_bot"}),
        **{f"/{one}": isinstance(platform, Moderating) and one in platform.measures for one in _MODERATION},
        "/invite with a link": isinstance(platform, Moderating) and Measure.LINK in platform.measures,
        "menu of commands": isinstance(platform, CommandMenus),
        "formatting": limits.markdown,
        "a repeated send is dropped": limits.sends_are_idempotent,
    }
    return {name: "yes" if is_able else "" for name, is_able in able.items()} | {
        "characters per message": f"{limits.text_chars:,}"
    }
