"""From a message to an outcome: commands, model and chat."""

from __future__ import annotations

from typing import Any

import pytest

from function_calls.call import Path
from function_calls.context import MessageContext
from function_calls.outcome import OutcomeKind
from function_calls.result import normalised
from function_calls.spec import FunctionResult, Message
from services.refs import ErrorCode, MemberRef, ReasonCode, Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call, calls, says
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.fakes.wired_model import over_each_protocol
from tests.function_calls.routing import Routing, said

ANN = MemberRef("test", "bot", "ann")


@pytest.mark.requirement("D1", "D10", "D23", "D24", "D28")
@over_each_protocol
@pytest.mark.parametrize(
    ("text", "addressed", "kind", "reason", "requests"),
    [
        ("/weather Oslo", False, OutcomeKind.SENT, ReasonCode.COMMAND, 0),
        ("/WEATHER Oslo", True, OutcomeKind.SENT, ReasonCode.COMMAND, 0),
        ("weather Oslo", True, OutcomeKind.SENT, ReasonCode.COMMAND, 0),
        ("天气 Oslo", True, OutcomeKind.SENT, ReasonCode.COMMAND, 0),
        ("/天气 Oslo", False, OutcomeKind.SENT, ReasonCode.COMMAND, 0),
        ("weather Oslo", False, OutcomeKind.SENT, ReasonCode.CHAT, 1),
        ("is it cold?", True, OutcomeKind.SENT, ReasonCode.CHAT, 1),
        ("/wether Oslo", True, OutcomeKind.SENT, ReasonCode.UNKNOWN_COMMAND, 0),
        ("//weather", True, OutcomeKind.SENT, ReasonCode.CHAT, 1),
        ("/etc/passwd", True, OutcomeKind.SENT, ReasonCode.CHAT, 1),
        ("/ weather", True, OutcomeKind.SENT, ReasonCode.CHAT, 1),
        ("/", True, OutcomeKind.SENT, ReasonCode.CHAT, 1),
    ],
)
async def test_a_command_goes_straight_to_its_function_and_the_rest_to_the_model(
    text: str, addressed: bool, kind: OutcomeKind, reason: ReasonCode, requests: int
) -> None:
    weather = Recorder("weather", CITY, commands=["weather", "天气"])
    routing = Routing(weather, script=[says("Hm.")])
    outcome = await routing.hears(text, addressed=addressed)
    assert (outcome.kind, outcome.reason) == (kind, reason)
    assert len(routing.model.requests) == requests
    assert weather.runs == ([{"city": "Oslo"}] if reason is ReasonCode.COMMAND else [])


@pytest.mark.parametrize("space", [" ", "  ", "\n", "\t", "\u3000", "\u00a0"])
async def test_any_white_space_ends_a_command_word(space: str) -> None:
    weather = Recorder("weather", CITY, commands=["天气", "weather now"])
    routing = Routing(weather)
    await routing.hears(f"/天气{space}奥斯陆")
    await routing.hears(f"/weather{space}now{space}Oslo")
    assert weather.runs == [{"city": "奥斯陆"}, {"city": "Oslo"}]


async def test_an_unknown_command_is_answered_with_near_ones() -> None:
    routing = Routing(Recorder("weather", commands=["weather"]))
    outcome = await routing.hears("/wether")
    assert said(outcome) == ["I don't know the command /wether. Did you mean /weather?"]
    assert said(await routing.hears("/zzz")) == ["I don't know the command /zzz."]


@pytest.mark.requirement("D14", "D28")
@over_each_protocol
async def test_with_function_calling_off_commands_still_work_and_the_rest_is_chat() -> None:
    weather = Recorder("weather", CITY, commands=["weather"])
    routing = Routing(weather, script=[says("Just talking.")], functions_on=False)
    assert (await routing.hears("/weather Oslo")).reason is ReasonCode.COMMAND
    outcome = await routing.hears("is it cold?")
    assert not outcome
    assert outcome.reason is ReasonCode.FUNCTIONS_OFF
    answer = await routing.router.run_chat_fallback(a_message("is it cold?"), routing.a_turn())
    assert (said(answer), answer.reason) == (["Just talking."], ReasonCode.CHAT)
    assert routing.model.requests[0].offer is None


