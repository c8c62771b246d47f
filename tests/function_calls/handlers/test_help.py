"""Help: generated from the specs, with only the functions that this member can call here."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select

from bot.testing import a_group
from config.texts import Texts
from function_calls.handlers.chat import help as help_handlers
from function_calls.loading.python_functions import specs_of
from services.llm.offline.offline import OfflineModel
from services.refs import ChatRef, ErrorCode, ReasonCode, Role
from services.store.statements import Statement
from services.store.turns.ledger import LEDGER
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing, said

EN = Texts().of("en")
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


RUNS = Statement("tests.runs", select(LEDGER.c.function))
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
async def test_help_lists_what_members_want_with_examples() -> None:
    async with a_group() as group:
        [text] = await group.say("Ann", "/help")
        [sent] = group.platform.sent
    lines = text.splitlines()
    assert lines[0] == EN.say("help.head", name="Rollcall")
    titles = ["Remind", "Plan", "Find out", "Decide", "Have fun", "This chat"]
    assert [line.removeprefix("• ").partition(":")[0] for line in lines[1:-1]] == titles
    assert lines[1] == "• Remind: “remind me tomorrow at 5pm to call mum” · “show my reminders”"
    assert len(lines) <= 10
    assert [(one.label, one.value) for one in sent.choices] == [(title, f"/help {title.lower()}") for title in titles]
    assert all(one.stays for one in sent.choices)


@pytest.mark.requirement("D56", "B22")
@pytest.mark.parametrize(
    ("language", "asked", "head", "listed"),
    [
        ("en", "/help plan", "Plan:", "• /todo: Show this chat's to-do list"),
        ("en", "/help Find Out", "Find out:", "• /time: The time in a city or country"),
        ("zh", "/帮助 安排", "安排：", "• /待办：查看这个聊天的待办清单"),
        ("zh", "/help have fun", "娱乐：", "• /骰子：掷骰子并算出总点数"),
    ],
)
async def test_a_heading_lists_its_commands_in_the_language_of_the_chat(
    language: str, asked: str, head: str, listed: str
) -> None:
    async with a_group(settings={"language": language}) as group:
        lines = (await group.say("Ann", asked))[0].splitlines()
    assert lines[0] == head
    assert listed in lines


async def test_a_press_on_a_heading_shows_it() -> None:
    async with a_group() as group:
        await group.say("Ann", "/help")
        press = group.platform.sent[-1].choices[0]
        assert (await group.say("Ben", press.value))[0].startswith(f"{press.label}:\n")


async def test_functions_of_authors_are_under_the_heading_that_they_name_or_under_more() -> None:
    sow = Recorder("sow", commands=["sow"], tags=["gardening", "plan"])
    reap = Recorder("reap", commands=["reap"], tags="gardening")
    routing = Routing(*specs_of(help_handlers, {}), sow, reap, WEATHER)
    lines = said(await routing.hears("/help"))[0].splitlines()
    assert lines[1:-1] == ["• Plan: /sow", "• This chat: /help", "• More: /reap · /weather"]
    assert "• /weather: Tell the weather of a place" in said(await routing.hears("/help more"))[0].splitlines()


async def test_others_see_other_functions() -> None:
    admin = a_message("/help more", a_member("Olga", Role.ADMIN))
    assert "/ban" in said(await a_chat().hears(admin))[0]
    assert "/ban" not in said(await a_chat().hears("/help more"))[0]
    assert "/diary" in said(await a_chat().hears(a_message("/help more", is_group=False)))[0]


async def test_an_example_under_a_heading_works_without_a_language_model() -> None:
    for language in ("en", "zh"):
        templates = Texts().of(language).templates
        examples = {key.split(".")[-1]: text for key, text in templates.items() if key.startswith("help.examples.")}
        for function in set(examples) - {"weather", "news", "search"}:
            async with a_group(model=OfflineModel(Texts()), settings={"language": language}) as group:
                line = examples[function]
                await group.say("Ann", line if line.startswith("/") else f"@Rollcall {line}", role=Role.ADMIN)
                ran = [row["function"] for row in await group.daemon.store.read(RUNS.query())]
            assert set(ran) == {function}, line


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_each_command_and_parameter_is_described_in_the_language_of_the_chat(language: str) -> None:
    texts = Texts().of(language)
    async with a_group() as group:
        specs = group.daemon.registry.of("default").specs
    untyped = [spec for spec in specs if spec.command.words and not texts.has(f"help.typed.{spec.name}")]
    lacking = [f"functions.about.{spec.name}" for spec in specs if not texts.has(f"functions.about.{spec.name}")]
    wanted = [f"functions.parameters.{spec.name}.{name}" for spec in untyped for name in spec.parameters["properties"]]
    assert lacking + [key for key in wanted if not texts.has(key)] == []
    known = {f"{spec.name}.{name}" for spec in specs for name in spec.parameters["properties"]}
    described = {key.removeprefix("functions.parameters.") for key in texts.templates if ".parameters." in key}
    assert described - known == set()


async def test_what_is_not_set_up_is_neither_listed_nor_suggested() -> None:
    async with a_group(model=OfflineModel(Texts())) as group:
        listed = (await group.say("Ann", "/help find out"))[0]
        assert "/weather" in listed
        assert "/search" not in listed
        assert "/news" not in listed
        assert "/begin again" not in (await group.say("Ann", "/help this chat", role=Role.ADMIN))[0]
        assert (await group.say("Ann", "/help search"))[0].endswith(EN.say("help.not_set_up"))
        assert await group.say("Ann", "/headlinez") == []
        assert "news" not in (await group.say("Ann", "@Rollcall was there some news at that paper perhaps"))[0]
    feeds = [{"name": "Paper", "url": "https://paper.example/feed"}]
    async with a_group(settings={"news": {"feeds": feeds}}) as group:
        assert "/news" in (await group.say("Ann", "/help find out"))[0]
        assert EN.say("help.not_set_up") not in (await group.say("Ann", "/help news"))[0]


@pytest.mark.requirement("D56", "B22", "B8")
@pytest.mark.parametrize("topic", ["weather", "/weather", "WEATHER", "天气", "weather now"])
async def test_one_function_is_explained_with_all_that_is_needed_to_call_it(topic: str) -> None:
    assert said(await a_chat().hears(f'/help "{topic}"')) == [
        "/weather <city> [days]: Tell the weather of a place. It may be any town.\n"
        "  city: The place\n"
        "  days (optional): a whole number from 1 to 7\n"
        "Also: /天气, /weather now\n"
        "Or just say: a fourth; weather in …; is it cold in …"
    ]


async def test_parameters_are_explained_without_words_of_schemas() -> None:
    async with a_group() as group:
        assert (await group.say("Ann", "/help convert_time"))[0].splitlines()[:3] == [
            "/convert_time <time> [from_place] [to_place]: Convert a time from one place to another",
            "  time: a time, such as 15:30, 3 pm or tomorrow 9am",
            "  from_place (optional): where it is that time; here if left out",
        ]
    day = Recorder("day", {"on": {"type": "string", "format": "date"}}, commands=["day"])
    routing = Routing(*specs_of(help_handlers, {}), day)
    assert "  on (optional): a date, such as 2026-12-24" in said(await routing.hears("/help day"))[0].splitlines()


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
    assert said(await routing.hears("/help plain")) == ["plain: Does plain."]


async def test_what_only_the_clock_or_other_functions_call_is_not_in_the_list() -> None:
    async with a_group() as group:
        [text] = await group.say("Ann", "/help remind")
        assert "• /remind: " in text
        assert "others or for the group" not in text.replace("for others or for the group, once", "")
        assert "when it is due" not in text
        assert "I have no help on" in (await group.say("Ann", "/help reminder_for_others"))[0]


async def test_what_has_no_command_is_named_as_help_knows_it_and_shortened_to_a_few() -> None:
    tools = [Recorder(f"mcp__tiny__tool{number}", {"word": {"type": "string"}}) for number in range(30)]
    model_only = Recorder("human_input", offered_to=("model",))
    routing = Routing(*specs_of(help_handlers, {}), *tools, model_only)
    text = said(await routing.hears("/help"))[0]
    assert "• More: mcp tiny tool0 · mcp tiny tool1 · mcp tiny tool2" in text.splitlines()
    lines = said(await routing.hears("/help more"))[0].splitlines()
    assert lines[1] == "• mcp tiny tool0: Does mcp__tiny__tool0"
    assert lines[-2] == "… and 5 more"
    assert not any("human" in line for line in lines)
    for topic in ("mcp__tiny__tool0", "mcp tiny tool0"):
        assert said(await routing.hears(f"/help {topic}"))[0].startswith("mcp__tiny__tool0: ")


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
