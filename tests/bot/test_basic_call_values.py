"""Arguments and results of functions called by scripts, and the questions in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.testing import call
from config.texts import Texts
from function_calls.context import Attachment
from function_calls.spec import (
    START_FUNCTION,
    ArgumentQuestion,
    Choice,
    ConfirmQuestion,
    FunctionResult,
    Message,
    Question,
)
from tests.bot.basic_group import a_group_with
from tests.bot.test_reload import reload
from tests.fakes.functions import CITY, Recorder

EN = Texts().of("en")
DAYS = {"days": {"type": "integer", "description": "How many"}}
WHERE = {"where": {"type": "object", "description": "The place", "required": True, "additionalProperties": True}}
YES_OR_NO = (Choice("Yes", "yes"), Choice("No", "no"))


def stopped(code: str, line: int, detail: str) -> str:
    return f"{EN.say(f'basic.stopped.{code}', name='quiz', line=line)} {detail}".strip()


@pytest.mark.parametrize(
    ("called", "given"),
    [
        ('CALL "heaven", "Oslo 2"', {"city": "Oslo", "days": 2}),
        ('CALL "sky", "Oslo 2"', {"city": "Oslo 2"}),
        ('CALL "heaven", "Oslo 2", 3', {"city": "Oslo 2", "days": 3}),
        ('CALL "heaven", {"city": "Oslo 2", "days": 3}', {"city": "Oslo 2", "days": 3}),
        ('CALL "heaven" WITH city = "Oslo 2"', {"city": "Oslo 2"}),
    ],
)
async def test_a_single_text_behind_a_command_word_is_read_as_people_type_it_and_nothing_else_is(
    called: str, given: dict[str, Any], tmp_path: Path
) -> None:
    sky = Recorder("sky", {**CITY, **DAYS}, commands=["heaven"])
    async with a_group_with(tmp_path, [sky.spec], quiz=called) as group:
        await group.say("Ann", "/quiz")
    assert sky.runs == [given]


async def test_a_number_behind_a_command_word_is_the_first_argument(tmp_path: Path) -> None:
    sky = Recorder("sky", DAYS, commands=["heaven"])
    async with a_group_with(tmp_path, [sky.spec], quiz='CALL "heaven", 7') as group:
        await group.say("Ann", "/quiz")
    assert sky.runs == [{"days": 7}]


async def test_a_map_is_the_value_of_a_first_parameter_that_is_one_and_else_holds_all_arguments(tmp_path: Path) -> None:
    go, sky = Recorder("go", WHERE), Recorder("sky", CITY)
    script = 'CALL "go", {"city": "Oslo"}\nCALL "sky", {"CITY": "Rome"}\nplace = {"city": "Bonn"}'
    script += '\nCALL "go" WITH WHERE = place\nCALL "sky" WITH City = "Bern"'
    async with a_group_with(tmp_path, [go.spec, sky.spec], quiz=script) as group:
        await group.say("Ann", "/quiz")
    assert (go.runs, sky.runs) == (
        [{"where": {"city": "Oslo"}}, {"where": {"city": "Bonn"}}],
        [{"city": "Rome"}, {"city": "Bern"}],
    )


@pytest.mark.parametrize(
    ("data", "words", "value"),
    [
        ({"sun": 9}, "", {"sun": 9}),
        ({"sun": 9}, "Sunny.", {"sun": 9, "text": "Sunny."}),
        ({"text": "its own"}, "Sunny.", {"text": "its own"}),
    ],
)
async def test_words_stand_beside_facts_as_their_text_unless_they_have_one(
    data: Any, words: str, value: Any, tmp_path: Path
) -> None:
    sky = Recorder("sky", gives=FunctionResult(messages=(Message(words),) if words else (), data=data))
    keep = Recorder("keep", WHERE)
    script = 'x = CALL "sky"\nCALL "keep" WITH where = x'
    async with a_group_with(tmp_path, [sky.spec, keep.spec], quiz=script) as group:
        await group.say("Ann", "/quiz")
    assert keep.runs == [{"where": value}]


async def test_a_file_that_a_function_gives_goes_to_the_chat(tmp_path: Path) -> None:
    picture = Attachment("sky.png", "image/png", "https://example.org/sky.png")
    sky = Recorder("sky", gives=FunctionResult(messages=(Message("Look.", attachments=(picture,)),), data=1))
    async with a_group_with(tmp_path, [sky.spec], quiz='x = CALL "sky"\nTALK "seen " + x') as group:
        assert await group.say("Ann", "/quiz") == ["Look.\nsky.png: https://example.org/sky.png", "seen 1"]


@pytest.mark.parametrize("handled", [True, False])
async def test_an_unknown_outcome_of_an_effect_is_reported_even_if_the_script_handles_the_error(
    handled: bool, tmp_path: Path
) -> None:
    pay = Recorder("pay", effect="once", gives=RuntimeError("gone"))
    unknown = EN.say("failures.unknown_outcome", name="pay")
    script = 'ON ERROR RESUME NEXT\nCALL "pay"\nTALK "All is well"' if handled else 'TALK "All is well"\nCALL "pay"'
    settings = {"source": {"may_call": ["*"]}}
    async with a_group_with(tmp_path, [pay.spec], settings=settings, quiz=script) as group:
        said = await group.say("Ann", "/quiz")
    assert said.count(unknown) == 1
    assert "All is well" in said


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (ArgumentQuestion("Which city?", "stubborn", {}, field="city"), "Oslo"),
        (ConfirmQuestion("Really?", "stubborn", {"city": "Oslo"}, choices=YES_OR_NO), "yes"),
    ],
)
async def test_a_function_that_asks_for_what_it_was_given_stops_the_script(
    question: Question, answer: str, tmp_path: Path
) -> None:
    city = {"city": {"type": "string", "description": "The place"}}
    stubborn = Recorder("stubborn", city, gives=FunctionResult(question=question))
    async with a_group_with(tmp_path, [stubborn.spec], quiz='CALL "stubborn"') as group:
        assert await group.say("Ann", "/quiz") == [question.text]
        told = EN.say("basic.call.needs_yes", name="stubborn")
        assert await group.say("Ann", answer) == [stopped("not_allowed", 2, told)]


@pytest.mark.requirement("C18")
@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_that_has_come_to_need_a_yes_stops_the_script_that_called_it_and_ends(
    fails: bool, tmp_path: Path
) -> None:
    ends: list[str] = []

    async def does(context: Any, arguments: Any, call: Any) -> FunctionResult:
        if call.resumed is None:
            return FunctionResult.ask("Your name?", resume={})
        ends.append(call.resumed.kind)
        if fails:
            raise RuntimeError("gone")
        return FunctionResult.say("Nobody is to hear this.")

    fill = Recorder("fill", does=does, effect="once", touches="stays_here")
    async with a_group_with(tmp_path, [fill.spec], quiz='CALL "fill"') as group:
        assert await group.say("Ann", "/quiz") == ["Your name?"]
        assert await reload(group, functions={"fill": {"approval": "admin"}})
        told = EN.say("basic.call.needs_yes", name="fill")
        unknown = [EN.say("failures.unknown_outcome", name="fill")] if fails else []
        assert await group.say("Ann", "Ann") == [*unknown, stopped("not_allowed", 2, told)]
    assert ends == ["expired"]


async def test_what_asks_and_is_switched_off_while_it_does_so_stops_the_script(tmp_path: Path) -> None:
    async def does(context: Any, arguments: Any, call: Any) -> FunctionResult:
        if call.resumed is None:
            assert await reload(group, functions={"fill": {"enabled": False}})
        return FunctionResult.ask("Your name?")

    fill = Recorder("fill", does=does)
    async with a_group_with(tmp_path, [fill.spec], quiz='CALL "fill"') as group:
        told = EN.say("basic.call.asks_itself", name="fill")
        assert await group.say("Ann", "/quiz") == [stopped("not_allowed", 2, told)]


async def test_no_script_calls_the_beginning_of_chats(tmp_path: Path) -> None:
    begin = Recorder("greeting", metadata={START_FUNCTION: True})
    async with a_group_with(tmp_path, [begin.spec], quiz='CALL "greeting"') as group:
        told = stopped("no_such_thing", 2, EN.say("basic.call.unknown", name="greeting"))
        assert await group.say("Ann", "/quiz") == ["done", told]
        assert len(begin.runs) == 1


@pytest.mark.requirement("D37")
@pytest.mark.parametrize("outside", [True, False])
async def test_what_a_script_keeps_after_it_was_given_words_of_others_is_theirs(outside: bool, tmp_path: Path) -> None:
    page = Recorder("page", gives=FunctionResult(data="a page", outside=outside))
    hello = Recorder("hello")
    scripts = {
        "first": 'CALL "page"\nCALL "hello"\nSET USER MEMORY "k", "Oslo"\nTALK "kept"',
        "second": 'RETURN GET USER MEMORY("k")',
    }
    settings = {"source": {"may_call": ["*"]}}
    async with a_group_with(tmp_path, [page.spec, hello.spec], settings=settings, **scripts) as group:
        assert await group.say("Ann", "/first") == ["kept"]
        group.model.says(call("second"), "There.")
        await group.say("Ann", "@Rollcall what was it?")
        await group.say("Ann", "yes")
        told = group.model.requests[-1].messages[-1].content
    assert "Oslo" in told
    assert told.startswith("<data ") is outside
