"""Feishu beyond the contract: acknowledgements, fragments, signed requests, tokens, gaps, threads, cards and roles."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.routing import Mount

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import PNG, Daemon, Failure, Network, receiving, until
from bot.platforms.feishu.adapter import ADAPTER, FeishuSettings
from bot.platforms.feishu.api import ApiError, parse_fields, written_fields
from bot.platforms.feishu.messages import EMOJI, body_of
from bot.platforms.feishu.platform import FeishuPlatform
from bot.web.app import web_app
from function_calls.context import Attachment, Kind
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, Role
from services.store.port import Store, StoreError
from services.store.turns import audit
from services.web.content import data_url
from tests.bot.platforms.feishu.test_contract import a_network, settings
from tests.fakes.feishu_server import (
    ANN,
    APP_ID,
    BEN,
    BOT,
    ENCRYPT_KEY,
    GROUP,
    PRIVATE,
    VERIFICATION_TOKEN,
    Data,
    FakeFeishu,
    Refused,
)

TOKEN_PATH = "auth/v3/tenant_access_token/internal"


class Setting:
    """A tenant, the platform, and a daemon that receives from it."""

    def __init__(self, network: Network, daemon: Daemon, store: Store) -> None:
        assert isinstance(network.platform, FeishuPlatform)
        assert isinstance(network.side, FakeFeishu)
        self.network, self.platform, self.feishu = network, network.platform, network.side
        self.daemon, self.store = daemon, store

    async def settled(self) -> None:
        """Return when all events up to now are accepted."""
        await self.feishu.acknowledged(await self.feishu.emit("im.message.message_read_v1", {"reader": {}}))

    def sent(self, path: str = "im/v1/messages") -> list[Data]:
        """Arguments of the calls that sent something."""
        return [given for method, one, given in self.feishu.calls if (method, one) == ("POST", path)]


@asynccontextmanager
async def a_setting(home: Path, *failures: Exception) -> AsyncIterator[Setting]:
    async with a_network(home) as (network, host), receiving(network.platform, host.store, *failures) as daemon:
        yield Setting(network, daemon, host.store)


@asynccontextmanager
async def a_tenant(home: Path) -> AsyncIterator[tuple[FakeFeishu, Network, Host]]:
    """A tenant with the platform, which is not running."""
    async with a_network(home) as (network, host):
        assert isinstance(network.side, FakeFeishu)
        yield network.side, network, host


# Frames

NUMBERS = st.integers(min_value=0, max_value=2**64 - 1)


@given(
    st.lists(st.tuples(st.integers(min_value=1, max_value=2**29 - 1), NUMBERS | st.binary(max_size=300)), max_size=9)
)
def test_written_fields_are_read_again(fields: list[tuple[int, int | bytes]]) -> None:
    assert parse_fields(written_fields(fields)) == fields


@given(st.binary(max_size=40))
def test_any_bytes_are_fields_or_malformed(data: bytes) -> None:
    try:
        fields = parse_fields(data)
    except ValueError:
        return
    assert all(isinstance(one, int | bytes) for _, one in fields)


def test_fields_are_written_as_protobuf_specifies() -> None:
    # The examples of the documentation of protobuf.
    assert written_fields([(1, 150)]) == bytes.fromhex("089601")
    assert written_fields([(2, b"testing")]) == bytes.fromhex("120774657374696e67")


# Connection


async def test_an_event_is_acknowledged_only_after_it_was_accepted(tmp_path: Path) -> None:
    async with a_setting(tmp_path, StoreError("away")) as here:
        await here.feishu.say(ANN, "Tea?")
        refused = here.feishu._last["header"]["event_id"]
        await here.feishu.until(lambda: here.feishu.connections == 2)
        assert refused not in [one for one, _ in here.feishu.answers]
        await here.daemon.gets(text="Tea?")
        await here.feishu.repeat()
        assert await here.feishu.acknowledged(refused) == {"code": 200}
        assert here.daemon.texts == ["Tea?"]
        assert here.daemon.repeated == 1


async def test_fragments_are_joined_in_any_order_and_answered_once(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        message = here.feishu._store(GROUP, {"id": ANN, "sender_type": "user"}, "text", '{"text": "in parts"}')
        event = here.feishu.event("im.message.receive_v1", here.feishu.message_event(message))
        payload = json.dumps(event).encode()
        for number in (2, 0, 0, 1):
            part = payload[number * 100 : number * 100 + 100] if number < 2 else payload[200:]
            headers = {"type": "event", "message_id": "parts", "sum": "3", "seq": str(number)}
            await here.feishu.push_frame(headers, part)
        await here.daemon.gets(text="in parts")
        await here.settled()
        assert [one for one, _ in here.feishu.answers].count("parts") == 1


async def test_problems_of_the_connection_are_shown_without_the_ticket(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        here.feishu.rejects_links = True
        await here.feishu.disconnect()
        await until(lambda: "1000040350" in here.platform.link().words, lambda: here.platform.link().words)
        assert "ticket" not in here.platform.link().words


async def test_an_unreadable_press_is_set_aside_without_its_token(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        id_ = await here.feishu.emit("card.action.trigger", {"token": "c-secret", "action": {}, "context": {}})
        assert await here.feishu.acknowledged(id_) == {"code": 200, "data": base64.b64encode(b"{}").decode()}
        (row,) = await here.store.read(audit.last(10))
        assert row["action"] == "event_unreadable"
        assert "card.action.trigger" in row["detail"]
        assert "c-secret" not in row["detail"]
        assert VERIFICATION_TOKEN not in row["detail"]


# Signed requests


async def test_a_webhook_takes_only_new_events_with_the_signature(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, _, host):
        place, path = replace(host, public_url="https://bot.example.org"), "/platforms/feishu/main"
        keys = {"encrypt_key": ENCRYPT_KEY, "verification_token": VERIFICATION_TOKEN}
        platform = ADAPTER.open(settings(feishu, events="webhook", **keys), place)
        assert isinstance(platform, FeishuPlatform)
        app = web_app(more_routes=[Mount(path, routes=[*platform.routes()])], public_urls=[place.public_url])
        await feishu.say(ANN, "hello")
        event, test = feishu._last, {"type": "url_verification", "challenge": "c", "token": VERIFICATION_TOKEN}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=place.public_url) as client:

            async def post(body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
                answer = await client.post(f"{path}/event", content=body, headers=headers)
                return answer.status_code, answer.json()

            async with receiving(platform, host.store, StoreError("away")) as daemon:
                body, headers = feishu.signed(event)
                other = {**event, "header": {**event["header"], "token": "other"}}
                for forged in (
                    (body, {}),
                    (body, headers | {"X-Lark-Signature": "0" * 64}),
                    (body, headers | {"X-Lark-Request-Nonce": "other"}),
                    (json.dumps(event).encode(), headers),
                    (b"no JSON", headers),
                    feishu.signed(event, key="other key"),
                    feishu.signed(event, age=301),
                    feishu.signed(event, age=-900),
                    feishu.signed(other),
                    feishu.signed({**test, "token": "other"}),
                    feishu.signed({**event, "type": "url_verification"}),
                    (feishu.signed({**event, "challenge": "c"})[0], {}),
                ):
                    assert await post(*forged) == (401, {})
                assert daemon.failures, "nothing was delivered"
                assert await post(feishu.signed(test)[0], {}) == (200, {"challenge": "c"})
                assert [(await post(body, headers))[0] for _ in range(3)] == [503, 200, 200]
                assert daemon.texts == ["hello"]
                assert (await post(b"x" * 2_000_000, headers))[0] == 413
            assert (await post(*feishu.signed(event)))[0] == 503
        await platform.close()
        assert feishu.connections == 0


async def test_a_webhook_needs_a_key_and_a_public_url(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, _, host):
        with pytest.raises(ValidationError, match="needs encrypt_key"):
            settings(feishu, events="webhook")
        with pytest.raises(CannotOpen, match=r"needs platforms\.web\.public_url"):
            ADAPTER.open(settings(feishu, events="webhook", encrypt_key="k"), host)


# Tokens


async def test_a_rejected_token_is_replaced_once(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        await network.platform.send(network.outgoing())
        feishu.token = "t-other"
        await network.platform.send(network.outgoing("Bye.", "2:0:0"))
        assert feishu.tokens == 2
        feishu.refusals["POST", "im/v1/messages"] = [Refused(99991663), Refused(99991661)]
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing("Bye.", "3:0:0"))
        assert failed.value.retryable
        assert feishu.tokens == 3
        assert len(await feishu.shown()) == 2


async def test_a_token_is_replaced_before_it_expires(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        feishu.token_seconds = 301
        await network.platform.send(network.outgoing())
        assert isinstance(network.platform, FeishuPlatform)
        network.platform._api._expires_at -= 2
        await network.platform.send(network.outgoing())
        assert feishu.tokens == 2


async def test_a_wrong_secret_is_reported_until_it_is_right(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, _, host):
        platform = ADAPTER.open(settings(feishu, app_secret="wrong-secret"), host)
        assert isinstance(platform, FeishuPlatform)
        with pytest.raises(SendFailed, match="Feishu answers 10014") as failed:
            await platform.send(Outgoing(ChatRef("feishu", "main", GROUP), "1:0:0", "x"))
        assert failed.value.retryable
        assert "wrong-secret" not in str(failed.value)
        await platform.close()


# Gaps


async def test_a_gap_is_filled_with_threads_and_private_chats_but_not_with_deleted_messages(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, host):
        async with receiving(network.platform, host.store) as daemon:
            thread = await feishu.open_thread(ANN, "in an earlier thread")
            await feishu.say(ANN, "seen", chat=PRIVATE)
            await daemon.gets(text="seen")
        await network.platform.close()
        await feishu.say(BEN, "first")
        await feishu.delete(BEN, await feishu.say(BEN, "a mistake"))
        await feishu.say(BEN, "second", chat=thread)
        await feishu.say(ANN, "third", chat=PRIVATE)
        later = await feishu.open_thread(ANN, "fourth")
        feishu.refusals["GET", "im/v1/messages"] = [Refused(99991400, 429, x_ogw_ratelimit_reset="0")]
        assert network.reopen is not None
        again = network.reopen()
        async with receiving(again, host.store) as daemon:
            await daemon.gets(text="fourth")
            # The last message of before is offered again.
            places = [(one.text, one.chat.native, one.is_group) for one in daemon.received if one.text != "seen"]
            assert places == [
                ("first", GROUP, True),
                ("second", thread, True),
                ("third", PRIVATE, False),
                ("Drinks", GROUP, True),
                ("fourth", later, True),
            ]
        await again.close()


async def test_only_chats_that_are_served_and_can_be_read_are_read(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, _, host):
        feishu._chat("oc_other", "group", [ANN])
        feishu._chat("oc_secret", "group", [ANN])
        place = replace(host, allows=lambda chat: chat.native != "oc_other")
        platform = ADAPTER.open(settings(feishu), place)
        assert isinstance(platform, FeishuPlatform)
        async with receiving(platform, host.store):
            pass
        feishu._chat("oc_new", "group", [ANN])
        for chat in (GROUP, "oc_other", "oc_secret", "oc_new"):
            await feishu.say(ANN, f"in {chat}", chat=chat)
        feishu.calls.clear()
        feishu.refusals["GET", "im/v1/messages"] = [Refused(230027)]
        async with receiving(platform, host.store) as daemon:
            await daemon.gets(text="in oc_")
            assert len(daemon.texts) == 1
            read = [given["container_id"] for method, path, given in feishu.calls if path == "im/v1/messages"]
            assert sorted(read) == [GROUP, "oc_secret"]
        await platform.close()


async def test_a_message_of_the_history_that_cannot_be_read_holds_up_nothing(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, host):
        async with receiving(network.platform, host.store):
            pass
        broken = feishu._store(GROUP, {}, "text", "{}")
        broken.update(body=None, sender=None)
        await feishu.say(ANN, "after it")
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(text="after it")
        assert "could not be read" in network.platform.link().words
        assert [row["action"] for row in await host.store.read(audit.last(10))] == ["event_unreadable"]


# Events


async def test_a_bot_that_nobody_added_and_that_is_removed_is_no_problem(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.feishu.emit("im.chat.member.bot.added_v1", {"chat_id": "oc_new", "operator_id": None, "name": "New"})
        context = await here.daemon.gets(Kind.ADDED)
        assert (context.chat.native, context.chat_title, context.sender.ref.native) == ("oc_new", "New", "unknown")
        await here.feishu.emit("im.chat.member.bot.deleted_v1", {"chat_id": "oc_new", "operator_id": None})
        await here.settled()
        assert len(here.daemon.received) == 1


async def test_messages_name_members_and_the_message_they_reply_to(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        asked = await here.feishu.say(BEN, "Which one?")
        text = "@_user_1, ask @_user_2 and @_all about @_user_3"
        await here.feishu.write(ANN, "text", {"text": text}, mentions=[BOT, BEN], parent_id=asked, root_id=asked)
        context = await here.daemon.gets(text="ask")
        assert context.text == "ask @Ben and @all about @_user_3"
        assert context.mentions == (here.network.member(BEN),)
        assert context.mentions_bot
        assert context.reply_to is not None
        assert (context.reply_to.native_id, context.reply_to.from_bot) == (asked, False)
        assert (context.sender.name, context.chat_title) == ("Ann", "Family")
        assert not (await here.daemon.gets(text="Which")).mentions_bot


async def test_a_reply_to_an_earlier_message_of_the_bot_is_for_the_bot(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, host):
        sent = await network.platform.send(network.outgoing("Which city?"))
        await network.platform.close()
        assert network.reopen is not None
        again = network.reopen()
        async with receiving(again, host.store) as daemon:
            await feishu.say(ANN, "Oslo", reply_to=sent.native_id)
            context = await daemon.gets(text="Oslo")
            assert context.reply_to is not None
            assert context.reply_to.from_bot
        await again.close()


@pytest.mark.parametrize(
    ("kind", "content", "text", "file"),
    [
        ("image", {"image_key": "img_1"}, "", ("image.png", "image/png", "img_1/image")),
        (
            "file",
            {"file_key": "file_1", "file_name": "a.pdf"},
            "",
            ("a.pdf", "application/octet-stream", "file_1/file"),
        ),
        ("audio", {"file_key": "file_1", "duration": 1000}, "", ("audio.ogg", "audio/ogg", "file_1/file")),
        (
            "media",
            {"file_key": "file_1", "image_key": "img_1", "file_name": "a.mp4"},
            "",
            ("a.mp4", "video/mp4", "file_1/file"),
        ),
        (
            "post",
            {
                "title": "A title",
                "content": [
                    [
                        {"tag": "text", "text": "see "},
                        {"tag": "a", "text": "this", "href": "https://a.example"},
                        {"tag": "at", "user_id": "@_user_1", "user_name": "Ben"},
                    ],
                    [{"tag": "emotion", "emoji_type": "OK"}, {"tag": "code_block", "language": "PY", "text": "x = 1"}],
                    [{"tag": "media", "file_key": "file_1", "image_key": "img_1"}],
                ],
            },
            "A title\nsee this (https://a.example)@Ben\n👌x = 1",
            ("media.mp4", "video/mp4", "file_1/file"),
        ),
    ],
)
async def test_each_kind_of_message_has_its_text_and_files(
    tmp_path: Path, kind: str, content: Data, text: str, file: tuple[str, str, str]
) -> None:
    async with a_setting(tmp_path) as here:
        for ignored in ("sticker", "interactive", "share_chat", "system"):
            await here.feishu.write(ANN, ignored, {"file_key": "file_1"})
        id_ = await here.feishu.write(ANN, kind, content, mentions=[BEN])
        await here.settled()
        (context,) = here.daemon.received
        assert context.text == text
        name, media_type, place = file
        assert context.attachments == (Attachment(name, media_type, f"network:{id_}/{place}"),)


async def test_a_recall_and_a_reaction_are_in_the_thread_of_their_message(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        thread = await here.feishu.open_thread(ANN, "inside")
        sent = await here.platform.send(Outgoing(ChatRef("feishu", "main", thread), "1:0:0", "Here."))
        here.platform._reader.places.clear()
        await here.feishu.react(BEN, sent.native_id, "👍")
        await here.feishu.react(BEN, sent.native_id, "👍", is_removed=True)
        assert (await here.daemon.gets(Kind.REACTION)).chat.native == thread
        inside = (await here.daemon.gets(text="inside")).key.native_id
        await here.feishu.delete(ANN, inside)
        deletion = await here.daemon.gets(Kind.DELETE)
        assert (deletion.chat.native, deletion.sender.ref) == (thread, here.network.member(ANN))
        await here.feishu.delete(ANN, sent.native_id)
        await here.settled()
        kinds = [one.kind for one in here.daemon.received]
        assert (kinds.count(Kind.REACTION), kinds.count(Kind.DELETE)) == (1, 1)


async def test_a_button_in_a_private_chat_that_the_bot_has_opened_is_private(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        choices, ben = (Choice("Yes", "yes"),), here.network.member(BEN)
        sent = await here.platform.send(
            here.network.outgoing("Sure?", choices=choices, private_to=ben, mentions=(ben,))
        )
        assert [(one.text, one.buttons) for one in await here.feishu.shown(f"oc_private_{BEN}")] == [
            ("Sure?", ("Yes",))
        ]
        await here.feishu.press(BEN, sent.native_id, "Yes")
        context = await here.daemon.gets(Kind.CHOICE)
        assert (context.chat.native, context.is_group, context.sender.ref) == (f"oc_private_{BEN}", False, ben)
        assert context.sender.name == "Ben"
        assert await here.platform.role(context.chat, ben) is Role.MEMBER
        assert await here.platform.role(context.chat, here.network.member(ANN)) is None


# Roles and names


async def test_roles_are_those_of_the_group(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        role = network.platform.role
        assert await role(network.chat, network.member("ou_olga")) is Role.OWNER
        feishu.chats[GROUP]["user_manager_id_list"] = [BEN]
        assert await role(ChatRef("feishu", "main", f"{GROUP},omt_1"), network.member(BEN)) is Role.ADMIN
        assert await role(network.chat, network.member(ANN)) is Role.MEMBER
        feishu.chats[GROUP].update(owner_id="")
        for native in (GROUP, "unknown", "", APP_ID, "ou_nobody"):
            assert await role(network.chat, network.member(native)) is None
        assert await role(ChatRef("feishu", "main", "oc_none"), network.member(ANN)) is None
        assert await role(ChatRef("feishu", "main", "../.."), network.member(ANN)) is None


async def test_senders_have_the_role_of_the_latest_minute(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.feishu.promote(BEN, Role.ADMIN)
        for number in range(3):
            await here.feishu.say(BEN, f"admin {number}")
            await here.feishu.say(ANN, f"member {number}")
        await here.daemon.gets(text="member 2")
        assert {(one.sender.name, one.sender.role) for one in here.daemon.received} == {
            ("Ann", Role.MEMBER),
            ("Ben", Role.ADMIN),
        }
        assert [path for _, path, _ in here.feishu.calls].count(f"im/v1/chats/{GROUP}") == 1
        await here.feishu.promote(BEN, Role.MEMBER)
        here.platform._read_at.clear()
        await here.feishu.say(BEN, "not any more")
        assert (await here.daemon.gets(text="not any")).sender.role is Role.MEMBER


async def test_a_name_that_cannot_be_read_is_the_id_and_gives_no_rights(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        here.feishu.names[BEN] = "Olga"
        here.feishu.refusals["GET", f"im/v1/chats/{GROUP}/members"] = [Refused(99991672)]
        await here.feishu.say(ANN, "one")
        assert (await here.daemon.gets(text="one")).sender.name == ANN
        here.platform._read_at.clear()
        await here.feishu.say(BEN, "two")
        context = await here.daemon.gets(text="two")
        assert (context.sender.name, context.sender.role) == ("Olga", Role.MEMBER)
        assert await here.platform.role(here.network.chat, context.sender.ref) is Role.MEMBER


# Sending


async def test_replies_go_to_their_message_and_to_their_thread(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        asked = await feishu.say(ANN, "Which?")
        await network.platform.send(network.outgoing("This.", reply_to=asked))
        assert [(one.text, one.reply_to) for one in await feishu.shown()] == [("This.", asked)]
        thread = await feishu.open_thread(ANN, "inside")
        chat, inside = ChatRef("feishu", "main", thread), feishu.messages[-1]["message_id"]
        await network.platform.send(Outgoing(chat, "2:0:0", "One.", reply_to=inside))
        feishu._message(inside)["deleted"] = True
        await network.platform.send(Outgoing(chat, "3:0:0", "Two.", reply_to=inside))
        assert [one.text for one in await feishu.shown(thread)] == ["One.", "Two."]
        assert len(await feishu.shown()) == 1


async def test_a_message_to_a_deleted_one_is_sent_without_the_reply(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        asked = await feishu.say(ANN, "Which?")
        await feishu.delete(ANN, asked)
        await network.platform.send(network.outgoing("This.", reply_to=asked))
        assert [(one.text, one.reply_to) for one in await feishu.shown()] == [("This.", "")]


async def test_a_rejected_format_keeps_the_choices(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        await feishu.fail_next(Failure.BAD_MARKUP)
        await network.platform.send(network.outgoing("**Go?**", choices=(Choice("Yes", "yes"),), markdown=True))
        (shown,) = await feishu.shown()
        assert (shown.text, shown.buttons) == ("Go?", ("Yes",))


async def test_a_send_that_is_repeated_after_half_of_it_shows_nothing_twice(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        notes = [Attachment(f"{one}.txt", "text/plain", data_url(one.encode(), "text/plain")) for one in ("a", "b")]
        outgoing = network.outgoing("Notes.", attachments=tuple(notes))
        await network.platform.send(network.outgoing("Notes.", attachments=(notes[0],)))
        receipt = await network.platform.send(outgoing)
        shown = await feishu.shown()
        assert [(one.text, one.files) for one in shown] == [("Notes.", ()), ("", (b"a",)), ("", (b"b",))]
        assert receipt.native_id == shown[0].native_id


async def test_mentions_and_links_come_with_the_text(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        ann, file = network.member(ANN), Attachment("the page", "text/html", "https://a.example/?x=1")
        await network.platform.send(network.outgoing("Look", mentions=(ann,), attachments=(file,)))
        await network.platform.send(network.outgoing("**Look**", "2:0:0", mentions=(ann,), markdown=True))
        await network.platform.send(
            network.outgoing("Look?", "3:0:0", mentions=(ann,), choices=(Choice("Yes", "yes"),), markdown=True)
        )
        texts = [one.text for one in await feishu.shown()]
        assert texts == ["{@ou_ann} Look\nthe page: https://a.example/?x=1", "{@ou_ann} \nLook", "{@ou_ann}\nLook?"]


async def test_choices_can_be_changed_and_closed_after_a_restart(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        choices = (Choice("Tea " + "x" * 200, "tea"), Choice("Milk", "milk"))
        sent = [await network.platform.send(network.outgoing(one, one, choices=choices, markdown=True)) for one in "ab"]
        await network.platform.close()
        assert network.reopen is not None
        again = network.reopen()
        assert isinstance(again, FeishuPlatform)
        await again.edit(sent[0].native_id, network.outgoing("1 vote", choices=choices[1:]))
        await again.send(network.outgoing("Closed.", "3:0:0", closes=(sent[0].native_id, sent[1].native_id, "om_none")))
        assert [(one.text, one.buttons) for one in await feishu.shown()] == [("1 vote", ()), ("b", ()), ("Closed.", ())]
        plain = await again.send(network.outgoing("Plain", "4:0:0"))
        await again.edit(plain.native_id, network.outgoing("**Bold**", markdown=True))
        assert (await feishu.shown())[-1].text == "Bold"
        with pytest.raises(SendFailed, match="cannot add buttons") as failed:
            await again.edit(plain.native_id, network.outgoing("Now?", choices=choices))
        assert not failed.value.retryable
        await again.close()


@pytest.mark.parametrize(
    ("refused", "facts"),
    [
        (Refused(230020), (True, 5.0, False, False)),
        (Refused(99991400, 400, x_ogw_ratelimit_reset="1.5"), (True, 1.5, False, True)),
        (Refused(99991400, 429, Retry_After="soon"), (True, 30.0, False, True)),
        (Refused(230049), (True, None, True, False)),
        (Refused(230013), (False, None, False, False)),
        (Refused(99991672, 400), (False, None, False, False)),
        (Refused(2200, 500), (True, None, True, False)),
    ],
)
async def test_answers_of_feishu_become_problems_of_the_send(
    tmp_path: Path, refused: Refused, facts: tuple[bool, float | None, bool, bool]
) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        feishu.refusals["POST", "im/v1/messages"] = [refused]
        with pytest.raises(ApiError, match=f"Feishu answers {refused.code}") as found:
            await network.platform.send(network.outgoing())
        failed = found.value
        assert (failed.retryable, failed.retry_after_seconds, failed.unknown_outcome, failed.for_account) == facts


async def test_somebody_who_cannot_be_written_to_and_a_server_that_is_away_are_reported(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (_, network, host):
        with pytest.raises(SendFailed, match="230013") as failed:
            await network.platform.send(network.outgoing("Psst", private_to=network.member("ou_none")))
        assert not failed.value.retryable
        nowhere = FeishuSettings.model_validate({**GOOD, "domain": "http://127.0.0.1:1"})
        platform = ADAPTER.open(nowhere, host)
        with pytest.raises(SendFailed, match="cannot be reached") as failed:
            await platform.send(network.outgoing())
        assert (failed.value.retryable, failed.value.unknown_outcome) == (True, False)
        await platform.close()


async def test_only_emoji_with_a_name_are_reactions(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        assert isinstance(network.platform, FeishuPlatform)
        said = await feishu.say(ANN, "Done.")
        feishu._mark(said, ANN, "user", "DONE")
        await network.platform.react(network.chat, said, ":party_parrot:")
        with pytest.raises(SendFailed, match="no name") as failed:
            await network.platform.react(network.chat, said, "🦩")
        assert not failed.value.retryable
        await network.platform.react(network.chat, said, "")
        assert [one["operator"]["operator_id"] for one in feishu.marks[said]] == [ANN]
        assert [EMOJI.name(one, "Feishu") for one in ("👍🏽", "❤", "❤️", ":OnIt:")] == [
            "THUMBSUP",
            "HEART",
            "HEART",
            "OnIt",
        ]


# Texts


def md(text: str) -> list[str]:
    """Paragraphs of the post with a Markdown text."""
    content = body_of(Outgoing(ChatRef("feishu", "main", GROUP), "1", text, markdown=True), (), is_card=False)
    return [one["text"] for row in content["zh_cn"]["content"] for one in row]


def test_markdown_is_sent_in_the_form_that_feishu_shows() -> None:
    assert md("**a** <https://a.example> ![dot](https://a.example/secret.png)") == [
        "**a** https://a.example [dot](https://a.example/secret.png)"
    ]
    assert md("| a | b |\n|---|---|\n| 1 | 2 |") == ["| a | b |\n| 1 | 2 |"]
    assert md("before\n```py\na <b> <at>\n```\nafter") == ["before", "```py\na <b> <\u200bat>\n```", "after"]
    assert md("```\nnot closed") == ["```\nnot closed"]
    assert md("5 < 6 <b>c</b>") == ["5 < 6 <\u200bb>c<\u200b/b>"]
    assert md("") == [" "]


@given(st.text(alphabet='<>/atperson id="l`\n ~&;#6', max_size=60))
def test_no_text_mentions_anybody(text: str) -> None:
    assert all(re.search(r"<\s*/?(?:at|person)\b", one, re.IGNORECASE) is None for one in md(text))


# Files


@pytest.mark.parametrize("hides_size", [False, True])
async def test_a_file_is_read_up_to_the_limit(tmp_path: Path, hides_size: bool) -> None:
    async with a_setting(tmp_path) as here:
        here.feishu.hides_sizes = hides_size
        await here.feishu.say(ANN, "Look", file=("dot.png", PNG))
        (file,) = (await here.daemon.gets(text="Look")).attachments
        assert await here.platform.read_file(file, len(PNG)) == PNG
        with pytest.raises(FileUnavailable, match="larger than"):
            await here.platform.read_file(file, len(PNG) - 1)
        here.feishu.files.clear()
        with pytest.raises(FileUnavailable, match="answers 400"):
            await here.platform.read_file(file, len(PNG))
        with pytest.raises(FileUnavailable, match="not an id"):
            await here.platform.read_file(Attachment("x", "", "network:../x/file"), 10)
        here.feishu.token, here.feishu.refusals = "", {("POST", TOKEN_PATH): [Refused(10014), Refused(10014)]}
        here.platform._api._token = ""
        with pytest.raises(FileUnavailable, match="10014"):
            await here.platform.read_file(file, len(PNG))


async def test_a_file_that_cannot_be_uploaded_leaves_no_message(tmp_path: Path) -> None:
    async with a_tenant(tmp_path) as (feishu, network, _):
        empty = Attachment("a.txt", "text/plain", "data:text/plain,")
        with pytest.raises(SendFailed, match="234010") as failed:
            await network.platform.send(network.outgoing("A note.", attachments=(empty,)))
        assert not failed.value.retryable
        assert await feishu.shown() == []


# Settings and probe

GOOD: dict[str, Any] = {"app_id": "cli_1", "app_secret": "secret"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"app_id": "1"}, "pattern"),
        ({"domain": "http://open.feishu.example"}, "has to be feishu.cn"),
        ({"domain": "https://user@open.feishu.example"}, "has to be feishu.cn"),
        ({"domain": "https://"}, "has to be feishu.cn"),
        ({"events": "webhook"}, "needs encrypt_key"),
        ({"events": "polling"}, "'websocket' or 'webhook'"),
    ],
)
def test_wrong_settings_are_explained(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        FeishuSettings.model_validate({**GOOD, **changed})


def test_domains_are_completed_and_keys_are_secrets() -> None:
    urls = {"larksuite.com": "https://open.larksuite.com", "https://a.example/open-apis/": "https://a.example"}
    for domain, url in urls.items():
        assert FeishuSettings.model_validate({**GOOD, "domain": domain}).domain == url
    account = FeishuSettings.model_validate({**GOOD, "encrypt_key": "key", "verification_token": "token"})
    assert account.domain == "https://open.feishu.cn"
    assert account.secrets == ("secret", "key", "token")
    assert "secret'" not in repr(account)


async def test_the_probe_names_the_account_and_missing_scopes() -> None:
    async with FakeFeishu().running() as feishu:
        assert await ADAPTER.probe(settings(feishu), SystemClock()) == "connected as @Rollcall"
        feishu.scopes.remove("im:message.group_msg")
        words = "connected as @Rollcall; scopes are missing: im:message.group_msg"
        assert await ADAPTER.probe(settings(feishu), SystemClock()) == words
        feishu.rejects_links = True
        with pytest.raises(CannotOpen, match=r"1000040350\. Check app_id"):
            await ADAPTER.probe(settings(feishu), SystemClock())
        with pytest.raises(CannotOpen, match=r"10014.*Check app_id"):
            await ADAPTER.probe(settings(feishu, app_secret="wrong"), SystemClock())
