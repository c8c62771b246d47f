"""XMPP beyond the contract: interruptions, identities, and what members can forge."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from slixmpp import JID

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import FileUnavailable, LinkState, Outgoing, SendFailed
from bot.platforms.contract import receiving, until
from bot.platforms.xmpp.adapter import ADAPTER, XmppSettings
from bot.platforms.xmpp.platform import XmppPlatform
from config.loader import check_settings
from config.sections.irc import RoleHolder
from function_calls.context import Attachment, Kind
from services.clock import SystemClock, VirtualClock
from services.refs import ChatRef, Role
from services.store.port import StoreError
from tests.bot.platforms.xmpp.family import Family, a_family
from tests.docs.documents import Page
from tests.harness.irc_servers import a_certificate
from tests.harness.xmpp_client import a_person
from tests.harness.xmpp_servers import PASSWORD, XmppServer, an_xmpp_server


def replace_chat(outgoing: Outgoing, chat: ChatRef) -> Outgoing:
    """`outgoing` to another chat."""
    return replace(outgoing, chat=chat)


async def until_shown(family: Family, text: str) -> None:
    """Return when the room has shown a message of the bot."""
    ann = await family.person("ann")
    await ann.until(lambda one: one["body"] == text)


async def test_messages_of_a_server_restart_are_received_once_in_order(tmp_path: Path) -> None:
    server = an_xmpp_server(tmp_path)
    try:
        async with (
            a_family(server, tmp_path) as (family, network, host),
            receiving(network.platform, host.store) as daemon,
        ):
            await family.say("ann", "before")
            await daemon.gets(text="before")
            family.proxy.is_closed = True
            family.proxy.cut()
            server.stop()
            server.start()
            async with a_person(server, "carl", family.room) as carl:
                for number in range(20):
                    await carl.say(family.room, f"message {number}")
                family.proxy.is_closed = False
                await carl.say(family.room, "end")
                await daemon.gets(text="end")
            assert daemon.texts == ["before", *(f"message {number}" for number in range(20)), "end"]
    finally:
        server.stop()


async def test_messages_while_the_process_is_dead_are_received_once_in_order(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path) as (family, network, host):
        async with receiving(network.platform, host.store) as daemon:
            await family.say("ann", "seen")
            await family.say("ann", "seen in private", chat=family.jid("ann"))
            await daemon.gets(text="seen in private")
        await network.platform.close()
        ann = await family.person("ann")
        for number in range(120):
            ann.message(family.room, f"message {number}").send()
            if number % 12 == 0:
                ann.message(family.bot, f"private {number}").send()
        await family.say("ann", "end")
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            await daemon.gets(text="end")
            await daemon.gets(text="private 108")
            groups = [one.text for one in daemon.received if one.is_group]
            assert groups == [*(f"message {number}" for number in range(120)), "end"]
            assert [one.text for one in daemon.received if not one.is_group] == [
                f"private {number}" for number in range(0, 120, 12)
            ]


async def test_an_interrupted_session_is_resumed_and_confirms_the_message_it_carried(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path) as (family, network, host), receiving(network.platform, host.store) as daemon:
        family.proxy.is_deaf = True
        sending = asyncio.create_task(network.platform.send(network.outgoing()))
        await until_shown(family, "Hello.")
        await family.say("ann", "during the interruption")
        family.proxy.cut()
        assert (await sending).native_id
        await daemon.gets(text="during")
        assert [one.text for one in await family.shown()] == ["Hello."]
        assert not [one for one in daemon.received if one.kind is Kind.JOIN]


async def test_a_connection_on_which_nothing_arrives_is_replaced(server: XmppServer, tmp_path: Path) -> None:
    async with (
        a_family(server, tmp_path, answer_seconds=1.0) as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        family.proxy.is_deaf = True
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(network.outgoing())
        assert failed.value.unknown_outcome
        await family.say("ann", "still there?")
        await daemon.gets(text="still there?")


class _CountingClock(VirtualClock):
    """Counts the sleeps of a length."""

    def __init__(self) -> None:
        super().__init__(datetime.now(UTC))
        self.sleeps = Counter[float]()

    async def sleep(self, seconds: float) -> None:
        self.sleeps[seconds] += 1
        await super().sleep(seconds)


async def test_a_quiet_connection_that_answers_pings_is_not_restarted(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, _, host):
        clock = _CountingClock()
        platform = XmppPlatform(family.settings(ping_seconds=60), replace(host, clock=clock))
        async with receiving(platform, host.store):
            for answered in range(6):
                await until(lambda answered=answered: clock.sleeps[60.0] > answered)  # type: ignore[misc]
                await clock.advance(60.0)
            await until(lambda: clock.sleeps[60.0] > 6)
            assert platform.link() == LinkState(True, "connected", 0)
        await platform.close()


async def test_a_position_that_the_archive_has_deleted_is_replaced_by_its_time(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path) as (family, network, host):
        async with receiving(network.platform, host.store) as daemon:
            await family.say("ann", "seen")
            await daemon.gets(text="seen")
        await network.platform.close()
        cursor = network.platform._stored(family.room)  # type: ignore[attr-defined]
        known = await cursor.read()
        await host.store.commit([cursor.at(f"deleted {known.split()[1]}")])
        await family.say("ann", "away")
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            await daemon.gets(text="away")


async def test_members_of_an_anonymous_room_are_known_by_occupant_id_whatever_their_nick(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path, "ben") as (family, network, host):
        ann, ben = await family.person("ann"), await family.person("ben")
        form = await ann.client.plugin["xep_0045"].get_room_config(JID(family.room))
        form["values"] = {**form["values"], "muc#roomconfig_whois": "moderators"}
        await ann.client.plugin["xep_0045"].set_room_config(JID(family.room), form)
        async with receiving(network.platform, host.store) as daemon:
            await family.say("ann", "as ann")
            first = (await daemon.gets(text="as ann")).sender
            assert first.ref.native.startswith(f"{family.room}/")
            assert await network.platform.role(network.chat, first.ref) is Role.OWNER
            await ann.client.plugin["xep_0045"].set_self_nick(JID(family.room), "anna")
            await ben.client.plugin["xep_0045"].set_self_nick(JID(family.room), "ann")
            await family.say("ann", "as anna")
            await family.say("ben", "as the new ann")
            assert (await daemon.gets(text="as anna")).sender.ref == first.ref
            other = (await daemon.gets(text="as the new ann")).sender.ref
            assert other != first.ref
            assert await network.platform.role(network.chat, other) is Role.MEMBER
            assert not [one for one in daemon.received if one.kind in (Kind.JOIN, Kind.LEAVE)]
            sent = await network.platform.send(network.outgoing("Only for you.", private_to=first.ref))
            told = await ann.until(lambda one: one["body"] == "Only for you.")
            assert (sent.native_id, str(told["from"]), told["type"]) == (told["id"], f"{family.room}/Rollcall", "chat")
            ann.message(f"{family.room}/Rollcall", "Just between us").send()
            whispered = await daemon.gets(text="Just between us")
            assert (whispered.chat, whispered.private, whispered.sender.ref) == (network.chat, True, first.ref)
        await network.platform.close()
        await family.say("ann", "while away")
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            assert (await daemon.gets(text="while away")).sender.ref == first.ref


async def test_a_member_can_neither_edit_nor_delete_the_messages_of_others(server: XmppServer, tmp_path: Path) -> None:
    async with (
        a_family(server, tmp_path, "ben") as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        ann, ben = await family.person("ann"), await family.person("ben")
        said = await family.say("ann", "Delete nothing.")
        original = await ben.until(lambda one: one["body"] == "Delete nothing.")
        forged = ben.message(family.room, "Delete all.")
        forged["replace"]["id"] = original["id"]
        await ben.send(forged)
        await family.delete("ben", said)
        forged = ben.message(family.bot)
        forged["reactions"]["id"] = said
        forged.send()
        await family.edit("ann", said, "Delete one.")
        await daemon.gets(Kind.EDIT)
        await family.delete("ann", said)
        await daemon.gets(Kind.DELETE)
        assert ann.jid == network.ann
        assert [(one.kind, one.text, one.sender.ref.native) for one in daemon.received] == [
            (Kind.MESSAGE, "Delete nothing.", network.ann),
            (Kind.EDIT, "Delete one.", network.ann),
            (Kind.DELETE, "", network.ann),
        ]


async def test_only_the_archive_can_deliver_results_and_only_the_server_ids(server: XmppServer, tmp_path: Path) -> None:
    async with (
        a_family(server, tmp_path, "ben") as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        ben = await family.person("ben")
        ben.client.send_raw(
            f"<message to='{family.bot}' type='chat'><result xmlns='urn:xmpp:mam:2' id='1' queryid='1'>"
            "<forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
            f"<message xmlns='jabber:client' type='chat' from='{network.ann}/x'><body>forged</body></message>"
            "</forwarded></result></message>"
        )
        ben.client.send_raw(
            f"<message to='{family.room}' type='groupchat' id='x'><body>with ids</body>"
            f"<stanza-id xmlns='urn:xmpp:sid:0' by='{family.room}' id='forged'/>"
            "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='forged'/>"
            f"<x xmlns='http://jabber.org/protocol/muc#user'><item jid='{network.ann}' affiliation='owner'/></x>"
            "</message>"
        )
        context = await daemon.gets(text="with ids")
        assert context.key.native_id != "forged"
        assert context.sender.ref.native == network.ben
        assert context.sender.role is Role.MEMBER
        assert daemon.texts == ["with ids"]
        await network.platform.close()
        cursor = network.platform._stored(family.room)  # type: ignore[attr-defined]
        await host.store.commit([cursor.at(" 2020-01-01T00:00:00+00:00")])
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            archived = await daemon.gets(text="with ids")
            assert (archived.sender.ref, archived.key) == (context.sender.ref, context.key)


async def test_characters_that_xml_forbids_do_not_end_the_stream(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, network, host), receiving(network.platform, host.store):
        await network.platform.send(network.outgoing("a\x00b\x0bc\ud800d\uffff"))
        assert [one.text for one in await family.shown()] == ["a\ufffdb\ufffdc\ufffdd\ufffd"]
        assert family.proxy.connections == 1


async def test_the_bot_mentions_members_and_replies(server: XmppServer, tmp_path: Path) -> None:
    async with (
        a_family(server, tmp_path, "ben") as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        asked = await family.say("ben", "Rollcall: who is ann?")
        context = await daemon.gets(text="who is ann?")
        mentions = (context.sender.ref, network.member(network.ann))
        await network.platform.send(network.outgoing("Ann is here.", reply_to=asked, mentions=mentions))
        ann = await family.person("ann")
        sent = await ann.until(lambda one: "is here" in one["body"])
        assert sent["body"] == "ben: Ann is here."
        assert (sent["reply"]["id"], str(sent["reply"]["to"])) == (asked, f"{family.room}/ben")
        reference = sent["reference"]
        assert (reference["uri"], reference["begin"], reference["end"]) == (f"xmpp:{family.room}/ben", "0", "3")


async def test_a_reply_is_read_without_its_quotation_and_a_mention_names_the_member(
    server: XmppServer, tmp_path: Path
) -> None:
    async with (
        a_family(server, tmp_path, "ben") as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        ann = await family.person("ann")
        asked = await network.platform.send(network.outgoing("Which city?"))
        reply = ann.client.plugin["xep_0461"].make_reply(
            f"{family.room}/Rollcall",
            asked.native_id,
            "Which city?",
            "Rollcall",
            mto=family.room,
            mbody="ben: Oslo?",
            mtype="groupchat",
        )
        reply.send()
        context = await daemon.gets(text="Oslo")
        assert context.text == "ben: Oslo?"
        assert context.mentions == (network.member(network.ben),)
        assert context.reply_to is not None
        assert (context.reply_to.text, context.reply_to.from_bot) == ("Which city?", True)


async def test_a_message_from_before_a_restart_is_edited_and_members_can_delete_theirs(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path) as (family, network, host):
        async with receiving(network.platform, host.store):
            sent = await network.platform.send(network.outgoing("1 vote"))
            said = await family.say("ann", "Secret")
        await network.platform.close()
        assert network.reopen is not None
        again = network.reopen()
        async with receiving(again, host.store) as daemon:
            await again.edit(sent.native_id, network.outgoing("2 votes"))  # type: ignore[attr-defined]
            assert [one.text for one in await family.shown()] == ["2 votes"]
            with pytest.raises(SendFailed):
                await again.edit(said, network.outgoing("not mine"))  # type: ignore[attr-defined]
            await family.delete("ann", said)
            assert (await daemon.gets(Kind.DELETE)).key.native_id == said


async def test_private_messages_are_edited_deleted_and_reacted_to(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, network, host), receiving(network.platform, host.store) as daemon:
        ann = await family.person("ann")
        chat = ChatRef("xmpp", "test", network.ann)
        sent = await network.platform.send(replace_chat(network.outgoing("1 vote"), chat))
        await network.platform.edit(sent.native_id, replace_chat(network.outgoing("2 votes"), chat))  # type: ignore[attr-defined]
        edited = await ann.until(lambda one: one["body"] == "2 votes")
        assert edited["replace"]["id"] == sent.native_id
        reaction = ann.message(family.bot)
        ann.client.plugin["xep_0444"].set_reactions(reaction, sent.native_id, ["👍", "🎉"])
        reaction.send()
        await daemon.gets(Kind.REACTION, "🎉")
        more = ann.message(family.bot)
        ann.client.plugin["xep_0444"].set_reactions(more, sent.native_id, ["👍", "🎉", "❤️"])
        more.send()
        await daemon.gets(Kind.REACTION, "❤️")
        reactions = [one for one in daemon.received if one.kind is Kind.REACTION]
        assert sorted(one.text for one in reactions) == sorted(["👍", "🎉", "❤️"])
        assert {one.key.native_id for one in reactions} == {sent.native_id}
        await network.platform.delete(chat, sent.native_id)  # type: ignore[attr-defined]
        assert (await ann.until(lambda one: one.get_plugin("retract", check=True)))["retract"]["id"] == sent.native_id
        with pytest.raises(SendFailed) as failed:
            await network.platform.send(replace_chat(network.outgoing(), ChatRef("xmpp", "test", "nobody@localhost")))
        assert not failed.value.retryable


async def test_the_bot_stays_in_rooms_to_which_it_was_invited_until_it_is_removed(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path) as (family, network, host):
        async with receiving(network.platform, host.store) as daemon:
            other = await family.add_bot("ann")
            await daemon.gets(Kind.ADDED)
        await network.platform.close()
        assert network.reopen is not None
        again = network.reopen()
        ann = await family.person("ann")
        async with receiving(again, host.store) as daemon:
            await ann.say(other, "welcome back")
            assert (await daemon.gets(text="welcome back")).chat.native == other
            assert not [one for one in daemon.received if one.kind is Kind.ADDED]
            await ann.client.plugin["xep_0045"].set_role(JID(other), "Rollcall", "none")
            with pytest.raises(SendFailed) as failed:
                await again.send(replace_chat(network.outgoing(), ChatRef("xmpp", "test", other)))
            assert not failed.value.retryable
            direct = ann.client.make_message(mto=JID(family.bot))
            direct["groupchat_invite"]["jid"] = other
            direct.send()
            await daemon.gets(Kind.ADDED)
            assert (await again.send(replace_chat(network.outgoing("Hi."), ChatRef("xmpp", "test", other)))).native_id


async def test_a_reaction_and_an_invitation_that_were_not_accepted_come_again(
    server: XmppServer, tmp_path: Path
) -> None:
    async with a_family(server, tmp_path) as (family, network, host), receiving(network.platform, host.store) as daemon:
        said = await family.say("ann", "Tea?")
        await daemon.gets(text="Tea?")
        daemon.failures.append(StoreError("the database is away"))
        await family.react("ann", said, "👍")
        assert (await daemon.gets(Kind.REACTION)).text == "👍"
        daemon.failures.append(StoreError("the database is away"))
        other = await family.add_bot("ann")
        assert (await daemon.gets(Kind.ADDED)).chat.native == other


async def test_an_account_that_pretends_to_be_a_room_cannot_name_the_inviter(
    server: XmppServer, tmp_path: Path
) -> None:
    async with (
        a_family(server, tmp_path, "ben", answer_seconds=1.0) as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        ben = await family.person("ben")
        ben.client.send_raw(
            f"<message to='{family.bot}' id='forged'><x xmlns='http://jabber.org/protocol/muc#user'>"
            f"<invite from='{network.ann}'/></x></message>"
        )
        added = await daemon.gets(Kind.ADDED)
        assert added.chat.native == network.ben
        assert added.sender.ref.native == f"{network.ben}/~{family.jid('ann').partition('@')[0]}"
        ben.client.send_raw(
            f"<message to='{family.bot}' id='odd'><x xmlns='jabber:x:conference' jid='no room'/></message>"
        )
        await family.say("ann", "end")
        await daemon.gets(text="end")
        assert len([one for one in daemon.received if one.kind is Kind.ADDED]) == 1


async def test_invitations_can_be_ignored(server: XmppServer, tmp_path: Path) -> None:
    async with (
        a_family(server, tmp_path, accept_invitations=False) as (family, network, host),
        receiving(network.platform, host.store) as daemon,
    ):
        await family.add_bot("ann")
        await family.say("ann", "end", chat=network.ann)
        await daemon.gets(text="end")
        assert daemon.texts == ["end"]


def test_a_nick_can_hold_no_role() -> None:
    reader = TypeAdapter(RoleHolder)
    assert reader.validate_python("xmpp:main:ann@example.org")
    assert reader.validate_python("xmpp:main:a@rooms.example.org/b3Nv")
    with pytest.raises(ValidationError, match="anybody can take it"):
        reader.validate_python("xmpp:main:a@rooms.example.org/~ann")


async def test_a_banned_bot_says_so(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, network, host):
        ann = await family.person("ann")
        await ann.client.plugin["xep_0045"].set_affiliation(JID(family.room), "outcast", jid=JID(family.bot))
        async with receiving(network.platform, host.store):
            assert "cannot join: forbidden" in network.platform.link().words  # type: ignore[attr-defined]
            with pytest.raises(SendFailed) as failed:
                await network.platform.send(network.outgoing())
            assert not failed.value.retryable


async def test_a_taken_nick_gets_an_underscore(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, network, host), a_person(server, f"twin{family.number}") as other:
        await other.join(family.room, "Rollcall")
        async with receiving(network.platform, host.store) as daemon:
            await network.platform.send(network.outgoing())
            ann = await family.person("ann")
            assert (await ann.until(lambda one: one["body"] == "Hello."))["from"].resource == "Rollcall_"
            await family.say("ann", "Rollcall_: hi")
            assert (await daemon.gets(text="hi")).mentions_bot


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x.png", "https://127.0.0.1/x.png", "https://[::1]/x.png"])
async def test_files_are_not_read_from_addresses_in_this_network(url: str, server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (_, network, host), receiving(network.platform, host.store):
        with pytest.raises(FileUnavailable):
            await network.platform.read_file(Attachment("x.png", "image/png", f"network:{url}"), 100)  # type: ignore[attr-defined]


async def test_typing_is_shown_once_until_it_changes(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, network, host), receiving(network.platform, host.store):
        for status in ("…", "looking it up", "", "…"):
            await network.platform.typing(network.chat, status)
        await network.platform.send(network.outgoing())
        await network.platform.typing(network.chat, "")
        await family.shown()
        ann = await family.person("ann")
        states = [one["chat_state"] for one in ann.seen if one["from"].resource == "Rollcall"]
        assert states == ["composing", "active", "composing", "active"]


async def test_the_probe_describes_the_account_or_the_remedy(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, _, _):
        found = await ADAPTER.probe(family.settings(), SystemClock())
        assert found == f"connected as {family.bot}"
        with pytest.raises(CannotOpen, match="rejects the login"):
            await ADAPTER.probe(family.settings(password="wrong"), SystemClock())
        with pytest.raises(CannotOpen, match="cannot connect"):
            await ADAPTER.probe(family.settings(port=1), SystemClock())


async def test_nothing_secret_is_sent_without_encryption(server: XmppServer, tmp_path: Path) -> None:
    async with a_family(server, tmp_path) as (family, _, _):
        with pytest.raises(CannotOpen, match="no TLS"):
            await ADAPTER.probe(family.settings(tls="starttls"), SystemClock())


async def test_the_certificate_of_the_server_is_verified(tmp_path: Path) -> None:
    server = an_xmpp_server(tmp_path, a_certificate(tmp_path, "server"))
    try:
        account = {"jid": server.add_user("bot"), "password": PASSWORD, "host": "127.0.0.1", "port": server.port}
        known = XmppSettings.model_validate({**account, "ca_file": tmp_path / "server.pem"})
        assert (await ADAPTER.probe(known, SystemClock())).startswith("connected as bot@localhost")
        with pytest.raises(CannotOpen, match="certificate verify failed"):
            await ADAPTER.probe(XmppSettings.model_validate(account), SystemClock())
        missing = XmppSettings.model_validate({**account, "ca_file": tmp_path / "missing.pem"})
        with pytest.raises(CannotOpen, match="ca_file"):
            await ADAPTER.probe(missing, SystemClock())
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("jid", "bot@example.org/phone", "without a resource"),
        ("tls", "none", "this machine"),
        ("password", "", "must not be empty"),
        ("rooms", [{"jid": "a@b"}, {"jid": "A@b"}], "twice"),
    ],
)
def test_wrong_settings_are_explained(key: str, value: object, problem: str) -> None:
    good = {"jid": "bot@example.org", "password": PASSWORD}
    assert XmppSettings.model_validate(good).secrets == (PASSWORD,)
    with pytest.raises(ValidationError, match=re.escape(problem)):
        XmppSettings.model_validate({**good, key: value})


def test_the_settings_of_the_page_are_good(tmp_path: Path) -> None:
    [block] = Page("docs/platforms/xmpp.md").of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    secrets = {"XMPP_PASSWORD": "a-password", "XMPP_OPS_PASSWORD": "another"}
    settings, found = check_settings(file, {**os.environ, **secrets})
    assert list(found) == []
    assert settings is not None
