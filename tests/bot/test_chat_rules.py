"""What a chat's admins arrange: greetings, triggers, the style, and messages forwarded to other chats."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bot.intake.unasked import FORWARDED, GREETING_SECONDS
from bot.testing import FAMILY, Group, a_group
from config.texts import Phrases, Texts
from function_calls.context import Kind, Quoted
from services.refs import ChatRef, Role

EN, ZH = Texts().of("en"), Texts().of("zh")
WORK = ChatRef("test", "bot", "work")
ADMIN: dict[str, Any] = {"role": Role.ADMIN}


def chats(language: str = "en", **settings: Any) -> dict[str, Any]:
    return {"language": language, "chats": {"allow": ["*"], "settings": {FAMILY.key: settings}}}


async def come(group: Group, *names: str, kind: Kind = Kind.JOIN, **facts: Any) -> None:
    for name in names:
        await group.hear(name, "", kind=kind, **facts)


async def after_a_minute(group: Group) -> list[str]:
    """Texts that the bot sends in the next minute."""
    before = len(group.platform.sent)
    await group.clock.advance(GREETING_SECONDS + 1)
    await group.settle()
    return [one.text for one in group.platform.sent[before:]]


@pytest.mark.parametrize(
    ("texts", "command", "text", "both"),
    [
        (
            EN,
            "/welcome",
            "Hello {new_member} by {inviter} in {chat}!",
            "Hello Dan, Eve by Ann in Home!",
        ),
        (ZH, "/欢迎语", "欢迎{new_member}来到{chat}，邀请人：{inviter}", "欢迎Dan、Eve来到Home，邀请人：Ann"),
    ],
)
async def test_members_who_join_within_a_minute_are_greeted_together(
    texts: Phrases, command: str, text: str, both: str
) -> None:
    async with a_group(settings=chats(texts.language)) as group:
        (preview,) = await group.say("Ann", f"{command} {text}", chat_title="Home", **ADMIN)
        assert "Ann" in preview
        assert "{" not in preview
        await come(group, "Dan", chat_title="Home")
        await come(group, "Eve", inviter="Ann")
        assert await after_a_minute(group) == [both]
        assert await after_a_minute(group) == []


async def test_who_leaves_is_named_and_who_only_looks_in_is_not() -> None:
    async with a_group(settings=chats(welcome="Hello {new_member}", goodbye="Bye {new_member}")) as group:
        await come(group, "Dan", kind=Kind.LEAVE)
        await come(group, "Eve")
        await come(group, "Eve", kind=Kind.LEAVE)
        assert await after_a_minute(group) == ["Bye Dan"]


@pytest.mark.parametrize("facts", [{"is_bot": True}, {"backfilled": True}, {"chat": ChatRef("test", "bot", "other")}])
async def test_bots_old_events_and_other_chats_are_not_greeted(facts: dict[str, Any]) -> None:
    async with a_group(settings=chats(welcome="Hello {new_member}")) as group:
        await come(group, "Dan", **facts)
        assert await after_a_minute(group) == []


async def test_a_name_cannot_contain_a_placeholder_and_many_names_are_counted() -> None:
    async with a_group(settings=chats(welcome="Hello {new_member} of {chat}")) as group:
        await come(group, "{chat}", *(f"M{number}" for number in range(11)))
        (said,) = await after_a_minute(group)
        assert said.startswith("Hello {chat}, M0, M1")
        assert said.endswith("M8, 2 others of this chat")


async def test_greetings_that_wait_are_sent_when_the_daemon_ends(tmp_path: Path) -> None:
    async with a_group(settings=chats(welcome="Hello {new_member}"), home=tmp_path) as group:
        await come(group, "Dan")
        platform = group.platform
    async with a_group(settings=chats(), home=tmp_path, platform=platform) as group:
        await group.settle()
    assert [one.text for one in platform.sent] == ["Hello Dan"]


async def test_only_admins_set_texts_and_off_ends_them() -> None:
    async with a_group() as group:
        await group.say("Ben", "/welcome Hi")
        assert await group.say("Ann", "/welcome", **ADMIN) == [EN.say("greetings.no_welcome")]
        assert await group.say("Ann", "/welcome Hi {nobody}", **ADMIN) == [EN.say("greetings.unknown", name="nobody")]
        await group.say("Ann", "/welcome Hi", **ADMIN)
        assert await group.say("Ann", "/welcome off", **ADMIN) == [EN.say("greetings.no_welcome")]
        await come(group, "Dan")
        assert await after_a_minute(group) == []


@pytest.mark.parametrize(
    ("rule", "heard", "answered"),
    [
        ('"wifi key" → on the fridge', "What is the WiFi  KEY again?", True),
        ("wifi -> on the fridge", "no wifi2 here", False),
        ("“无线密码” → 在冰箱上", "请问无线密码是多少", True),
        ('"wifi" → on the fridge', "> the wifi\nindeed", False),
        ('"wifi" → on the fridge', "Forwarded message\nthe wifi is down", False),
        ('"wifi" → on the fridge', f"{FORWARDED} Home – Eve: wifi", False),
        ('"wifi" → on the fridge', "/nothing wifi", False),
    ],
)
async def test_a_trigger_replies_to_whole_words_of_the_member_alone(rule: str, heard: str, answered: bool) -> None:
    async with a_group() as group:
        await group.say("Ann", f"/trigger {rule}", **ADMIN)
        said = await group.say("Ben", heard)
        assert said == ([re.split("→|->", rule)[1].strip()] if answered else [])


@pytest.mark.parametrize("facts", [{"is_bot": True}, {"is_forwarded": True}, {"kind": Kind.EDIT}, {"backfilled": True}])
async def test_no_trigger_replies_to_bots_forwarded_edited_or_old_messages(facts: dict[str, Any]) -> None:
    async with a_group(settings=chats(triggers={"wifi": "on the fridge"})) as group:
        assert await group.say("Ben", "wifi?", **facts) == []
        assert await group.say("Ben", "ok", reply_to=Quoted("q", "Eve", "wifi?")) == []


async def test_a_message_has_one_reply_and_a_word_one_in_a_minute() -> None:
    triggers = {"tea": "Kettle.", "green tea": "Tin.", **{f"w{number}": "x" for number in range(9)}}
    async with a_group(settings=chats(triggers=triggers)) as group:
        assert await group.say("Ben", "green tea or tea") == ["Tin."]
        assert await group.say("Ben", "green tea") == []
        await group.clock.advance(61)
        assert await group.say("Ben", "green tea") == ["Tin."]
        replies = [await group.say("Ben", f"w{number}") for number in range(9)]
        assert sum(map(len, replies)) == 4, "five in a minute for a chat"


async def test_triggers_are_listed_and_removed_and_survive_a_restart(tmp_path: Path) -> None:
    async with a_group(settings=chats(triggers={"tea": "Kettle."}), home=tmp_path) as group:
        await group.say("Ann", '/trigger "Wifi" → on the fridge', **ADMIN)
    async with a_group(settings=chats(triggers={"tea": "Kettle."}), home=tmp_path) as group:
        (listed,) = await group.say("Ann", "/trigger", **ADMIN)
        assert EN.say("triggers.line", word="wifi", text="on the fridge") in listed
        assert EN.say("triggers.line", word="tea", text="Kettle.") in listed
        assert await group.say("Ann", "/trigger delete wifi", **ADMIN) == [EN.say("triggers.removed", word="wifi")]
        assert await group.say("Ann", "/trigger delete tea", **ADMIN) == [EN.say("triggers.of_settings", word="tea")]
        assert await group.say("Ann", "/trigger delete milk", **ADMIN) == [EN.say("triggers.unknown", word="milk")]
        assert await group.say("Ben", "wifi?") == []
        await group.say("Ben", '/trigger "x" → y')
        assert await group.say("Ben", "x") == []


async def test_nothing_is_said_unasked_while_the_bot_is_muted() -> None:
    async with a_group(settings=chats(triggers={"wifi": "on the fridge"}, welcome="Hi {new_member}")) as group:
        await group.say("Ann", "/mute", **ADMIN)
        await come(group, "Dan")
        assert await group.say("Ben", "wifi?") == []
        assert await after_a_minute(group) == []


@pytest.mark.parametrize("texts", [EN, ZH])
async def test_the_style_of_a_chat_is_shown_set_and_cleared(texts: Phrases) -> None:
    async with a_group(settings={"language": texts.language}) as group:
        assert await group.say("Ann", "/persona", **ADMIN) == [texts.say("persona.none")]
        shown = [texts.say("persona.shown", text="Talk like a captain.")]
        assert await group.say("Ann", "/persona Talk like a captain.", **ADMIN) == shown
        group.model.says("Aye.")
        await group.say("Ben", "@Rollcall hello")
        assert "Talk like a captain." in str(group.model.requests[0].messages)
        too_long = [texts.say("persona.too_long", most=300, count=301)]
        assert await group.say("Ann", f"/persona {'x' * 301}", **ADMIN) == too_long
        assert await group.say("Ann", "/persona clear", **ADMIN) == [texts.say("persona.none")]


# Forwarding


async def linked(group: Group, words: str, source: ChatRef = FAMILY, target: ChatRef = WORK) -> str:
    """Let the admins of both chats agree on a rule; returns its code."""
    (proposed,) = await group.say("Ann", f"/forward {words} to {target.key}", chat=source, **ADMIN)
    found = re.search(r"\b[2-9A-Z]{8}\b", proposed)
    assert found is not None, proposed
    await group.say("Zoe", f"/forward accept {found[0]}", chat=target, **ADMIN)
    return found[0]


async def said_in(group: Group, chat: ChatRef, who: str, text: str, **facts: Any) -> list[str]:
    """What the bot sends to `chat` because of a message in another one."""
    before = len(group.platform.sent)
    await group.say(who, text, **facts)
    return [one.text for one in group.platform.sent[before:] if one.chat == chat]


async def test_messages_are_forwarded_with_chat_and_sender_after_both_sides_agreed() -> None:
    async with a_group() as group:
        (proposed,) = await group.say("Ann", f"/forward tea, 绿茶 to {WORK.key}", **ADMIN)
        code = re.search(r"\b[2-9A-Z]{8}\b", proposed)
        assert code is not None
        assert await said_in(group, WORK, "Ben", "Tea is ready") == []
        unknown = EN.say("forwards.unknown", code=code[0])
        assert await group.say("Ann", f"/forward accept {code[0]}", **ADMIN) == [unknown], "the other chat accepts"
        await group.say("Yan", f"/forward accept {code[0]}", chat=WORK)
        assert await said_in(group, WORK, "Ben", "Tea is ready") == [], "Yan is no admin"
        here, there = await group.say("Zoe", f"/forward accept {code[0]}", chat=WORK, **ADMIN)
        assert FAMILY.key in here
        assert WORK.key in there
        assert await said_in(group, WORK, "Ben", "Tea is ready", chat_title="Home") == [
            f"{FORWARDED} Home – Ben: Tea is ready"
        ]
        assert await said_in(group, WORK, "Ben", "来点绿茶吧") == [f"{FORWARDED} {FAMILY.key} – Ben: 来点绿茶吧"]
        assert await said_in(group, WORK, "Ben", "teapot") == []
        assert await group.say("Zoe", "tea", chat=WORK) == [], "a rule has one direction"


async def test_a_code_expires() -> None:
    async with a_group() as group:
        (proposed,) = await group.say("Ann", f"/forward tea to {WORK.key}", **ADMIN)
        code = re.search(r"\b[2-9A-Z]{8}\b", proposed)
        assert code is not None
        await group.clock.advance(timedelta(hours=25).total_seconds())
        unknown = EN.say("forwards.unknown", code=code[0])
        assert await group.say("Zoe", f"/forward accept {code[0]}", chat=WORK, **ADMIN) == [unknown]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("> tea\nyes", {}),
        ("tea", {"is_forwarded": True}),
        ("tea", {"is_bot": True}),
        ("tea", {"private": True}),
        ("tea", {"kind": Kind.EDIT}),
        ("/roll tea", {}),
        (f"{FORWARDED} tea", {}),
    ],
)
async def test_quoted_forwarded_private_and_bots_words_stay_where_they_are(text: str, facts: dict[str, Any]) -> None:
    async with a_group() as group:
        await linked(group, "tea")
        assert await said_in(group, WORK, "Ben", text, **facts) == []


@pytest.mark.parametrize("by", [FAMILY, WORK])
async def test_each_side_sees_and_removes_a_rule(by: ChatRef, tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        code = await linked(group, "tea")
    async with a_group(home=tmp_path) as group:
        (listed,) = await group.say("Ann", "/forward", chat=by, **ADMIN)
        assert code in listed
        assert await said_in(group, WORK, "Ben", "tea") != []
        told = await group.say("Ann", f"/forward remove {code}", chat=by, **ADMIN)
        assert len(told) == 2, "both chats are notified"
        assert await said_in(group, WORK, "Ben", "tea") == []


async def test_nothing_is_forwarded_to_a_chat_that_is_no_longer_served(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await linked(group, "tea")
    async with a_group(home=tmp_path, settings={"chats": {"allow": [FAMILY.key]}}) as group:
        assert await said_in(group, WORK, "Ben", "tea") == []


@pytest.mark.parametrize("seed", range(5))
async def test_no_ring_of_chats_sends_a_message_in_a_circle(seed: int) -> None:
    """Each chat hears what the bot says in the others as the message of an unmarked bot, at worst."""
    rng, words = Random(seed), ["tea", "milk", "honey"]
    ring = [ChatRef("test", "bot", f"ring-{number}") for number in range(4)]
    async with a_group() as group:
        rules = [(source, target) for source in ring for target in ring if source != target and rng.random() < 0.7]
        rules += [(one, ring[(place + 1) % len(ring)]) for place, one in enumerate(ring)]
        for source, target in dict.fromkeys(rules):
            await linked(group, ", ".join(rng.sample(words, rng.randint(1, 3))), source, target)
        before = len(group.platform.sent)
        await group.say("Ben", "tea, milk and honey", chat=ring[0])
        heard = before
        while heard < len(group.platform.sent):
            one = group.platform.sent[heard]
            await group.say("Echo", one.text, chat=one.chat)
            heard += 1
        targets = [one.chat for one in group.platform.sent[before:]]
        assert targets
        assert len(targets) == len(set(targets)), "each chat hears it once"
        assert ring[0] not in targets
