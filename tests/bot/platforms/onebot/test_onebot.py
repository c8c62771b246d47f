"""OneBot beyond the contract: formats of messages, connections, rejections, files and settings."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import ValidationError

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import BOT_NAMES, PNG, Daemon, Network, a_host, receiving, until
from bot.platforms.mentions import mention_parser
from bot.platforms.onebot.events import Reader
from bot.platforms.onebot.platform import ADAPTER, OneBotPlatform
from bot.platforms.onebot.session import OneBotSettings
from config.loader import check_settings
from function_calls.context import Attachment, Kind, MessageContext
from services.clock import SystemClock, VirtualClock
from services.refs import ChatRef, Role
from tests.bot.platforms.onebot.test_contract import a_free_port, a_network
from tests.docs.documents import Page
from tests.fakes.onebot_server import ANN, BEN, GROUP, SELF_ID, TOKEN, OneBotServer

EVENT: dict[str, Any] = {
    "time": 1_770_000_000,
    "self_id": int(SELF_ID),
    "post_type": "message",
    "message_type": "group",
    "sub_type": "normal",
    "message_id": -17,
    "group_id": int(GROUP),
    "user_id": int(ANN),
    "sender": {"nickname": "Ann", "card": "Ann of\nOslo", "role": "owner"},
}


MAP, MAP_AS_CODE = '{"prompt": "[Map] Oslo, N"}', '{"prompt": "&#91;Map&#93; Oslo&#44; N"}'


def read(message: Any, **facts: Any) -> MessageContext:
    [context] = Reader("main", mention_parser(BOT_NAMES)).contexts(EVENT | {"message": message} | facts, SELF_ID)
    return context


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "data": {"text": words}}


def segment(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


@asynccontextmanager
async def connected(home: Path, server: OneBotServer, **facts: Any) -> AsyncIterator[tuple[Network, Daemon]]:
    """A platform that receives from `server`."""
    async with (
        server.serving(),
        a_network(home, server, **facts) as (network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        yield network, daemon


# Messages


@pytest.mark.parametrize(
    ("segments", "codes", "expected", "mentions_bot", "mentions"),
    [
        ([segment("at", qq=SELF_ID), text(" roll")], f"[CQ:at,qq={SELF_ID}] roll", "roll", True, []),
        ([text("a "), segment("at", qq=int(SELF_ID)), text(" b")], f"a [CQ:at,qq={SELF_ID}] b", "a b", True, []),
        ([segment("at", qq="all"), text(" tea")], "[CQ:at,qq=all] tea", "@all tea", False, []),
        ([text("ask "), segment("at", qq=BEN)], f"ask [CQ:at,qq={BEN}]", f"ask @{BEN}", False, [BEN]),
        ([segment("at", qq=BEN, name="@Ben"), text("?")], f"[CQ:at,qq={BEN},name=@Ben]?", "@Ben?", False, [BEN]),
        ([text("[CQ:at,qq=1] & ,")], "&#91;CQ:at,qq=1&#93; &amp; ,", "[CQ:at,qq=1] & ,", False, []),
        ([text("&amp;#91;")], "&amp;amp;#91;", "&amp;#91;", False, []),
        ([segment("face", id="14")], "[CQ:face,id=14]", "[face 14]", False, []),
        ([segment("json", data=MAP)], f"[CQ:json,data={MAP_AS_CODE}]", "[Map] Oslo, N", False, []),
        ([segment("json", data="{")], "[CQ:json,data={]", "[json]", False, []),
        ([segment("xml", data='<msg brief="Card">')], '[CQ:xml,data=<msg brief="Card">]', "[Card]", False, []),
        ([segment("share", title="Tea", url="x?a=b")], "[CQ:share,title=Tea,url=x?a=b]", "[Tea]", False, []),
        ([segment("shake")], "[CQ:shake]", "[shake]", False, []),
        ([text("Rollcall, flip")], "Rollcall, flip", "flip", True, []),
    ],
)
def test_segments_and_cq_codes_are_read_alike(
    segments: list[Any], codes: str, expected: str, mentions_bot: bool, mentions: list[str]
) -> None:
    for message in (segments, codes):
        context = read(message)
        assert (context.text, context.mentions_bot) == (expected, mentions_bot)
        assert [one.native for one in context.mentions] == mentions


def test_the_facts_of_a_message_are_read() -> None:
    context = read(segment("text", text="hi"), group_name="Family")
    assert (context.text, context.chat.native, context.chat_title) == ("hi", f"group-{GROUP}", "Family")
    assert (context.key.native_id, context.sender.name, context.sender.ref.native) == ("-17", "Ann of\nOslo", ANN)
    assert context.sender.role is Role.OWNER
    assert context.sent_at == datetime.fromtimestamp(EVENT["time"], UTC)
    assert read("hi", time=EVENT["time"] * 1000 + 5).sent_at == context.sent_at


@pytest.mark.parametrize("facts", [{"sub_type": "anonymous"}, {"sub_type": "notice"}, {"user_id": 80000000}])
def test_senders_without_an_identity_are_marked(facts: dict[str, Any]) -> None:
    assert read("hi", **facts).sender.is_bot
    assert not read("hi").sender.is_bot


def test_a_group_and_a_member_with_the_same_number_are_different_chats() -> None:
    group = read("hi", group_id=int(ANN))
    private = read("hi", message_type="private", sub_type="group", group_id=int(GROUP))
    assert (group.chat.native, private.chat.native) == (f"group-{ANN}", f"private-{ANN}")
    assert (group.is_group, private.is_group) == (True, False)


def test_files_are_named_with_their_type() -> None:
    files = [
        segment("image", file="A1.png", url="https://x.qpic.cn/1", file_size="120"),
        segment("record", file="voice"),
        segment("video", file="/tmp/a film.mp4"),
        segment("file", file="plan.pdf", file_id="/uuid", file_size=7),
    ]
    found = read(files).attachments
    assert [(one.name, one.media_type, one.size_bytes) for one in found] == [
        ("A1.png", "image/png", 120),
        ("voice", "audio/amr", None),
        ("a film.mp4", "video/mp4", None),
        ("plan.pdf", "application/pdf", 7),
    ]


async def test_reactions_with_faces_are_read_and_removals_left_out(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (_, daemon):
        said = await server.say(BEN, "Tea?")
        facts = {"notice_type": "group_msg_emoji_like", "group_id": int(GROUP), "message_id": int(said)}
        for emoji, is_add in (("128078", False), ("76", True), ("9999999", True)):
            likes = [{"emoji_id": emoji, "count": 1}]
            await server.emit("notice", user_id=int(ANN), likes=likes, is_add=is_add, **facts)
        await daemon.gets(Kind.REACTION, "[face 9999999]")
        reactions = [one for one in daemon.received if one.kind is Kind.REACTION]
        assert [one.text for one in reactions] == ["👍", "[face 9999999]"]
        assert len({one.key.text for one in reactions}) == 2


async def test_a_reply_to_a_message_of_the_bot_is_known_after_a_restart(tmp_path: Path) -> None:
    server = OneBotServer(strings=True)
    own = server.add(SELF_ID, [text("Which city?")], group=GROUP)
    async with connected(tmp_path, server) as (_, daemon):
        await server.say(ANN, "Oslo", reply_to=str(own.id))
        context = await daemon.gets(text="Oslo")
        assert context.reply_to is not None
        assert (context.reply_to.from_bot, context.reply_to.text) == (True, "Which city?")
        await server.say(ANN, "Rome", reply_to="999999")
        assert (await daemon.gets(text="Rome")).reply_to == replace(
            context.reply_to, native_id="999999", sender_name="", text="", from_bot=False
        )


@pytest.mark.parametrize("accepts", [False, True])
async def test_invitations_are_accepted_only_if_configured(tmp_path: Path, accepts: bool) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server, accept_invitations=accepts) as (_, daemon):
        group = await server.invite_bot(ANN)
        await server.say(ANN, "end")
        await daemon.gets(text="end")
        assert (SELF_ID in server.groups[group]) is accepts


# Sending


async def test_text_is_never_read_as_codes_and_mentions_are_segments(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, _):
        said = await server.say(ANN, "Hi")
        mentions = (network.member(ANN), network.member(BEN))
        words = "[CQ:at,qq=all] &#91;CQ:image,file=/etc/passwd&#93; @全体成员"
        await network.platform.send(network.outgoing(words, mentions=mentions, reply_to=said))
        await network.platform.send(network.outgoing("**Hi** [tea](https://tea.example)", "2:0:0", markdown=True))
        plain, marked = await server.shown()
        assert (plain.text, plain.reply_to) == (f"@{ANN} @{BEN} {words}", said)
        assert marked.text == "Hi tea (https://tea.example)"


async def test_files_are_sent_as_pictures_files_or_links(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, _):

        def data(media_type: str, content: bytes) -> Attachment:
            url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
            return Attachment("name", media_type, url, len(content))

        link = Attachment("menu", "text/html", "https://tea.example/menu")
        attachments = (data("text/plain", b"a plan"), data("image/png", PNG), link)
        await network.platform.send(network.outgoing("Look", attachments=attachments))
        file, main = await server.shown()
        assert (file.text, file.files) == ("", (b"a plan",))
        assert (main.text, main.files) == ("Look\nmenu: https://tea.example/menu", (PNG,))
        await network.platform.send(network.outgoing("", "2:0:0", attachments=attachments[:1]))
        assert len(await server.shown()) == 3


async def test_a_private_message_goes_through_the_group(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, _):
        await network.platform.send(network.outgoing("A secret", private_to=network.member(BEN)))
        assert [one.text for one in await server.shown(f"private-{BEN}")] == ["A secret"]
        assert await server.shown() == []
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing("A secret", private_to=network.member("123")))
        assert not failed.value.retryable


async def test_a_member_that_is_no_friend_is_answered_in_private(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, daemon):
        await server.say(BEN, "Hi there", chat=f"private-{BEN}")
        context = await daemon.gets(text="there")
        await network.platform.send(Outgoing(context.chat, "1:0:0", "Hi Ben"))
        assert [one.text for one in await server.shown(f"private-{BEN}")] == ["Hi Ben"]


async def test_a_muted_bot_gives_up(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, _):
        server.muted_until = int(time.time()) + 1000
        with pytest.raises(SendFailed, match="muted") as failed:
            await network.platform.send(network.outgoing())
        assert not failed.value.retryable


async def test_a_chat_of_another_form_is_rejected(tmp_path: Path) -> None:
    async with OneBotServer().serving() as server, a_network(tmp_path, server) as (network, _):
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(Outgoing(ChatRef("onebot", "main", GROUP), "1:0:0", "Hi"))
        assert not failed.value.retryable


async def test_roles_and_members_are_those_of_the_group(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, _):
        platform: Any = network.platform
        assert await platform.role(network.chat, network.member(ANN)) is Role.OWNER
        assert await platform.role(network.chat, network.member(GROUP)) is None
        assert await platform.role(ChatRef("onebot", "main", f"private-{ANN}"), network.member(ANN)) is None
        assert {one.native for one in await platform.members(network.chat)} == set(server.groups[GROUP]) - {SELF_ID}


# Files


async def test_files_come_only_from_known_hosts_and_within_their_limit(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, daemon):
        platform: Any = network.platform

        async def file(name: str, content: bytes, **facts: Any) -> Attachment:
            data = server.file(name, content, declared=facts.pop("declared", None), expired=facts.pop("expired", False))
            await server.post(server.add(ANN, [segment("image", **(data | facts))], group=GROUP))
            await daemon.until(
                lambda all_: any(one.attachments and one.attachments[0].name == name for one in all_.received)
            )
            return next(
                one.attachments[0] for one in daemon.received if one.attachments and one.attachments[0].name == name
            )

        assert await platform.read_file(await file("gone.png", PNG, expired=True), 1000) == PNG
        with pytest.raises(FileUnavailable, match="larger"):
            await platform.read_file(await file("declared.png", PNG, declared=2**31), 1000)
        with pytest.raises(FileUnavailable, match="larger"):
            await platform.read_file(await file("liar.png", b"x" * 100_000, declared=10), 1000)
        with pytest.raises(FileUnavailable, match=r"file_hosts .* localhost"):
            await platform.read_file(await file("other.png", PNG, url="http://localhost:1/other.png"), 1000)
        for url in ("", "http://[", "file:///etc/passwd"):
            unknown = Attachment("a", "image/png", f"network:kind=image&file=unknown&url={url}")
            with pytest.raises(FileUnavailable, match="does not provide"):
                await platform.read_file(unknown, 1000)
        assert sum(action == "get_image" for action, _ in server.calls) == 4


# Connections


async def test_only_the_implementation_with_the_token_and_the_account_is_accepted(tmp_path: Path) -> None:
    server, port = OneBotServer(), a_free_port()
    url = f"ws://127.0.0.1:{port}/"
    good = {"Authorization": f"Bearer {TOKEN}", "X-Self-ID": SELF_ID, "X-Client-Role": "Universal"}
    bad: list[tuple[dict[str, str], int]] = [
        (good | {"Authorization": "Bearer another"}, 401),
        (good | {"Authorization": TOKEN}, 401),
        ({"X-Self-ID": SELF_ID}, 401),
        (good | {"X-Self-ID": "1"}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 401),
        (good | {"Authorization": "Bearer \udcff"}, 401),
        (good | {"X-Client-Role": "Event"}, 400),
    ]
    async with server.dialling(url), connected(tmp_path, server, port=port, self_id=SELF_ID) as (_, daemon):
        async with aiohttp.ClientSession() as http:
            for headers, status in bad:
                with pytest.raises(aiohttp.WSServerHandshakeError) as rejected:
                    await http.ws_connect(url, headers=headers)
                assert rejected.value.status == status
        await server.say(ANN, "still here")
        assert (await daemon.gets(text="still")).text == "still here"
        assert server.dials == 1


async def test_the_newest_connection_is_used(tmp_path: Path) -> None:
    before, after, port = OneBotServer(), OneBotServer(), a_free_port()
    url = f"ws://127.0.0.1:{port}/"
    async with before.dialling(url), connected(tmp_path, before, port=port) as (network, daemon):
        # The first implementation would connect again at once.
        before.token = "is-outdated"
        async with after.dialling(url):
            await after.connected()
            await until(lambda: network.platform.link().losses > 0)  # type: ignore[attr-defined]
            await after.say(ANN, "from the new one")
            await daemon.gets(text="from the new one")
            await network.platform.send(network.outgoing())
            assert (len(await before.shown()), len(await after.shown())) == (0, 1)


@pytest.mark.parametrize(
    ("facts", "words"), [({"access_token": "another"}, "rejects"), ({"self_id": "5"}, "self_id is 5")]
)
async def test_the_status_says_why_there_is_no_connection(tmp_path: Path, facts: dict[str, str], words: str) -> None:
    async with OneBotServer().serving() as server, a_network(tmp_path, server, **facts) as (network, host):
        platform: Any = network.platform
        running = asyncio.create_task(platform.run(Daemon(host.store).deliver))
        try:
            await until(lambda: words in platform.link().words, lambda: platform.link().words)
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_an_account_that_is_offline_is_not_reachable(tmp_path: Path) -> None:
    server = OneBotServer()
    async with connected(tmp_path, server) as (network, _):
        platform: Any = network.platform
        server.online = False
        await server.heartbeat()
        await until(lambda: not platform.link().is_up)
        assert "not logged in" in platform.link().words
        server.online = True
        await server.heartbeat()
        await until(lambda: platform.link().is_up)


async def test_a_silent_connection_is_replaced(tmp_path: Path) -> None:
    clock = VirtualClock(SystemClock().now())
    async with OneBotServer().serving() as server, a_host(tmp_path) as host:
        platform = OneBotPlatform(OneBotSettings(url=server.url, access_token=TOKEN), replace(host, clock=clock))
        async with receiving(platform, host.store):
            for _ in range(6):
                calls = len(server.calls)
                await clock.advance(30)
                await until(lambda before=calls: len(server.calls) > before)  # type: ignore[misc]
            assert platform.link().losses == 0
            server.answers_status = False
            await clock.advance(121)
            await until(lambda: platform.link().losses == 1, lambda: platform.link().words)
            await clock.advance(61)
            await until(lambda: platform.link().is_up, lambda: platform.link().words)
        await platform.close()


async def test_history_is_read_around_what_cannot_be_read(tmp_path: Path) -> None:
    async with OneBotServer().serving() as server, a_network(tmp_path, server) as (network, host):
        async with receiving(network.platform, host.store) as daemon:
            await server.say(ANN, "seen")
            await daemon.gets(text="seen")
        await network.platform.close()
        for words in ("one", "two", "three"):
            server.add(BEN, [text(words)], group=GROUP, facts={"message": 17} if words == "two" else {})
        assert network.reopen is not None
        again: Any = network.reopen()
        async with receiving(again, host.store) as daemon:
            await daemon.gets(text="three")
            assert daemon.texts == ["seen", "one", "three"]
            assert "1 events could not be read" in again.link().words
        await again.close()


async def test_an_implementation_without_history_is_noticed(tmp_path: Path) -> None:
    server = OneBotServer(history=False)
    async with connected(tmp_path, server) as (network, daemon):
        await server.say(ANN, "seen")
        await daemon.gets(text="seen")
        await server.disconnect()
        await until(lambda: not network.platform.limits.catches_up)
        await server.say(ANN, "after")
        await daemon.gets(text="after")


async def test_a_time_in_the_future_hides_no_later_message(tmp_path: Path) -> None:
    async with OneBotServer().serving() as server, a_network(tmp_path, server) as (network, host):
        async with receiving(network.platform, host.store) as daemon:
            message = server.add(ANN, [text("from the future")], group=GROUP)
            message.time += 10_000
            await server.post(message)
            await daemon.gets(text="future")
            server.now = int(time.time())
        server.add(ANN, [text("later")], group=GROUP)
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(text="later")


# Settings


async def test_the_probe_names_the_account_and_what_is_wrong() -> None:
    clock = SystemClock()
    async with OneBotServer().serving() as server:
        good = OneBotSettings(url=server.url, access_token=TOKEN)
        assert await ADAPTER.probe(good, clock) == "connected as @Rollcall (20001) by NapCat.Onebot 4.17.0"
        for url, token, words in ((server.url, "another", "rejects"), ("ws://127.0.0.1:1", "", "reached")):
            with pytest.raises(CannotOpen, match=words) as problem:
                await ADAPTER.probe(OneBotSettings(url=url, access_token=token), clock)
            assert "another" not in str(problem.value)
        taken = OneBotSettings(port=int(server.url.rpartition(":")[2]), access_token=TOKEN)
        with pytest.raises(CannotOpen, match="cannot be opened"):
            await ADAPTER.probe(taken, clock)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "or url is needed"),
        ({"url": "ws://127.0.0.1:1", "port": 1, "access_token": TOKEN}, "not both"),
        ({"url": "http://127.0.0.1:1"}, r"ws\(s\)"),
        ({"url": "ws://127.0.0.1:1/?access_token=x"}, "without user and query"),
        ({"url": "ws://:a-password@127.0.0.1:1"}, "without user and query"),
        ({"url": "ws://example.org"}, "wss://"),
        ({"url": "ws://127.0.0.1:x"}, r"ws\(s\)"),
        ({"port": 1, "access_token": "short"}, "16 characters"),
        ({"port": 1, "access_token": TOKEN, "host": "0.0.0.0"}, "loopback"),
        ({"url": "ws://localhost:1", "access_token": "a\nb"}, "ASCII"),
    ],
)
def test_wrong_settings_are_explained(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        OneBotSettings(**facts)


def test_settings_of_the_page_are_good(tmp_path: Path) -> None:
    [block] = Page("docs/platforms/onebot.md").of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {"ONEBOT_TOKEN": TOKEN})
    assert list(found) == []
    assert settings is not None
    assert [one.secrets for _, one in settings.platforms.networks] == [(TOKEN,), (TOKEN,)]
