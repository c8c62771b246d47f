"""Satori beyond the contract: accounts of a gateway, older gateways, lookups, files and rights."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import FileUnavailable, SendFailed
from bot.platforms.contract import PNG, outbox_row, receiving, until
from bot.platforms.satori.gateway import SatoriSettings
from bot.platforms.satori.platform import ADAPTER, SatoriPlatform
from function_calls.context import Attachment, Kind
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, Role
from services.store.port import StoreError
from tests.bot.platforms.satori.test_contract import a_network
from tests.harness.satori_gateway import PLATFORM, TOKEN, SatoriGateway


def an_event(account: str, kind: str = "message-created", **facts: Any) -> dict[str, Any]:
    """A frame with an event of a guild that is its only channel."""
    usual = {
        "type": kind,
        "timestamp": 1_790_000_000_000,
        "login": {"platform": PLATFORM, "user": {"id": account}},
        "channel": {"id": "100", "type": 0},
        "guild": {"id": "100"},
        "user": {"id": "ann", "name": "Ann"},
        "message": {"id": "m-1", "content": "hello"},
    }
    return {"op": 0, "body": usual | facts}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"url": "http://gateway.example"}, "has to begin with https://"),
        ({"url": "https://gateway.example/?a=b"}, "without user, query or fragment"),
        ({"url": "gateway"}, "has to be http(s)://"),
    ],
)
def test_wrong_settings_are_explained(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        SatoriSettings(**facts)
    assert words in str(raised.value)


async def test_the_probe_names_the_account_or_the_remedy(gateway: SatoriGateway, tmp_path: Path) -> None:
    async def probe(**facts: Any) -> str:
        return await ADAPTER.probe(SatoriSettings(**({"url": gateway.url, "token": TOKEN} | facts)), SystemClock())

    async with a_network(tmp_path, gateway) as (_, _, family):
        assert await probe(platform=PLATFORM) == f"connected as @{family.account} on {PLATFORM}"
        for facts, words in (
            ({"token": "wrong"}, "may reject the token"),
            ({"url": "http://127.0.0.1:1"}, "cannot be reached"),
            ({"url": gateway.url + "/elsewhere"}, "elsewhere rejects the token"),
            ({"platform": "qq"}, f"fit 0 accounts of the gateway, which has: {PLATFORM} {family.account}"),
        ):
            with pytest.raises(CannotOpen, match=words) as raised:
                await probe(**facts)
            assert TOKEN not in str(raised.value)
        await gateway.do(do="open", account="second")
        with pytest.raises(CannotOpen, match="fit 2 accounts"):
            await probe(platform=PLATFORM)
        await gateway.do(do="drop", account="second")
        await family.do("status", status=0)
        with pytest.raises(CannotOpen, match="not logged in as"):
            await probe()


async def test_an_account_that_goes_offline_is_reported_and_comes_back(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        platform: Any = network.platform
        await family.do("status", status=3)
        await until(lambda: not platform.link().is_up)
        assert "not logged in as" in platform.link().words
        await family.do("status", status=1)
        await until(lambda: platform.link().is_up)
        await family.say("ann", "back")
        await daemon.gets(text="back")


async def test_events_of_other_accounts_and_of_nobody_are_left_out(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        await family.do("frame", frame=an_event("other"))
        await family.do("frame", frame=an_event(family.account, user=None))
        await family.do("frame", frame=an_event(family.account, user={"id": family.account}))
        await family.do("frame", frame=an_event(family.account, "friend-request"))
        await family.do("frame", frame={"op": 9, "body": {}})
        await family.say("ann", "end")
        await daemon.gets(text="end")
        assert daemon.texts == ["end"]
        assert network.platform.link().words == "connected"  # type: ignore[attr-defined]


async def test_events_of_older_gateways_are_understood(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        quote = {"id": "m-0", "content": "Which <b>city</b>?", "user": {"id": family.account, "name": "Rollcall"}}
        facts: Any = {"id": 7, "platform": PLATFORM, "self_id": family.account, "login": None}
        await family.do("frame", frame=an_event("", **facts, message={"id": "m-1", "content": "Oslo", "quote": quote}))
        context = await daemon.gets(text="Oslo")
        assert context.chat == ChatRef("satori", "main", "100")
        assert context.reply_to is not None
        assert (context.reply_to.text, context.reply_to.from_bot) == ("Which city?", True)


async def test_a_reply_to_the_bot_is_recognized_after_a_restart(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (network, host, family):
        async with receiving(network.platform, host.store):
            sent = await network.platform.send(network.outgoing("Which city?"))
        assert network.reopen is not None
        again = network.reopen()
        async with receiving(again, host.store) as daemon:
            await family.say("ann", "Oslo", reply_to=sent.native_id)
            said = await family.say("ben", "first")
            await family.say("ann", "second", reply_to=said)
            first, second = await daemon.gets(text="Oslo"), await daemon.gets(text="second")
            assert [one.reply_to and one.reply_to.from_bot for one in (first, second)] == [True, False]
        await again.close()


async def test_a_long_button_survives_a_restart(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (network, host, family):
        async with receiving(network.platform, host.store):
            values = ("x" * 500, "#1")
            choices = tuple(Choice(str(number), value) for number, value in enumerate(values))
            outgoing = network.outgoing("Go?", choices=choices)
            await host.store.commit([outbox_row(outgoing)])
            sent = await network.platform.send(outgoing)
        assert network.reopen is not None
        again = network.reopen()
        async with receiving(again, host.store) as daemon:
            for number, value in enumerate(values):
                await family.press("ann", sent.native_id, str(number))
                assert (await daemon.gets(Kind.CHOICE, value)).text == value
        await again.close()


async def test_a_button_of_an_unnamed_message_gives_its_value(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        for at in (1, 1, 2):
            facts = {"button": {"id": "yes"}, "message": None, "timestamp": at}
            await family.do("frame", frame=an_event(family.account, "interaction/button", **facts))
        await family.say("ann", "end")
        await daemon.gets(text="end")
        assert [(one.text, one.reply_to) for one in daemon.received] == [("yes", None), ("yes", None), ("end", None)]
        await network.platform.send(network.outgoing("Done.", reply_to=daemon.received[0].key.native_id))
        assert (await family.shown())[0].reply_to == ""


async def test_roles_count_by_id_only(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway, admin_roles=("7",)) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        for roles, expected in (
            ([], Role.MEMBER),
            (["Owner"], Role.MEMBER),
            (["owner", "admin"], Role.OWNER),
            (["7"], Role.ADMIN),
        ):
            await family.do("promote", who="ann", roles=roles)
            assert await network.platform.role(network.chat, network.member("ann")) is expected
            await family.say("ann", f"as {expected} {roles}")
            assert (await daemon.gets(text=f"as {expected} {roles}")).sender.role is expected
        private = ChatRef("satori", "main", "direct/private:ann")
        assert await network.platform.role(private, network.member("ann")) is Role.MEMBER
        await family.do("promote", who=family.chat.rpartition("/")[2], roles=["owner"])
        group = network.member(family.chat.rpartition("/")[2])
        assert await network.platform.role(network.chat, group) is None


async def test_members_come_into_a_channel_that_is_allowed(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (_, host, family):
        settings = SatoriSettings(url=gateway.url, token=SecretStr(TOKEN), user_id=family.account)
        platform = SatoriPlatform(settings, replace(host, allows=lambda chat: "news" in chat.native))
        async with receiving(platform, host.store) as daemon:
            await family.enter("carl")
            assert (await daemon.gets(Kind.JOIN)).chat.native == family.chat.replace("/", "/news-")
        await platform.close()


async def test_frames_that_are_no_messages_are_reported(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        await family.send_garbage()
        await family.say("ann", "end")
        await daemon.gets(text="end")
        platform: Any = network.platform
        assert "3 events could not be read" in platform.link().words


async def test_names_give_no_rights(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):
        await family.do(
            "frame", frame=an_event(family.account, user={"id": "ann", "name": "owner\nRollcall", "is_bot": True})
        )
        sender = (await daemon.gets(text="hello")).sender
        assert (sender.ref.native, sender.name, sender.role, sender.is_bot) == (
            "ann",
            "owner\nRollcall",
            Role.MEMBER,
            True,
        )


async def test_a_private_answer_goes_to_the_private_chat(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (network, host, family), receiving(network.platform, host.store):
        facts: Any = {"mentions": (network.member("ben"),), "reply_to": "m0"}
        await network.platform.send(network.outgoing("a secret", private_to=network.member("ann"), **facts))
        (shown,) = await family.shown("direct/private:ann")
        assert (shown.text, shown.reply_to) == ("a secret", "")
        assert await family.shown() == []
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing("a secret", private_to=network.member("stranger")))
        assert not failed.value.retryable


async def test_replies_mentions_and_links_are_elements(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (network, host, family), receiving(network.platform, host.store):
        said = await family.say("ann", "Help")
        page = Attachment("page", "text/html", "https://a.example/?a=1&b=2")
        facts: Any = {"reply_to": said, "mentions": (network.member("ann"),), "attachments": (page,)}
        sent = await network.platform.send(network.outgoing('<at type="all"/> **no**', **facts))
        assert await family.do("content", native_id=sent.native_id) == (
            f'<quote id="{said}"/><at id="ann"/> &lt;at type="all"/&gt; **no**<br/>page: https://a.example/?a=1&amp;b=2'
        )


async def test_files_come_only_from_the_gateway_and_named_hosts(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (network, host, family), receiving(network.platform, host.store):
        platform: Any = network.platform

        async def read(url: str, most: int = 1000) -> bytes:
            return bytes(await platform.read_file(Attachment("f", "image/png", url), most))

        source = f"network:internal:{PLATFORM}/{family.account}"
        assert await read(f"{source}/big", 100_000) == b"x" * 100_000
        for path, words in (("big", "larger than 1,000"), ("unsized", "larger than 1,000"), ("moved", "answers 302")):
            with pytest.raises(FileUnavailable, match=words):
                await read(f"{source}/{path}")
        for url in (
            "http://127.0.0.1:9/a",
            "https://a.example/b.png",
            "file:///etc/passwd",
            "network:",
            "network:http://[",
        ):
            with pytest.raises(FileUnavailable):
                await read(f"network:{url.removeprefix('network:')}")
        assert await read("data:text/plain,abc") == b"abc"
        with pytest.raises(FileUnavailable):
            await read("data:text/plain,abcdef", 5)


async def test_a_store_that_fails_loses_no_event(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store, StoreError("away")) as daemon,
    ):
        # The frame has no number, so the gateway cannot repeat it.
        await family.do("frame", frame=an_event(family.account))
        await daemon.gets(text="hello")


async def test_a_picture_is_uploaded_as_a_picture(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with a_network(tmp_path, gateway) as (network, host, family), receiving(network.platform, host.store):
        url = f"data:image/png;base64,{b64encode(PNG).decode()}"
        sent = await network.platform.send(
            network.outgoing(
                "", attachments=(Attachment("dot.png", "image/png", url), Attachment("a.zip", "application/zip", url))
            )
        )
        content = await family.do("content", native_id=sent.native_id)
        assert content.startswith(f'<img src="internal:{PLATFORM}/')
        assert '<file src="internal:' in content


async def test_edits_and_reactions_have_revisions(gateway: SatoriGateway, tmp_path: Path) -> None:
    async with (
        a_network(tmp_path, gateway) as (network, host, family),
        receiving(network.platform, host.store) as daemon,
    ):

        def update(at: int) -> dict[str, Any]:
            return an_event(family.account, "message-updated", timestamp=at, message={"id": "m-1", "content": f"v{at}"})

        for at in (1, 2, 2):
            await family.do("frame", frame=update(at))
        for emoji in ({"id": "128077"}, {"id": "14", "name": "smile"}, {"id": "❤️"}):
            await family.do("frame", frame=an_event(family.account, "reaction-added", emoji=emoji))
        await family.say("ann", "end")
        await daemon.gets(text="end")
        assert [one.text for one in daemon.received] == ["v1", "v2", "👍", "smile", "❤️", "end"]
        assert daemon.repeated == 1
