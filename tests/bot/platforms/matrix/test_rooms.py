"""The Matrix platform in rooms: members and rights, invitations, private chats, threads, and what messages contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bot.platforms.base import FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import receiving
from function_calls.context import Attachment, Kind
from function_calls.ports import Measure, ModerationRequest
from services.refs import ChatRef, Role
from tests.bot.platforms.matrix.other_side import World, a_network


async def test_roles_follow_power_levels_and_creators(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        ann, ben, robot = (network.member(one) for one in (network.ann, network.ben, network.robot))
        role = network.platform.role
        assert ":" not in network.group, "the creator of such a room has no power level"
        assert await role(network.chat, ann) is Role.OWNER
        for level in (Role.MODERATOR, Role.ADMIN, Role.MEMBER):
            await side.promote(network.ben, level)
            assert await role(network.chat, ben) is level
        renamed = {"membership": "join", "displayname": "Ann"}
        await side.api(network.ben)("PUT", f"rooms/{network.group}/state/m.room.member/{network.ben}", renamed)
        assert await role(network.chat, ben) is Role.MEMBER
        renamed["displayname"] = "Ben"
        await side.api(network.ben)("PUT", f"rooms/{network.group}/state/m.room.member/{network.ben}", renamed)
        older = await side.ann.create_room(network.ben, side.bot.user, room_version="11", name="Old")
        await side.api(network.ben)("POST", f"join/{quote(older)}", {})
        await side.joined(older)
        chat = ChatRef("matrix", "main", older)
        assert await role(chat, ann) is Role.OWNER
        assert await role(chat, ben) is Role.MEMBER
        assert await role(chat, robot) is None
        levels = await side.ann("GET", f"rooms/{quote(older)}/state/m.room.power_levels/")
        levels["users"] = {network.ben: 100, network.ann: 50}
        # Only a level of the own account can be lowered from 100.
        await side.ann("PUT", f"rooms/{quote(older)}/state/m.room.power_levels/", levels)
        assert await role(chat, ann) is Role.MODERATOR
        assert await role(chat, ben) is Role.ADMIN
        await side.api(network.ben)("POST", f"rooms/{quote(older)}/leave", {})
        assert await role(chat, ben) is None
        assert await role(network.chat, network.member(network.group)) is None


async def test_the_bot_can_be_added_again_after_it_was_removed(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        room = await side.add_bot(network.ann)
        first = await daemon.gets(Kind.ADDED)
        assert (first.chat.native, first.chat_title) == (room, "Work")
        await side.ann("POST", f"rooms/{quote(room)}/kick", {"user_id": side.bot.user})
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(Outgoing(first.chat, "1:0:0", "Hello."))
        assert not failed.value.retryable
        await side.ann("POST", f"rooms/{quote(room)}/invite", {"user_id": side.bot.user})
        await daemon.until(lambda all_: [one.kind for one in all_.received].count(Kind.ADDED) == 2)
        await network.platform.leave(first.chat)  # type: ignore[attr-defined]
        await side.joined(room, is_in=False)


async def test_an_invitation_of_the_time_away_is_accepted(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side):
        async with receiving(network.platform, host.store):
            pass
        room = await side.add_bot(network.ben)
        again = network.reopen() if network.reopen else network.platform
        async with receiving(again, host.store) as daemon:
            added = await daemon.gets(Kind.ADDED)
            assert (added.chat.native, added.sender.ref.native) == (room, network.ben)
        await again.close()


async def test_a_private_message_goes_to_one_private_room(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        ann = network.member(network.ann)
        position = (await side.ann("GET", "sync"))["next_batch"]
        for number in range(2):
            await network.platform.send(network.outgoing(f"secret {number}", f"{number}:0:0", private_to=ann))
        invited = (await side.ann("GET", "sync", since=position))["rooms"]["invite"]
        mine = [room for room, one in invited.items() if side.bot.user in str(one["invite_state"])]
        assert len(mine) == 1
        await side.ann("POST", f"join/{quote(mine[0])}", {})
        assert [one.text for one in await side.shown(mine[0])] == ["secret 0", "secret 1"]
        assert await side.shown() == []
        await side.say(network.ann, "thanks", chat=mine[0])
        assert not (await daemon.gets(text="thanks")).is_group
        again = await network.platform.send(network.outgoing("secret 2", "9:0:0", private_to=ann))
        assert again.native_id in [one.native_id for one in await side.shown(mine[0])]
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing(private_to=network.member("nobody")))
        assert not failed.value.retryable


async def test_changes_of_messages_in_a_thread_belong_to_the_thread(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        thread = ChatRef("matrix", "main", await side.open_thread(network.ann, "About tea"))
        said = await daemon.gets(text="About tea")
        assert said.reply_to is None
        sent = await network.platform.send(Outgoing(thread, "1:0:0", "Green?", reply_to=said.key.native_id))
        assert [one.reply_to for one in await side.shown(thread.native)] == [said.key.native_id]
        await side.react(network.ann, sent.native_id, "👍")
        await side.edit(network.ann, said.key.native_id, "About coffee")
        await side.delete(network.ann, said.key.native_id)
        for kind in (Kind.REACTION, Kind.EDIT, Kind.DELETE):
            assert (await daemon.gets(kind)).chat == thread


async def test_an_edit_by_another_member_is_ignored(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        said = await side.say(network.ann, "Rollcall, delete nothing")
        await side.edit(network.ben, said, "Rollcall, delete all")
        await side.edit(network.ann, said, "Rollcall, wait")
        assert (await daemon.gets(Kind.EDIT)).sender.ref.native == network.ann
        assert "delete all" not in [one.text for one in daemon.received]


async def test_a_message_of_another_room_cannot_be_quoted(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        secret = await side.say(network.ann, "the code is 1234", chat=network.ann)
        await daemon.gets(text="1234")
        await side.say(network.ben, "what is this?", reply_to=secret)
        context = await daemon.gets(text="what")
        assert context.reply_to is None or context.reply_to.text == ""


async def test_mentions_and_quotes_of_messages_are_read(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        pill = f'<a href="https://matrix.to/#/{quote(network.ben)}">Ben</a> is late'
        named = {"format": "org.matrix.custom.html", "formatted_body": pill, "m.mentions": {"user_ids": [network.ben]}}
        said = await side.ann.text(network.group, "Ben is late", **named)
        context = await daemon.gets(text="late")
        assert (context.text, context.mentions) == ("Ben is late", (network.member(network.ben),))
        assert not context.mentions_bot
        body = f"> <{network.ann}> Ben is late\n\n> not me\nyes"
        relation = {"m.in_reply_to": {"event_id": said}}
        mentioned = {"m.mentions": {"user_ids": [side.bot.user, network.ann]}}
        await side.api(network.ben).text(network.group, body, **{"m.relates_to": relation}, **mentioned)
        context = await daemon.gets(text="not me")
        assert context.text == "> not me\nyes"
        assert context.reply_to is not None
        assert (context.reply_to.sender_name, context.reply_to.text) == ("Ann", "Ben is late")
        assert not context.reply_to.from_bot
        assert context.mentions_bot
        await side.say(network.robot, "Robbie, beep", mention=True)
        assert (await daemon.gets(text="beep")).sender.is_bot


async def test_markdown_and_mentions_become_html_and_notify_nobody_else(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        ann = network.member(network.ann)
        text = "**Hi** @room <b>\n- [a](https://a.test/b)"
        await network.platform.send(network.outgoing(text, markdown=True, mentions=(ann,)))
        await network.platform.send(network.outgoing("@room **Hi** <b>", "2:0:0"))
        contents: list[dict[str, Any]] = [one["content"] for one in (await side.ann.events(network.group))[-2:]]
        assert contents[0]["m.mentions"] == {"user_ids": [network.ann]}
        assert contents[0]["body"] == "Ann: Hi @room <b>\n- a (https://a.test/b)"
        pill = f'<a href="https://matrix.to/#/{quote(network.ann)}">Ann</a>: '
        html = '<b>Hi</b> @room &lt;b&gt;<br>- <a href="https://a.test/b">a</a>'
        assert contents[0]["formatted_body"] == pill + html
        assert contents[1] == {"msgtype": "m.text", "body": "@room **Hi** <b>", "m.mentions": {}}


async def test_the_longest_text_fits_into_an_event(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        for number, text in enumerate(("<" * 4000, "👋" * 4000)):
            outgoing = network.outgoing(text, f"{number}:0:0", markdown=True)
            sent = await network.platform.send(outgoing)
            await network.platform.edit(sent.native_id, outgoing)  # type: ignore[attr-defined]
            assert (await side.shown())[-1].text == text


async def test_only_files_of_matrix_servers_are_read(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        url = await side.ann.upload(b"x" * 100_000, "text/plain")
        read = network.platform.read_file  # type: ignore[attr-defined]
        assert await read(Attachment("a", "text/plain", f'network:{{"url":"{url}"}}'), 100_000) == b"x" * 100_000
        with pytest.raises(FileUnavailable, match="bytes"):
            await read(Attachment("a", "text/plain", f'network:{{"url":"{url}"}}'), 99_999)
        side.proxy.hides_sizes = True
        with pytest.raises(FileUnavailable, match="larger than 99,999"):
            await read(Attachment("a", "text/plain", f'network:{{"url":"{url}"}}', 1), 99_999)
        with pytest.raises(FileUnavailable, match="larger than"):
            await read(Attachment("a", "text/plain", f'network:{{"url":"{url}"}}', 2_000_000_000), 99_999)
        for url in ("https://127.0.0.1/x", "mxc://localhost/../../v3/account/whoami", "mxc://localhost/none", None):
            with pytest.raises(FileUnavailable):
                await read(Attachment("a", "text/plain", f'network:{{"url":"{url}"}}'), 1000)


async def test_members_are_listed_without_the_bot(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        members = {one.native for one in await network.platform.members(network.chat)}  # type: ignore[attr-defined]
        assert {network.ann, network.ben, network.robot} <= members
        assert side.bot.user not in members


async def test_a_bot_with_the_power_removes_bans_pins_and_invites(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        ben = network.member(network.ben)
        room = await side.ann.create_room(network.ben, side.bot.user, name="Orderly")
        await side.api(network.ben)("POST", f"join/{quote(room)}", {})
        await side.joined(room)
        chat = ChatRef("matrix", "main", room)
        with pytest.raises(SendFailed) as refused:
            await network.platform.moderate(ModerationRequest(chat, Measure.KICK, ben))
        assert not refused.value.retryable
        assert await network.platform.role(chat, ben) is Role.MEMBER
        levels = await side.ann("GET", f"rooms/{quote(room)}/state/m.room.power_levels/")
        levels["users"] = levels.get("users", {}) | {side.bot.user: 50}
        await side.ann("PUT", f"rooms/{quote(room)}/state/m.room.power_levels/", levels)
        texts = [await side.ann.text(room, text) for text in ("one", "two")]
        for event in texts:
            await network.platform.moderate(ModerationRequest(chat, Measure.PIN, message_id=event))
        pinned = await side.ann("GET", f"rooms/{quote(room)}/state/m.room.pinned_events/")
        assert pinned["pinned"] == texts
        await network.platform.moderate(ModerationRequest(chat, Measure.KICK, ben))
        assert await network.platform.role(chat, ben) is None
        await network.platform.moderate(ModerationRequest(chat, Measure.INVITE, ben))
        await side.api(network.ben)("POST", f"join/{quote(room)}", {})
        await network.platform.moderate(ModerationRequest(chat, Measure.BAN, ben))
        member = await side.ann("GET", f"rooms/{quote(room)}/state/m.room.member/{network.ben}")
        assert member["membership"] == "ban"
