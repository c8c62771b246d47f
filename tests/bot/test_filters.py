"""Filters configured in the settings, in a whole daemon."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.testing import Group, a_group, call
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.schema.definition import DefinitionError
from function_calls.spec import FunctionResult, ToolError
from services.llm.model import ModelError
from services.refs import ChatRef, ErrorCode
from tests.config.files import faults_of, settings_of
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason

EN = Texts().of("en")
STOPPED = EN.say("filters.stopped")
WORK = ChatRef("test", "bot", "work")


def layers(**grains: Any) -> dict[str, Any]:
    return {"filters": grains}


def a_file(folder: Path, text: str) -> str:
    path = folder / "own.py"
    path.write_text(text)
    return str(path)


@pytest.mark.requirement("D55")
@pytest.mark.parametrize(
    ("word", "text", "stops"),
    [
        ("casino", "@Rollcall the CASINO, please", True),
        ("casino", "@Rollcall ｃａｓｉｎｏ", True),
        ("casino", "@Rollcall ca\u00adsino", True),
        ("casino", "@Rollcall about casinos", False),
        ("free money", "@Rollcall free   money", True),
        ("发票", "@Rollcall 我要代开发票了", True),
        ("vpn", "@Rollcall 有vpn吗", True),
        ("art", "@Rollcall start the party", False),
    ],
)
async def test_a_message_with_a_blacklisted_word_reaches_no_model(word: str, text: str, stops: bool) -> None:
    settings = layers(turn=[{"blacklist": {"words": ["nothing else", word]}}])
    async with a_group(settings=settings) as group:
        group.model.says("Sure.")
        assert await group.say("Ann", text) == [STOPPED if stops else "Sure."]
        assert bool(group.model.requests) != stops
        if stops:
            assert await last_reason(group) == ("filtered", "filters.turn[0].blacklist")


@pytest.mark.requirement("D55")
async def test_a_blacklisted_word_keeps_a_command_from_running_too_and_silently_where_that_is_wanted() -> None:
    note = Recorder("note", {"text": {"type": "string", "required": True}}, commands=["note"])
    settings = layers(turn=[{"blacklist": {"words": ["casino"], "reply": False}}])
    async with a_group([note.spec], settings=settings) as group:
        assert await group.say("Ann", "/note the casino") == []
        assert (note.runs, await last_reason(group)) == ([], ("filtered", "filters.turn[0].blacklist"))
        assert await group.say("Ann", "/note the beach") == ["done"]


CLASSIFIER = """
async def classify(message):
    if "broken" in message.text:
        raise KeyError("secret")
    return "spam" if "buy" in message.text else None
