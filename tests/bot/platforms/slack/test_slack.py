"""Slack beyond the contract: threads, gaps, acknowledgements, roles, and answers of the Web API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import PNG, Daemon, Failure, Network, receiving, until
from bot.platforms.slack.platform import ADAPTER, SlackPlatform, SlackSettings
from function_calls.context import Attachment, Kind
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, Role
from services.store.port import Store, StoreError
from services.store.turns import audit
from tests.bot.platforms.slack.test_contract import a_network, settings
from tests.fakes.slack_server import ANN, BEN, BOT, GROUP, PRIVATE, ROBOT, Data, FakeSlack, limited


class Setting:
    """A workspace, the platform, and a daemon that receives from it."""

    def __init__(self, network: Network, daemon: Daemon, store: Store) -> None:
        assert isinstance(network.platform, SlackPlatform)
        assert isinstance(network.side, FakeSlack)
        self.network, self.platform, self.slack = network, network.platform, network.side
        self.daemon, self.store = daemon, store

    async def settled(self) -> None:
        """Return when all events up to now are accepted."""
        await self.slack.until_acknowledged(await self.slack.event({"type": "emoji_changed"}))

    def arguments(self, method: str) -> Data:
        """Arguments of the latest call of a method."""
        return [arguments for name, arguments in self.slack.calls if name == method][-1]


@asynccontextmanager
async def a_setting(home: Path, *failures: Exception) -> AsyncIterator[Setting]:
    async with a_network(home) as (network, host), receiving(network.platform, host.store, *failures) as daemon:
        yield Setting(network, daemon, host.store)


# Connection


async def test_an_event_is_acknowledged_only_after_it_was_accepted(tmp_path: Path) -> None:
    async with a_setting(tmp_path, StoreError("away")) as here:
        await here.slack.say(ANN, "Tea?")
        (refused,) = here.slack.unacknowledged
        await here.slack.connected(2)
        assert refused in here.slack.unacknowledged
        await here.daemon.gets(text="Tea?")
        await here.slack.repeat()
        await here.slack.until_acknowledged(refused)
        assert here.daemon.texts == ["Tea?"]
        assert here.daemon.repeated == 1


async def test_a_connection_is_replaced_without_a_loss_when_slack_asks_for_it(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.slack.refresh()
        await here.slack.connected(2)
        await here.slack.say(ANN, "after")
        await here.daemon.gets(text="after")
        assert here.platform.link().losses == 0


async def test_a_mention_that_comes_as_two_events_is_one_message(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.slack.say(ANN, "flip a coin", mention=True)
        await here.settled()
        assert here.daemon.texts == ["flip a coin"]
        assert here.daemon.repeated == 1


async def test_problems_of_the_connection_are_shown_without_the_ticket(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, host):
        slack, platform = network.side, network.platform
        assert isinstance(slack, FakeSlack)
        assert isinstance(platform, SlackPlatform)
        async with receiving(platform, host.store):
            slack.greets = False
            await slack.disconnect()
            await until(lambda: "too_many_websockets" in platform.link().words, lambda: platform.link().words)
            assert "ticket" not in platform.link().words


async def test_an_unreadable_press_is_set_aside_without_its_secrets(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        broken = {"type": "block_actions", "actions": [], "response_url": "http://secret.invalid/", "token": "secret"}
        await here.slack._emit({**broken, "channel": {"id": GROUP}}, "interactive")
        await here.settled()
        (row,) = await here.store.read(audit.last(10))
        assert row["action"] == "event_unreadable"
        assert json.loads(row["detail"])["type"] == "block_actions"
        assert "secret" not in row["detail"]


# Gaps


async def test_replies_in_threads_are_received_after_a_gap_even_in_earlier_threads(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, host):
        slack = network.side
        assert isinstance(slack, FakeSlack)
        async with receiving(network.platform, host.store) as daemon:
            earlier = await slack.say(ANN, "an earlier thread")
            await slack.say(ANN, "seen", reply_to=earlier)
            await daemon.gets(text="seen")
        await network.platform.close()
        later = await slack.say(ANN, "a later thread")
        await slack.say(BEN, "in the earlier one", reply_to=earlier)
        await slack.say(BEN, "in the later one", reply_to=later)
        await slack.say(ANN, "a message in private", chat=PRIVATE)
        assert network.reopen is not None
        again = network.reopen()
        slack.refusals["conversations.history"] = [limited(0)]
        async with receiving(again, host.store) as daemon:
            await daemon.gets(text="in private")
            assert slack.connections == 2
            await daemon.gets(text="in the later one")
            chats = {one.text: one.chat.native for one in daemon.received}
            assert chats == {
                "a later thread": GROUP,
                "in the earlier one": f"{GROUP},{earlier}",
                "in the later one": f"{GROUP},{later}",
                "a message in private": PRIVATE,
            }
            assert [one.text for one in daemon.received if one.is_group] == list(chats)[:3]
        await again.close()


async def test_a_private_chat_that_was_opened_during_the_gap_is_read(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, host):
        slack = network.side
        assert isinstance(slack, FakeSlack)
        async with receiving(network.platform, host.store):
            pass
        slack.channels["DBEN"], slack.messages["DBEN"] = [BOT, BEN], []
        slack.channels["CNEW"], slack.messages["CNEW"] = [BOT, BEN], []
        await slack.say(BEN, "hello", chat="DBEN")
        await slack.say(BEN, "before the bot came", chat="CNEW")
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(text="hello")
            await slack.say(BEN, "now", chat="CNEW")
            await daemon.gets(text="now")
            assert sorted(daemon.texts) == ["hello", "now"]


async def test_a_channel_that_cannot_be_read_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, host):
        slack = network.side
        assert isinstance(slack, FakeSlack)
        async with receiving(network.platform, host.store):
            pass
        slack.refusals["conversations.history"] = [web.json_response({"ok": False, "error": "missing_scope"})]
        await slack.say(ANN, "away", chat=PRIVATE)
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(text="away")
            assert slack.connections == 2


# Events


async def test_messages_name_their_members_and_chats(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        parent = await here.platform.send(here.network.outgoing("Which one?"))
        await here.slack._post(
            GROUP, {"user": ANN, "text": f"<@{BOT}>, ask <@{BEN}> &amp; <@UNONE>", "thread_ts": parent.native_id}
        )
        context = await here.daemon.gets(text="ask")
        assert context.text == "ask @Ben & @UNONE"
        assert context.mentions == (here.network.member(BEN), here.network.member("UNONE"))
        assert context.mentions_bot
        assert context.chat.native == f"{GROUP},{parent.native_id}"
        assert (context.sender.name, context.sender.zone) == ("Ann", "Europe/Oslo")
        assert context.sender.language == "en-US"
        await here.slack.react(ANN, context.key.native_id, "wave::skin-tone-2")
        await here.slack.react(ANN, context.key.native_id, "✅")
        assert (await here.daemon.gets(Kind.REACTION, "✅")).key.native_id == context.key.native_id


async def test_a_reaction_to_a_message_of_the_bot_is_in_its_thread(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        thread = await here.slack.open_thread(ANN, "Tea?")
        sent = await here.platform.send(Outgoing(ChatRef("slack", "main", thread), "1:0:0", "Sure?"))
        await here.slack.react(ANN, sent.native_id, "✅")
        assert (await here.daemon.gets(Kind.REACTION)).chat.native == thread


@pytest.mark.parametrize(
    ("event", "is_bot"),
    [
        ({"bot_id": "BHOOK", "subtype": "bot_message", "username": "Ann"}, True),
        ({"user": ROBOT, "bot_id": "BROBOT"}, True),
        ({"user": ANN, "bot_id": "BUSER"}, True),
        ({"user": "USTRANGE"}, False),
        ({"user": GROUP}, False),
    ],
)
async def test_senders_without_an_account_of_their_own_are_plain_members(
    tmp_path: Path, event: Data, is_bot: bool
) -> None:
    async with a_setting(tmp_path) as here:
        await here.slack.promote(ANN, Role.OWNER)
        await here.slack._post(GROUP, {**event, "text": "hello"})
        sender = (await here.daemon.gets(text="hello")).sender
        assert (sender.is_bot, sender.role) == (is_bot, Role.MEMBER)


async def test_notices_previews_and_changes_of_the_bot_are_no_events(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        sent = await here.platform.send(here.network.outgoing("One"))
        await here.platform.edit(sent.native_id, here.network.outgoing("Two"))
        await here.platform.react(here.network.chat, sent.native_id, "👍")
        await here.platform.delete(here.network.chat, sent.native_id)
        message = {"user": ANN, "text": "https://a.example", "ts": "1.1"}
        preview = {"type": "message", "subtype": "message_changed", "channel": GROUP, "ts": "1.2"}
        await here.slack.event({**preview, "message": {**message, "attachments": [{}]}, "previous_message": message})
        await here.slack.event(
            {"type": "message", "subtype": "channel_topic", "channel": GROUP, "ts": "1.3", "user": ANN}
        )
        await here.slack.event({"type": "member_joined_channel", "user": BOT, "channel": GROUP, "event_ts": "1.4"})
        await here.settled()
        assert here.daemon.received == []
        assert here.platform.link().words == "connected"


async def test_a_deleted_start_of_a_thread_is_a_deletion(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        message = {"user": ANN, "text": "Tea?", "ts": "1.1", "thread_ts": "1.1"}
        change = {"type": "message", "subtype": "message_changed", "channel": GROUP, "ts": "1.2"}
        left = {**message, "subtype": "tombstone", "text": "This message was deleted."}
        await here.slack.event({**change, "message": left, "previous_message": message})
        context = await here.daemon.gets(Kind.DELETE)
        assert (context.key.native_id, context.chat.native, context.sender.ref.native) == ("1.1", GROUP, ANN)


async def test_presses_in_a_thread_are_in_its_chat_and_close_there(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        thread = await here.slack.open_thread(ANN, "Tea?")
        chat = ChatRef("slack", "main", thread)
        sent = await here.platform.send(Outgoing(chat, "1:0:0", "Sure?", choices=(Choice("Yes", "yes"),)))
        await here.slack.press(BEN, sent.native_id, "Yes")
        context = await here.daemon.gets(Kind.CHOICE)
        assert (context.chat, context.sender.ref) == (chat, here.network.member(BEN))
        await here.platform.send(Outgoing(chat, "2:0:0", "Good.", closes=(sent.native_id,)))
        assert [(one.text, one.buttons) for one in await here.slack.shown(thread)] == [("Sure?", ()), ("Good.", ())]


# Roles


@pytest.mark.parametrize(
    ("flags", "role"),
    [
        ({"is_owner": True}, Role.OWNER),
        ({"is_primary_owner": True}, Role.OWNER),
        ({"is_admin": True}, Role.ADMIN),
        ({"is_admin": True, "is_restricted": True}, Role.MEMBER),
        ({"is_owner": True, "is_stranger": True}, Role.MEMBER),
        ({"is_owner": True, "team_id": "TOTHER"}, Role.MEMBER),
        ({"is_admin": True, "team_id": "TOTHER", "enterprise_user": {"teams": ["T1"]}}, Role.ADMIN),
        ({"is_admin": True, "is_bot": True}, Role.MEMBER),
        ({"is_admin": True, "deleted": True}, None),
    ],
)
async def test_roles_are_those_of_the_workspace(tmp_path: Path, flags: Data, role: Role | None) -> None:
    async with a_network(tmp_path) as (network, _):
        assert isinstance(network.side, FakeSlack)
        network.side.users[BEN] |= flags
        assert await network.platform.role(network.chat, network.member(BEN)) is role


async def test_somebody_outside_the_channel_has_no_role(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        assert isinstance(network.side, FakeSlack)
        await network.side.promote(BEN, Role.OWNER)
        private = ChatRef("slack", "main", PRIVATE)
        assert await network.platform.role(private, network.member(BEN)) is None
        assert await network.platform.role(network.chat, network.member(GROUP)) is None
        assert await network.platform.role(ChatRef("slack", "main", "CNONE"), network.member(BEN)) is None


async def test_profiles_are_read_once_a_minute_and_names_give_no_rights(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.slack.promote(ANN, Role.OWNER)
        here.slack.users[BEN]["profile"] = {"display_name": "Ann"}
        for number in range(3):
            await here.slack.say(ANN, f"first {number}")
            await here.slack.say(BEN, f"second {number}")
        await here.daemon.gets(text="second 2")
        assert {(one.sender.name, one.sender.role) for one in here.daemon.received} == {
            ("Ann", Role.OWNER),
            ("Ann", Role.MEMBER),
        }
        assert [name for name, _ in here.slack.calls].count("users.info") == 2


# Sending


async def test_choices_keep_within_the_limits_of_slack(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        choices = tuple(Choice(f"{number} {'x' * 90}", f"value {number}") for number in range(30))
        text = "word & " * 550
        for markdown in (True, False):
            sent = await network.platform.send(network.outgoing(text, choices=choices, markdown=markdown))
            shown = (await network.side.shown())[-1]
            assert len(shown.buttons) == 30
            assert shown.text.split() == text.split()
            await network.platform.send(network.outgoing("Closed.", closes=(sent.native_id,)))
            assert (await network.side.shown())[-2].buttons == ()


async def test_a_changed_plain_text_is_shown_as_it_is(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        text = "rm *.txt _x_ <!here> & https://a.example/?a=1&b=2"
        sent = await network.platform.send(network.outgoing("1", mentions=(network.member(ANN),)))
        assert isinstance(network.platform, SlackPlatform)
        await network.platform.edit(sent.native_id, network.outgoing(text, mentions=(network.member(ANN),)))
        (shown,) = await network.side.shown()
        assert shown.text == "{@UANN}" + text
        await network.platform.edit(sent.native_id, network.outgoing("**bold**", markdown=True))
        assert (await network.side.shown())[0].text == "bold"


async def test_links_are_not_expanded_and_names_not_linked(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        file = Attachment("the page", "text/html", "https://a.example/?x=secret")
        await here.platform.send(
            here.network.outgoing("@here", attachments=(file,), mentions=(here.network.member(ANN),))
        )
        sent = here.arguments("chat.postMessage")
        assert sent["text"] == "<@UANN> @here\nthe page: <https://a.example/?x=secret>"
        assert (sent["parse"], sent["link_names"], sent["mrkdwn"]) == ("none", False, False)
        assert (sent["unfurl_links"], sent["unfurl_media"]) == (False, False)


async def test_a_private_answer_goes_to_the_private_chat(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        ben, nobody = network.member(BEN), network.member("UNONE")
        await network.platform.send(network.outgoing("Psst", private_to=ben, mentions=(ben,)))
        assert [one.text for one in await network.side.shown("DBEN")] == ["Psst"]
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing("Psst", private_to=nobody))
        assert not failed.value.retryable
        assert await network.side.shown() == []


@pytest.mark.parametrize(
    ("answer", "words", "facts"),
    [
        (lambda: refused("is_archived"), "Slack answered is_archived", (False, None, False)),
        (lambda: refused("account_inactive"), "Slack answered account_inactive", (False, None, False)),
        (lambda: refused("missing_scope", needed="chat:write"), "needs chat:write", (False, None, False)),
        (lambda: refused("internal_error"), "Slack answered internal_error", (True, None, True)),
        (lambda: refused("<b>Odd</b>"), "Slack answered HTTP 200", (False, None, False)),
        (lambda: limited(3), "Slack answered ratelimited", (True, 3, False)),
        (lambda: web.Response(status=429, headers={"Retry-After": "soon"}), "HTTP 429", (True, 30, False)),
        (lambda: web.Response(status=502, text="bad gateway"), "Slack answered HTTP 502", (True, None, False)),
        (
            lambda: web.Response(status=200, text="{", content_type="application/json"),
            "did not answer",
            (True, None, True),
        ),
    ],
)
async def test_answers_of_slack_become_problems_of_the_send(
    tmp_path: Path, answer: Callable[[], web.Response], words: str, facts: tuple[bool, float | None, bool]
) -> None:
    async with a_network(tmp_path) as (network, _):
        assert isinstance(network.side, FakeSlack)
        network.side.refusals["chat.postMessage"] = [answer()]
        with pytest.raises(SendFailed, match=words) as failed:
            await network.platform.send(network.outgoing())
        assert (failed.value.retryable, failed.value.retry_after_seconds, failed.value.unknown_outcome) == facts


async def test_a_server_that_cannot_be_reached_has_received_nothing(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, host):
        nowhere = SlackSettings.model_validate(
            {"bot_token": "xoxb-1", "app_token": "xapp-1", "api_url": "http://127.0.0.1:1/api/"}
        )
        platform = ADAPTER.open(nowhere, host)
        with pytest.raises(SendFailed) as failed:
            await platform.send(network.outgoing())
        assert (failed.value.retryable, failed.value.unknown_outcome) == (True, False)
        await platform.close()


# Files


async def test_a_file_that_cannot_be_uploaded_leaves_no_message(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        assert isinstance(network.side, FakeSlack)
        dot = Attachment("dot.png", "image/png", "data:image/png;base64,aGk=")
        network.side.refusals["files.getUploadURLExternal"] = [refused("storage_limit_reached")]
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing("A dot.", attachments=(dot,)))
        assert not failed.value.retryable
        assert await network.side.shown() == []


async def test_a_text_that_is_shown_without_its_file_is_not_sent_again(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        assert isinstance(network.side, FakeSlack)
        dot = Attachment("dot.png", "image/png", "data:image/png;base64,aGk=")
        network.side.refusals["files.completeUploadExternal"] = [limited(7)]
        with pytest.raises(SendFailed, match="shown without its files") as failed:
            await network.platform.send(network.outgoing("A dot.", attachments=(dot,)))
        assert not failed.value.retryable


@pytest.mark.parametrize("said", [3, 2_000_000_000])
async def test_a_file_is_read_up_to_the_limit_whatever_its_size_is_said_to_be(tmp_path: Path, said: int) -> None:
    async with a_setting(tmp_path) as here:
        await here.slack.say(ANN, "Look", file=("dot.png", PNG))
        (file,) = (await here.daemon.gets(text="Look")).attachments
        here.slack.files[file.url.partition(":")[2]]["said"] = said
        with pytest.raises(FileUnavailable, match="than 20"):
            await here.platform.read_file(file, 20)


@pytest.mark.parametrize("url", ["http://files.example/x", "https://slack.com.example/x", "", "file:///etc/passwd"])
async def test_the_token_goes_to_the_file_server_of_slack_alone(tmp_path: Path, url: str) -> None:
    async with a_setting(tmp_path) as here:
        await here.slack.say(ANN, "Look", file=("dot.png", PNG))
        (file,) = (await here.daemon.gets(text="Look")).attachments
        here.slack.files[file.url.partition(":")[2]]["url"] = url
        with pytest.raises(FileUnavailable, match="not on Slack's file server"):
            await here.platform.read_file(file, 10_000)


# Settings and probe


GOOD: dict[str, Any] = {"bot_token": "xoxb-1-a", "app_token": "xapp-1-a"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"bot_token": "xoxp-1"}, "begins with xoxb-"),
        ({"app_token": "xoxb-1"}, "begins with xapp-"),
        ({"bot_token": "xoxb-1\n"}, "begins with xoxb-"),
        ({"api_url": "http://slack.example/api/"}, "has to begin with https://"),
    ],
)
def test_wrong_settings_are_explained(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        SlackSettings.model_validate({**GOOD, **changed})


def test_the_tokens_are_secrets() -> None:
    account = SlackSettings.model_validate(GOOD)
    assert account.secrets == ("xoxb-1-a", "xapp-1-a")
    assert "xoxb-1-a" not in repr(account)


async def test_the_probe_names_the_account_and_missing_scopes() -> None:
    async with FakeSlack().running() as slack:
        assert await ADAPTER.probe(settings(slack), SystemClock()) == "connected as @rollcall in Home"
        slack.scopes = slack.scopes.replace("users:read", "users:write")
        words = "connected as @rollcall in Home; scopes are missing: users:read"
        assert await ADAPTER.probe(settings(slack), SystemClock()) == words
        slack.greets = False
        with pytest.raises(CannotOpen, match=r"too_many_websockets.*Socket Mode is on"):
            await ADAPTER.probe(settings(slack), SystemClock())
        wrong = settings(slack).model_copy(update={"bot_token": SlackSettings.model_validate(GOOD).bot_token})
        with pytest.raises(CannotOpen, match=r"invalid_auth\. Check bot_token"):
            await ADAPTER.probe(wrong, SystemClock())


async def test_a_rejected_format_with_choices_keeps_the_choices(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        await network.side.fail_next(Failure.BAD_MARKUP)
        await network.platform.send(network.outgoing("**Go?**", choices=(Choice("Yes", "yes"),), markdown=True))
        (shown,) = await network.side.shown()
        assert (shown.text, shown.buttons) == ("Go?", ("Yes",))


def refused(error: str, **facts: str) -> web.Response:
    """An answer with an error."""
    return web.json_response({"ok": False, "error": error, **facts})
