"""Mattermost beyond the contract: gaps, roles, senders, threads, texts, files, and answers of the server."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import PNG, Daemon, Network, receiving, until
from bot.platforms.emoji import COMMON
from bot.platforms.mattermost.platform import ADAPTER, MattermostPlatform, MattermostSettings, message_of
from config.loader import check_settings
from function_calls.context import Attachment, Kind
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Store
from services.store.turns import audit
from tests.bot.platforms.mattermost.test_contract import a_network, settings
from tests.docs.documents import Page
from tests.fakes.mattermost_server import (
    ANN,
    BEN,
    BOT,
    GROUP,
    PRIVATE,
    ROBOT,
    TEAM,
    TOKEN,
    Data,
    FakeMattermost,
    id_of,
    limited,
    mentions_all,
    rendered,
)


class Setting:
    """A server, the platform, and a daemon that receives from it."""

    def __init__(self, network: Network, daemon: Daemon, store: Store) -> None:
        assert isinstance(network.platform, MattermostPlatform)
        assert isinstance(network.side, FakeMattermost)
        self.network, self.platform, self.server = network, network.platform, network.side
        self.daemon, self.store = daemon, store

    def sent(self) -> Data:
        """The body of the latest post."""
        return [body for method, path, body in self.server.calls if (method, path) == ("POST", "posts")][-1]


@asynccontextmanager
async def a_setting(home: Path) -> AsyncIterator[Setting]:
    async with a_network(home) as (network, host), receiving(network.platform, host.store) as daemon:
        yield Setting(network, daemon, host.store)


@asynccontextmanager
async def after_a_gap(home: Path) -> AsyncIterator[tuple[FakeMattermost, list[str], Any]]:
    """A server whose channel has the post `seen`, its id, and a function that connects the bot again."""
    async with a_network(home) as (network, host):
        server = network.side
        assert isinstance(server, FakeMattermost)
        async with receiving(network.platform, host.store) as daemon:
            seen = [await server.say(ANN, "seen"), await server.say(ANN, "seen too")]
            await daemon.gets(text="seen too")
        yield server, seen, lambda: receiving(network.platform, host.store)


# Gaps


async def test_edits_and_deletions_of_the_gap_are_received(tmp_path: Path) -> None:
    async with after_a_gap(tmp_path) as (server, [first, second], again):
        await server.edit(ANN, first, "changed")
        await server.delete(ANN, second)
        gone = await server.say(ANN, "gone")
        await server.delete(ANN, gone)
        await server.say(BEN, "in a thread", reply_to=first)
        async with again() as daemon:
            context = await daemon.gets(text="in a thread")
            assert context.chat.native == f"{GROUP},{first}"
            found = [(one.kind, one.key.native_id, one.text) for one in daemon.received]
            assert found[:2] == [(Kind.EDIT, first, "changed"), (Kind.DELETE, second, "")]
            assert gone not in [native_id for _, native_id, _ in found]


async def test_posts_from_before_the_bot_came_are_not_received(tmp_path: Path) -> None:
    async with after_a_gap(tmp_path) as (server, _, again):
        other = await server.add_bot(BEN)
        await server.say(BEN, "welcome", chat=other)
        server.new_channel(id_of("direct2"), "D", [BOT, BEN])
        await server.say(BEN, "hello", chat=id_of("direct2"))
        async with again() as daemon:
            await daemon.gets(text="hello")
            assert [one for one in daemon.texts if one != "seen too"] == ["welcome", "hello"]
            assert (await daemon.gets(Kind.ADDED)).sender.ref.native == BEN


async def test_a_gap_larger_than_an_answer_of_the_server_is_read_whole(tmp_path: Path) -> None:
    async with after_a_gap(tmp_path) as (server, _, again):
        await server.say(ANN, "the oldest")
        for _ in range(1005):
            await server.post(GROUP, BOT, "by the bot")
        async with again() as daemon:
            assert (await daemon.gets(text="the oldest")).sender.ref.native == ANN


async def test_a_channel_that_cannot_be_read_holds_up_no_other_and_a_rate_limit_ends_nothing(tmp_path: Path) -> None:
    async with after_a_gap(tmp_path) as (server, _, again):
        await server.say(ANN, "in the group")
        server.refusals[f"channels/{PRIVATE}/posts"] = [limited(0)]
        await server.say(ANN, "in private", chat=PRIVATE)
        server.refusals[f"channels/{GROUP}/posts"] = [web.Response(status=403)]
        async with again() as daemon:
            await daemon.gets(text="in private")
            await server.connected(2)


async def test_a_post_with_a_time_in_the_future_hides_no_later_gap(tmp_path: Path) -> None:
    async with after_a_gap(tmp_path) as (server, _, again):
        in_a_year = SystemClock().now_ms() + 366 * 86_400_000
        async with again() as daemon:
            await server.post(GROUP, ANN, "imported", create_at=in_a_year, update_at=in_a_year)
            await daemon.gets(text="imported")
        server._latest += 120_000
        await server.say(ANN, "away")
        async with again() as daemon:
            await daemon.gets(text="away")


async def test_events_that_the_server_left_out_are_read_after_a_reconnect(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        here.server.skip_event()
        await here.server.say(ANN, "after the lost one")
        await here.daemon.gets(text="after the lost one")
        await here.server.connected(2)


@pytest.mark.parametrize(
    ("switch", "words"), [("accepts_tokens", "HTTP 401"), ("accepts_sockets", "rejects the token")]
)
async def test_a_rejected_token_is_named_and_not_shown(tmp_path: Path, switch: str, words: str) -> None:
    async with a_setting(tmp_path) as here:
        setattr(here.server, switch, False)
        await here.server.disconnect()
        await until(lambda: words in here.platform.link().words, lambda: here.platform.link().words)
        assert TOKEN not in here.platform.link().words


# Events


async def test_a_message_names_members_and_the_zone_and_language_of_its_sender(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        here.server.users[BEN] |= {
            "timezone": {"useAutomaticTimezone": "false", "manualTimezone": "Asia/Tokyo"},
            "locale": "ja",
        }
        await here.server.say(ANN, "@Rollcall, ask @ben. and @nobody @all")
        context = await here.daemon.gets(text="ask")
        assert context.text == "ask @ben. and @nobody @all"
        assert context.mentions == (here.network.member(BEN),)
        assert (context.mentions_bot, context.sender.name, context.sender.zone) == (True, "Ann Hill", "Europe/Oslo")
        assert context.chat_title == "family"
        await here.server.say(BEN, "@all @channel @here")
        context = await here.daemon.gets(text="@all @channel")
        assert (context.mentions_bot, context.mentions, context.sender.zone) == (False, (), "Asia/Tokyo")
        assert context.sender.language == "ja"


async def test_a_post_of_a_webhook_is_not_of_the_member_who_made_it(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        here.server.users[ANN]["roles"] = "system_user system_admin"
        props = {"from_webhook": "true", "override_username": "Build"}
        await here.server.post(GROUP, ANN, "delete all", props=props)
        sender = (await here.daemon.gets(text="delete all")).sender
        assert (sender.ref.native, sender.name, sender.is_bot) == ("webhook", "Build", True)
        assert await here.platform.role(here.network.chat, sender.ref) is None


async def test_notices_and_own_edits_are_no_messages(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        sent = await here.platform.send(here.network.outgoing("one"))
        await here.platform.edit(sent.native_id, here.network.outgoing("two"))
        await here.server.enter("carl")
        await here.server.emit("post_edited", {"post": json.dumps(here.server.posts[sent.native_id])}, GROUP)
        await here.server.emit("channel_viewed", {"channel_id": GROUP}, GROUP)
        await here.server.say(ANN, "end")
        await here.daemon.gets(text="end")
        assert [one.kind for one in here.daemon.received] == [Kind.JOIN, Kind.MESSAGE]


async def test_reactions_and_deletions_in_a_thread_belong_to_it(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        root = await here.server.say(ANN, "Drinks?")
        reply = await here.server.say(BEN, "Tea", reply_to=root)
        assert not (await here.daemon.gets(text="Tea")).reply_to.from_bot  # type: ignore[union-attr]
        for name in ("thumbsup_medium_dark_skin_tone", "party_parrot"):
            await here.server.react(ANN, reply, name)
        await here.server.delete(BEN, reply)
        deleted = await here.daemon.gets(Kind.DELETE)
        reacted = [one for one in here.daemon.received if one.kind is Kind.REACTION]
        assert [(one.text, one.chat.native) for one in reacted] == [
            ("👍", deleted.chat.native),
            (":party_parrot:", deleted.chat.native),
        ]
        assert deleted.chat.native == f"{GROUP},{root}"


async def test_an_unreadable_event_is_kept_for_the_operator(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.server.emit("posted", {"post": '{"message": "half a post"}'}, GROUP)
        await here.server.say(ANN, "end")
        await here.daemon.gets(text="end")
        [row] = [one for one in await here.store.read(audit.last(10)) if one["action"] == "event_unreadable"]
        assert "half a post" in row["detail"]


# Roles


async def test_roles_of_the_server_and_the_team_count_only_inside_the_channel(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        server, platform = network.side, network.platform
        assert isinstance(server, FakeMattermost)

        async def role(member: str) -> Role | None:
            return await platform.role(network.chat, network.member(member))

        server.members[TEAM][BEN]["scheme_admin"] = True
        server.users[ANN]["roles"] = "system_user system_admin"
        server.users[ROBOT]["roles"] = "system_user system_admin"
        assert [await role(one) for one in (ANN, BEN, ROBOT)] == [Role.OWNER, Role.ADMIN, Role.MEMBER]
        server.users[BEN]["roles"] = "system_guest"
        assert await role(BEN) is Role.MEMBER
        server.users[ANN]["delete_at"] = 1
        assert await role(ANN) is None
        server.users[ANN]["delete_at"] = 0
        del server.members[GROUP][ANN]
        assert [await role(one) for one in (ANN, GROUP, "me", "../users/me")] == [None] * 4
        server.members[GROUP][ANN] = {"user_id": ANN, "roles": "channel_user"}
        server.refusals[f"users/{ANN}"] = [web.Response(status=500)]
        assert await role(ANN) is None


# Sending


async def test_a_repeated_send_is_dropped_while_the_server_remembers_it(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        assert isinstance(network.side, FakeMattermost)
        network.side.remembers_sends = True
        ids = {(await network.platform.send(network.outgoing())).native_id for _ in range(2)}
        other = await network.platform.send(network.outgoing(key="2:0:0"))
        assert len(ids) == 1
        assert other.native_id not in ids


async def test_an_answer_mentions_its_members_by_username_and_stays_in_its_thread(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        root = await here.server.say(ANN, "Drinks?")
        thread = ChatRef("mattermost", "main", f"{GROUP},{root}")
        chart = Attachment("chart", "text/html", "https://example.org/@ann/c_d")
        mentions = (here.network.member(ANN), here.network.member(id_of("nobody")))
        await here.platform.send(Outgoing(thread, "1:0:0", "*Tea* @here", mentions=mentions, attachments=(chart,)))
        sent = here.sent()
        assert (sent["root_id"], rendered(sent["message"])) == (
            root,
            "@ann *Tea* @here\nchart: https://example.org/%40ann/c_d",
        )
        assert here.server.notified == []
        private = Outgoing(thread, "2:0:0", "Psst.", private_to=here.network.member(ANN), mentions=mentions)
        await here.platform.send(private)
        assert (here.sent()["channel_id"], here.sent()["root_id"], here.sent()["message"]) == (PRIVATE, "", "Psst.")
        for nobody in ("0" * 26, "../x"):
            with pytest.raises(SendFailed) as failed:
                await here.platform.send(Outgoing(thread, "3:0:0", "Psst.", private_to=here.network.member(nobody)))
            assert not failed.value.retryable


async def test_failures_say_whether_and_when_to_retry(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        server = network.side
        assert isinstance(server, FakeMattermost)
        answers = [
            limited(3),
            web.Response(status=429, headers={"X-RateLimit-Reset": "10"}),
            web.Response(status=429, headers={"Retry-After": "soon"}),
            web.Response(status=504),
            web.Response(status=503),
            web.Response(status=501),
            web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
            web.Response(text="<html>"),
        ]
        found = []
        for answer in answers:
            server.refusals["posts"] = [answer]
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(network.outgoing())
            problem = failed.value
            found.append((problem.retryable, problem.unknown_outcome, problem.for_account))
            if answer is answers[1]:
                assert problem.retry_after_seconds == 10
        limits, given_up = (True, False, True), (False, False, False)
        assert found == [
            limits,
            limits,
            limits,
            (True, True, False),
            (True, False, False),
            given_up,
            given_up,
            (True, True, False),
        ]
        await network.platform.close()


async def test_an_unreachable_server_has_sent_nothing(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, host):
        unreachable = MattermostSettings.model_validate({"url": "http://127.0.0.1:1", "token": TOKEN})
        platform = ADAPTER.open(unreachable, host)
        with pytest.raises(SendFailed) as failed:
            await platform.send(network.outgoing())
        assert (failed.value.retryable, failed.value.unknown_outcome) == (True, False)
        await platform.close()


async def test_typing_names_the_thread(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        root = await here.server.say(ANN, "Drinks?")
        await here.platform.typing(ChatRef("mattermost", "main", f"{GROUP},{root}"), "…")
        async with here.server.changed:
            await here.server.changed.wait_for(lambda: bool(here.server.actions))
        assert here.server.actions == [
            {"seq": 2, "action": "user_typing", "data": {"channel_id": GROUP, "parent_id": root}}
        ]


async def test_members_are_listed_without_the_bot_over_pages(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        server = network.side
        assert isinstance(server, FakeMattermost)
        for number in range(250):
            server.members[GROUP][id_of(f"member{number}x")] = {"user_id": id_of(f"member{number}x")}
        members = await network.platform.members(network.chat)  # type: ignore[attr-defined]
        assert len(members) == 253
        assert MemberRef("mattermost", "main", BOT) not in members


async def test_only_named_emoji_can_be_reactions(tmp_path: Path) -> None:
    async with a_network(tmp_path) as (network, _):
        platform = network.platform
        assert isinstance(platform, MattermostPlatform)
        with pytest.raises(SendFailed) as failed:
            await platform.react(network.chat, id_of("post"), "🦭")
        assert not failed.value.retryable
    names = [COMMON.name(one, "Mattermost") for one in ("👍🏽", "✔", ":custom:", "")]
    assert names == ["+1", "heavy_check_mark", "custom", ""]
    with pytest.raises(SendFailed):
        COMMON.name(":a/b:", "Mattermost")
    assert [COMMON.emoji(one) for one in ("thumbsdown", "tada", "custom")] == ["👎", "🎉", ":custom:"]


# Files


async def test_a_file_is_read_no_further_than_the_limit_whatever_its_size_is_said_to_be(tmp_path: Path) -> None:
    async with a_setting(tmp_path) as here:
        await here.server.say(ANN, "Look", file=("dot.png", PNG))
        [file] = (await here.daemon.gets(text="Look")).attachments
        assert (file.name, file.media_type, file.size_bytes) == ("dot.png", "image/png", len(PNG))
        here.server.files[file.url.partition(":")[2]]["size"] = 2
        with pytest.raises(FileUnavailable, match="larger than 10 bytes"):
            await here.platform.read_file(file, 10)
        here.server.files[file.url.partition(":")[2]]["size"] = 2_000_000_000
        downloads = len(here.server.calls)
        with pytest.raises(FileUnavailable, match="larger than 10,000 bytes"):
            await here.platform.read_file(file, 10_000)
        assert len(here.server.calls) == downloads + 1
        for url in ("mattermost:../users/me", f"mattermost:{id_of('none')}", "https://example.org/a"):
            with pytest.raises(FileUnavailable):
                await here.platform.read_file(Attachment("a", "", url), 10_000)


# Texts


@pytest.mark.parametrize("markdown", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "@here",
        "x @ALL!",
        "a.@channel",
        "-@here-",
        "_@here_",
        "**@all**",
        "(@all)",
        "```\n@here",
        "` @here",
        "[@all](b)",
        "&#64;here @all",
        "&#x40;here @all",
        "&commat;here @all",
        "@&#104;ere @all",
        "\\@here @all",
    ],
)
def test_no_text_notifies_a_whole_channel(text: str, *, markdown: bool) -> None:
    assert mentions_all(text.strip("`"))
    message = message_of(text, markdown=markdown)
    assert not mentions_all(message.replace("```", "").replace("`", ""))


@pytest.mark.parametrize(
    "text",
    [
        "# no heading\n- no list\n+ x\n1. y\n2) z\n> no quote\n===\n---\n    no code\n\tx",
        "a*b*c **d** __e__ ~~f~~ `g` | h | \\ \\* ![i](j) <k@l.org> <m> &amp; &#64; :tada: ~town-square 1 < 2",
        "https://example.org/a_b_c?d=*e* and me@example.org",
    ],
)
def test_a_plain_text_is_shown_exactly(text: str) -> None:
    assert rendered(message_of(text, markdown=False)) == text


def test_markdown_keeps_its_code_and_addresses_and_shows_no_image() -> None:
    markdown = "**Hi** @ann `@property` ![x](https://example.org/?q=1) me@example.org\n```\n@decorator\n```"
    shown = message_of(markdown, markdown=True)
    assert shown == markdown.replace("@ann", "@\u200bann").replace("![x]", "[x]")


# Settings


async def test_the_probe_names_account_and_problem(tmp_path: Path) -> None:
    async with FakeMattermost().running() as server:
        assert await ADAPTER.probe(settings(server), SystemClock()) == "connected as @rollcall in Home"
        server.users[BOT]["is_bot"] = False
        server.refusals["users/me/teams"] = [web.json_response([])]
        line = await ADAPTER.probe(settings(server), SystemClock())
        assert "is in no team" in line
        assert "member's account" in line
        server.accepts_tokens = False
        with pytest.raises(CannotOpen, match=r"HTTP 401.*token") as failed:
            await ADAPTER.probe(settings(server), SystemClock())
        assert TOKEN not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("http://chat.example.org", TOKEN, "https://"),
        ("chat.example.org", TOKEN, "http"),
        ("https://chat.example.org", "short", "26 letters"),
    ],
)
def test_wrong_settings_are_explained(url: str, token: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        MattermostSettings.model_validate({"url": url, "token": token})


def test_settings_of_the_page_are_good(tmp_path: Path) -> None:
    [block] = Page("docs/platforms/mattermost.md").of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    found_settings, found = check_settings(file, {**os.environ, "MATTERMOST_TOKEN": TOKEN})
    assert list(found) == []
    assert found_settings is not None
    [(network, account)] = [one for one in found_settings.platforms.networks if one[0] == "mattermost"]
    assert (network, account.secrets) == ("mattermost", (TOKEN,))