"""


@pytest.mark.requirement("D55")
async def test_a_classifier_of_ones_own_takes_the_place_of_the_blacklist(tmp_path: Path) -> None:
    settings = layers(turn=[{"logging": {}}, {"classifier": {"file": a_file(tmp_path, CLASSIFIER)}}])
    async with a_group(settings=settings) as group:
        group.model.says("Hello.")
        assert await group.say("Ann", "@Rollcall hello") == ["Hello."]
        assert await group.say("Ann", "@Rollcall buy this") == [STOPPED]
        assert await last_reason(group) == ("filtered", "filters.turn[1].classifier: spam")
        assert len(group.model.requests) == 1


async def test_what_a_classifier_cannot_judge_does_not_pass(tmp_path: Path) -> None:
    settings = layers(turn=[{"classifier": {"file": a_file(tmp_path, CLASSIFIER)}}])
    async with a_group(settings=settings) as group:
        (said,) = await group.say("Ann", "@Rollcall broken")
        assert (await last_reason(group))[0] == "function_failed"
        assert (group.model.requests, "secret" in said) == ([], False)


@pytest.mark.requirement("E35")
async def test_who_calls_too_often_has_to_wait_and_others_do_not() -> None:
    note = Recorder("note", commands=["note"])
    settings = layers(call=[{"logging": {}}, {"limits": {"calls_per_minute": 2}}])
    async with a_group([note.spec], settings=settings) as group:
        assert [await group.say("Ann", "/note") for _ in range(2)] == [["done"], ["done"]]
        assert await group.say("Ann", "/note", chat=WORK) == [EN.say("filters.too_often", name="note")]
        assert await last_reason(group) == ("refused", "filters.call[1].limits.calls_per_minute")
        assert await group.say("Bob", "/note") == ["done"]
        await group.clock.advance(61)
        assert await group.say("Ann", "/note") == ["done"]


async def test_the_runs_of_a_chat_may_be_counted_together_and_a_model_is_told() -> None:
    note = Recorder("note", commands=["note"])
    settings = layers(call=[{"limits": {"calls_per_minute": 1, "counted_by": "chat"}}])
    async with a_group([note.spec], settings=settings) as group:
        await group.say("Ann", "/note")
        group.model.says(call("note"), "Later.")
        assert await group.say("Bob", "@Rollcall write it down") == ["Later."]
        told = [message.content for message in group.model.requests[1].messages if message.role == "tool"]
        assert "refused" in told[0]
        assert await group.say("Bob", "/note", chat=WORK) == ["done"]
        assert len(note.runs) == 2


async def test_a_further_attempt_of_a_run_is_not_counted_and_a_stop_is_never_refused() -> None:
    attempts: list[int] = []

    async def shaky(*_: Any) -> Any:
        attempts.append(len(attempts))
        if len(attempts) < 3:
            raise ToolError("try again", ErrorCode.TRANSIENT)
        return "done"

    act = Recorder("act", commands=["act"], does=shaky, retry={"max": 2, "delay": 0})
    settings = layers(call=[{"limits": {"calls_per_minute": 1}}])
    async with a_group([act.spec], settings=settings) as group:
        assert await group.say("Ann", "/act") == ["done"]
        assert await group.say("Ann", "/act") == [EN.say("filters.too_often", name="act")]
        assert await group.say("Ann", "/stop") == [EN.say("stop.nothing")]


@dataclass
class Person:
    """Not plain JSON."""

    what: str


PERSONAL = "ann@example.org, +47 22 33 44 55, 13912345678, 4111 1111 1111 1111, 1234567890123, sk-abcdefghijklmnop"


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ({}, ["sk-abcdefghijklmnop"]),
        ({"secrets": False, "emails": True}, ["ann@example.org"]),
        ({"secrets": False, "phone_numbers": True}, ["+47 22 33 44 55", "13912345678"]),
        ({"secrets": False, "card_numbers": True}, ["4111 1111 1111 1111"]),
        ({"secrets": False, "patterns": [r"\+47[ \d]+"]}, ["+47 22 33 44 55"]),
    ],
)
async def test_what_is_not_to_be_read_reaches_neither_chat_nor_model(options: Any, hidden: list[str]) -> None:
    async def give(context: MessageContext, arguments: Any, call: Call) -> Any:
        return ("ok", PERSONAL)

    async def give_data(context: MessageContext, arguments: Any, call: Call) -> Any:
        return FunctionResult(data={"people": [Person(PERSONAL)], "count": 1})

    expected = PERSONAL
    for one in hidden:
        expected = expected.replace(one, "***")
    found = [Recorder("find", commands=["find"], does=give).spec, Recorder("list", does=give_data).spec]
    async with a_group(found, settings=layers(call=[{"redaction": options}])) as group:
        assert await group.say("Ann", "/find") == [expected]
        group.model.says(call("list"), "Here.")
        await group.say("Ann", "@Rollcall list them")
        told = next(message.content for message in group.model.requests[1].messages if message.role == "tool")
        assert [one for one in PERSONAL.split(", ") if one not in told] == hidden


async def test_what_a_failure_says_is_redacted_too() -> None:
    fail = Recorder("fail", commands=["fail"], gives=("error", "no key sk-abcdefghijklmnop"))
    async with a_group([fail.spec], settings=layers(call=[{"redaction": {}}])) as group:
        assert await group.say("Ann", "/fail") == ["no key ***"]


async def test_a_function_names_filters_of_its_own() -> None:
    guarded, plain = (
        Recorder("guarded", commands=["guarded"], filters=["seldom"]),
        Recorder("plain", commands=["plain"]),
    )
    settings = layers(named={"seldom": {"limits": {"calls_per_minute": 1}}})
    async with a_group([guarded.spec, plain.spec], settings=settings) as group:
        for _ in range(2):
            await group.say("Ann", "/plain")
            await group.say("Ann", "/guarded")
        assert (len(plain.runs), len(guarded.runs)) == (2, 1)
        assert await last_reason(group) == ("refused", "filters.named.seldom.limits.calls_per_minute")


async def test_a_filter_that_is_named_and_not_there_is_found_at_the_start() -> None:
    settings = layers(named={"seldom": {"limits": {"calls_per_minute": 1}}})
    async with a_group([Recorder("act", filters=["seldon"]).spec], settings=settings) as group:
        [found] = group.daemon.functions.faults
        assert "did you mean 'seldom'" in found.message


OWN = """
from dataclasses import replace

async def turn(message, turn, dispatch):
    outcome = await dispatch(message, turn)
    return replace(outcome, messages=tuple(replace(one, text=one.text + " t") for one in outcome.messages))

async def round(round_, ask):
    answer = await ask(round_)
    return replace(answer, text=answer.text + " r" if answer.text else "")

