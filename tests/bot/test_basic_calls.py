"""Scripts that call functions, with the rights of their caller and their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.mcp.content import mcp_listed_tool
from bot.testing import call
from config.texts import Texts
from function_calls.basic.run.driver import MOST_CHANGES
from function_calls.basic.run.script_calls import MOST_CALLS
from function_calls.basic.run.session import MOST_MESSAGES
from function_calls.spec import FunctionResult, Message
from services.refs import MemberRef, Role
from tests.bot.basic_group import a_group_with
from tests.bot.test_approvals import ADMIN, code_in
from tests.fakes.asking import Asking
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held

EN = Texts().of("en")
MAY_ALL = {"source": {"may_call": ["*"]}}
MAY_POST = {"source": {"may_call": ["po*"]}}


def stopped(code: str, name: str, line: int, detail: str = "") -> str:
    return f"{EN.say(f'basic.stopped.{code}', name=name, line=line)} {detail}".strip()


def post(**options: Any) -> Recorder:
    return Recorder("post", CITY, effect="once", gives="posted", **{"touches": (), **options})


@pytest.mark.parametrize(
    "statement",
    [
        'x = CALL "sky", {"CITY": "Oslo", "days": 2}',
        'x = CALL "sky", "Oslo", 2',
        'CALL_ = 1\nx = CALL sky WITH city = "Oslo", days = 2',
        'x = CALL "sky.bas", {"city": "Oslo", "days": 2, "other": NULL}',
        'x = RUN TOOL "shop.gbdialog/sky.bas", {"city": "Oslo", "days": 2}',
        'city = "Oslo"\nargs = {"city": city, "days": 1 + 1}\nx = CALL "sky" WITH args',
    ],
)
async def test_a_function_is_called_by_name_with_a_map_or_with_values_in_order(tmp_path: Path, statement: str) -> None:
    days = {"days": {"type": "integer", "description": "How many"}}
    sky = Recorder("sky", {**CITY, **days}, gives=FunctionResult(messages=(Message("Sunny."),), data={"sun": 9}))
    async with a_group_with(tmp_path, [sky.spec], quiz=f'{statement}\nTALK x.sun + " " + x.text') as group:
        assert await group.say("Ann", "/quiz") == ["9 Sunny."]
    assert sky.runs == [{"city": "Oslo", "days": 2}]


@pytest.mark.parametrize(
    "script",
    [
        'tool = "sky"\nTALK CALL(tool, "Oslo")',
        'tool = "sky"\nx = CALL tool("Oslo")\nTALK x',
        'tool = "sky"\nx = CALL tool, "Oslo"\nTALK x',
        'tool = "sky"\nx = RUN TOOL tool WITH city = "Oslo"\nTALK x',
        'FOR EACH tool IN ["sky"]\nx = CALL tool WITH {"city": "Oslo"}\nTALK x\nNEXT',
        # Neither the result of an earlier call nor a later assignment is meant.
        'sky = CALL sky("Oslo")\nTALK sky\nsky = "x"',
    ],
)
async def test_a_variable_may_hold_the_name_of_the_function(tmp_path: Path, script: str) -> None:
    sky = Recorder("sky", CITY, gives="Sunny.")
    async with a_group_with(tmp_path, [sky.spec], quiz=script) as group:
        assert await group.say("Ann", "/quiz") == ["Sunny."]
    assert sky.runs == [{"city": "Oslo"}]


async def test_a_variable_may_hold_the_name_of_the_function_to_offer(tmp_path: Path) -> None:
    sky = Recorder("sky", CITY, activation="on_request")
    script = 'tool = "sky"\nx = USE TOOL tool\nTALK x\nREMOVE TOOL tool\nx = USE TOOL tool\nTALK x'
    async with a_group_with(tmp_path, [sky.spec], quiz=script) as group:
        said = await group.say("Ann", "/quiz")
    assert said == [EN.say("tools.taken", names="sky")] * 2


@pytest.mark.parametrize(
    ("script", "destructive"),
    [
        ('TALK "Hello"', False),
        ("TALK 1 + 1\nHEAR x", False),
        ('x = CALL "sky", "Oslo"', True),
        ('UPDATE people SET name = "x" WHERE id = 1', True),
        ('DELETE FROM people WHERE id = 1', True),
        ('SET CHAT MEMORY "a", 1', True),
    ],
)  # fmt: skip
async def test_programs_are_told_which_scripts_may_overwrite_data(
    tmp_path: Path, script: str, destructive: bool
) -> None:
    async with a_group_with(tmp_path, quiz=script) as group:
        spec = group.daemon.registry.of("default").find("quiz")
    assert spec is not None
    hints = mcp_listed_tool(spec)["annotations"]
    assert (hints["readOnlyHint"], hints["destructiveHint"]) == (False, destructive)


async def test_what_a_function_only_says_is_its_value_and_is_not_said_twice(tmp_path: Path) -> None:
    hello = Recorder("hello", does=None, gives=FunctionResult.say("Hello there"))
    async with a_group_with(tmp_path, [hello.spec], quiz='CALL "hello"\nx = CALL "hello"\nTALK "> " + x') as group:
        assert await group.say("Ann", "/quiz") == ["> Hello there"]


async def test_what_is_for_others_goes_to_them(tmp_path: Path) -> None:
    bob = MemberRef("test", "bot", "bob")
    tell = Recorder("tell", gives=FunctionResult(messages=(Message("psst", to=bob),), data=1))
    async with a_group_with(tmp_path, [tell.spec], quiz='x = CALL "tell"\nTALK "told " + x') as group:
        assert await group.say("Ann", "/quiz") == ["psst", "told 1"]
        assert group.platform.sent[0].private_to == bob


async def test_a_script_may_call_another_whose_words_are_said_and_whose_value_it_is_given(tmp_path: Path) -> None:
    inner = 'PARAM n AS integer LIKE 1 DESCRIPTION "N"\nTALK "inner " + n\nRETURN n * 2'
    async with a_group_with(
        tmp_path, inner=inner, text='RETURN "just text"', quiet="x = 1",
        outer='x = CALL "inner", 4\nTALK x\ny = CALL "text"\nTALK y\nz = CALL "quiet"\nTALK "[" + z + "]"',
    ) as group:  # fmt: skip
        assert await group.say("Ann", "/outer") == ["inner 4", "8", "just text", "[]"]


async def test_scripts_within_scripts_end_somewhere(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, loop='TALK "again"\nCALL "loop"') as group:
        said = await group.say("Ann", "/loop")
        assert said == [*["again"] * 5, stopped("not_allowed", "loop", 3, EN.say("refusals.too_deep"))]


async def test_what_a_function_refuses_or_cannot_do_is_a_fault_of_the_script(tmp_path: Path) -> None:
    broken = Recorder("broken", gives=RuntimeError("secret path /etc/x"))
    sky = Recorder("sky", CITY)
    scripts = {"a": 'TALK "x"\nCALL "broken"', "c": 'CALL "sky", 1, 2', "d": "CALL 12345"}
    async with a_group_with(tmp_path, [broken.spec, sky.spec], **scripts) as group:
        said = await group.say("Ann", "/a")
        assert said[0] == "x"
        assert said[1].startswith(stopped("failed", "a", 3))
        assert "secret" not in said[1]
        assert await group.say("Ann", "/c") == [
            stopped("bad_value", "c", 2, EN.say("basic.call.too_many", name="sky", most=1, count=2))
        ]
        assert await group.say("Ann", "/d") == [
            stopped("no_such_thing", "d", 2, EN.say("basic.call.unknown", name="12345"))
        ]


async def test_why_an_inner_script_stopped_is_said_once_by_its_name_and_line(tmp_path: Path) -> None:
    inner, outer = 'TALK "in"\nx = 1 / 0', 'TALK "out"\nCALL "inner"'
    async with a_group_with(tmp_path, inner=inner, outer=outer, top='CALL "outer"') as group:
        assert await group.say("Ann", "/top") == ["out", "in", EN.say("basic.stopped.division", name="inner", line=3)]


# -- by command words


async def test_a_function_is_called_by_its_command_word_as_people_type_it(tmp_path: Path) -> None:
    script = 'r = CALL remind("bring the balls in 5 minutes")\nTALK r'
    async with a_group_with(tmp_path, rem=script) as group:
        [said] = await group.say("Ann", "/rem")
        assert "bring the balls" in said
        [listed] = await group.say("Ann", "/reminders")
        assert "in 5 minutes: bring the balls" in listed


async def test_what_a_function_called_by_its_command_word_lacks_is_asked_for(tmp_path: Path) -> None:
    script = 'r = CALL remind("bring the balls")\nTALK "> " + r'
    async with a_group_with(tmp_path, rem=script) as group:
        [question] = await group.say("Ann", "/rem")
        assert question == EN.say("reminders.ask_when")
        [said] = await group.say("Ann", "in 5 minutes")
        assert said.startswith("> ")
        assert "bring the balls" in said


async def test_what_a_function_called_by_its_command_word_cannot_do_stops_the_script(tmp_path: Path) -> None:
    sky = Recorder("sky", {"days": {"type": "integer", "description": "How many"}}, commands=["outlook"])
    async with a_group_with(tmp_path, [sky.spec], a='CALL outlook("very many")', b='CALL outlook("2")') as group:
        [said] = await group.say("Ann", "/a")
        assert said.startswith(EN.say("basic.stopped.bad_value", name="a", line=2))
        assert len(said) > len(EN.say("basic.stopped.bad_value", name="a", line=2))
        await group.say("Ann", "/b")
    assert sky.runs == [{"days": 2}]


@pytest.mark.parametrize("name", ["remindd", "reminder_creat", "Reminder_create_"])
async def test_a_function_that_is_nearly_named_is_suggested(tmp_path: Path, name: str) -> None:
    async with a_group_with(tmp_path, quiz=f'CALL "{name}", "x"') as group:
        unknown = EN.say("basic.call.unknown", name=name)
        hint = EN.say("commands.did_you_mean", commands="reminder_create")
        assert await group.say("Ann", "/quiz") == [stopped("no_such_thing", "quiz", 2, f"{unknown} {hint}")]


# -- rights


async def test_a_script_may_not_do_what_its_caller_may_not(tmp_path: Path) -> None:
    purge = Recorder("purge", roles="admin", gives="purged")
    async with a_group_with(
        tmp_path, [purge.spec], quiz='TALK CALL("purge")', settings={"source": {"may_call": ["*"]}}
    ) as group:
        assert await group.say("Ann", "/quiz") == [
            stopped("no_such_thing", "quiz", 2, EN.say("basic.call.unknown", name="purge"))
        ]
        assert purge.runs == []
        assert await group.say("Olga", "/quiz", role=Role.ADMIN) == ["purged"]


@pytest.mark.parametrize(
    "options",
    [
        {"effect": "once", "touches": ()},
        {"effect": "idempotent", "touches": ["reaches_out"]},
        {"touches": ["reaches_out"]},
    ],
)
async def test_what_reaches_out_needs_the_operators_leave(tmp_path: Path, options: dict[str, Any]) -> None:
    send = Recorder("post", CITY, gives="posted", **options)
    refused = stopped("not_allowed", "quiz", 2, EN.say("basic.call.not_granted", name="post"))
    async with a_group_with(tmp_path, [send.spec], quiz='TALK CALL("post", "Oslo")') as group:
        assert await group.say("Olga", "/quiz", role=Role.OWNER) == [refused]
        assert send.runs == []
    async with a_group_with(tmp_path, [send.spec], settings=MAY_POST) as group:
        assert await group.say("Ann", "/quiz") == ["posted"]


async def test_what_stays_in_the_chat_needs_no_leave(tmp_path: Path) -> None:
    note = Recorder("note", effect="once", touches=["stays_here"], gives="noted")
    async with a_group_with(tmp_path, [note.spec], quiz='TALK CALL("note")') as group:
        assert await group.say("Ann", "/quiz") == ["noted"]


async def test_an_old_tool_statement_sends_to_no_other_group(tmp_path: Path) -> None:
    send = Recorder("send", {**CITY, "text": {"type": "string", "description": "What"}}, effect="once", touches=())
    async with a_group_with(tmp_path, [send.spec], quiz='10 TOOL "send","other-group","x"') as group:
        assert await group.say("Olga", "/quiz", role=Role.OWNER) == [
            stopped("not_allowed", "quiz", 2, EN.say("basic.call.not_granted", name="send"))
        ]
    assert send.runs == []


# -- questions during a call


async def test_a_yes_that_a_function_wants_is_asked_and_the_script_goes_on(tmp_path: Path) -> None:
    function = post(confirm="Really post to {city}?")
    script = 'TALK "First."\nx = CALL "post", "Oslo"\nTALK "It is " + x'
    async with a_group_with(tmp_path, [function.spec], quiz=script, settings=MAY_POST) as group:
        assert await group.say("Ann", "/quiz") == ["First.", "Really post to Oslo?"]
        assert function.runs == []
        assert await group.say("Ann", "yes") == ["It is posted"]
        await group.say("Ann", "/quiz")
        assert await group.say("Ann", "no") == [stopped("not_allowed", "quiz", 3, EN.say("questions.dropped"))]
    assert function.runs == [{"city": "Oslo"}]


async def test_arguments_that_a_function_lacks_are_asked_for_one_by_one(tmp_path: Path) -> None:
    days = {"days": {"type": "integer", "description": "How many", "required": True}}
    sky = Recorder("sky", {**CITY, **days}, gives="Sunny.", confirm="Really {city}?")
    script = 'TALK "First."\nx = CALL "sky"\nTALK x'
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    async with a_group_with(scripts, [sky.spec], quiz=script, home=home) as group:
        first, question = await group.say("Ann", "/quiz")
        assert first == "First."
        assert "The place" in question
    async with a_group_with(scripts, [sky.spec], home=home) as group:
        [question] = await group.say("Ann", "Oslo")
        assert "How many" in question
        assert await group.say("Ann", "3") == ["Really Oslo?"]
        assert await group.say("Ann", "yes") == ["Sunny."]
        assert sky.runs == [{"city": "Oslo", "days": 3}]
        await group.say("Ann", "/quiz")
        await group.say("Ann", "Oslo")
        [said] = await group.say("Ann", "many")
        assert said.startswith(stopped("bad_value", "quiz", 3))
    assert len(sky.runs) == 1


def needing(**more: Any) -> dict[str, Any]:
    return {"approvals": {"required": [{"functions": ["post"], "by": "admin"}]}, **MAY_POST, **more}


@pytest.mark.requirement("C25")
async def test_a_persons_yes_is_waited_for_and_the_script_goes_on_where_it_was(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    function = post()
    script = (
        'TALK "First."\nn = 1\nx = CALL "post", "Oslo"\nTALK "It is " + x + " " + n\ny = CALL "post", "Rome"\nTALK y'
    )
    async with a_group_with(scripts, [function.spec], quiz=script, settings=needing(), home=home) as group:
        said = await group.say("Ann", "/quiz")
        assert said[0] == "First."
        code = code_in(said)
        assert function.runs == []
        assert await group.say("Ann", "yes") == []
    async with a_group_with(scripts, [function.spec], settings=needing(), home=home) as group:
        said = await group.say("Bob", f"approve {code}", **ADMIN)
        assert said[0] == "It is posted 1"
        assert function.runs == [{"city": "Oslo"}]
        # Another run needs another approval.
        assert await group.say("Bob", f"approve {code_in(said)}", **ADMIN) == ["posted"]
    assert function.runs == [{"city": "Oslo"}, {"city": "Rome"}]
    assert function.contexts[0].sender.name == "Ann"


async def test_a_no_ends_the_script(tmp_path: Path) -> None:
    function = post()
    async with a_group_with(
        tmp_path, [function.spec], quiz='CALL "post", "Oslo"\nTALK "never"', settings=needing()
    ) as group:
        code = code_in(await group.say("Ann", "/quiz"))
        said = await group.say("Bob", f"reject {code}", **ADMIN)
        assert "never" not in said
    assert function.runs == []


async def test_a_script_that_needs_a_yes_itself_asks_for_both_and_for_no_more(tmp_path: Path) -> None:
    function = post()
    settings = needing()
    settings["approvals"] = {"required": [{"functions": ["post", "quiz"], "by": "admin"}]}
    async with a_group_with(tmp_path, [function.spec], quiz='TALK CALL("post", "Oslo")', settings=settings) as group:
        said = await group.say("Ann", "/quiz")
        for _ in range(6):
            if "#" not in said[-1]:
                break
            said = await group.say("Bob", f"approve {code_in(said)}", **ADMIN)
        assert "#" not in said[-1]
    assert len(function.runs) <= 1


async def test_a_function_may_ask_in_its_midst_and_both_go_on_through_restarts(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    fill = Asking(questions=["Your name?", "And town?"], effect="idempotent", first="Well.", parameters=CITY)
    script = 'TALK "x"\nn = 1\ny = CALL "fill", "Oslo"\nTALK "got " + y + n'
    async with a_group_with(scripts, [fill.spec], quiz=script, home=home) as group:
        assert await group.say("Ann", "/quiz") == ["x", "Well.", "Your name?"]
    async with a_group_with(scripts, [fill.spec], home=home) as group:
        assert await group.say("Ann", "Ann") == ["And town?"]
    async with a_group_with(scripts, [fill.spec], home=home) as group:
        assert await group.say("Ann", "Rome") == ['got ["Ann", "Rome"]1']
    assert fill.runs == [("began", ""), ("answered", "Ann"), ("answered", "Rome")]
    assert fill.recorder.runs == [{"city": "Oslo"}] * 3


async def test_scripts_within_scripts_may_ask(tmp_path: Path) -> None:
    inner = 'TALK "Name?"\nHEAR n AS NAME\nTALK "Hi " + n\nRETURN n'
    scripts = {"inner": inner, "middle": 'RETURN CALL("inner") + "!"', "top": 'x = CALL "middle"\nTALK "> " + x'}
    async with a_group_with(tmp_path, **scripts) as group:
        assert await group.say("Ann", "/top") == ["Name?"]
        assert await group.say("Ann", "42") == [EN.say("basic.hear.name")]
        assert await group.say("Ann", "Ann") == ["Hi Ann", "> Ann!"]


async def test_a_model_is_told_what_scripts_within_scripts_have_said(tmp_path: Path) -> None:
    inner = 'TALK "Name?"\nHEAR n\nRETURN n'
    async with a_group_with(tmp_path, inner=inner, top='TALK "Hello."\nRETURN CALL("inner")') as group:
        group.model.says(call("top"))
        await group.say("Ann", "@Rollcall do it")
        assert await group.say("Ann", "yes") == ["Hello.", "Name?"]
        group.model.says("Thank you, Ann.")
        assert (await group.say("Ann", "Ann"))[-1] == "Thank you, Ann."
        told = group.model.requests[-1].messages[-1].content
        assert told == '{"ok":true,"result":"Ann","said_in_chat":["Hello.","Name?"]}'


@pytest.mark.parametrize("how", ["cancelled", "expired"])
async def test_a_function_that_asked_within_a_script_hears_how_it_ends(tmp_path: Path, how: str) -> None:
    fill = Asking(effect="idempotent")
    scripts = {"inner": 'CALL "fill"\nTALK "never"', "top": 'CALL "inner"\nTALK "never"'}
    async with a_group_with(tmp_path, [fill.spec], **scripts) as group:
        assert await group.say("Ann", "/top") == ["Your name?"]
        if how == "cancelled":
            assert await group.say("Ann", "never mind") == [EN.say("questions.dropped")]
        else:
            await group.clock.advance(301)
            await group.daemon.housekeeping.expire_questions()
            await group.settle()
        assert [one.text for one in group.platform.sent if one.text == "never"] == []
    assert fill.runs == [("began", ""), (how, "")]


async def test_a_function_that_was_changed_while_it_waited_within_a_script_does_not_go_on(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    async with a_group_with(scripts, [Asking(effect="idempotent").spec], quiz='CALL "fill"', home=home) as group:
        assert await group.say("Ann", "/quiz") == ["Your name?"]
    other = Asking(effect="idempotent", parameters={"town": {"type": "string", "description": "T"}})
    async with a_group_with(scripts, [other.spec], home=home) as group:
        [said] = await group.say("Ann", "Ann")
        assert said.endswith(EN.say("questions.changed", name="fill"))
    assert other.runs == []


async def test_a_run_that_goes_on_within_a_script_has_the_rights_of_that_moment(tmp_path: Path) -> None:
    fill = Asking(effect="idempotent", roles="admin")
    async with a_group_with(tmp_path, [fill.spec], quiz='CALL "fill"', settings=MAY_ALL) as group:
        assert await group.say("Olga", "/quiz", role=Role.ADMIN) == ["Your name?"]
        [said] = await group.say("Olga", "Olga", role=Role.MEMBER)
        assert said.startswith(EN.say("basic.stopped.not_allowed", name="quiz", line=2))
    assert fill.runs == [("began", ""), ("expired", "")]


async def test_a_run_that_goes_on_within_a_script_needs_the_leave_of_that_moment(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    fill = Asking(effect="once", touches=())
    async with a_group_with(scripts, [fill.spec], quiz='CALL "fill"', settings=MAY_ALL, home=home) as group:
        assert await group.say("Ann", "/quiz") == ["Your name?"]
    async with a_group_with(scripts, [fill.spec], home=home) as group:
        [said] = await group.say("Ann", "Ann")
        assert said == stopped("not_allowed", "quiz", 2, EN.say("basic.call.not_granted", name="fill"))
    assert fill.runs == [("began", ""), ("expired", "")]


async def test_what_a_function_hands_on_of_another_one_is_no_question_of_a_script(tmp_path: Path) -> None:
    fill = Asking(effect="idempotent")

    async def hands_on(context: Any, arguments: Any, own: Any) -> Any:
        return await own.invoke("fill", {})

    outer = Recorder("outer", does=hands_on, effect="idempotent")
    async with a_group_with(tmp_path, [fill.spec, outer.spec], quiz='TALK "x"\nCALL "outer"') as group:
        words = EN.say("basic.call.asks_itself", name="outer")
        assert await group.say("Ann", "/quiz") == ["x", stopped("not_allowed", "quiz", 3, words)]
    assert fill.runs == [("began", ""), ("expired", "")]


async def test_what_a_keyword_reads_of_others_counts_for_the_calls_behind_it(tmp_path: Path) -> None:
    keywords = tmp_path / "keywords.py"
    keywords.write_text(
        "from function_calls.basic.keywords import ScriptRun, Value, basic_keyword\n"
        '@basic_keyword("OVERHEAR")\nasync def overhear(run: ScriptRun) -> Value:\n    """Listen."""\n'
        '    run.has_outside_text = True\n    return "a rumour"\n'
    )
    settings = {"sources": {"basic_keywords": [str(keywords)]}}
    scripts = {"quiz": "RETURN OVERHEAR", "plain": 'RETURN "Oslo"'}
    async with a_group_with(tmp_path / "scripts", settings=settings, **scripts) as group:
        told = []
        for name in scripts:
            group.model.says(call(name), "There.")
            await group.say("Ann", "@Rollcall what is new?")
            await group.say("Ann", "yes")
            told.append(group.model.requests[-1].messages[-1].content)
    assert [one.startswith("<data ") for one in told] == [True, False]


# -- crashes


async def test_an_effect_that_was_done_before_a_crash_is_not_repeated_when_the_script_is(tmp_path: Path) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    function, slow = post(), Held("slow")
    script = 'x = CALL "post", "Oslo"\nCALL "slow", "a"\nTALK "It is " + x'
    specs = [function.spec, slow.spec]
    async with a_group_with(scripts, specs, quiz=script, settings=MAY_POST, home=home) as group:
        await group.hear("Ann", "/quiz")
        await slow.has_begun("a")
        await group.crash()
    slow.let_go()
    async with a_group_with(scripts, specs, settings=MAY_POST, home=home) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["It is posted"]
    assert function.runs == [{"city": "Oslo"}]


async def test_what_a_run_leaves_while_a_yes_is_waited_for_has_its_bounds_too(tmp_path: Path) -> None:
    function = post()
    script = 'TALK "First."\nx = STRING(600000, "x")\nTALK CALL("post", "Oslo")'
    async with a_group_with(tmp_path, [function.spec], quiz=script, settings=needing()) as group:
        assert await group.say("Ann", "/quiz") == ["First.", EN.say("questions.cannot_go_on", name="quiz")]
    assert function.runs == []


@pytest.mark.parametrize(
    ("statement", "most", "why"),
    [
        ('TALK TO "Ann", "x"', MOST_MESSAGES, EN.say("basic.stopped.output", name="much", line=4)),
        ('CALL "note"', MOST_CALLS, EN.say("basic.call.too_often", most=MOST_CALLS)),
        ('SET CHAT MEMORY "n", i', MOST_CHANGES, EN.say("basic.too_many_changes", most=MOST_CHANGES)),
    ],
)
async def test_a_run_does_nothing_without_end(tmp_path: Path, statement: str, most: int, why: str) -> None:
    note = Recorder("note", effect="once", touches=["stays_here"], gives="noted")
    count = 'PARAM n AS integer LIKE 1 DESCRIPTION "N"\nDESCRIPTION "Much"\nFOR i = 1 TO n\n%s\nNEXT\nRETURN "done"'
    settings = {"basic": {"cpu_seconds": 60}}
    async with a_group_with(tmp_path, [note.spec], much=count % statement, settings=settings) as group:
        assert why in (await group.say("Ann", f"/much {most + 1}"))[-1]
        assert "stopped" not in (await group.say("Ann", f"/much {most}"))[-1]


async def test_a_no_to_one_call_says_nothing_about_the_next(tmp_path: Path) -> None:
    function = post(confirm="Really post to {city}?")
    script = 'ON ERROR RESUME NEXT\nCALL "post", "Oslo"\nTALK "Where then?"\nHEAR x\nTALK CALL("post", x)'
    async with a_group_with(tmp_path, [function.spec], quiz=script, settings=MAY_POST) as group:
        assert await group.say("Ann", "/quiz") == ["Really post to Oslo?"]
        assert await group.say("Ann", "no") == ["Where then?"]
        assert await group.say("Ann", "Rome") == ["Really post to Rome?"]
        assert await group.say("Ann", "yes") == ["posted"]
    assert function.runs == [{"city": "Rome"}]