def _gives(value: Any) -> FunctionResult:
    return normalised(value)


@pytest.mark.requirement("D22", "D34", "D44")
@pytest.mark.parametrize(
    ("effect", "gives", "kind"),
    [
        ("read", FunctionResult(messages=(Message("hi"),)), OutcomeKind.SENT),
        ("read", FunctionResult(), OutcomeKind.SILENT),
        ("read", True, OutcomeKind.SILENT),
        ("read", "", OutcomeKind.SILENT),
        ("read", FunctionResult(handled=False), OutcomeKind.FALLBACK),
        ("read", False, OutcomeKind.FALLBACK),
        ("read", FunctionResult(handled=False, messages=(Message("hi"),)), OutcomeKind.SENT),
        ("idempotent", FunctionResult(messages=(Message("hi"),)), OutcomeKind.SENT),
        ("idempotent", FunctionResult(), OutcomeKind.SILENT),
        ("idempotent", FunctionResult(handled=False), OutcomeKind.SILENT),
        ("idempotent", FunctionResult(handled=False, messages=(Message("hi"),)), OutcomeKind.SENT),
        ("once", FunctionResult(messages=(Message("hi"),)), OutcomeKind.SENT),
        ("once", FunctionResult(), OutcomeKind.SILENT),
        ("once", False, OutcomeKind.SILENT),
    ],
)
async def test_what_is_left_to_do_follows_from_handled_messages_and_effect(
    effect: str, gives: Any, kind: OutcomeKind
) -> None:
    routing = Routing(Recorder("act", commands=["act"], effect=effect, gives=gives))
    outcome = await routing.hears("/act")
    assert outcome.kind is kind
    assert bool(outcome) is (kind is not OutcomeKind.FALLBACK)
    assert said(outcome) == (["hi"] if kind is OutcomeKind.SENT else [])


@pytest.mark.requirement("D34", "D44")
async def test_mentions_and_files_of_a_result_stay_on_its_messages() -> None:
    routing = Routing(Recorder("greet", commands=["greet"], gives=FunctionResult.say("Hi!", mentions=(ANN,))))
    outcome = await routing.hears("/greet")
    assert outcome.messages[0].mentions == (ANN,)
    assert FunctionResult(messages=outcome.messages).at_list == (ANN,)


async def test_data_without_messages_is_shown_as_text_to_whoever_gave_the_command() -> None:
    routing = Routing(Recorder("facts", commands=["facts"], gives={"name": "Ann"}))
    assert said(await routing.hears("/facts")) == ['{\n  "name": "Ann"\n}']


@pytest.mark.parametrize(
    ("text", "error", "reason", "words"),
    [
        ("/roll nine", ErrorCode.BAD_ARGUMENTS, ReasonCode.USAGE, "“sides” must be: a whole number from 2 to 100."),
        ("/roll 6 7 8", ErrorCode.BAD_ARGUMENTS, ReasonCode.USAGE, "There is no option called “8” here."),
        ("/roll 6 times=0", ErrorCode.BAD_ARGUMENTS, ReasonCode.USAGE, "“times” must be: a whole number, at least 1."),
    ],
)
async def test_a_wrong_command_line_is_answered_with_what_is_allowed_and_the_usage(
    text: str, error: ErrorCode, reason: ReasonCode, words: str
) -> None:
    roll = Recorder(
        "roll",
        {
            "sides": {"type": "integer", "minimum": 2, "maximum": 100, "required": True},
            "times": {"type": "integer", "minimum": 1},
        },
        commands=["roll"],
    )
    outcome = await Routing(roll).hears(text)
    assert (outcome.error, outcome.reason) == (error, reason)
    assert said(outcome) == [f"{words}\nUsage: /roll <sides> [times]"]
    assert roll.runs == []


async def test_a_member_who_may_not_call_it_learns_nothing_of_its_arguments() -> None:
    ban = Recorder("ban", {"days": {"type": "integer"}}, commands=["ban"], roles="admin")
    routing = Routing(ban)
    for line in ("/ban 1", "/ban 1 2 3", "/ban many"):
        outcome = await routing.hears(line)
        assert (outcome.reason, said(outcome)) == (ReasonCode.REFUSED, ["Only admins and above can use “/ban”."])
    assert ban.runs == []


