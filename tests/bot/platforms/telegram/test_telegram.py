"""What is special about Telegram: ids, topics, migrations, commands, roles, buttons, files and webhooks."""

from __future__ import annotations

import asyncio
import re
import time
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy import select
from starlette.routing import Mount

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import CommandHint, FileUnavailable, Outgoing, SendFailed
from bot.platforms.contract import Daemon, Network, outbox_row, receiving, until
from bot.platforms.markdown import html_of, plain_lines
from bot.platforms.telegram.platform import ADAPTER, TelegramPlatform, TelegramSettings
from bot.web.app import web_app
from function_calls.context import Attachment, Kind
from function_calls.ports import Measure, ModerationRequest
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, Role
from services.store.port import Statement, StoreError
from services.store.turns.audit import AUDIT
from tests.bot.platforms.telegram.side import on_telegram, settings
from tests.fakes.telegram_server import BOT, GROUP, MIGRATED, TOKEN, USERS, FakeTelegram, Rejected, parsed

OLD_GROUP = -777


def a_file(name: str, media_type: str, content: bytes = b"content") -> Attachment:
    return Attachment(name, media_type, f"data:{media_type};base64,{b64encode(content).decode()}", len(content))


def platform_of(network: Network) -> TelegramPlatform:
    assert isinstance(network.platform, TelegramPlatform)
    return network.platform


def a_group(server: FakeTelegram) -> ChatRef:
    """A basic group with Ann and the bot."""
    server.add_chat(OLD_GROUP, "group", "Old")
    server.members[OLD_GROUP] = {USERS["ann"]["id"]: "member", BOT["id"]: "member"}
    return ChatRef("telegram", "main", str(OLD_GROUP))


# Migration


@pytest.mark.parametrize("notices", [{"to", "from"}, {"to"}, {"from"}], ids=str)
async def test_a_group_that_becomes_a_supergroup_keeps_its_id_also_after_a_restart(
    tmp_path: Path, notices: set[str]
) -> None:
    async with on_telegram(tmp_path) as (network, server, host):
        old = a_group(server)
        async with receiving(network.platform, host.store) as daemon:
            first = server.say("ann", "before", OLD_GROUP)
            await daemon.gets(text="before")
            server.migrate(OLD_GROUP)
            if "to" in notices:
                server.update(message=server.message(OLD_GROUP, USERS["ann"], migrate_to_chat_id=MIGRATED))
            if "from" in notices:
                server.update(message=server.message(MIGRATED, USERS["ann"], migrate_from_chat_id=OLD_GROUP))
            server.messages[MIGRATED].clear()
            number = server.say("ann", "after", MIGRATED)["message_id"]
            context = await daemon.gets(text="after")
            assert context.chat == old
            assert context.key.native_id == f"{number}s"
        again = network.reopen() if network.reopen else network.platform
        async with receiving(again, host.store) as daemon:
            server.say("ann", "still here", MIGRATED)
            context = await daemon.gets(text="still")
            assert context.chat == old
            await again.send(Outgoing(old, "1:0:0", "Hello.", reply_to=context.key.native_id))
            await again.send(Outgoing(old, "2:0:0", "Bye.", reply_to=str(first["message_id"])))
        assert [one["text"] for one in server.sent(MIGRATED)] == ["Hello.", "Bye."]
        assert [one.get("reply_to_message", {}).get("text") for one in server.sent(MIGRATED)] == ["still here", None]


async def test_a_send_follows_the_group_that_became_a_supergroup(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host):
        old = a_group(server)
        async with receiving(network.platform, host.store) as daemon:
            server.migrate(OLD_GROUP)
            sent = await network.platform.send(Outgoing(old, "1:0:0", "Hello."))
            assert [one["text"] for one in server.sent(MIGRATED)] == ["Hello."]
            await platform_of(network).edit(sent.native_id, Outgoing(old, "1:0:0", "Changed."))
            assert [one["text"] for one in server.sent(MIGRATED)] == ["Changed."]
            server.say("ann", "thanks", MIGRATED)
            assert (await daemon.gets(text="thanks")).chat == old


