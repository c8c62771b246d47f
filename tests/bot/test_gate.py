"""The gate: decisions whether a message is for the bot, each with a reason code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.platforms.base import Limits
from bot.testing import FAMILY, TestPlatform, a_group
from config.texts import Texts
from function_calls.context import Attachment, Kind, Quoted
from function_calls.spec import Choice
from services.llm.offline.offline import OfflineModel
from services.refs import ChatRef
from tests.fakes.functions import Recorder
from tests.fakes.kept import heard, last_reason, reasons

PHOTO = (Attachment("https://example.org/cat.png", "image/png"),)
QUIET = ChatRef("test", "bot", "quiet")
FOREIGN = ChatRef("other", "bot", "strangers")
SETTINGS = {"chats": {"allow": ["test:*"], "settings": {QUIET.key: {"enabled": False}}}}


@pytest.mark.requirement("D10")
@pytest.mark.parametrize(
    ("text", "facts", "reason", "answers"),
    [
        ("hello everybody", {}, ("not_addressed", ""), 0),
        ("nota bene", {}, ("not_addressed", ""), 0),
        ("@Rollcall hello", {}, ("chat", ""), 1),
        ("Rollcall, hello", {}, ("chat", ""), 1),
        ("hello", {"reply_to_bot": True}, ("chat", ""), 1),
        ("hello", {"is_group": False}, ("chat", ""), 1),
        ("hello", {"reply_to": Quoted("m0", "Bob", "hi")}, ("not_addressed", ""), 0),
        ("/note milk", {}, ("command", "note"), 1),
        ("note", {}, ("not_addressed", ""), 0),
        ("@Rollcall note", {}, ("command", "note"), 1),
        ("/nosuch", {}, ("unknown_command", "nosuch"), 0),
        ("@Rollcall /nosuch", {}, ("unknown_command", "nosuch"), 1),
        ("/etc/hosts", {}, ("not_addressed", ""), 0),
        ("milk", {"kind": Kind.CHOICE}, ("not_addressed", "choice"), 0),
        ("note", {"kind": Kind.CHOICE}, ("command", "note"), 1),
        ("/note milk", {"kind": Kind.TIMER}, ("command", "note"), 1),
        ("   ", {}, ("empty", ""), 0),
        ("@Rollcall", {}, ("empty", ""), 0),
        ("@Rollcall hello", {"is_bot": True}, ("from_bot", ""), 0),
        ("/note milk", {"is_bot": True}, ("from_bot", ""), 0),
        ("@Rollcall hello", {"backfilled": True}, ("backfilled", ""), 0),
        ("", {"kind": Kind.JOIN}, ("not_a_message", "join"), 0),
        ("", {"kind": Kind.LEAVE}, ("not_a_message", "leave"), 0),
        ("👍", {"kind": Kind.REACTION}, ("not_a_message", "reaction"), 0),
        ("", {"kind": Kind.REACTION}, ("not_a_message", "reaction"), 0),
        ("@Rollcall", {"attachments": PHOTO}, ("chat", ""), 1),
        ("", {"attachments": PHOTO}, ("not_addressed", ""), 0),
        ("@Rollcall hello", {"chat": QUIET}, ("chat_off", f"chats.settings.{QUIET.key}.enabled"), 0),
        ("@Rollcall hello", {"chat": FOREIGN}, ("chat_not_allowed", "chats.allow"), 0),
    ],
)
async def test_every_message_ends_with_a_reason(
    text: str, facts: dict[str, Any], reason: tuple[str, str], answers: int
) -> None:
    note = Recorder("note", {"text": {"type": "string", "required": False}}, commands=["note"])
    async with a_group([note.spec], settings=SETTINGS) as group:
        group.model.says("Hello.")
        assert len(await group.say("Ann", text, **facts)) == answers
        assert await last_reason(group) == reason


ALONE = Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=100_000, choices=True, only_bot=True)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/helo", "/help"),
        ("/hepl", "/help"),
        ("/hlep", "/help"),
        ("/hhelp", "/help"),
        ("/ehlp", "/help"),
        ("/HELO", "/help"),
        ("/helpp poll", "/help poll"),
        ("/todd add milk", "/todo add milk"),
    ],
)
async def test_where_no_other_bot_is_a_mistyped_command_is_answered_with_a_button(text: str, command: str) -> None:
    async with a_group(platform=TestPlatform(ALONE)) as group:
        assert await group.say("Ann", text) == [f"Did you mean {command}?"]
        (choice,) = group.platform.sent[-1].choices
        assert choice == Choice(command, command)
        assert await last_reason(group) == ("unknown_command", text[1:].split()[0])
        assert await group.say("Ann", choice.value, kind=Kind.CHOICE)
        assert await last_reason(group) != ("unknown_command", text[1:].split()[0])


@pytest.mark.parametrize("text", ["/xyzzy", "/wr", "/heelpp", "/hel/p", "/setings", "/helo"])
async def test_a_command_of_another_bot_or_of_admins_alone_is_answered_nowhere_in_a_group(text: str) -> None:
    async with a_group(platform=TestPlatform() if text == "/helo" else TestPlatform(ALONE)) as group:
        assert await group.say("Ann", text) == []
        assert await last_reason(group) in [("unknown_command", text[1:]), ("not_addressed", "")]
        assert group.model.requests == []


async def test_a_network_without_buttons_gets_the_suggestion_as_text_alone() -> None:
    async with a_group(platform=TestPlatform(replace(ALONE, choices=False))) as group:
        assert await group.say("Ann", "/helo") == ["Did you mean /help?"]


@pytest.mark.parametrize("facts", [{"is_group": False}, {}])
async def test_an_unknown_command_to_the_bot_is_always_answered(facts: dict[str, Any]) -> None:
    async with a_group() as group:
        name = "" if facts else "@Rollcall "
        assert await group.say("Ann", f"{name}/xyzzy", **facts) == ["I don't know the command /xyzzy."]
        assert await group.say("Ann", f"{name}/wethr Oslo", **facts) == [
            "I don't know the command /wethr. Did you mean /weather Oslo?"
        ]
        assert [one.value for one in group.platform.sent[-1].choices] == ["/weather Oslo"]


async def test_a_chat_that_is_not_allowed_leaves_nothing_but_the_fact() -> None:
    async with a_group(settings=SETTINGS) as group:
        for kind in Kind:
            await group.say("Ann", "@Rollcall what a secret", chat=FOREIGN, kind=kind, id="m1")
        assert set(await reasons(group)) == {("chat_not_allowed", "chats.allow")}
        assert await heard(group) == []
        assert group.daemon.chats.of(FOREIGN).allowed_by is None


async def test_nothing_at_all_is_allowed_unless_the_settings_say_so() -> None:
    async with a_group(settings={"chats": {}}) as group:
        assert await group.say("Ann", "@Rollcall hello") == []
        assert await last_reason(group) == ("chat_not_allowed", "chats.allow")


async def test_two_bots_do_not_talk_with_each_other() -> None:
    async with a_group() as group:
        for _ in range(3):
            assert await group.say("Otherbot", "@Rollcall hello", is_bot=True) == []
        assert group.model.requests == []


async def test_a_member_who_is_called_like_the_owner_is_not_the_owner() -> None:
    lock = Recorder("lock", commands=["lock"], roles="owner")
    async with a_group(
        [lock.spec], settings={"chats": {"allow": ["*"]}, "members": {"test:bot:ann": "owner"}}
    ) as group:
        message = group.message("Ann", "/lock")
        assert await group.say("ANN", "/lock") == ["done"]
        assert await group.say("Аnn", "/lock") == ["Only owners and above can use “/lock”."]
        assert message.chat == FAMILY
        assert len(lock.runs) == 1


async def test_a_button_that_asked_somebody_else_is_no_message() -> None:
    wipe = Recorder("wipe", commands=["wipe"], confirm="Really wipe?", effect="once")
    async with a_group([wipe.spec]) as group:
        await group.say("Ann", "/wipe")
        assert await group.say("Bob", "yes", kind=Kind.CHOICE) == []
        assert await last_reason(group) == ("not_addressed", "choice")
        assert await group.say("Ann", "yes", kind=Kind.CHOICE) == ["done"]
        assert group.model.requests == []


async def test_what_is_due_and_what_is_said_to_a_function_answer_no_question() -> None:
    wipe = Recorder("wipe", commands=["wipe"], confirm="Really wipe?", effect="once")
    act = Recorder("act", activation="on_request")
    async with a_group([wipe.spec, act.spec]) as group:
        await group.say("Ann", "/wipe")
        await group.say("Ann", "yes", kind=Kind.TIMER)
        group.model.says("Fine.")
        await group.say("Ann", "@act yes")
        assert wipe.runs == []
        assert await group.say("Ann", "yes") == ["done"]


@pytest.mark.parametrize(
    "text",
    [
        "weather forecasts are always wrong",
        "weather reports bore me",
        "reminders annoy me",
        "reminder emails are the worst",
        "search me",
        "help is on the way",
        "help arrived too late",
        "help yourself",
        "news is boring",
        "time to go home",
        "date night was lovely",
        "dice games bore me",
        "roll with it",
        "roll over Beethoven",
        "calc class was hard",
        "todo lists stress me out",
        "summary judgements are unfair",
        "stop talking about him",
        "天气预报从来不准",
        "提醒太多了很烦",
        "新闻都是假的",
        "投票率太低了",
        "时间过得真快",
    ],
)
async def test_speech_that_begins_with_a_command_word_runs_nothing(text: str) -> None:
    async with a_group(model=OfflineModel(Texts())) as group:
        (answer,) = await group.say("Ann", text, is_group=False)
        assert await last_reason(group) == ("chat", "")
        assert answer.startswith(("I work without", "Did you mean", "I have no")), answer
