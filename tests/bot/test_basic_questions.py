"""Scripts that ask: the run resumes with the answer, also after a restart, and is informed if there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from bot.direct_calls import Caller
from bot.testing import FAMILY, Group, call
from config.texts import Texts
from function_calls.basic.keyword_modules.talk import MOST_LOGGED
from function_calls.call import Path as Path_
from function_calls.context import Kind
from services.refs import MemberRef, Role
from services.web.http import WebClient
from tests.bot.basic_group import a_group_with, write_scripts
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import last_reason
from tests.fakes.web_server import Page, WebServer

ANN = MemberRef("test", "bot", "ann")
EN, ZH = Texts().of("en"), Texts().of("zh")
REGISTER = """\
TALK "Welcome!"
TALK "Your name?"
HEAR name
n = 0
WHILE n < 2
    TALK "Email?"
    HEAR mail AS EMAIL
    n = n + 1
WEND
TALK name + " has " + mail
RETURN mail
"""


async def expire(group: Group) -> None:
    await group.clock.advance(301)
    await group.daemon.housekeeping.expire_questions()
    await group.settle()


async def test_a_run_goes_on_with_each_answer_through_restarts(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    async with a_group_with(scripts, register=REGISTER, home=home) as group:
        assert await group.say("Ann", "/register") == ["Welcome!", "Your name?"]
        assert await group.say("Bob", "Bob") == []
    async with a_group_with(scripts, home=home) as group:
        assert await group.say("Ann", "Ann Lee") == ["Email?"]
        assert await group.say("Ann", "what?") == [EN.say("basic.hear.email")]
    async with a_group_with(scripts, home=home) as group:
        assert await group.say("Ann", "a@example.org") == ["Email?"]
        assert await group.say("Ann", "b@example.org") == ["Ann Lee has b@example.org"]
        assert await last_reason(group) == ("answered_question", "register")
        assert await group.say("Ann", "c@example.org") == []


async def test_a_model_is_told_all_that_was_said_and_what_came_of_it(tmp_path: Path) -> None:
    script = 'TALK "Sure. How many?"\nHEAR n AS INTEGER\nTALK "Noted: " + n\nRETURN n'
    async with a_group_with(tmp_path, book=script) as group:
        group.model.says(call("book"))
        await group.say("Ann", "@Rollcall book a table")
        assert await group.say("Ann", "yes") == ["Sure. How many?"]
        group.model.says("Booked.")
        assert await group.say("Ann", "4") == ["Noted: 4", "Booked."]
        told = group.model.requests[-1].messages[-1].content
        assert told == '{"ok":true,"result":4,"said_in_chat":["Sure. How many?","Noted: 4"]}'


async def test_what_is_returned_is_said_only_where_the_whole_run_said_nothing(tmp_path: Path) -> None:
    scripts = {
        "told": 'TALK "Name?"\nHEAR n\nRETURN "noted " + n',
        "row": 'TALK "Name?"\nHEAR n\nRETURN #{name: n}',
        "hush": 'HEAR n\nRETURN "noted " + n',
    }
    async with a_group_with(tmp_path, **scripts) as group:
        for name in ("told", "row"):
            assert await group.say("Ann", f"/{name}") == ["Name?"]
            assert await group.say("Ann", "Ann") == [EN.say("claims.done", names=f"/{name}")]
        await group.say("Ann", "/hush")
        assert await group.say("Ann", "Ann") == ["noted Ann"]
        group.model.says(call("told"))
        await group.say("Ann", "@Rollcall note a name")
        assert await group.say("Ann", "yes") == ["Name?"]
        group.model.says("Thank you.")
        assert await group.say("Ann", "Ann") == ["Thank you."]
        assert '"result":"noted Ann"' in group.model.requests[-1].messages[-1].content


async def test_an_answer_that_never_fits_ends_the_run_after_three_more_questions(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiz='TALK "Day?"\nHEAR d AS DATE\nTALK d') as group:
        await group.say("Ann", "/quiz")
        for _ in range(3):
            assert await group.say("Ann", "purple") == [EN.say("basic.hear.date")]
        [said] = await group.say("Ann", "purple")
        assert said.startswith(EN.say("basic.stopped.bad_value", name="quiz", line=3))
        assert EN.say("basic.hear.gave_up") in said
        assert await group.say("Ann", "2026-03-14") == []


async def test_days_are_read_in_words_in_the_chats_language_and_zone(tmp_path: Path) -> None:
    settings = {"language": "zh", "timezone": "Asia/Shanghai"}
    async with a_group_with(tmp_path, quiz='TALK "几号?"\nHEAR d AS DATE\nTALK d', settings=settings) as group:
        await group.say("Ann", "/quiz")
        assert await group.say("Ann", "紫色") == [ZH.say("basic.hear.date")]
        assert await group.say("Ann", "明天") == ["2026-01-06"]


async def test_choices_are_buttons_numbers_or_words(tmp_path: Path) -> None:
    script = 'TALK "Size?"\nHEAR size AS "Small", "Large"\nTALK "You took " + size'
    async with a_group_with(tmp_path, order=script) as group:
        for said, kind in (("Large", Kind.CHOICE), ("2", Kind.MESSAGE), ("large", Kind.MESSAGE)):
            await group.say("Ann", "/order")
            assert [one.value for one in group.platform.sent[-1].choices] == ["Small", "Large"]
            assert await group.say("Ann", said, kind=kind) == ["You took Large"]


async def test_hear_on_the_right_side_gives_the_answer(tmp_path: Path) -> None:
    script = 'TALK "Name?"\nx = "Mx " + HEAR\nTALK x'
    async with a_group_with(tmp_path, quiz=script) as group:
        await group.say("Ann", "/quiz")
        assert await group.say("Ann", "Lee") == ["Mx Lee"]


async def test_input_asks_for_itself(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiz='10 INPUT "How many"; A$\n20 PRINT "You said "; A$') as group:
        assert await group.say("Ann", "/quiz") == ["How many"]
        assert await group.say("Ann", "7") == ["You said 7"]


async def test_hear_without_a_word_before_it_asks_in_general(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiz="HEAR x\nTALK x") as group:
        assert await group.say("Ann", "/quiz") == [EN.say("questions.input")]
        assert await group.say("Ann", "yes") == ["yes"]


async def test_who_cancels_ends_the_run(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiz='TALK "Name?"\nHEAR x\nTALK "never"') as group:
        await group.say("Ann", "/quiz")
        assert await group.say("Ann", "never mind") == [EN.say("questions.dropped")]
        assert await group.say("Ann", "Ann") == []


async def test_a_question_that_nobody_answers_ends_the_run_in_silence(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiz='TALK "Name?"\nHEAR x\nTALK "never"') as group:
        assert await group.say("Ann", "/quiz") == ["Name?"]
        await expire(group)
        assert [one.text for one in group.platform.sent] == ["Name?"]
        assert await group.say("Ann", "Ann") == []


async def test_a_script_that_was_edited_meanwhile_does_not_go_on_with_old_values(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    async with a_group_with(scripts, quiz='TALK "Name?"\nHEAR x\nTALK x', home=home) as group:
        await group.say("Ann", "/quiz")
    write_scripts(scripts, {"quiz": 'TALK "Your name?"\nHEAR x\nTALK "other"'})
    async with a_group_with(scripts, home=home) as group:
        assert await group.say("Ann", "Ann") == [EN.say("questions.changed", name="/quiz")]


async def test_where_nobody_can_answer_a_script_that_asks_fails_with_its_words(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiz='TALK "Name?"\nHEAR x\nTALK "never"') as group:
        caller = Caller(ANN, "Ann", Role.MEMBER, FAMILY, is_group=True, path=Path_.MCP)
        called = await group.daemon.direct_calls.call(caller, "quiz", {})
        error = called.result.error
        assert error is not None
        assert error.text == EN.say("questions.nobody_answers", name="/quiz", question="Name?")


async def test_limits_hold_for_all_of_a_run_whatever_it_asks_in_between(tmp_path: Path) -> None:
    script = 'WHILE TRUE\nTALK "a word of some length"\nHEAR x\nWEND'
    async with a_group_with(tmp_path, chatty=script, settings={"basic": {"output_chars": 100}}) as group:
        said = await group.say("Ann", "/chatty")
        for _ in range(3):
            assert said == ["a word of some length"]
            said = await group.say("Ann", "go on")
        assert said == ["a word of some length"]
        assert await group.say("Ann", "go on") == [EN.say("basic.stopped.output", name="chatty", line=3)]


async def test_the_effects_of_a_run_before_its_question_are_not_done_again(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    post = Recorder("post", CITY, effect="once", touches=(), gives="posted")
    script = 'x = CALL "post", {"city": "Oslo"}\nTALK x + ". More?"\nHEAR y\nCALL "post", {"city": y}\nTALK "done"'
    settings = {"source": {"may_call": ["post"]}}
    async with a_group_with(scripts, [post.spec], quiz=script, home=home, settings=settings) as group:
        assert await group.say("Ann", "/quiz") == ["posted. More?"]
    async with a_group_with(scripts, [post.spec], home=home, settings=settings) as group:
        assert await group.say("Ann", "Bergen") == ["done"]
    assert post.runs == [{"city": "Oslo"}, {"city": "Bergen"}]


async def test_words_of_authors_in_the_log_are_lines_of_it(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, note='LOG "seen", 3\nDEBUG "x"\nTALK "ok"') as group:
        with capture_logs() as events:
            assert await group.say("Ann", "/note") == ["ok"]
        lines = [(one["text"], one["line"]) for one in events if one["event"] == "script_says"]
        assert lines == [("seen 3", 2), ("x", 3)]


async def test_the_log_of_one_run_has_a_limit(tmp_path: Path) -> None:
    script = 'FOR i = 1 TO 500\n  LOG "line", i\nNEXT\nTALK "ok"'
    async with a_group_with(tmp_path, note=script) as group:
        with capture_logs() as events:
            assert await group.say("Ann", "/note") == ["ok"]
            said = [one for one in events if one["event"] == "script_says"]
            limited = [one["most"] for one in events if one["event"] == "script_log_limited"]
            assert (len(said), said[-1]["text"], limited) == (MOST_LOGGED, f"line {MOST_LOGGED}", [MOST_LOGGED])
            await group.say("Ann", "/note")
        assert len([one for one in events if one["event"] == "script_says"]) == 2 * MOST_LOGGED


async def test_a_run_that_never_hears_how_it_ends_is_told_with_its_file_and_chat(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    async with a_group_with(scripts, quiz='TALK "Day?"\nHEAR d\nTALK d', home=home) as group:
        assert await group.say("Ann", "/quiz") == ["Day?"]
    async with a_group_with(scripts, quiz='TALK "Which day?"\nHEAR day\nTALK day', home=home) as group:
        with capture_logs() as events:
            await group.say("Ann", "Monday")
        [line] = [one for one in events if one["event"] == "waiting_run_not_ended"]
        assert (line["function"], line["chat"]) == ("quiz", group.chat.key)
        assert line["source"].startswith(str(scripts / "quiz.bas"))


async def test_script_values_from_the_settings_are_not_stored_and_are_passed_to_each_run(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    header = 'SET HEADER "Authorization", "Bearer " + apikey\n'
    script = header + 'hall = "mine"\nTALK "q?"\nHEAR x\nTALK x + LEN(apikey) + hall'

    def settings(key: str) -> dict[str, Any]:
        return {"bots": {"default": {"parameters": {"apikey": key, "hall": "theirs"}}}}

    async with a_group_with(scripts, quiz=script, home=home, settings=settings("FIRST-SECRET")) as group:
        assert await group.say("Ann", "/quiz") == ["q?"]
    written = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert b"q?" in written
    assert b"FIRST-SECRET" not in written
    async with a_group_with(scripts, home=home, settings=settings("SECOND")) as group:
        assert await group.say("Ann", "ok: ") == ["ok:6mine"]


async def test_a_header_that_was_set_before_a_question_has_to_be_set_again(tmp_path: Path) -> None:
    async with WebServer({"/": Page(b"fine")}) as server:
        get = f'TALK GET("{server.url("/")}")'
        asks = f'SET HEADER "X-Key", "abc"\n{get}\nTALK "q?"\nHEAR x\n'
        client = WebClient(allow_loopback=True)
        scripts = {
            "bad": asks + get,
            "good": f'{asks}SET HEADER "x-key", "abc"\n{get}',
            "none": f"{asks}CLEAR HEADERS\n{get}",
        }
        async with a_group_with(tmp_path, web=client, **scripts) as group:
            for name in scripts:
                assert await group.say("Ann", f"/{name}") == ["fine", "q?"]
                [said] = await group.say("Ann", "on")
                if name == "bad":
                    assert said.endswith(EN.say("basic.web.header_gone", name="x-key"))
                else:
                    assert said == "fine"
    assert [asked.headers.get("x-key") for asked in server.asked] == ["abc", "abc", "abc", "abc", None]


async def test_a_question_may_stand_with_what_waits_for_its_answer(tmp_path: Path) -> None:
    script = (
        'HEAR name WITH "Your name?"\nage = HEAR "How old, ${name}?" AS INTEGER\n'
        'HEAR wine WITH "Which?" AS "red", "white"\nHEAR mail AS EMAIL WITH "Mail?"\nTALK name + age + wine + mail'
    )
    async with a_group_with(tmp_path, register=script) as group:
        assert await group.say("Ann", "/register") == ["Your name?"]
        assert await group.say("Ann", "Ann") == ["How old, Ann?"]
        assert await group.say("Ann", "old") == [EN.say("basic.hear.integer")]
        assert await group.say("Ann", "40") == ["Which?"]
        assert await group.say("Ann", "red") == ["Mail?"]
        assert await group.say("Ann", "a@b.co") == ["Ann40reda@b.co"]