async def run(invocation, proceed):
    result = await proceed(invocation)
    return replace(result, messages=tuple(replace(one, text=one.text + " c") for one in result.messages))

def plain(invocation, proceed):
    return proceed(invocation)

async def short(invocation):
    return None
"""


async def test_filters_of_ones_own_come_from_a_file(tmp_path: Path) -> None:
    file = a_file(tmp_path, OWN)
    own = {
        grain: [{"python": {"file": file, "function": name}}]
        for grain, name in (("turn", "turn"), ("round", "round"), ("call", "run"))
    }
    async with a_group([Recorder("note", commands=["note"]).spec], settings=layers(**own)) as group:
        assert await group.say("Ann", "/note") == ["done c t"]
        group.model.says("Hello.")
        assert await group.say("Ann", "@Rollcall hello") == ["Hello. r t"]


async def test_a_filter_that_leaves_a_message_to_chat_after_an_effect_starts_no_chat(tmp_path: Path) -> None:
    text = """
    from dataclasses import replace
    from function_calls.outcome import OutcomeKind

    async def leave(message, turn, dispatch):
        return replace(await dispatch(message, turn), kind=OutcomeKind.FALLBACK, messages=())
    """
    settings = layers(turn=[{"python": {"file": a_file(tmp_path, dedent(text)), "function": "leave"}}])
    act = Recorder("act", commands=["act"], effect="once")
    look = Recorder("look", commands=["look"])
    async with a_group([act.spec, look.spec], settings=settings) as group:
        group.model.says("Just talk.")
        assert await group.say("Ann", "/act") == []
        assert (len(act.runs), group.model.requests) == (1, [])
        assert await group.say("Ann", "/look") == ["Just talk."]


@pytest.mark.parametrize(
    ("function", "problem"), [("gone", "no `async def gone`"), ("plain", "no `async def"), ("short", "take 2 param")]
)
async def test_a_filter_of_ones_own_that_cannot_be_used_is_found_at_the_start(
    tmp_path: Path, function: str, problem: str
) -> None:
    entry = {"python": {"file": a_file(tmp_path, OWN), "function": function}}
    with pytest.raises(DefinitionError, match=problem):
        async with a_group(settings=layers(call=[entry])):
            pass


@pytest.mark.parametrize("grain", ["turn", "round"])
async def test_a_filter_of_ones_own_that_ends_the_process_only_fails(tmp_path: Path, grain: str) -> None:
    takes = {"turn": "context, turn, proceed", "round": "round_, ask"}[grain]
    file = a_file(tmp_path, f"import sys\n\nasync def leave({takes}):\n    sys.exit(3)\n")
    entry = {"python": {"file": file, "function": "leave"}}
    async with a_group(settings=layers(**{grain: [entry]})) as group:
        group.model.says("Hello.")
        [said] = await group.say("Ann", "@Rollcall hello")
        before, _, after = EN.say("failures.turn", id="|").partition("|")
        assert said.startswith(before)
        assert said.endswith(after)


async def test_a_module_whose_filters_cannot_be_asked_for_is_found_at_the_start(tmp_path: Path) -> None:
    entry = [{"module": {"file": a_file(tmp_path, "def filters():\n    raise SystemExit(3)\n")}}]
    with pytest.raises(DefinitionError, match=r"filters\(\) fails: SystemExit: 3"):
        async with a_group(settings=layers(call=entry)):
            pass


MODULE = """
def filters():
    return [
        {"type": "pre_invocation", "handler": lambda facts: ("skip", "from the module")},
        {"type": "post_chat", "handler": lambda facts: ("continue", {"text": "by the module"})},
    ]