@pytest.mark.requirement("D2", "D11", "D12", "D25", "E37", "D28")
@over_each_protocol
async def test_model_command_and_program_run_a_function_alike() -> None:
    weather = Recorder("weather", CITY, commands=["weather"], gives=("ok", {"celsius": 3}))
    routing = Routing(weather, script=[calls(call("weather", city="Oslo")), says("3 degrees")])
    await routing.hears("/weather Oslo")
    await routing.hears("cold in oslo?")
    by_program = await routing.invoke("weather", raw={"city": "Oslo"}, path=Path.API)
    assert weather.runs == [{"city": "Oslo"}] * 3
    assert [result for _, result in routing.recorded] == [by_program] * 3
    assert [run.path for run, _ in routing.recorded] == [Path.COMMAND, Path.MODEL, Path.API]


@pytest.mark.requirement("D45")
async def test_a_timer_takes_the_same_road_with_filters_and_log() -> None:
    seen: list[str] = []

    async def note(invocation: Any, proceed: Any) -> FunctionResult:
        seen.append(invocation.spec.name)
        result: FunctionResult = await proceed(invocation)
        return result

    remind = Recorder("remind", CITY, offered_to=["timer"])
    routing = Routing(remind, filters=[note])
    assert (await routing.invoke("remind", raw={"city": "Oslo"}, path=Path.TIMER)).ok
    assert (seen, [run.path for run, _ in routing.recorded]) == (["remind"], [Path.TIMER])
    refused = await routing.invoke("remind", raw={"city": "Oslo"}, path=Path.MODEL)
    assert refused.error is not None
    assert refused.error.code is ErrorCode.REFUSED


@pytest.mark.requirement("C15")
@pytest.mark.parametrize(
    ("gives", "texts", "error"),
    [
        ({"status": "success", "msg": "Built."}, ["Built."], None),
        ({"status": "error", "msg": "No compiler."}, ["No compiler."], ErrorCode.FAILED),
    ],
)
async def test_a_status_and_a_message_are_a_result(gives: Any, texts: list[str], error: ErrorCode | None) -> None:
    outcome = await Routing(Recorder("build", commands=["build"], gives=gives)).hears("/build")
    assert (said(outcome), outcome.error) == (texts, error)


@pytest.mark.requirement("D22", "D28")
@over_each_protocol
async def test_a_handler_that_only_says_no_leaves_the_message_to_chat() -> None:
    routing = Routing(Recorder("old", commands=["old"], gives=False), script=[says("Let us talk.")])
    context: MessageContext = a_message("/old")
    assert not await routing.router.dispatch(context, routing.a_turn())
    outcome = await routing.router.run_chat_fallback(context, routing.a_turn())
    assert said(outcome) == ["Let us talk."]


async def test_the_same_command_is_the_same_policy_in_any_case_of_letters() -> None:
    admin = Recorder("admin", CITY, commands=["admin"], roles="admin")
    routing = Routing(admin)
    for word in ("/admin x", "/ADMIN x", "/Admin x"):
        assert (await routing.hears(word)).reason is ReasonCode.REFUSED
        assert (await routing.hears(a_message(word, a_member("Olga", Role.OWNER)))).reason is ReasonCode.COMMAND
    assert len(admin.runs) == 3


@pytest.mark.requirement("D28")
@over_each_protocol
@pytest.mark.parametrize(
    "text", ["weather is nice today", "weather in Oslo", "weather there?", "Weather for the weekend", "weather again?"]
)
async def test_a_sentence_that_begins_with_a_command_word_is_left_to_the_model(text: str) -> None:
    weather = Recorder("weather", CITY, commands=["weather"])
    routing = Routing(weather, script=[says("I see.")])
    assert said(await routing.hears(text)) == ["I see."]
    assert weather.runs == []


@pytest.mark.parametrize("text", ["weather Oslo", "weather New York", "天气 上海", "/weather is"])
async def test_a_command_word_with_its_arguments_is_a_command_with_or_without_a_slash(text: str) -> None:
    weather = Recorder("weather", CITY, commands=["weather", "天气"])
    await Routing(weather).hears(text)
    assert len(weather.runs) == 1
