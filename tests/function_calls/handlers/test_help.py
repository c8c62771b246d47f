"""Help: generated from the specs, with only the functions that this member can call here."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bot.testing import a_group
from config.texts import Texts
from function_calls.handlers import help as help_handlers
from function_calls.loading.python_functions import specs_of
from services.refs import ChatRef, ErrorCode, ReasonCode, Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing, said

WEATHER = Recorder(
    "weather",
    {
        "city": {"type": "string", "description": "The place", "required": True},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
    },
    description="Tell the weather of a place. It may be any town.",
    commands=["weather", "天气", "weather now"],
    examples=["weather in {city}", "is it cold in {city}", "rain in {city}?", "a fourth"],
)


DONE = re.compile(
    r"⏰ OK, reminder 3|⏰ Reminder 2 is now set|^#2 .*(mum and dad|给爸妈打电话)$|💤 Reminder 2|🗑 Reminder"
    r"|I'll run /|Schedules in this chat|is paused|is running again|is removed|Which reminder"
)


def a_chat(**options: Any) -> Routing:
    """A chat with help, the weather, a function for admins and one for private chats."""
    ban = Recorder("ban", commands=["ban"], roles="admin")
    diary = Recorder("diary", commands=["diary"], scope="private")
    return Routing(*specs_of(help_handlers, {}), WEATHER, ban, diary, **options)


@pytest.mark.requirement("D56", "B22", "D40")
async def test_help_lists_what_this_member_may_call_here() -> None:
    lines = said(await a_chat().hears("/help"))[0].splitlines()
    assert lines[0] == "I'm Rollcall. You can use:"
    assert lines[2] == "• /weather <city> [days] — Tell the weather of a place"
    assert [line.split()[1] for line in lines[1:-1]] == ["/help", "/weather"]
    assert lines[-1] == "To learn more about a command, send /help and its name. Or just tell me what you want."


async def test_functions_of_one_subject_share_a_line() -> None:
    todo = [Recorder(f"todo_{name}", commands=[f"todo {name}"], tags="todo") for name in ("add", "done")]
    own = [Recorder(name, commands=[name], tags="gardening") for name in ("sow", "reap")]
    lines = said(await Routing(*specs_of(help_handlers, {}), *todo, *own, WEATHER).hears("/help"))[0].splitlines()
    assert lines[2:4] == ["• To-do list: /todo add, /todo done", "• Gardening: /sow, /reap"]
    assert lines[4].startswith("• /weather <city>")


async def test_others_see_other_functions() -> None:
    admin = a_message("/help", a_member("Olga", Role.ADMIN))
    assert "/ban" in said(await a_chat().hears(admin))[0]
    assert "/diary" in said(await a_chat().hears(a_message("/help", is_group=False)))[0]


@pytest.mark.requirement("D56", "B22", "B8")
@pytest.mark.parametrize("topic", ["weather", "/weather", "WEATHER", "天气", "weather now"])
async def test_one_function_is_explained_with_all_that_is_needed_to_call_it(topic: str) -> None:
    assert said(await a_chat().hears(f'/help "{topic}"')) == [
        "/weather <city> [days] — Tell the weather of a place. It may be any town.\n"
        "  city: The place; some text\n"
        "  days (optional): a whole number from 1 to 7\n"
        "Also: /天气, /weather now\n"
        "Or just say: weather in {city}; is it cold in {city}; rain in {city}?"
    ]


@pytest.mark.parametrize("topic", ["ban", "nothing"])
async def test_what_may_not_be_called_here_is_not_explained(topic: str) -> None:
    outcome = await a_chat().hears(f"/help {topic}")
    assert said(outcome) == [f"I have no help on “{topic}”. /help lists everything."]
    assert (outcome.error, outcome.reason) == (ErrorCode.NOT_FOUND, ReasonCode.USAGE)


async def test_help_speaks_the_language_of_the_chat() -> None:
    zh = Texts().of("zh")
    lines = said(await a_chat(texts=zh).hears("/帮助"))[0].splitlines()
    assert lines[0] == zh.say("help.head", name="Rollcall")


async def test_without_parameters_help_says_just_what_it_does() -> None:
    routing = Routing(*specs_of(help_handlers, {}), Recorder("plain"))
    assert said(await routing.hears("/help plain")) == ["plain — Does plain."]


async def test_what_only_the_clock_or_other_functions_call_is_not_in_the_list() -> None:
    async with a_group() as group:
        [text] = await group.say("Ann", "/help")
        assert "• Reminders: " in text
        assert "others" not in text
        assert "whose time has come" not in text
        assert "I have no help on" in (await group.say("Ann", "/help reminder_for_others"))[0]


async def test_what_has_no_command_is_named_as_help_knows_it_and_shortened_to_a_few() -> None:
    tools = [Recorder(f"mcp__tiny__tool{number}", {"word": {"type": "string"}}) for number in range(9)]
    model_only = Recorder("human_input", offered_to=("model",))
    routing = Routing(*specs_of(help_handlers, {}), WEATHER, *tools, model_only)
    text = said(await routing.hears("/help"))[0]
    assert "human" not in text
    [line] = [line for line in text.splitlines() if "mcp" in line]
    names = [f"mcp__tiny__tool{number}" for number in range(6)]
    assert line == f"Just ask me for: {', '.join(names)} … and 3 more"
    for topic in (names[0], "mcp tiny tool0"):
        assert said(await routing.hears(f"/help {topic}"))[0].startswith(f"{names[0]} — ")
    few = Routing(*specs_of(help_handlers, {}), tools[0])
    assert "Just ask me for: mcp__tiny__tool0" in said(await few.hears("/help"))[0].splitlines()


def typed_lines() -> list[str]:
    """Command lines of help, without their descriptions."""
    found: list[str] = []
    for language in ("en", "zh"):
        texts = Texts().of(language)
        for key in texts.templates:
            if key.startswith("help.typed."):
                lines = re.split(r"\n|[,，] ?(?=/)", texts.say(key))
                found += [re.sub(r"\s*[(（].*", "", line) for line in lines]
    return found


@pytest.mark.parametrize("line", typed_lines())
async def test_what_help_shows_can_be_typed(line: str) -> None:
    async with a_group() as group:
        for name in ("Ben", "小王"):
            await group.say(name, "hello")
        for text in ("dentist", "牙医"):
            await group.say("Ann", f"/remind in 3 hours {text}", role=Role.ADMIN)
        for _ in range(2):
            await group.say("Ann", "/schedule daily 07:00 todo", role=Role.ADMIN)
        await group.say("Ann", "/schedule pause 2", role=Role.ADMIN)
        (said,) = await group.say("Ann", line, role=Role.ADMIN)
        assert DONE.search(said), said


async def test_a_function_of_groups_is_explained_in_private_with_a_note() -> None:
    async with a_group() as chat:
        there = (await chat.say("Ann", "/help poll"))[0]
        here = (await chat.say("Ann", "/help poll", is_group=False, chat=ChatRef("test", "bot", "ann")))[0]
        assert here == f"{there}\n“/poll” works only in groups."
        assert await chat.say("Ann", "/help nonsense") == ["I have no help on “nonsense”. /help lists everything."]


async def test_a_function_of_private_chats_is_explained_in_a_group_with_a_note_and_one_of_admins_is_not() -> None:
    (text,) = said(await a_chat().hears("/help diary"))
    assert text.endswith("“/diary” works only in a private chat.")
    assert said(await a_chat().hears("/help ban")) == ["I have no help on “ban”. /help lists everything."]
