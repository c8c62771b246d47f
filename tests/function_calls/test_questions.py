"""Turns that stop for a question, and messages that resume them, also after a restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.testing import a_group
from config.texts import Texts
from function_calls.checks.permissions import Open, Policies, PolicyDecision
from function_calls.outcome import OutcomeKind
from function_calls.questions.confirm_questions import confirm_question
from function_calls.spec import Choice, FunctionResult
from services.llm.model import ToolCall
from services.refs import ErrorCode, ReasonCode, Role
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call, calls, says
from tests.fakes.wired_model import at_hand, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, restarted, said
from tests.function_calls.sample_functions import convert_spec
from tests.function_calls.test_rounds import is_paired, told

EN = Texts().of("en")
of_our_own_model = at_hand("only a model of our own guesses, or says that nothing is to be added")
MEAL = {
    "dish": {"type": "string", "description": "What to eat.", "required": True},
    "size": {"type": "string", "enum": ["small", "large"], "required": True},
    "guests": {"type": "integer", "minimum": 1, "default": 1},
}


@pytest.mark.requirement("D53")
async def test_a_command_without_its_argument_asks_and_the_answer_completes_it() -> None:
    weather = Recorder("weather", CITY, commands=["weather"], ask={"city": "@weather.ask_city"})
    routing = Routing(weather)
    asked = await routing.hears("/weather")
    assert (said(asked), asked.reason, weather.runs) == (["Weather for which place?"], ReasonCode.ASKED, [])
    answered = await routing.hears_answer(asked, " Oslo ")
    assert (said(answered), answered.reason) == (["done"], ReasonCode.ANSWERED_QUESTION)
    assert weather.runs == [{"city": "Oslo"}]


async def test_without_words_of_its_own_the_question_is_made_from_the_schema_with_choices() -> None:
    routing = Routing(Recorder("order", MEAL, commands=["order"]))
    first = await routing.hears("/order")
    assert said(first) == ["One more thing for /order: What to eat? (some text)"]
    second = await routing.hears_answer(first, "soup")
    assert said(second) == ["One more thing for /order: size? (one of small, large)"]
    assert second.messages[0].choices == (Choice("small", "small"), Choice("large", "large"))


@pytest.mark.requirement("D53")
async def test_several_missing_arguments_are_asked_one_after_another_each_once() -> None:
    order = Recorder("order", MEAL, commands=["order"])
    routing = Routing(order)
    first = await routing.hears("/order")
    second = await routing.hears_answer(first, "soup")
    assert second.question is not None
    assert second.question.continuation.asked == ("dish", "size")
    assert said(await routing.hears_answer(second, "large")) == ["done"]
    assert order.runs == [{"dish": "soup", "size": "large", "guests": 1}]


async def test_a_wrong_answer_gets_the_usage_and_is_not_asked_again() -> None:
    order = Recorder("order", MEAL, commands=["order"])
    routing = Routing(order)
    asked = await routing.hears_answer(await routing.hears("/order"), "soup")
    answered = await routing.hears_answer(asked, "huge")
    assert (answered.question, answered.reason) == (None, ReasonCode.USAGE)
    assert said(answered) == ["“size” must be: one of small, large.\nUsage: /order <dish> <size> [guests]"]
    assert order.runs == []


@pytest.mark.parametrize("word", ["cancel", "Cancel!", "never mind", " forget it. "])
async def test_a_question_can_be_cancelled(word: str) -> None:
    weather = Recorder("weather", CITY, commands=["weather"])
    routing = Routing(weather)
    answered = await routing.hears_answer(await routing.hears("/weather"), word)
    assert (said(answered), weather.runs) == ([EN.say("questions.dropped")], [])


async def test_a_list_is_read_from_one_answer() -> None:
    pick = Recorder("pick", {"of": {"type": "array", "items": {"type": "string"}, "required": True}}, commands=["pick"])
    routing = Routing(pick)
    await routing.hears_answer(await routing.hears("/pick"), "tea, green coffee，milk")
    assert pick.runs == [{"of": ["tea", "green coffee", "milk"]}]


# -- confirmation


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ("yes", 1),
        ("OK!", 1),
        ("Yes !", 1),
        ("no", 0),
        ("never mind", 0),
        ("cancel", 0),
        ("what?", 0),
        ("", 0),
        (".", 0),
    ],
)
async def test_only_a_yes_runs_what_needs_a_yes(answer: str, runs: int) -> None:
    wipe = Recorder("wipe", CITY, commands=["wipe"], effect="once", confirm="Really wipe {city}?", gives="Wiped.")
    routing = Routing(wipe)
    asked = await routing.hears("/wipe Oslo")
    assert (said(asked), wipe.runs, routing.turn.memory.effects) == (["Really wipe Oslo?"], [], 0)
    assert [choice.value for choice in asked.messages[0].choices] == ["yes", "no"]
    answered = await routing.hears_answer(asked, answer)
    assert len(wipe.runs) == runs
    assert said(answered) == (["Wiped."] if runs else [EN.say("questions.dropped")])


async def test_arguments_are_asked_for_before_a_yes_is() -> None:
    wipe = Recorder("wipe", CITY, commands=["wipe"], effect="once", confirm="Really wipe {city}?")
    routing = Routing(wipe)
    confirm = await routing.hears_answer(await routing.hears("/wipe"), "Oslo")
    assert (said(confirm), wipe.runs) == (["Really wipe Oslo?"], [])
    await routing.hears_answer(confirm, "yes")
    assert wipe.runs == [{"city": "Oslo"}]


@pytest.mark.parametrize(("answer", "runs"), [("yes", 1), ("no", 0)])
@of_our_own_model
async def test_a_mere_guess_of_the_model_is_confirmed_with_what_was_understood(answer: str, runs: int) -> None:
    add = Recorder("add", CITY, effect="once", description="Add a city.", gives="Added.")
    routing = Routing(add, script=[calls(call("add", uncertain=True, city="Oslo"), final=True)])
    asked = await routing.hears("oslo maybe")
    assert said(asked) == ["Just to check: Add a city (city: Oslo). Shall I go ahead?"]
    answered = await routing.hears_answer(asked, answer)
    assert (said(answered), len(add.runs)) == (["Added."] if runs else [EN.say("questions.dropped")], runs)


@of_our_own_model
async def test_a_guess_that_lacks_an_argument_is_still_confirmed_once_it_is_complete() -> None:
    add = Recorder("add", CITY, effect="once", description="Add a city.", gives="Added.")
    routing = Routing(add, script=[calls(call("add", uncertain=True), final=True)])
    confirm = await routing.hears_answer(await routing.hears("maybe add"), "Oslo")
    assert (said(confirm), add.runs) == (["Just to check: Add a city (city: Oslo). Shall I go ahead?"], [])
    assert said(await routing.hears_answer(confirm, "yes")) == ["Added."]


@pytest.mark.parametrize(
    ("language", "guess", "question"),
    [
        (
            "en",
            call("reminder_create", text="take the pizza out", when="in 20 minutes"),
            "Set this reminder: take the pizza out, in 20 minutes?",
        ),
        (
            "en",
            call("reminder_create", text="tea", when="daily at 4", count=3),
            "Set this reminder: tea, daily at 4? (count: 3)",
        ),
        ("en", call("todo_add", text="buy milk"), "Put this on the to-do list: buy milk?"),
        ("en", call("todo_add", text="milk", priority="high"), "Put this on the to-do list: milk? (priority: high)"),
        (
            "en",
            call("poll_create", question="Where do we eat?", options=["pizza", "sushi"]),
            "Start this poll: “Where do we eat?” with pizza, sushi?",
        ),
        ("en", call("schedule_pause", number=2), "Pause schedule 2?"),
        ("zh", call("reminder_create", text="关火", when="20分钟后"), "设这个提醒：关火，20分钟后？"),
        ("zh", call("todo_done", item="买牛奶"), "标记为完成：买牛奶？"),
    ],
)
async def test_a_guess_is_confirmed_in_a_sentence_with_all_its_arguments(
    language: str, guess: ToolCall, question: str
) -> None:
    async with a_group(settings={"language": language}) as group:
        group.model.says(replace(guess, uncertain=True))
        assert await group.say("Ann", "@Rollcall hm", role=Role.ADMIN) == [question]


# -- during a model's rounds


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_a_question_in_the_middle_of_several_calls_goes_on_exactly_there() -> None:
    first = Recorder("first", effect="once", gives="First.")
    order = Recorder("order", MEAL, effect="once", gives="Ordered.")
    last = Recorder("last", effect="once", gives="Last.")
    asked_for = calls(call("first", "a"), call("order", "b", dish="soup"), call("last", "c"))
    routing = Routing(first, order, last, script=[asked_for, says("All done.")])
    asked = await routing.hears("first, then soup, then last")
    assert said(asked) == ["First.", "One more thing for order: size? (one of small, large)"]
    assert (len(first.runs), order.runs, last.runs) == (1, [], [])
    answered = await routing.hears_answer(asked, "large")
    assert said(answered) == ["Ordered.", "Last.", "All done."]
    assert (len(first.runs), len(order.runs), len(last.runs)) == (1, 1, 1)
    request = routing.model.requests[1]
    assert is_paired(list(request.messages))
    assert [call_id for call_id, _ in told(request)] == ["a", "b", "c"]


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_state_written_before_a_question_is_there_after_it() -> None:
    async def write(context: Any, arguments: Any, run: Any) -> Any:
        return "noted", {"noted": 5}

    async def read(context: Any, arguments: Any, run: Any) -> Any:
        return str(run.state["noted"])

    routing = Routing(
        Recorder("write", does=write),
        Recorder("read", CITY, does=read, effect="once"),
        script=[calls(call("write", "a"), call("read", "b")), says("Done.")],
    )
    asked = await routing.hears("write, then read")
    assert said(await routing.hears_answer(asked, "Oslo"))[0] == "5"


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_the_rounds_that_were_used_before_a_question_still_count() -> None:
    weather = Recorder("weather", CITY, gives=("ok", 3))
    routing = Routing(weather, script=[calls(call("weather")), says("3.")], settings={"max_rounds": 2})
    asked = await routing.hears("weather?")
    await routing.hears_answer(asked, "Oslo")
    assert [request.tool_choice for request in routing.model.requests] == ["auto", "none"]


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_a_function_that_answers_directly_does_so_after_a_question_too() -> None:
    routing = Routing(Recorder("weather", CITY, gives="Cold.", return_direct=True), script=[calls(call("weather"))])
    asked = await routing.hears("weather?")
    assert said(await routing.hears_answer(asked, "Oslo")) == ["Cold."]


@of_our_own_model
async def test_a_final_answer_stays_final_after_a_question() -> None:
    routing = Routing(Recorder("weather", CITY, gives="Cold."), script=[calls(call("weather"), final=True)])
    asked = await routing.hears("weather?")
    assert said(await routing.hears_answer(asked, "Oslo")) == ["Cold."]


@pytest.mark.requirement("D29", "D28", "D53")
@over_each_protocol
async def test_a_wrong_answer_to_a_question_of_the_models_call_gets_the_usage() -> None:
    order = Recorder("order", MEAL, effect="once")
    routing = Routing(order, script=[calls(call("order", dish="soup"))])
    answered = await routing.hears_answer(await routing.hears("soup please"), "huge")
    assert (answered.reason, answered.error) == (ReasonCode.USAGE, ErrorCode.BAD_ARGUMENTS)
    assert order.runs == []


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_what_was_missing_is_not_asked_twice_when_the_model_forgets_it_again() -> None:
    weather = Recorder("weather", CITY, gives=("ok", 3))
    routing = Routing(weather, script=[calls(call("weather", "a")), calls(call("weather", "b"))])
    asked = await routing.hears("weather?")
    answered = await routing.hears_answer(asked, "Oslo")
    assert (answered.question, answered.reason) == (None, ReasonCode.USAGE)
    assert weather.runs == [{"city": "Oslo"}]


async def test_the_models_guess_at_an_alias_survives_the_confirmation() -> None:
    runs: list[tuple[str, str]] = []
    routing = Routing(convert_spec(runs), script=[])
    asked = await routing.hears("/convert from=km to=mi")
    assert said(await routing.hears_answer(asked, "yes")) == ["km to mi"]
    assert runs == [("km", "mi")]


# -- changes between question and answer


async def test_a_function_that_changed_in_between_is_not_run_on_the_old_answer() -> None:
    wipe = Recorder("wipe", CITY, commands=["wipe"], confirm="Really?", roles="member")
    asked = await Routing(wipe).hears("/wipe Oslo")
    for changed in (
        Recorder("wipe", CITY, commands=["wipe"], confirm="Really?", roles="admin"),
        Recorder("wipe", CITY, commands=["wipe"], confirm="Wipe all?"),
        Recorder("wipe", CITY, commands=["wipe"], confirm="Really?", effect="once"),
        Recorder("wipe", MEAL, commands=["wipe"], confirm="Really?"),
        Recorder("other", CITY),
    ):
        answered = await Routing(changed).hears_answer(asked, "yes")
        known_as = "/wipe" if changed.spec.command.words else "wipe"
        assert said(answered) == [EN.say("questions.changed", name=known_as)]
        assert changed.runs == []
    same = Recorder("wipe", CITY, commands=["wipe"], confirm="Really?", description="Other words.")
    await Routing(same).hears_answer(asked, "yes")
    assert same.runs == [{"city": "Oslo"}]


async def test_rights_are_those_at_the_time_of_the_answer() -> None:
    wipe = Recorder("wipe", CITY, commands=["wipe"], confirm="Really?", effect="once", scope="group")
    routing = Routing(wipe)
    asked = await routing.hears("/wipe Oslo")
    answered = await routing.hears(a_message("yes", is_group=False), answering=(restarted(asked), "yes"))
    assert (answered.reason, wipe.runs) == (ReasonCode.REFUSED, [])


async def test_a_policy_may_ask_instead_of_refusing() -> None:
    class AsksOnce:
        async def judge(self, request: Any, spec: Any, arguments: Any) -> PolicyDecision:
            if request.turn.input.answering is not None:
                return PolicyDecision()
            question = confirm_question(spec, dict(arguments), EN)
            return PolicyDecision(FunctionResult(question=question))

    pay = Recorder("pay", CITY, commands=["pay"], effect="once", description="Pay.")
    routing = Routing(pay, policies=Policies(Open(), AsksOnce()))
    asked = await routing.hears("/pay Oslo")
    assert (asked.kind, said(asked), pay.runs) == (
        OutcomeKind.SENT,
        ["Just to check: Pay (city: Oslo). Shall I go ahead?"],
        [],
    )
    await routing.hears_answer(asked, "yes")
    assert pay.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
@pytest.mark.parametrize("word", ["no", "cancel"])
async def test_a_no_in_the_middle_of_several_calls_is_told_to_the_model_and_the_others_run(word: str) -> None:
    order, last = Recorder("order", MEAL, effect="once", confirm="Order it?"), Recorder("last", gives="Last.")
    asked_for = calls(call("order", "a", dish="soup", size="large"), call("last", "b"))
    routing = Routing(order, last, script=[asked_for, says("Then only the last.")])
    asked = await routing.hears("order, and last")
    line = EN.say("claims.not_done", names="order")
    assert said(await routing.hears_answer(asked, word)) == ["Then only the last.", line]
    assert (order.runs, len(last.runs)) == ([], 1)
    assert [result.get("error") for _, result in told(routing.model.requests[1])] == ["refused", None]


@of_our_own_model
async def test_a_cancelled_argument_in_the_middle_of_several_calls_lets_the_others_run() -> None:
    order, last = Recorder("order", MEAL, effect="once"), Recorder("last", effect="once", gives="Last.")
    asked_for = calls(call("order", "a", dish="soup"), call("last", "b"), final=True)
    routing = Routing(order, last, script=[asked_for])
    asked = await routing.hears("order, and last")
    assert said(await routing.hears_answer(asked, "cancel")) == ["Last.", EN.say("questions.dropped")]
    assert (order.runs, len(last.runs)) == ([], 1)


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_a_wrong_answer_in_the_middle_of_several_calls_is_told_to_the_model_and_the_others_run() -> None:
    order, last = Recorder("order", MEAL, effect="once"), Recorder("last", effect="once", gives="Last.")
    asked_for = calls(call("order", "a", dish="soup"), call("last", "b"))
    routing = Routing(order, last, script=[asked_for, says("There is no such size.")])
    asked = await routing.hears("order, and last")
    assert said(await routing.hears_answer(asked, "huge")) == ["Last.", "There is no such size."]
    assert (order.runs, len(last.runs)) == ([], 1)
    assert [result.get("error") for _, result in told(routing.model.requests[1])] == ["bad_arguments", None]


@pytest.mark.requirement("D28", "D53")
@over_each_protocol
async def test_what_effects_say_after_a_question_is_known_to_the_turn() -> None:
    order = Recorder("order", MEAL, effect="once", gives="Ordered.")
    routing = Routing(order, script=[calls(call("order", dish="soup")), says("Done.")])
    asked = await routing.hears("soup")
    assert routing.turn.output.said == []
    await routing.hears_answer(asked, "large")
    assert [message.text for message in routing.turn.output.said] == ["Ordered."]


@pytest.mark.parametrize("options", [{"confirm": "@nope.nope"}, {"ask": {"city": "@nope.nope"}}])
async def test_a_question_whose_own_words_do_not_exist_is_asked_in_those_of_the_bot(options: dict[str, Any]) -> None:
    raw = {"city": "Oslo"} if "confirm" in options else {}
    with capture_logs() as logs:
        result = await Routing(Recorder("go", CITY, **options)).invoke("go", raw=raw)
    words = (
        EN.say("questions.confirm_with", description="Does go", arguments="city: Oslo")
        if raw
        else EN.say("questions.argument", name="go", field="The place", allowed=EN.say("arguments.string"))
    )
    assert result.question is not None
    assert result.question.text == words
    assert [entry["event"] for entry in logs] == ["text_missing"]