async def test_members_cannot_claim_a_migration(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        ann = USERS["ann"]["id"]
        server.update(message=server.message(ann, USERS["ann"], text="move", migrate_from_chat_id=GROUP))
        await daemon.gets(text="move")
        server.say("ann", "hello", ann)
        assert (await daemon.gets(text="hello")).chat.native == str(ann)


# Senders


@pytest.mark.parametrize(
    ("sender", "facts"),
    [
        ("anonymous", {"sender_chat": {"id": GROUP, "type": "supergroup", "title": "Family"}}),
        (
            "telegram",
            {"sender_chat": {"id": -1009, "type": "channel", "title": "News"}, "is_automatic_forward": True},
        ),
    ],
)
async def test_anonymous_administrators_and_channels_have_no_role(
    tmp_path: Path, sender: str, facts: dict[str, object]
) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.members[GROUP][USERS[sender]["id"]] = "creator"
        server.say(sender, "/reset@rollcall_bot", **facts)
        context = await daemon.gets(text="/reset")
        assert context.sender.is_bot
        assert context.sender.role is Role.MEMBER
        assert await network.platform.role(network.chat, context.sender.ref) is None


async def test_a_command_of_an_administrator_has_their_role(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.members[GROUP][USERS["ann"]["id"]] = "creator"
        server.members[GROUP][USERS["ben"]["id"]] = "administrator"
        for who in ("ann", "ben"):
            server.say(who, f"/reset {who}")
        assert (await daemon.gets(text="/reset ann")).sender.role is Role.OWNER
        assert (await daemon.gets(text="/reset ben")).sender.role is Role.ADMIN
        assert len(server.called("getChatAdministrators")) == 1
        server.members[GROUP][USERS["ben"]["id"]] = "left"
        assert await network.platform.role(network.chat, network.member(network.ben)) is None


async def test_a_member_whose_id_is_that_of_the_chat_is_only_a_member(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, _, host), receiving(network.platform, host.store):
        assert await network.platform.role(network.chat, network.member(network.group)) is None
        private = ChatRef("telegram", "main", network.ann)
        assert await network.platform.role(private, network.member(network.ann)) is Role.MEMBER


async def test_a_member_who_takes_the_name_of_the_owner_gets_no_role(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.members[GROUP][USERS["ann"]["id"]] = "creator"
        owner = {**USERS["ann"], "id": USERS["ben"]["id"], "language_code": "pt-br"}
        server.update(message={**server.say("ben", "quiet"), "message_id": 900, "from": owner, "text": "/reset"})
        context = await daemon.gets(text="/reset")
        assert context.sender.name == "Ann Lee"
        assert (context.sender.ref, context.sender.role) == (network.member(network.ben), Role.MEMBER)
        assert context.sender.language == "pt-br"


async def test_a_join_that_is_announced_twice_is_one_event(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        joined = server.message(GROUP, USERS["carl"], new_chat_members=[USERS["carl"], BOT], date=1_790_000_000)
        server.update(message=joined)
        server.change_member(USERS["carl"], "member")
        server._updates[-1]["chat_member"]["date"] = 1_790_000_000
        server.say("ann", "end")
        await daemon.gets(text="end")
        assert [one.kind for one in daemon.received] == [Kind.JOIN, Kind.MESSAGE]
        assert daemon.repeated == 1


async def test_a_join_names_the_inviter_and_a_forwarded_message_is_marked(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.update(message=server.message(GROUP, USERS["ann"], new_chat_members=[USERS["carl"]]))
        server.say("ben", "news", forward_origin={"type": "user", "sender_user": USERS["ann"], "date": 1})
        server.say("ben", "end")
        forwarded, written = await daemon.gets(text="news"), await daemon.gets(text="end")
        join = await daemon.gets(Kind.JOIN)
        assert (join.sender.ref.native, join.inviter) == (str(USERS["carl"]["id"]), "Ann Lee")
        assert (forwarded.is_forwarded, written.is_forwarded) == (True, False)


async def test_silence_and_kick_use_the_calls_that_neither_last_nor_ban(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store):
        platform, ben = platform_of(network), network.member(network.ben)
        before = time.time()
        await platform.moderate(ModerationRequest(network.chat, Measure.SILENCE, ben, seconds=3600))
        (silenced,) = server.called("restrictChatMember")
        assert before + 3500 < silenced["until_date"] < before + 3700
        await platform.moderate(ModerationRequest(network.chat, Measure.KICK, ben))
        assert len(server.called("unbanChatMember")) == int(network.group.startswith("-100"))
        admin = network.member(network.ann)
        await network.side.promote(network.ann, Role.ADMIN)
        with pytest.raises(SendFailed, match="administrator") as refused:
            await platform.moderate(ModerationRequest(network.chat, Measure.BAN, admin))
        assert not refused.value.retryable


# Texts


@pytest.mark.parametrize(
    ("said", "heard", "is_called"),
    [
        ("/roll@rollcall_bot 2d6", "/roll 2d6", True),
        ("/roll@Rollcall_Bot", "/roll", True),
        ("/roll 2d6", "/roll 2d6", False),
        ("/roll@other_bot 2d6", "/roll@other_bot 2d6", False),
        ("/roll@Rollcall 2d6", "/roll@Rollcall 2d6", False),  # no username of ours
        ("👋 @rollcall_bot hello", "👋 hello", True),
        ("mail me@rollcall_bot.org", "mail me@rollcall_bot.org", False),
    ],
)
async def test_commands_and_mentions_say_which_bot_they_are_for(
    tmp_path: Path, said: str, heard: str, is_called: bool
) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.say("ann", said)
        context = await daemon.gets(text=heard)
        assert (context.text, context.mentions_bot) == (heard, is_called)


async def test_mentioned_members_stay_in_the_text(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.say("ann", "hello")
        ben = {"type": "text_mention", "offset": 5, "length": 3, "user": USERS["ben"]}
        ann = {"type": "mention", "offset": 9, "length": 8}
        server.say("ben", "👍👍 Ben @ann_lee 你好", entities=[ben, ann])
        context = await daemon.gets(text="你好")
        assert context.text == "👍👍 Ben @ann_lee 你好"
        assert context.mentions == (network.member(network.ben), network.member(network.ann))


async def test_members_are_mentioned_by_id(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store):
        mentions = (network.member(network.ann), network.member("999999"), network.member(network.ben))
        await network.platform.send(network.outgoing("pizza <3", mentions=mentions))
        (message,) = server.sent()
        assert message["text"] == "Ann Lee, Ben: pizza <3"
        assert [(one["type"], one["user"]["first_name"]) for one in message["entities"]] == [
            ("text_mention", "Ann"),
            ("text_mention", "Ben"),
        ]


async def test_thirty_messages_per_second_are_sent_at_most(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, _, host), receiving(network.platform, host.store):
        began = host.clock.monotonic()
        for number in range(10):
            await network.platform.send(network.outgoing(str(number)))
        assert host.clock.monotonic() - began >= 9 / 30


async def test_any_text_fits(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store):
        text = "👋" * network.platform.limits.text_chars
        mentions = (network.member(network.ann),) * 30
        await network.platform.send(network.outgoing(text, mentions=mentions, markdown=True))
        assert text in server.sent()[0]["text"]


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a **b *c* d** e", "a <b>b <i>c</i> d</b> e"),
        ("***a*** ~~b~~ __c__ _d_", "<b><i>a</i></b> <s>b</s> <b>c</b> <i>d</i>"),
        ("# A < B #\n2 * 3 * 4", "<b>A &lt; B</b>\n2 * 3 * 4"),
        ("`a*b*<c>` [x & y](https://e.org/?a=1&b=2)", "<code>a*b*&lt;c&gt;</code> "
         '<a href="https://e.org/?a=1&amp;b=2">x &amp; y</a>'),
        ("![cat](https://e.org/c.png?secret) \\*x\\*", "cat (image at e.org) *x*"),
        ("```py\nif a < b:\n  **x**\n```\nend", "<pre>if a &lt; b:\n  **x**</pre>\nend"),
        ("```\nopen", "<pre>open</pre>"),
        ("|a|b|\n|-|-|\n|1|2|", "|a|b|\n|1|2|"),
        ("[x](javascript:alert) <https://e.org>", '[x](javascript:alert) <a href="https://e.org">https://e.org</a>'),
        ("**a _b** c_", "<b>a _b</b> c_"),
        ("*https://a.test/_x_/* [y](https://a.test/*z*/)", '<i>https://a.test/_x_/</i> <a href="https://a.test/*z*/">y</a>'),
    ],
)  # fmt: skip
def test_markdown_becomes_html(markdown: str, html: str) -> None:
    assert html_of(markdown) == html
    parsed("text", html, "HTML", 4096)


@given(st.text(alphabet="ab*_~`[]()<>&!#\\ \n|-:👋", max_size=60))
def test_the_html_of_any_text_is_valid(text: str) -> None:
    html = html_of(text)
    if re.sub(r"<[^>]*>", "", html).strip():
        parsed("text", html, "HTML", 4096)


@given(st.text(alphabet="a *_~`<>&.\n", max_size=60))
def test_html_and_plain_text_say_the_same(text: str) -> None:
    shown = re.sub(r"</?(?:b|i|s|code|pre)>", "", html_of(text))
    words = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert re.sub(r"[\s*_~`]", "", words) == re.sub(r"[\s*_~`]", "", "".join(plain_lines(text)))


# Topics


async def test_a_message_in_a_topic_is_no_reply_to_its_start(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        thread = await network.side.open_thread(network.ann, "About tea")
        context = await daemon.gets(text="About tea")
        assert context.reply_to is None
        number = int(thread.partition(",")[2])
        sent = await network.platform.send(Outgoing(context.chat, "1:0:0", "Green?"))
        server.react("ann", GROUP, int(sent.native_id), "👍")
        assert (await daemon.gets(Kind.REACTION)).chat == context.chat
        server.say("ben", "yes", thread=number, reply_to_message=server.messages[GROUP][int(sent.native_id)])
        reply = (await daemon.gets(text="yes")).reply_to
        assert reply is not None
        assert reply.from_bot
        assert await network.platform.role(context.chat, network.member(network.ann)) is Role.MEMBER


async def test_a_reply_in_a_thread_of_a_group_without_topics_is_in_the_group(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.say("ann", "a reply", message_thread_id=5)
        assert (await daemon.gets(text="a reply")).chat == network.chat


# Buttons and reactions


async def test_a_long_button_works_after_a_restart_and_every_press_is_answered(tmp_path: Path) -> None:
    long = "/timezone America/Argentina/ComodRivadavia " * 3
    async with on_telegram(tmp_path) as (network, server, host):
        async with receiving(network.platform, host.store):
            choices = (Choice("Long", long), Choice("Hash", "#1"))
            outgoing = network.outgoing("Which?", choices=choices)
            await host.store.commit([outbox_row(outgoing)])
            sent = await network.platform.send(outgoing)
        assert network.reopen is not None
        async with receiving(network.reopen(), host.store) as daemon:
            for label, value in (("Long", long), ("Hash", "#1")):
                await network.side.press(network.ben, sent.native_id, label)
                assert (await daemon.gets(Kind.CHOICE, value)).text == value
            await until(lambda: len(server.answered) == 2)


async def test_a_reaction_that_telegram_lacks_is_given_up(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, _, host), receiving(network.platform, host.store):
        said = await network.side.say(network.ann, "Done.")
        await platform_of(network).react(network.chat, said, "❤️")
        assert await network.side.reactions(said) == ["❤"]
        with pytest.raises(SendFailed) as failed:
            await platform_of(network).react(network.chat, said, "🦥")
        assert not failed.value.retryable


async def test_the_menu_has_only_commands_that_telegram_permits(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store):
        hints = [CommandHint("/roll", "Roll dice"), CommandHint("/todo add", "Add"), CommandHint("/掷骰子", "骰子")]
        await platform_of(network).show_commands({"en": hints, "zh": [CommandHint("/roll", "掷骰子" * 100)]})
        roll = {"command": "roll", "description": "Roll dice"}
        english, chinese = server.called("setMyCommands")
        assert english == {"commands": [roll]}
        assert chinese == {"commands": [{**roll, "description": ("掷骰子" * 100)[:256]}], "language_code": "zh"}


# Files


async def test_a_text_is_a_caption_only_if_it_fits(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store):
        files = (a_file("a.png", "image/png"), a_file("b.txt", "text/plain"), Attachment("c", "", "https://e.org/c"))
        await network.platform.send(network.outgoing("*Short*", attachments=files, markdown=True))
        sent = await network.platform.send(network.outgoing("👋" * 600, attachments=files[:1]))
        shown = [(one.get("caption"), one.get("text"), "photo" in one) for one in server.sent()]
        assert shown == [
            ("Short\nc: https://e.org/c", None, True),
            (None, None, False),
            (None, "👋" * 600, False),
            (None, None, True),
        ]
        assert sent.native_id == str(server.sent()[2]["message_id"])


async def test_a_picture_that_is_no_photo_for_telegram_is_sent_as_a_file(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store):
        server.failures.append(Rejected(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"))
        await network.platform.send(network.outgoing("Thin.", attachments=(a_file("a.png", "image/png"),)))
        (message,) = server.sent()
        assert "document" in message
        await platform_of(network).edit(str(message["message_id"]), network.outgoing("Wide."))
        assert server.sent()[0]["caption"] == "Wide."


async def test_a_file_is_not_downloaded_if_it_declares_too_much_and_cut_if_it_lies(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host), receiving(network.platform, host.store) as daemon:
        server.say_file("ann", "look", "a.png", b"x" * 300_000)
        (file,) = (await daemon.gets(text="look")).attachments
        server.declared_sizes["file0"] = 1000
        assert len(await platform_of(network).read_file(file, 300_000)) == 300_000
        lies = Attachment(file.name, file.media_type, file.url, 1000)
        with pytest.raises(FileUnavailable, match="larger"):
            await platform_of(network).read_file(lies, 1000)
        assert server.downloads == 2
        server.declared_sizes["file0"] = 300_000
        for one in (file, lies):
            with pytest.raises(FileUnavailable, match="larger"):
                await platform_of(network).read_file(one, 1000)
        assert server.downloads == 2
        server.declared_sizes["file0"] = 2_000_000_000
        with pytest.raises(FileUnavailable, match="too big"):
            await platform_of(network).read_file(lies, 10_000)


# Updates


async def test_one_unreadable_update_of_a_batch_holds_up_no_other(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host):
        async with receiving(network.platform, host.store):
            pass
        for number in range(100):
            if number == 37:
                await network.side.send_garbage()
            else:
                server.say("ann", f"say {number}")
        async with receiving(network.platform, host.store) as daemon:
            await daemon.gets(text="say 99")
            assert len(daemon.texts) == 99
            assert "1 events could not be read" in network.platform.link().words  # type: ignore[attr-defined]
        async with receiving(network.platform, host.store) as daemon:
            server.say("ann", "next")
            await daemon.gets(text="next")
            assert daemon.texts == ["next"]


async def test_a_webhook_takes_only_updates_with_the_secret(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (_, server, host):
        place = replace(host, public_url="https://bot.example.org")
        platform = ADAPTER.open(settings(server, webhook=True), place)
        assert isinstance(platform, TelegramPlatform)
        path, header = "/platforms/telegram/main", "X-Telegram-Bot-Api-Secret-Token"
        app = web_app(more_routes=[Mount(path, routes=[*platform.routes()])], public_urls=[place.public_url])
        update = {"update_id": 1, "message": server.message(GROUP, USERS["ann"], text="hello")}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=place.public_url) as client:

            async def post(secret: str | bytes | None, body: object = update) -> int:
                headers = {header.encode(): secret} if secret is not None else {}
                return (await client.post(f"{path}/update", json=body, headers=headers)).status_code

            async with receiving(platform, host.store, StoreError("away")) as daemon:
                assert server.webhook["url"] == f"{place.public_url}{path}/update"
                secret = server.webhook["secret_token"]
                assert [await post(one) for one in (None, "wrong", "é".encode())] == [401, 401, 401]
                assert daemon.failures, "nothing was delivered"
                assert [await post(secret) for _ in range(3)] == [503, 200, 200]
                assert daemon.texts == ["hello"]
                assert await post(secret, "x" * 2_000_000) == 413
                assert await post(secret, {"update_id": 2, "message": "garbage"}) == 200
            assert await post(secret) == 503
        audit = Statement("tests.audit", select(AUDIT.c.detail))
        assert [row["detail"] for row in await host.store.read(audit.query())] == [
            '{"update_id":2,"message":"garbage"}'
        ]
        await platform.close()


async def test_polling_ends_a_webhook_and_another_poller_is_reported(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (network, server, host):
        server.webhook = {"url": "https://elsewhere.example.org"}
        async with receiving(network.platform, host.store):
            assert server.webhook == {}
            await server.polling.wait()
            server.webhook = {"url": "https://elsewhere.example.org"}
            server.say("ann", "the poll returns")
            await until(lambda: "Conflict" in platform_of(network).link().words)


# Settings and operators


async def test_the_probe_names_the_bot_and_what_limits_it(tmp_path: Path) -> None:
    async with FakeTelegram() as server:
        line = await ADAPTER.probe(settings(server), SystemClock())
        assert line.startswith("connected as @rollcall_bot; privacy mode is on")
        server.can_read_all = True
        assert await ADAPTER.probe(settings(server), SystemClock()) == "connected as @rollcall_bot"
        with pytest.raises(CannotOpen, match=r"Unauthorized. Check token and api_url"):
            await ADAPTER.probe(settings(server, token="1:wrong"), SystemClock())
    with pytest.raises(CannotOpen, match="Telegram cannot be reached"):
        await ADAPTER.probe(settings(server), SystemClock())


async def test_a_wrong_token_is_reported_and_in_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeTelegram() as server, on_telegram(tmp_path) as (_, _, host):
        wrong = ADAPTER.open(settings(server, token="1:wrong"), host)
        running = asyncio.create_task(wrong.run(Daemon(host.store).deliver))
        await until(lambda: "Unauthorized" in wrong.link().words)
        await server.__aexit__()
        with pytest.raises(SendFailed) as failed:
            await wrong.send(Outgoing(ChatRef("telegram", "main", "1"), "1:0:0", "Hello."))
        assert (failed.value.retryable, failed.value.unknown_outcome) == (True, False)
        running.cancel()
        await asyncio.wait([running])
        await wrong.close()
        assert "1:wrong" not in "".join([*capsys.readouterr(), str(failed.value), repr(failed.value.__cause__)])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"token": "123"}, "has to be a token of @BotFather"),
        ({"token": "1:a b"}, "has to be a token of @BotFather"),
        ({"token": TOKEN, "api_url": "http://api.example.org"}, "has to begin with https://"),
    ],
)
def test_wrong_settings_are_explained(wrong: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        TelegramSettings.model_validate(wrong)


async def test_a_webhook_needs_a_public_url(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as (_, server, host):
        with pytest.raises(CannotOpen, match=r"platforms\.web\.public_url"):
            ADAPTER.open(settings(server, webhook=True), host)
