"""The Discord platform against simcord's simulation, with discord.py unchanged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import discord
import pytest
from pydantic import SecretStr

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import CommandHint, FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import PNG, Daemon, Network, a_host, outbox_row, receiving, until
from bot.platforms.discord.adapter import ADAPTER, DiscordSettings
from bot.platforms.discord.platform import DiscordPlatform, probe
from config.loader import check_settings
from function_calls.context import Attachment, Kind
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef, Role
from tests.contracts.described import DescribedContract
from tests.docs.documents import Page
from tests.fakes.discord_server import TOKEN, DiscordServer, a_discord_server, rate_limited

SETTINGS = DiscordSettings(token=SecretStr(TOKEN))
OTHER = TOKEN[:-1] + "0"


class Ahead(SystemClock):
    """A clock that is an hour ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[tuple[Network, Host, DiscordServer]]:
    """A platform for a new server, not connected yet."""
    async with a_discord_server() as server, a_host(home) as host:
        platforms: list[DiscordPlatform] = []

        def reopen() -> DiscordPlatform:
            platforms.append(DiscordPlatform(SETTINGS, host, server.connector))
            return platforms[-1]

        people = {who: str(server.user(who)) for who in ("ann", "ben", "robot")}
        network = Network(
            reopen(), server, str(server.general.id), private=str(server.private.id), reopen=reopen, **people
        )
        try:
            yield network, host, server
        finally:
            for platform in platforms:
                await platform.close()


class TestContract(DescribedContract):
    """Discord passes the contract of all networks."""

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with opened(home) as (network, host, _):
            yield network, host


@asynccontextmanager
async def connected(home: Path) -> AsyncIterator[tuple[Network, Host, DiscordServer, Daemon]]:
    """A platform that receives from a new server."""
    async with opened(home) as (network, host, server), receiving(network.platform, host.store) as daemon:
        yield network, host, server, daemon


def sent(server: DiscordServer) -> list[dict[str, object]]:
    """Bodies of the messages that the bot has sent."""
    return [body for method, path, body in server.requests if method == "POST" and path.endswith("/messages")]


# Missed events


async def test_a_session_that_continues_has_missed_nothing(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, _, server, daemon):
        first = await server.say("ann", "first")
        await daemon.gets(text="first")
        await server.disconnect()
        await server.edit("ann", first, "first, corrected")
        await server.say("ann", "second")
        await daemon.gets(Kind.EDIT)
        await daemon.gets(text="second")
        assert server.sessions == 1


