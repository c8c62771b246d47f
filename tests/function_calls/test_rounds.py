"""A message and a model: the request, the effects of its calls, and all kinds of failures."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from config.texts import Texts
from function_calls.context import MessageContext
from function_calls.outcome import OutcomeKind
from function_calls.spec import FunctionResult, Message, ToolError
from services.llm.model import ModelError, ModelMessage, ModelRequest
from services.refs import ErrorCode, ReasonCode
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call, calls, says, unreadable_call
from tests.fakes.wired_model import at_hand, name_of, not_over, ways_but
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, said

pytestmark = [pytest.mark.requirement("D28"), pytest.mark.usefixtures("each_protocol")]

EN = Texts().of("en")


def told(request: ModelRequest) -> list[tuple[str, Any]]:
    """Results in a request, by call id."""
    return [(one.call_id, orjson.loads(one.content)) for one in request.messages if one.role == "tool"]


def is_paired(messages: list[ModelMessage]) -> bool:
    """Whether each call has exactly one result, immediately after its message and in order, as providers require."""
    place = 0
    while place < len(messages):
        wanted = [one.id for one in messages[place].calls]
        answers = [one.call_id for one in messages[place + 1 : place + 1 + len(wanted)]]
        if answers != wanted or (messages[place].role == "tool"):
            return False
        place += 1 + len(wanted)
    return True


@pytest.mark.requirement("C1", "D7", "D11", "D59", "B12")
async def test_a_result_goes_back_to_the_model_which_then_answers() -> None:
    weather = Recorder("weather", CITY, gives=("ok", {"celsius": 3}))
    routing = Routing(weather, script=[calls(call("weather", city="Oslo")), says("It is 3 degrees.")])
    outcome = await routing.hears("cold in oslo?")
    assert (said(outcome), outcome.reason, outcome.detail) == (["It is 3 degrees."], ReasonCode.FUNCTION, "weather")
    assert weather.runs == [{"city": "Oslo"}]
    assert told(routing.model.requests[1]) == [("c1", {"ok": True, "result": {"celsius": 3}})]
    assert [len(request.messages) for request in routing.model.requests] == [2, 4]


@pytest.mark.requirement("C1", "C4", "E39")
async def test_several_calls_of_one_answer_run_in_order_and_each_reads_what_those_before_it_wrote() -> None:
    async def add(context: MessageContext, arguments: dict[str, Any], call: Any) -> Any:
        return len(call.state.get("items", [])), {"items": [*call.state.get("items", []), arguments["city"]]}

    note = Recorder("note", CITY, does=add, serial=True)
    asked = calls(call("note", "a", city="Oslo"), call("note", "b", city="Rome"), call("note", "c", city="Bern"))
    routing = Routing(note, script=[asked, calls(call("note", "d", city="Lima")), says("Noted.")])
    await routing.hears("note four cities")
    assert [one["city"] for one in note.runs] == ["Oslo", "Rome", "Bern", "Lima"]
    assert [result["result"] for _, result in told(routing.model.requests[2])] == [0, 1, 2, 3]
    assert routing.turn.memory.state == {"items": ["Oslo", "Rome", "Bern", "Lima"]}


@not_over("json_text", "xml_text", because="where one call of a text cannot be read, none of them is")
async def test_every_call_is_answered_under_its_own_id_whatever_became_of_it() -> None:
    weather = Recorder("weather", CITY, gives=("ok", "cold"))
    broken = Recorder("broken", gives=RuntimeError("secret"))
    asked = calls(
        call("weather", "a", city="Oslo"),
        call("nothing_like_it", "b"),
        unreadable_call("weather", ErrorCode.INVALID_JSON, "c"),
        call("broken", "d"),
        call("weather", "e", city="Oslo"),
        call("weather", "f", city=5, extra=1),
    )
    routing = Routing(weather, broken, script=[asked, says("Well.")])
    outcome = await routing.hears("do many things")
    request = routing.model.requests[1]
    assert is_paired(list(request.messages))
    errors = {call_id: result.get("error") for call_id, result in told(request)}
    assert errors == {
        "a": None,
        "b": "unknown_function",
        "c": "invalid_json",
        "d": "failed",
        "e": None,
        "f": "bad_arguments",
    }
    reason = EN.say("refusals.unknown_function", name="nothing_like_it").rstrip(".")
    assert said(outcome) == ["Well.", EN.say("claims.not_done", names=reason)]


@pytest.mark.requirement("D25", "D26", "E32")
async def test_the_model_is_offered_what_this_member_may_call_here_and_nothing_else() -> None:
    routing = Routing(
        Recorder("weather", CITY, examples=["weather in {city}"]),
        Recorder("ban", roles="admin"),
        Recorder("diary", scope="private"),
        Recorder("cleanup", offered_to=["timer"]),
        Recorder("todo.add", effect="once", commands=["todo add"]),
        script=[says("Hello.")],
    )
    await routing.hears("hello")
    offer = routing.model.requests[0].offer
    assert offer is not None
    assert [(one.name, one.original, one.writes) for one in offer.functions] == [
        ("weather", "weather", False),
        ("todo_add", "todo.add", True),
    ]
    weather = offer.by_name["weather"]
    assert (weather.examples, weather.parameters["required"]) == (("weather in {city}",), ["city"])
    assert offer.by_name["todo_add"].commands == ("todo add",)


async def test_the_same_members_are_offered_the_same_object_with_its_encoded_bytes() -> None:
    routing = Routing(Recorder("weather", CITY), script=[says("Hello."), says("Hello.")])
    await routing.hears("hello")
    await routing.hears("hello again")
    assert routing.model.requests[0].offer is routing.model.requests[1].offer


@pytest.mark.requirement("D51")
async def test_the_prompt_names_no_function_because_functions_are_offered_natively() -> None:
    routing = Routing(Recorder("weather", CITY, description="Tells the sky over a town."), script=[says("Hello.")])
    await routing.hears("hello")
    (request,) = routing.model.requests
    prompt = "\n".join(message.content for message in request.messages)
    assert request.offer is not None
    assert "weather" not in prompt
    assert "Tells the sky" not in prompt
    assert "city" not in prompt


@pytest.mark.parametrize("name", ["todo.add", "todo_add"])
async def test_a_function_is_found_under_its_own_name_and_the_one_it_was_offered_under(name: str) -> None:
    add = Recorder("todo.add", CITY, effect="idempotent", return_direct=True)
    routing = Routing(add, script=[calls(call(name, city="Oslo"))])
    assert said(await routing.hears("add oslo")) == ["done"]


async def test_what_a_read_says_waits_for_the_models_words_and_what_an_effect_says_does_not() -> None:
    read = Recorder("read", gives="a page of data")
    act = Recorder("act", effect="once", gives="Booked.")
    routing = Routing(read, act, script=[calls(call("read", "a"), call("act", "b")), says("There you are.")])
    assert said(await routing.hears("book it")) == ["Booked.", "There you are."]


async def test_a_function_that_answers_directly_ends_the_turn_without_asking_the_model_again() -> None:
    routing = Routing(Recorder("help", gives="All I can do.", return_direct=True), script=[calls(call("help"))])
    outcome = await routing.hears("what can you do")
    assert (said(outcome), len(routing.model.requests)) == (["All I can do."], 1)


async def test_the_model_is_asked_again_when_only_some_of_its_calls_answer_directly() -> None:
    routing = Routing(
        Recorder("help", gives="All I can do.", return_direct=True),
        Recorder("weather", CITY),
        script=[calls(call("help", "a"), call("weather", "b", city="Oslo")), says("Both done.")],
    )
    assert said(await routing.hears("help and weather")) == ["Both done."]


async def test_a_function_answers_directly_although_an_earlier_call_was_faulty() -> None:
    routing = Routing(
        Recorder("help", {"count": {"type": "integer"}}, gives="All I can do.", return_direct=True),
        script=[calls(call("help", count="many")), calls(call("help", count=1))],
    )
    assert said(await routing.hears("what can you do")) == ["All I can do."]


@at_hand("no provider says that nothing is to be added")
async def test_a_final_answer_of_the_model_is_not_asked_about_again() -> None:
    weather = Recorder("weather", CITY, gives="Cold.")
    routing = Routing(weather, script=[calls(call("weather", city="Oslo"), final=True)])
    assert said(await routing.hears("weather oslo")) == ["Cold."]


@pytest.mark.parametrize(
    "wanted", [call("gone", city="Oslo"), unreadable_call("weather", ErrorCode.TRUNCATED), call("weather", city=[1])]
)
@at_hand("no provider says that nothing is to be added")
async def test_a_final_answer_that_cannot_be_run_is_not_passed_over_in_silence(wanted: Any) -> None:
    weather = Recorder("weather", CITY)
    routing = Routing(weather, script=[calls(wanted, final=True)])
    outcome = await routing.hears("weather oslo")
    assert outcome.kind is OutcomeKind.SENT
    assert all(said(outcome))
    assert weather.runs == []


# -- invalid calls


@pytest.mark.requirement("D29", "B13", "B23")
async def test_a_faulty_call_goes_back_to_the_model_once_with_the_fields_that_are_wrong() -> None:
    roll = Recorder("roll", {"sides": {"type": "integer", "minimum": 2, "required": True}}, gives="4")
    routing = Routing(roll, script=[calls(call("roll", sides="many")), calls(call("roll", sides=6)), says("A 4.")])
    assert said(await routing.hears("roll a die")) == ["A 4."]
    assert roll.runs == [{"sides": 6}]
    ((_, fault),) = told(routing.model.requests[1])
    assert (fault["error"], fault["fields"]) == ("bad_arguments", ["sides"])
    assert "a whole number, at least 2" in fault["message"]


@pytest.mark.requirement("D29")
async def test_a_second_faulty_call_ends_in_plain_words_and_nothing_runs() -> None:
    roll = Recorder("roll", {"sides": {"type": "integer", "minimum": 2, "required": True}}, effect="once")
    routing = Routing(roll, script=[calls(call("roll", sides="many")), calls(call("roll", sides=1))])
    outcome = await routing.hears("roll a die")
    assert said(outcome) == ["“sides” must be: a whole number, at least 2."]
    assert (outcome.reason, outcome.error) == (ReasonCode.MODEL_FAILED, ErrorCode.SCHEMA_MISMATCH)
    assert (roll.runs, routing.turn.memory.effects) == ([], 0)


FAULTS = {
    ErrorCode.TRUNCATED: ways_but(),
    # Values in XML are not JSON.
    ErrorCode.INVALID_JSON: ways_but("xml_text"),
    ErrorCode.NOT_AN_OBJECT: ways_but("xml_text"),
    # A separate field for arguments is JSON or not; only in text can there be no call at all.
    ErrorCode.MALFORMED_BY_PROVIDER: ways_but("openai", "anthropic"),
}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("fault", "each_protocol"),
    [pytest.param(fault, way, id=f"{name_of(way)}-{fault}") for fault, ways in FAULTS.items() for way in ways],
    indirect=["each_protocol"],
)
async def test_a_call_that_cannot_be_read_never_runs(fault: ErrorCode) -> None:
    weather = Recorder("weather", CITY)
    routing = Routing(weather, script=[calls(unreadable_call("weather", fault))] * 2)
    outcome = await routing.hears("weather oslo")
    assert said(outcome) == [EN.say("failures.model_confused")]
    assert (outcome.error, weather.runs) == (fault, [])
    assert told(routing.model.requests[1])[0][1]["error"] == fault.value


@not_over("openai", "anthropic", because="there a call that names no function is no call")
async def test_a_call_that_names_no_function_is_said_to_be_unreadable_rather_than_unknown() -> None:
    script = [calls(unreadable_call("", ErrorCode.MALFORMED_BY_PROVIDER)), says("Well.")]
    routing = Routing(Recorder("weather", CITY), script=script)
    assert said(await routing.hears("weather oslo")) == ["Well."]
    assert told(routing.model.requests[1])[0][1]["error"] == "malformed_by_provider"


@pytest.mark.requirement("E33", "E35")
async def test_an_unknown_function_is_said_to_be_unknown_and_the_model_may_try_another() -> None:
    weather = Recorder("weather", CITY, gives=("ok", 3))
    wrong = call("get\u200b_weather\n" + "x" * 200, city="Oslo")
    routing = Routing(weather, script=[calls(wrong), calls(call("weather", city="Oslo")), says("3.")])
    outcome = await routing.hears("weather oslo")
    assert (said(outcome), outcome.error) == (["3."], ErrorCode.UNKNOWN_FUNCTION)
    ((_, result),) = told(routing.model.requests[1])
    assert result["error"] == "unknown_function"
    assert len(result["message"]) < 120


async def test_a_function_that_was_not_offered_is_refused_when_it_is_called_anyway() -> None:
    ban = Recorder("ban", CITY, roles="admin", effect="once")
    # Calls in the text of an answer are parsed only if functions are offered.
    routing = Routing(Recorder("weather"), ban, script=[calls(call("ban", city="Oslo")), says("You may not.")])
    assert said(await routing.hears("ban oslo")) == ["You may not."]
    assert (ban.runs, told(routing.model.requests[1])[0][1]["error"]) == ([], "refused")


# -- limits


async def test_identical_reads_of_one_answer_are_run_only_so_often_and_then_answered_from_before() -> None:
    weather = Recorder("weather", CITY, gives=("ok", "cold"))
    asked = calls(*[call("weather", f"c{n}", city="Oslo") for n in range(5)])
    routing = Routing(weather, script=[asked, says("Cold.")], settings={"identical_calls": 3})
    assert said(await routing.hears("weather oslo")) == ["Cold."]
    assert len(weather.runs) == 3
    assert [result["result"] for _, result in told(routing.model.requests[1])] == ["cold"] * 5


@pytest.mark.parametrize("effect", ["idempotent", "once"])
async def test_an_effect_called_twice_with_the_same_arguments_happens_and_is_said_once(effect: str) -> None:
    result = FunctionResult(messages=(Message("Added."),), data={"number": 1})
    add = Recorder("add", {"a": {"type": "string"}, "b": {"type": "string"}}, effect=effect, gives=result)
    routing = Routing(
        add,
        script=[
            calls(call("add", "x", a="1", b="2"), call("add", "y", b="2", a="1")),
            calls(call("add", a="1", b="2")),
            says("Done."),
        ],
    )
    assert said(await routing.hears("add it")) == ["Added.", "Done."]
    assert len(add.runs) == 1
    assert [one["result"] for _, one in told(routing.model.requests[2])] == [{"number": 1}] * 3


async def test_one_answer_with_too_many_calls_runs_none_of_them() -> None:
    act = Recorder("act", {"n": {"type": "integer"}}, effect="once")
    many = calls(*[call("act", f"c{n}", n=n) for n in range(5)])
    routing = Routing(act, script=[many, says("Sorry.")], settings={"max_calls": 4})
    outcome = await routing.hears("do five things")
    assert (said(outcome), outcome.error, act.runs) == (["Sorry."], ErrorCode.TOO_MANY_CALLS, [])
    assert is_paired(list(routing.model.requests[1].messages))


async def test_a_turn_that_calls_too_often_is_ended_with_a_sentence() -> None:
    act = Recorder("act", {"n": {"type": "integer"}})
    script = [calls(call("act", f"c{n}", n=n)) for n in range(4)]
    routing = Routing(act, script=script, settings={"max_calls": 2})
    outcome = await routing.hears("count")
    assert said(outcome)[-1] == EN.say("failures.too_many_calls")
    assert (len(act.runs), outcome.error) == (2, ErrorCode.TOO_MANY_CALLS)


async def test_the_last_round_allows_no_more_calls_and_its_words_are_the_answer() -> None:
    weather = Recorder("weather", {"n": {"type": "integer"}}, gives=("ok", 1))
    script = [calls(call("weather", f"c{n}", n=n)) for n in range(2)]
    routing = Routing(weather, script=[*script, says("That is all I found.")], settings={"max_rounds": 3})
    assert said(await routing.hears("go on")) == ["That is all I found."]
    assert [request.tool_choice for request in routing.model.requests] == ["auto", "auto", "none"]
    assert routing.model.requests[2].messages[-1].role == "system"
    assert routing.model.requests[2].offer is routing.model.requests[0].offer


async def test_a_model_that_calls_even_in_the_last_round_is_cut_off() -> None:
    act = Recorder("act", {"n": {"type": "integer"}}, effect="once", gives="Done.")
    script = [calls(call("act", f"c{n}", n=n)) for n in range(3)]
    routing = Routing(act, script=script, settings={"max_rounds": 3})
    outcome = await routing.hears("go on")
    assert (said(outcome), len(act.runs)) == (["Done.", "Done."], 2)
    assert routing.model.answers_left == 0


# -- no function fits


@pytest.mark.requirement("D52", "D23")
async def test_none_leaves_the_message_to_chat() -> None:
    routing = Routing(Recorder("weather", CITY), script=[calls(call("none"))])
    outcome = await routing.hears("how are you?")
    assert (outcome.kind, outcome.reason) == (OutcomeKind.FALLBACK, ReasonCode.CHAT)
    assert not outcome


@pytest.mark.requirement("D52")
async def test_insufficient_arguments_asks_the_person() -> None:
    routing = Routing(
        Recorder("weather", CITY), script=[calls(call("insufficient_arguments", question="For which town?"))]
    )
    outcome = await routing.hears("how is the weather?")
    assert (said(outcome), outcome.reason) == (["For which town?"], ReasonCode.ASKED)


@pytest.mark.requirement("D52", "D53")
async def test_the_answer_to_insufficient_arguments_resumes_the_request() -> None:
    weather = Recorder("weather", CITY, gives="Sunny.")
    script = [calls(call("insufficient_arguments", question="For which town?")), calls(call("weather", city="Oslo"))]
    routing = Routing(weather, script=[*script, says("It is sunny.")])
    asked = await routing.hears("how is the weather?")
    answered = await routing.hears_answer(asked, "Oslo")
    assert (said(answered), weather.runs) == (["It is sunny."], [{"city": "Oslo"}])
    messages = routing.model.requests[1].messages
    assert "how is the weather?" in messages[-3].content
    assert orjson.loads(messages[-1].content) == {"ok": True, "result": {"answer": "Oslo"}}


async def test_cancelling_insufficient_arguments_asks_no_model() -> None:
    routing = Routing(Recorder("weather", CITY), script=[calls(call("insufficient_arguments", question="Where?"))])
    asked = await routing.hears("how is the weather?")
    assert said(await routing.hears_answer(asked, "cancel")) == [EN.say("questions.dropped")]
    assert len(routing.model.requests) == 1


@pytest.mark.requirement("D53")
@pytest.mark.parametrize("more", [{}, {"question": "For which town?"}])
async def test_the_confirmation_prompt_is_asked_if_arguments_of_its_function_are_missing(more: dict[str, Any]) -> None:
    book = Recorder("book", CITY, effect="once", confirmation_prompt="Which trip do you want to book? {city}")
    asks = calls(call("insufficient_arguments", function="book", **more))
    routing = Routing(book, script=[asks, calls(call("book", city="Oslo")), says("Booked.")])
    asked = await routing.hears("book a trip")
    assert said(asked) == ["Which trip do you want to book?"]
    confirmed = await routing.hears_answer(asked, "Oslo")
    assert (said(confirmed), book.runs) == (["Which trip do you want to book? Oslo"], [])
    await routing.hears_answer(confirmed, "yes")
    assert book.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("D52")
@pytest.mark.parametrize("arguments", [{}, {"question": "  "}, {"question": [5]}])
async def test_insufficient_arguments_without_a_question_leaves_the_message_to_chat(arguments: dict[str, Any]) -> None:
    routing = Routing(Recorder("weather", CITY), script=[calls(call("insufficient_arguments", **arguments))])
    assert (await routing.hears("how is the weather?")).kind is OutcomeKind.FALLBACK


async def test_after_an_effect_none_is_no_way_back_to_chat() -> None:
    act = Recorder("act", effect="once", gives="Booked.")
    routing = Routing(act, script=[calls(call("act")), calls(call("none"))])
    outcome = await routing.hears("book it")
    assert (outcome.kind, said(outcome)) == (OutcomeKind.SENT, ["Booked."])


async def test_a_function_of_ones_own_called_none_is_a_function_like_others() -> None:
    mine = Recorder("none", gives="None at all.", return_direct=True)
    assert said(await Routing(mine, script=[calls(call("none"))]).hears("none?")) == ["None at all."]


# -- model failures


@pytest.mark.parametrize(
    ("code", "key"),
    [
        (ErrorCode.PROVIDER_ERROR, "model.provider_error"),
        (ErrorCode.TIMEOUT, "model.timeout"),
        (ErrorCode.CONTENT_FILTERED, "model.content_filtered"),
        (ErrorCode.TRUNCATED, "model.truncated"),
        (ErrorCode.EMPTY_RESPONSE, "model.empty_response"),
        (ErrorCode.INVALID_JSON, "model.invalid_json"),
        (ErrorCode.NOT_AN_OBJECT, "model.not_an_object"),
        (ErrorCode.MALFORMED_BY_PROVIDER, "model.malformed_by_provider"),
        (ErrorCode.LEAKED_MARKUP, "model.leaked_markup"),
        (ErrorCode.STREAM_INCOMPLETE, "model.stream_incomplete"),
        (ErrorCode.ENVIRONMENT, "model.provider_error"),
    ],
)
@at_hand("which bytes lead to which error is a matter of each client's own tests")
async def test_every_failure_of_the_model_ends_in_its_sentence_and_nothing_runs(code: ErrorCode, key: str) -> None:
    weather = Recorder("weather", CITY, effect="once")
    error = ModelError(code, "a stranger's words: sk-secret")
    for language in ("en", "zh"):
        phrases = Texts().of(language)
        routing = Routing(weather, script=[error], texts=phrases)
        outcome = await routing.hears("weather oslo")
        assert said(outcome) == [phrases.say(key)]
        assert (outcome.kind, outcome.reason, outcome.error) == (OutcomeKind.SENT, ReasonCode.MODEL_FAILED, code)
        routing = Routing(weather, script=[error], texts=phrases)
        chat = await routing.router.run_chat_fallback(a_message("hello"), routing.a_turn())
        assert (said(chat), chat.error) == ([phrases.say(key)], code)
    assert weather.runs == []


async def test_after_an_effect_a_failing_model_changes_nothing_about_what_is_said() -> None:
    act = Recorder("act", effect="once", gives="Booked.")
    routing = Routing(act, script=[calls(call("act")), ModelError(ErrorCode.PROVIDER_ERROR, "down")])
    outcome = await routing.hears("book it")
    assert (said(outcome), outcome.reason, outcome.error) == (
        ["Booked."],
        ReasonCode.FUNCTION,
        ErrorCode.PROVIDER_ERROR,
    )


async def test_what_was_read_is_said_when_the_model_fails_to_put_it_in_words() -> None:
    weather = Recorder("weather", CITY, gives="Oslo: 3 °C")
    routing = Routing(weather, script=[calls(call("weather", city="Oslo")), ModelError(ErrorCode.TIMEOUT, "slow")])
    assert said(await routing.hears("weather oslo")) == ["Oslo: 3 °C"]


async def test_a_chat_answer_that_is_only_calls_is_no_answer_and_runs_nothing() -> None:
    weather = Recorder("weather", CITY, effect="once")
    routing = Routing(weather, script=[calls(call("weather", city="Oslo"))])
    outcome = await routing.router.run_chat_fallback(a_message("hello"), routing.a_turn())
    # In text they are markup that must not be shown.
    assert outcome.error in (ErrorCode.EMPTY_RESPONSE, ErrorCode.LEAKED_MARKUP)
    assert (said(outcome), weather.runs) == ([EN.say(f"model.{outcome.error.value}")], [])


async def test_an_unknown_outcome_of_an_effect_is_told_even_when_the_model_goes_on() -> None:
    act = Recorder("act", effect="once", gives=TimeoutError())
    routing = Routing(act, script=[calls(call("act")), says("All good!")])
    outcome = await routing.hears("book it")
    unknown = EN.say("claims.unknown", names="act")
    assert said(outcome) == [EN.say("failures.unknown_outcome", name="act"), "All good!", unknown]


async def test_a_result_too_long_for_the_model_is_cut_and_says_so() -> None:
    page = Recorder("page", gives=("ok", "x" * 5000))
    routing = Routing(page, script=[calls(call("page")), says("Long.")], settings={"result_chars": 200})
    await routing.hears("read the page")
    content = routing.model.requests[1].messages[-1].content
    assert content.startswith('{"ok":true,"result":"xxx')
    assert "left out" in orjson.loads(content)["cut"]
    assert len(content) <= 200


@pytest.mark.parametrize("data", [{1: "one"}, 2**70, {"big": [2**70]}])
async def test_a_result_that_plain_json_cannot_hold_still_reaches_the_model(data: Any) -> None:
    odd = Recorder("odd", gives=FunctionResult(data=data), effect="once")
    routing = Routing(odd, script=[calls(call("odd")), says("Odd.")])
    assert said(await routing.hears("do it"))[-1] == "Odd."
    shown = Routing(Recorder("odd", gives=FunctionResult(data=data), commands=["odd"]))
    assert len(said(await shown.hears("/odd"))) == 1


@pytest.mark.requirement("E16")
async def test_a_handlers_own_error_is_told_to_the_model_with_its_code_and_said_when_the_model_fails() -> None:
    closed = Recorder("closed", gives=ToolError("The shop is closed.", ErrorCode.NOT_FOUND))
    routing = Routing(closed, script=[calls(call("closed")), ModelError(ErrorCode.TIMEOUT, "slow")])
    assert said(await routing.hears("buy it")) == ["The shop is closed."]
    assert told(routing.model.requests[1]) == [("c1", {"error": "not_found", "message": "The shop is closed."})]


# -- end of the turn by a limit


async def test_what_effects_have_said_is_known_to_the_turn_as_soon_as_they_have_run() -> None:
    heard: list[list[str]] = []

    def look(request: ModelRequest) -> Any:
        heard.append([message.text for message in routing.turn.output.said])
        return says("Done.")

    note = Recorder("note", CITY, effect="once", gives="Noted.")
    routing = Routing(note, script=[calls(call("note", city="Oslo")), look])
    await routing.hears("note oslo")
    assert heard == [["Noted."]]


async def test_an_identical_call_is_run_again_after_a_failure_of_the_moment() -> None:
    left = [ErrorCode.TRANSIENT]

    async def busy(*_: Any) -> str:
        if left:
            raise ToolError("busy", left.pop())
        return "Set."

    act = Recorder("set", does=busy, effect="idempotent")
    routing = Routing(act, script=[calls(call("set", "a")), calls(call("set", "b")), says("Done.")])
    assert said(await routing.hears("set it")) == ["Set.", "Done."]
    assert len(act.runs) == 2


async def test_an_effect_that_must_happen_once_is_not_run_again_even_after_a_failure_of_the_moment() -> None:
    act = Recorder("pay", effect="once", gives=ToolError("busy", ErrorCode.TRANSIENT))
    routing = Routing(act, script=[calls(call("pay", "a")), calls(call("pay", "b")), says("Hm.")])
    await routing.hears("pay")
    assert len(act.runs) == 1


async def test_an_unknown_outcome_of_a_nested_run_is_said_whatever_the_model_says() -> None:
    async def outer(context: Any, arguments: Any, run: Any) -> str:
        task = asyncio.ensure_future(run.invoke("pay", {}))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return "fine"

    async def forever(*_: Any) -> None:
        await asyncio.Event().wait()

    functions = [Recorder("outer", does=outer, effect="idempotent"), Recorder("pay", does=forever, effect="once")]
    routing = Routing(*functions, script=[calls(call("outer")), says("All is well.")])
    outcome = await routing.hears("do it")
    assert said(outcome) == [EN.say("failures.unknown_outcome", name="pay"), "All is well."]


@pytest.mark.requirement("D22", "D34")
# No protocol can express that nothing is to be added.
@pytest.mark.parametrize(
    ("each_protocol", "final"),
    [pytest.param(way, False, id=name_of(way)) for way in ways_but()] + [pytest.param(None, True, id="final")],
    indirect=["each_protocol"],
)
@pytest.mark.parametrize(
    ("effect", "gives", "kind"),
    [
        ("read", False, OutcomeKind.FALLBACK),
        ("read", True, OutcomeKind.SILENT),
        ("read", FunctionResult(handled=False, messages=(Message("hi"),)), OutcomeKind.SENT),
        ("idempotent", False, OutcomeKind.SILENT),
        ("once", False, OutcomeKind.SILENT),
    ],
)
async def test_a_return_direct_function_that_handles_nothing_leaves_the_message_to_chat(
    final: bool, effect: str, gives: Any, kind: OutcomeKind
) -> None:
    act = Recorder("act", effect=effect, gives=gives, return_direct=not final)
    outcome = await Routing(act, script=[calls(call("act"), final=final)]).hears("hm")
    assert outcome.kind is kind


@at_hand("no provider says that nothing is to be added")
async def test_a_final_answer_of_which_a_part_failed_says_so() -> None:
    functions = [Recorder("first", gives="First."), Recorder("second", gives=ToolError("No ink."))]
    routing = Routing(*functions, script=[calls(call("first", "a"), call("second", "b"), final=True)])
    assert said(await routing.hears("both")) == ["First.", "No ink."]
