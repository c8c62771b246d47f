"""The Matrix platform in encrypted rooms, with a member who uses another client's code."""

from __future__ import annotations

import asyncio
import stat
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from nio import AsyncClient, AsyncClientConfig
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment

from bot.platforms.base import Outgoing, SendFailed
from bot.platforms.contract import PNG, Daemon, receiving, until
from function_calls.context import Attachment, Kind
from services.refs import ChatRef
from tests.bot.platforms.matrix.other_side import Side, World, a_network

_ENCRYPTION = {"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}


class Member:
    """A member with a device that encrypts."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.contents: list[dict[str, Any]] = []
        """Contents of all messages that the device could read."""

    async def follow(self) -> None:
        """Receive what is new, and exchange keys."""
        answer = await self._client.sync(timeout=0, full_state=not self._client.next_batch)
        if self._client.should_upload_keys:
            await self._client.keys_upload()
        if self._client.should_query_keys:
            await self._client.keys_query()
        for room in answer.rooms.join.values():
            events = [one.source for one in room.timeline.events if one.sender != self._client.user_id]
            self.contents += [one["content"] for one in events if one["type"] == "m.room.message"]

    async def say(self, room: str, text: str, **more: object) -> str:
        """Send an encrypted message; returns its id."""
        content = {"msgtype": "m.text", "body": text, **more}
        return await self.send(room, "m.room.message", content)

    async def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        """Send an encrypted event; returns its id."""
        sent = await self._client.room_send(room, kind, content, ignore_unverified_devices=True)
        return str(sent.event_id)

    async def hears(self, text: str) -> dict[str, Any]:
        """The content of the first message with `text`, as soon as it is received."""
        async with asyncio.timeout(20):
            while True:
                await self.follow()
                found = [one for one in self.contents if text in one.get("body", "")]
                if found:
                    return found[0]
                await asyncio.sleep(0.05)


@asynccontextmanager
async def a_member(world: World, side: Side, folder: Path) -> AsyncIterator[tuple[Member, str]]:
    """A new member with keys in `folder`, and the encrypted room to which the bot is invited."""
    account = world.server.register(f"eve-{side.bot.user[1:].partition(':')[0]}")
    folder.mkdir()
    config = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0)
    client = AsyncClient(world.server.url, account.user, store_path=str(folder), config=config)
    client.restore_login(account.user, account.device, account.token)
    room = await client.room_create(name="Secret", invite=[side.bot.user], initial_state=[_ENCRYPTION])
    member = Member(client)
    try:
        await member.follow()
        yield member, room.room_id
    finally:
        await client.close()
        client.store.database.close()


async def test_messages_and_files_in_an_encrypted_room_are_read_and_written(world: World, tmp_path: Path) -> None:
    async with (
        a_network(world, tmp_path, encryption=True) as (network, host, side),
        receiving(network.platform, host.store) as daemon,
        a_member(world, side, tmp_path / "eve") as (eve, room),
    ):
        added = await daemon.gets(Kind.ADDED)
        await eve.follow()
        said = await eve.say(room, "Tea at 5?")
        context = await daemon.gets(text="Tea")
        assert (context.text, context.key.native_id, context.chat.native) == ("Tea at 5?", said, room)
        await eve.send(room, "m.room.redaction", {"redacts": said})
        picture = Attachment("dot.png", "image/png", f"data:image/png;base64,{b64encode(PNG).decode()}", len(PNG))
        outgoing = Outgoing(added.chat, "1:0:0", "At 6.", reply_to=said, attachments=(picture,))
        first = await network.platform.send(outgoing)
        assert await network.platform.send(outgoing) == first
        await network.platform.edit(first.native_id, Outgoing(added.chat, "1:0:0", "At 7."))  # type: ignore[attr-defined]
        heard = await eve.hears("At 6.")
        assert heard["m.relates_to"] == {"m.in_reply_to": {"event_id": said}}
        assert (await eve.hears("At 7."))["m.new_content"]["body"] == "At 7."
        file = (await eve.hears("dot.png"))["file"]
        secret = await side.api(side.bot.user).download(file["url"])
        assert secret != PNG
        assert decrypt_attachment(secret, file["key"]["k"], file["hashes"]["sha256"], file["iv"]) == PNG
        assert [one["body"] for one in eve.contents] == ["At 6.", "dot.png", "* At 7."]
        on_server = [one for one in await side.api(side.bot.user).events(room) if one["sender"] == side.bot.user]
        assert "m.room.message" not in [one["type"] for one in on_server]

        secret, keys = encrypt_attachment(PNG)
        url = await side.ann.upload(secret, "application/octet-stream")
        await eve.say(room, "b.png", msgtype="m.image", file={**keys, "url": url})
        await daemon.until(lambda all_: any(one.attachments for one in all_.received))
        (attachment,) = next(one.attachments for one in daemon.received if one.attachments)
        assert await network.platform.read_file(attachment, 10_000) == PNG  # type: ignore[attr-defined]
        assert Kind.DELETE not in [one.kind for one in daemon.received], "servers do not check encrypted redactions"


async def test_encrypted_messages_of_the_time_away_are_read_with_the_stored_keys(world: World, tmp_path: Path) -> None:
    async with (
        a_network(world, tmp_path, encryption=True, password="password") as (network, host, side),
        a_member(world, side, tmp_path / "eve") as (eve, room),
    ):
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(Kind.ADDED)
            await eve.follow()
            await eve.say(room, "seen")
            await daemon.gets(text="seen")
        await network.platform.close()
        device = host.folder / "device.json"
        assert stat.S_IMODE(device.stat().st_mode) == 0o600
        assert stat.S_IMODE(host.folder.stat().st_mode) == 0o700
        for number in range(12):
            await eve.say(room, f"away {number}")
        again = network.reopen() if network.reopen else network.platform
        async with receiving(again, host.store) as daemon:
            await daemon.gets(text="away 11")
            assert daemon.texts == [f"away {number}" for number in range(12)]
            await again.send(Outgoing(ChatRef("matrix", "main", room), "1:0:0", "Back."))
            await eve.hears("Back.")
            (back,) = [one for one in await side.api(side.bot.user).events(room) if one["sender"] == side.bot.user][-1:]
            assert back["type"] == "m.room.encrypted"
        await again.close()


async def test_keys_are_used_also_if_the_server_is_away_at_the_start(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path, encryption=True) as (network, host, side):
        side.proxy.is_away = True
        daemon = Daemon(host.store)
        running = asyncio.create_task(network.platform.run(daemon.deliver))
        await until(lambda: network.platform.link().losses > 0)  # type: ignore[attr-defined]
        side.proxy.is_away = False
        async with a_member(world, side, tmp_path / "eve") as (eve, room):
            await daemon.gets(Kind.ADDED)
            await eve.follow()
            await eve.say(room, "Tea?")
            assert (await daemon.gets(text="Tea")).chat.native == room
        running.cancel()
        await asyncio.wait([running])


async def test_without_encryption_nothing_is_sent_to_an_encrypted_room(world: World, tmp_path: Path) -> None:
    async with (
        a_network(world, tmp_path) as (network, host, side),
        receiving(network.platform, host.store) as daemon,
        a_member(world, side, tmp_path / "eve") as (eve, _),
    ):
        added = await daemon.gets(Kind.ADDED)
        with pytest.raises(SendFailed, match="encrypted") as failed:
            await network.platform.send(Outgoing(added.chat, "1:0:0", "Hello."))
        assert not failed.value.retryable
        await eve.follow()
        assert eve.contents == []


async def test_a_message_is_read_as_soon_as_its_key_arrives(world: World, tmp_path: Path) -> None:
    async with (
        a_network(world, tmp_path, encryption=True) as (network, host, side),
        receiving(network.platform, host.store) as daemon,
        a_member(world, side, tmp_path / "eve") as (eve, room),
    ):
        await daemon.gets(Kind.ADDED)
        await eve.follow()
        side.proxy.hides_keys = True
        await eve.say(room, "early")
        await side.ann.text(network.group, "meanwhile")
        await daemon.gets(text="meanwhile")
        side.proxy.hides_keys = False
        side.proxy.give_keys()
        await daemon.gets(text="early")