async def test_messages_are_fetched_if_the_session_cannot_be_resumed(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        server.can_resume = False
        await server.say("ann", "before")
        await server.say("ann", "in private", chat=network.private)
        await daemon.gets(text="in private")
        other = server.world.create_channel(server.guild.id, "other")
        await server.disconnect()
        thread = await server.open_thread("ann", "in a thread")
        await server.say("ben", "in the other channel", chat=str(other.id))
        await server.say("ann", "again in private", chat=network.private)
        await daemon.gets(text="again in private")
        assert server.sessions == 2
        assert daemon.texts == ["before", "in private", "in a thread", "in the other channel", "again in private"]
        assert (await daemon.gets(text="in a thread")).chat.native == thread


async def test_a_missed_message_has_the_role_of_its_author(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, host, server):
        async with receiving(network.platform, host.store) as daemon:
            await server.say("ben", "before")
            await daemon.gets(text="before")
        await server.promote("ben", Role.ADMIN)
        await server.say("ben", "/shutdown")
        await server.say("ann", "bye")
        await server.leave("ann")
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            assert (await daemon.gets(text="/shutdown")).sender.role is Role.ADMIN
            assert (await daemon.gets(text="bye")).sender.role is Role.MEMBER


async def test_only_allowed_channels_are_searched_for_missed_messages(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, host, server):
        host = replace(host, allows=lambda chat: chat.native != str(server.general.id))
        for start in ("first", "second"):
            platform = DiscordPlatform(SETTINGS, host, server.connector)
            async with receiving(platform, host.store) as daemon:
                await server.say("ann", f"after the {start} start")
                await daemon.gets(text=f"after the {start} start")
                assert daemon.texts == [f"after the {start} start"]
            await platform.close()
            await server.say("ann", "missed")


async def test_messages_are_fetched_although_the_clock_was_ahead_at_the_first_start(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, host, server):
        ahead = DiscordPlatform(SETTINGS, replace(host, clock=Ahead()), server.connector)
        async with receiving(ahead, host.store) as daemon:
            await server.say("ann", "seen")
            await daemon.gets(text="seen")
        await ahead.close()
        await server.say("ann", "missed")
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(text="missed")


# Access


async def test_a_wrong_token_is_reported_and_not_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with opened(tmp_path) as (_, host, server):
        platform = DiscordPlatform(DiscordSettings(token=SecretStr(OTHER)), host, server.connector)
        running = asyncio.create_task(platform.run(Daemon(host.store).deliver))
        await until(lambda: "rejects the token" in platform.link().words, lambda: platform.link().words)
        with pytest.raises(SendFailed, match="not connected yet"):
            await platform.delete(ChatRef("discord", "main", "1"), "1")
        running.cancel()
        await platform.close()
        with pytest.raises(CannotOpen, match="rejects the token"):
            await probe(DiscordSettings(token=SecretStr(OTHER)), SystemClock(), server.connector)
        assert OTHER not in capsys.readouterr().out


async def test_missing_intents_are_reported(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, host, server):
        server.approved = discord.Intents.default()
        running = asyncio.create_task(network.platform.run(Daemon(host.store).deliver))
        platform = network.platform
        assert isinstance(platform, DiscordPlatform)
        await until(lambda: "Message Content Intent" in platform.link().words, lambda: platform.link().words)
        running.cancel()
        with pytest.raises(CannotOpen, match="enable Server Members Intent and Message Content Intent"):
            await probe(SETTINGS, SystemClock(), server.connector)


async def test_the_probe_names_the_bot_and_its_servers(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, _, server):
        assert await probe(SETTINGS, SystemClock(), server.connector) == "connected as @TestBot; servers: 1"
        server.world.remove_guild(server.guild.id)
        line = await probe(SETTINGS, SystemClock(), server.connector)
        assert re.search(r"servers: 0; invite it: https://discord.com/oauth2/authorize\?client_id=\d+", line)


def test_a_token_of_another_kind_is_explained(tmp_path: Path) -> None:
    (tmp_path / "bot.yaml").write_text("platforms: {discord: [{token: 8fb1c2}]}\n", encoding="utf-8")
    _, found = check_settings(tmp_path / "bot.yaml", {})
    assert "has to be the token from the page Bot of the developer portal" in str(found[0])


def test_the_settings_of_the_page_are_valid(tmp_path: Path) -> None:
    [block] = Page("docs/platforms/discord.md").of("yaml")
    (tmp_path / "bot.yaml").write_text(block.text, encoding="utf-8")
    settings, found = check_settings(tmp_path / "bot.yaml", {"DISCORD_TOKEN": TOKEN})
    assert found == []
    assert settings is not None
    [(name, account)] = settings.platforms.networks
    assert (name, account.secrets) == ("discord", (TOKEN,))


async def test_the_adapter_opens_its_platform(tmp_path: Path) -> None:
    async with a_host(tmp_path) as host:
        platform = ADAPTER.open(SETTINGS, host)
        with pytest.raises(SendFailed) as failed:
            await platform.send(Outgoing(ChatRef("discord", "main", "1"), "1:0:0", "Hello."))
        assert failed.value.retryable
        await platform.close()


# Sending


async def test_a_text_notifies_only_the_members_that_it_is_for(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        said = await server.say("ben", "Hi")
        text = f"@everyone <@{network.ben}> <@&{server.own_role}>"
        mentions = (network.member(network.ann), network.member("unknown"), network.member(network.ann))
        for markdown, key in ((True, "1:0:0"), (False, "2:0:0")):
            await network.platform.send(
                network.outgoing(text, key, mentions=mentions, reply_to=said, markdown=markdown)
            )
        for one in [one for one in server.world.messages[server.general.id].values() if one.author_id == server.me.id]:
            assert list(one.ping_user_ids) == [int(network.ann)]
            assert not one.mention_everyone
            assert not one.ping_role_ids
            assert not one.allowed_mentions.replied_user
            assert one.content.startswith(f"<@{network.ann}> ")


async def test_markdown_shows_where_its_links_lead(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        text = "**Read** [this](https://a.example/b) ![dot](https://c.example/d.png) `[x](https://y.example)`"
        await network.platform.send(network.outgoing(text, markdown=True))
        [body] = sent(server)
        assert body["content"] == (
            "**Read** this (<https://a.example/b>) dot (<https://c.example/d.png>) `[x](https://y.example)`"
        )
        assert body["flags"] == discord.MessageFlags(suppress_embeds=True).value


async def test_a_text_that_is_too_long_when_escaped_is_sent(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        await network.platform.send(network.outgoing("*" * network.platform.limits.text_chars))
        assert sent(server)[0]["content"] == "*" * 1900


async def test_a_global_rate_limit_pauses_the_account(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        for scope in ("shared", "global"):
            server.faults.append(lambda _, scope=scope: rate_limited(scope))
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(network.outgoing())
            assert failed.value.retry_after_seconds == 7
            assert failed.value.for_account == (scope == "global")


async def test_a_private_message_goes_to_the_private_chat(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        said = await server.say("ann", "Tell me a secret")
        secret = network.outgoing("Psst.", reply_to=said, private_to=network.member(network.ann))
        await network.platform.send(secret)
        assert "message_reference" not in sent(server)[0]
        assert [one.text for one in await server.shown(network.private)] == ["Psst."]
        assert await server.shown() == []
        for nobody in (network.robot, "123", "unknown"):
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(replace(secret, key="2:0:0", private_to=network.member(nobody)))
            assert not failed.value.retryable


async def test_an_edit_brings_files_and_buttons(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        platform = network.platform
        assert isinstance(platform, DiscordPlatform)
        message = await platform.send(network.outgoing("Drawing…"))
        file = Attachment("dot.txt", "text/plain", "data:text/plain;base64,aGk=", 2)
        link = Attachment("more", "text/html", "https://a.example/more")
        result = network.outgoing("Done.", attachments=(file, link), choices=(Choice("Again", "/draw"),))
        await platform.edit(message.native_id, result)
        [shown] = await server.shown()
        assert (shown.text, shown.buttons) == ("Done.\nmore: https://a.example/more", ("Again",))
        assert shown.files == (b"hi",)


# Receiving


async def test_mentions_stay_readable(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        text = f"<@&{server.own_role}> remind <@{network.ben}> in <#{server.general.id}> <:tea:123> and <@999>"
        await server.say("ann", text)
        context = await daemon.gets()
        assert context.text == "remind @ben in #general :tea: and <@999>"
        assert context.mentions_bot
        assert context.mentions[0] == network.member(network.ben)
        assert context.chat_title == "family #general"


async def test_a_webhook_has_no_rights(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        webhook = server.world.create_webhook(server.general.id, "ann", int(network.ann))
        server.world.create_message(server.general.id, webhook.id, "/shutdown", webhook_id=webhook.id)
        context = await daemon.gets(text="/shutdown")
        assert context.sender.is_bot
        assert context.sender.role is Role.MEMBER
        assert await network.platform.role(network.chat, context.sender.ref) is None


async def test_roles_come_from_the_rights_in_the_server(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        for role in (Role.MODERATOR, Role.OWNER):
            await server.promote("ben", role)
            await server.say("ben", f"I am {role}")
            assert (await daemon.gets(text=f"I am {role}")).sender.role is role
            assert await network.platform.role(network.chat, network.member(network.ben)) is role
        for native in (network.group, str(server.guild.id), "unknown"):
            assert await network.platform.role(network.chat, network.member(native)) is None
        private = ChatRef("discord", "main", network.private)
        assert await network.platform.role(private, network.member(network.ann)) is Role.MEMBER
        assert await network.platform.role(private, network.member(network.ben)) is None


async def test_nobody_has_a_role_while_disconnected(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        platform = network.platform
        assert isinstance(platform, DiscordPlatform)
        server.accepts_sessions = False
        await server.disconnect()
        await until(lambda: not platform.link().is_up)
        assert await platform.role(network.chat, network.member(network.ann)) is None


async def test_previews_and_system_messages_are_no_events(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, _, server, daemon):
        said = await server.say("ann", "see https://a.example")
        server.world.set_pinned(server.general.id, int(said), pinned=True, actor_id=server.user("ann"))
        payload = {"content": "see https://a.example", "edited_timestamp": None, "embeds": []}
        created = next(data for name, data in server.events if name == "MESSAGE_CREATE")
        server.event("MESSAGE_UPDATE", created | payload)
        await server.say("ann", "end")
        await daemon.gets(text="end")
        assert [one.kind for one in daemon.received] == [Kind.MESSAGE, Kind.MESSAGE]


async def test_messages_deleted_at_once_are_deleted_each(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, _, server, daemon):
        said = [await server.say("ann", text) for text in ("one", "two")]
        server.world.bulk_delete_messages(server.general.id, map(int, said))
        await daemon.until(lambda all_: len(all_.received) == 4)
        deleted = [one for one in daemon.received if one.kind is Kind.DELETE]
        assert sorted(one.key.native_id for one in deleted) == said
        assert deleted[0].sender.ref == MemberRef("discord", "main", "unknown")


async def test_a_long_value_of_a_button_survives_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, host, server):
        long = "the long way: " * 20
        outgoing = network.outgoing("Go?", "7:0:0", choices=(Choice("Yes", "y"), Choice("Long", long)))
        async with receiving(network.platform, host.store):
            await host.store.commit([outbox_row(outgoing)])
            message = await network.platform.send(outgoing)
            assert isinstance(network.platform, DiscordPlatform)
            assert network.platform._gateway is not None
            assert network.platform._gateway.persistent_views == [], "discord.py keeps no buttons"
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            await server.press("ann", message.native_id, "Long")
            assert (await daemon.gets(Kind.CHOICE)).text == long
            await until(lambda: [one[2] for one in server.requests if one[1].endswith("/callback")] == [{"type": 6}])


async def test_commands_are_in_the_menu(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        platform = network.platform
        assert isinstance(platform, DiscordPlatform)
        hints = [CommandHint("/roll", "Roll dice"), CommandHint("/two words", "No word")]
        chinese = [CommandHint("/掷骰子", "掷骰子"), CommandHint("/roll", "掷骰子。")]
        await platform.show_commands({"en": hints, "zh": chinese})
        assert [one[0] for one in server.world.commands[None]] == ["roll", "掷骰子"]
        await server.command("ann", "roll", "2d6 *now*")
        context = await daemon.gets()
        assert (context.text, context.mentions_bot) == ("/roll 2d6 *now*", True)
        assert context.sender.language == "en-US"
        [shown] = await server.shown()
        assert (shown.text, shown.native_id) == ("/roll 2d6 *now*", context.key.native_id)
        await platform.send(network.outgoing("7", reply_to=context.key.native_id))
        assert (await server.shown())[1].reply_to == context.key.native_id


async def test_the_menu_is_shown_as_soon_as_the_bot_is_connected(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, host, server):
        assert isinstance(network.platform, DiscordPlatform)
        showing = asyncio.create_task(network.platform.show_commands({"en": [CommandHint("/roll", "Roll dice")]}))
        async with receiving(network.platform, host.store):
            await showing
        assert [one[0] for one in server.world.commands[None]] == ["roll"]


async def test_without_the_audit_log_nobody_is_named_as_the_one_who_added_the_bot(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        await server.add_bot("ann", may_read_audit_log=False)
        assert (await daemon.gets(Kind.ADDED)).sender.ref == network.member("unknown")


async def test_a_server_is_represented_by_an_allowed_channel(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, host, server):
        bots = server.world.create_channel(server.guild.id, "bots")
        server.guild.system_channel_id = server.general.id
        host = replace(host, allows=lambda chat: chat.native == str(bots.id))
        for one, channel in ((host, bots), (replace(host, allows=lambda _: False), server.general)):
            platform = DiscordPlatform(SETTINGS, one, server.connector)
            async with receiving(platform, host.store) as daemon:
                await server.enter(f"new in {channel.name}")
                assert (await daemon.gets(Kind.JOIN)).chat.native == str(channel.id)
            await platform.close()


async def test_members_of_a_channel_are_listed(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        platform = network.platform
        assert isinstance(platform, DiscordPlatform)
        owner = str(server.guild.owner_id)
        members = {one.native for one in await platform.members(network.chat)}
        assert members == {network.ann, network.ben, network.robot, owner}
        private = ChatRef("discord", "main", network.private)
        await platform.leave(private)
        assert [one.native for one in await platform.members(private)] == [network.ann]


async def test_files_are_read_only_from_discord_and_only_if_they_are_small(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, daemon):
        platform = network.platform
        assert isinstance(platform, DiscordPlatform)
        await server.say("ann", "Look", file=("dot.png", PNG))
        [file] = (await daemon.gets(text="Look")).attachments
        assert await platform.read_file(file, len(PNG)) == PNG
        for wrong, words in (
            (replace(file, url="https://evil.example/dot.png"), "not a file of Discord"),
            (replace(file, url=file.url.replace("https", "http")), "not a file of Discord"),
            (replace(file, url=f"{file.url}.gone"), "answers 404"),
            (replace(file, url=f"{file.url}.moved"), "answers 302"),
            (replace(file, size_bytes=2_000_000_000), "larger than"),
            (replace(file, size_bytes=1), "larger than"),
        ):
            with pytest.raises(FileUnavailable, match=words):
                await platform.read_file(wrong, len(PNG) - (words == "larger than"))


async def test_typing_is_shown_at_most_every_eight_seconds(tmp_path: Path) -> None:
    async with connected(tmp_path) as (network, _, server, _):
        for _ in range(3):
            await network.platform.typing(network.chat, "…")
        assert len([one for one in server.requests if one[1].endswith("/typing")]) == 1