"""


@pytest.mark.requirement("E28")
async def test_a_module_of_tools_brings_filters_before_and_after(tmp_path: Path) -> None:
    entry = [{"module": {"file": a_file(tmp_path, MODULE)}}]
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec], settings=layers(call=entry, round=entry)) as group:
        assert await group.say("Ann", "/note") == ["from the module"]
        group.model.says("Hello.")
        assert await group.say("Ann", "@Rollcall hello") == ["by the module"]
        assert note.runs == []


async def counted(context: MessageContext, arguments: Any, call: Call) -> Any:
    """Number of its runs, according to the state it finds."""
    count = call.state.get("count", 0) + 1
    return ("ok", str(count), {"count": count})


@pytest.mark.requirement("E39")
async def test_what_functions_write_is_remembered_for_the_same_member_and_chat_and_only_so_long(tmp_path: Path) -> None:
    count = Recorder("count", commands=["count"], does=counted)
    settings = layers(turn=[{"memory": {"minutes": 10}}])

    async def counts(group: Group, who: str, **facts: Any) -> str:
        return (await group.say(who, "/count", **facts))[0]

    async with a_group([count.spec], settings=settings, home=tmp_path) as group:
        assert [await counts(group, "Ann") for _ in range(2)] == ["1", "2"]
        assert [await counts(group, "Bob"), await counts(group, "Ann", chat=WORK)] == ["1", "1"]
        clock = group.clock
    async with a_group([count.spec], settings=settings, home=tmp_path, clock=clock) as group:
        assert await counts(group, "Ann") == "3"
        await clock.advance(601)
        assert await counts(group, "Ann") == "1"
        await group.daemon.housekeeping.forget()
        assert await counts(group, "Ann") == "2"


async def test_the_filter_for_logging_shows_each_grain_without_texts() -> None:
    every = [{"logging": {"level": "info"}}]
    async with a_group([Recorder("note").spec], settings=layers(turn=every, round=every, call=every)) as group:
        group.model.says(call("note"), "A secret answer.")
        with capture_logs() as logs:
            await group.say("Ann", "@Rollcall a secret question")
        shown = [one for one in logs if one["event"] in ("turn", "round", "call")]
        assert [one["event"] for one in shown] == ["round", "call", "round", "turn"]
        assert [one.get("calls", one.get("outcome", one.get("reason"))) for one in shown] == [
            ["note"],
            "ok",
            [],
            "function",
        ]
        assert "secret" not in str(shown)
        assert {one["log_level"] for one in shown} == {logging.getLevelName(logging.INFO).lower()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "filters: {call: [{limis: {calls_per_minute: 3}}]}",
            "call[0].limis is not a setting; did you mean 'limits'?",
        ),
        ("filters: {turn: [{blacklist: {word: [a]}}]}", "did you mean 'words'?"),
        ("filters: {call: [{}]}", "filters.call[0] has to name one filter"),
        ("filters: {call: [{logging: {}, redaction: {}}]}", "filters.call[0] has to name one filter"),
        ("filters: {round: [{limits: {calls_per_minute: 3}}]}", "filters.round[0].limits is not a setting"),
        ("filters: {call: [{redaction: {patterns: ['(']}}]}", "is no regular expression"),
        ('filters: {turn: [{blacklist: {words: ["\\u200b "]}}]}', "has to hold something that can be seen"),
        (
            "filters: {named: {audit: {loging: {}}}}",
            "named.audit.loging is not a setting; did you mean 'logging'?",
        ),
    ],
)
def test_a_filter_that_is_not_known_or_cannot_be_is_a_fault_of_the_settings(
    tmp_path: Path, text: str, message: str
) -> None:
    assert message in str(faults_of(tmp_path, text)[-1])


def test_filters_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path, "filters: {call: [{redaction: {}}, {logging: {}}, {limits: {calls_per_minute: 3}}]}"
    )
    assert [one.chosen[0] for one in settings.filters.call] == ["redaction", "logging", "limits"]


@pytest.mark.requirement("D55")
@pytest.mark.parametrize(
    ("verdict", "key"),
    [
        ("harmless", ""),
        (" Harmless\n", ""),
        ("harmful", "harmful"),
        ("It is harmless.", "harm_unclear"),
        ("harmless, not harmful", "harm_unclear"),
        (ModelError(ErrorCode.PROVIDER_ERROR, "down"), "harm_unclear"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_risky_function_runs_only_if_the_model_finds_it_harmless(verdict: Any, key: str, language: str) -> None:
    order = Recorder("order", effect="once", commands=["order"])
    settings = {"language": language, **layers(call=[{"harm": {}}])}
    async with a_group([order.spec], settings=settings) as group:
        group.model.says(verdict)
        said = await group.say("Ann", "/order")
        assert len(order.calls) == (not key)
        if key:
            assert said == [Texts().of(language).say(f"filters.{key}", name="order")]
            assert await last_reason(group) == ("refused", "filters.call[0].harm")


@pytest.mark.requirement("D55")
async def test_the_check_for_harm_concerns_the_named_effects_and_tags_and_counts_towards_the_budget() -> None:
    look, dig = Recorder("look", commands=["look"]), Recorder("dig", commands=["dig"], tags=["risky"])
    settings = layers(call=[{"harm": {"effects": [], "tags": ["risky"], "model": "guard"}}])
    async with a_group([look.spec, dig.spec], settings={**settings, "budgets": {"chat": {"requests": 1}}}) as group:
        await group.say("Ann", "/look")
        assert group.model.requests == []
        group.model.says("harmless", "harmless")
        await group.say("Ann", "/dig")
        (request,) = group.model.requests
        assert request.models == ("guard",)
        assert "never an instruction" in request.messages[0].content
        assert await group.say("Ann", "/dig") == [EN.say("filters.harm_unclear", name="dig")], "the budget is used up"
        assert (len(look.calls), len(dig.calls)) == (1, 1)
