"""Runs: results in all cases, timeouts, repetitions and nesting."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.texts import Texts
from function_calls.call import Path
from function_calls.filters.call import Invocation, Proceed
from function_calls.loading.python_functions import as_spec
from function_calls.schema.mappings import new_spec
from function_calls.spec import FunctionResult, ToolError
from services.refs import ErrorCode, ReasonCode, Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing, said
from tests.function_calls.sample_functions import keep

EN = Texts().of("en")


def code_of(result: FunctionResult) -> ErrorCode | None:
    """Error code of the run."""
    return result.error.code if result.error else None


# -- failures


@pytest.mark.requirement("D49", "E16")
async def test_a_strangers_exception_becomes_a_neutral_sentence_with_an_id_and_a_traceback_in_the_log() -> None:
    routing = Routing(Recorder("boom", commands=["boom"], gives=RuntimeError("password=hunter2")))
    with capture_logs() as logs:
        outcome = await routing.hears("/boom")
    ((_, result),) = routing.recorded
    short_id = result.metadata["failure_id"]
    assert said(outcome) == [EN.say("failures.function", name="/boom", id=short_id)]
    assert "hunter2" not in str(outcome)
    assert (outcome.error, outcome.reason, outcome.detail) == (ErrorCode.FAILED, ReasonCode.FUNCTION_FAILED, short_id)
    (entry,) = [one for one in logs if one["event"] == "function_failed"]
    assert (entry["id"], entry["function"], entry["log_level"]) == (short_id, "boom", "error")
    assert str(entry["exc_info"]) == "password=hunter2"
    assert "hunter2" in result.metadata["traceback"]
    assert "_handle" in result.metadata["traceback"]


@pytest.mark.requirement("D49")
@pytest.mark.parametrize("ends", ["the handler", "a filter", "a function within"])
async def test_who_wants_to_end_the_process_only_fails(ends: str) -> None:
    async def leave(*_: Any) -> FunctionResult:
        sys.exit(3)

    async def within(context: Any, arguments: Any, call: Any) -> FunctionResult:
        inner: FunctionResult = await call.invoke("inner", {})
        assert code_of(inner) is ErrorCode.FAILED
        return inner

    does = {"the handler": leave, "a function within": within}.get(ends)
    act = Recorder("act", commands=["act"], does=does, effect="idempotent")
    inner = Recorder("inner", commands=["inner"], does=leave, effect="idempotent")
    routing = Routing(act, inner, filters=[leave] if ends == "a filter" else [])
    outcome = await routing.hears("/act")
    run, result = routing.recorded[0]
    told = EN.say("failures.function", name=f"/{run.spec.name}", id=result.metadata["failure_id"])
    assert (said(outcome), result.metadata["exception"]) == ([told], "SystemExit: 3")


def test_who_interrupts_the_process_is_not_held_back() -> None:
    async def interrupt(*_: Any) -> FunctionResult:
        raise KeyboardInterrupt

    async def run() -> None:
        await Routing(Recorder("act", does=interrupt)).invoke("act")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run())


@pytest.mark.requirement("E14", "E15", "E16", "E50", "F5")
@pytest.mark.parametrize(
    ("gives", "ok", "texts", "data"),
    [
        (("ok", "fine"), True, ["fine"], "fine"),
        (("ok", {"n": 1}), True, [], {"n": 1}),
        (("ok", {"n": 1}, {"seen": True}), True, [], {"n": 1}),
        (({"n": 1}, {"seen": True}), True, [], {"n": 1}),
        (("error", "no ink"), False, ["no ink"], None),
        (ToolError("no ink"), False, ["no ink"], None),
        (ToolError("@weather.ask_city"), False, ["Weather for which place?"], None),
        (ToolError("@alice has no ink"), False, ["@alice has no ink"], None),
        (ToolError("@alice {has} ink"), False, ["@alice {has} ink"], None),
        (None, True, [], None),
        ([1, 2], True, [], [1, 2]),
        (7, True, [], 7),
    ],
)
async def test_every_form_of_result_becomes_one(gives: Any, ok: bool, texts: list[str], data: Any) -> None:
    routing = Routing(Recorder("act", gives=gives))
    result = await routing.invoke("act")
    assert (result.ok, [message.text for message in result.for_chat()], result.data) == (ok, texts, data)
    assert routing.turn.memory.state == (
        {"seen": True} if isinstance(gives, tuple) and gives[-1] == {"seen": True} else {}
    )


async def test_what_is_no_result_at_all_is_a_failure_of_the_function() -> None:
    assert code_of(await Routing(Recorder("act", gives=object())).invoke("act")) is ErrorCode.FAILED


@pytest.mark.parametrize(
    ("effect", "code"), [("read", "failed"), ("idempotent", "failed"), ("once", "unknown_outcome")]
)
@pytest.mark.parametrize("error", [ConnectionResetError("peer"), RuntimeError("server disconnected"), KeyError("id")])
async def test_any_failure_that_an_effect_which_must_not_be_repeated_did_not_mean_is_an_unknown_outcome(
    effect: str, code: str, error: Exception
) -> None:
    with capture_logs() as logs:
        result = await Routing(Recorder("pay", effect=effect, gives=error)).invoke("pay")
    assert code_of(result) is ErrorCode(code)
    assert result.metadata["exception"].startswith(type(error).__name__)
    assert [entry["event"] for entry in logs] == ["function_failed"]


@pytest.mark.parametrize("options", [{"filters": ["guard"]}, {"status_text": "@nope.nope"}])
async def test_what_never_began_is_no_unknown_outcome(options: dict[str, Any]) -> None:
    pay = Recorder("pay", effect="once", **options)
    with capture_logs() as logs:
        result = await Routing(pay).invoke("pay")
    assert (code_of(result), pay.runs) == (ErrorCode.FAILED, [])
    assert [entry["event"] for entry in logs] == ["function_failed"]


async def test_a_filter_that_does_not_exist_keeps_the_function_from_running() -> None:
    guarded = Recorder("guarded", filters=["guard"])
    with capture_logs() as logs:
        result = await Routing(guarded).invoke("guarded")
    assert (code_of(result), guarded.runs) == (ErrorCode.FAILED, [])
    assert "it names the filter 'guard', which does not exist any more" in str(logs[0]["exc_info"])


def test_only_filters_that_nobody_knows_are_a_problem_of_a_function_that_names_them() -> None:
    async def lets_through(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        return await proceed(invocation)

    guarded = Recorder("guarded", filters=["guard", "gaurd"])
    told = Routing(guarded, named_filters={"guard": lets_through}).invoker.problems_of(guarded.spec)
    assert told == ["it names the filter 'gaurd', which does not exist; did you mean 'guard'?"]


async def test_a_cancelled_turn_is_cancelled_and_not_a_failure() -> None:
    async def wait(*_: Any) -> None:
        await asyncio.Event().wait()

    routing = Routing(Recorder("slow", does=wait))
    task = asyncio.ensure_future(routing.invoke("slow"))
    await routing.clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- time


@pytest.mark.requirement("E6")
@pytest.mark.parametrize(
    ("options", "seconds"),
    [({}, 30), ({"timeout": 1500}, 1.5), ({"timeout_seconds": 2}, 2), ({"timeout": 600_000}, 120)],
)
@pytest.mark.parametrize(("effect", "code"), [("read", ErrorCode.TIMEOUT), ("once", ErrorCode.UNKNOWN_OUTCOME)])
async def test_a_run_over_its_time_is_cancelled(
    options: dict[str, Any], seconds: float, effect: str, code: ErrorCode
) -> None:
    ended: list[str] = []

    async def wait(*_: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    slow = Recorder("slow", does=wait, effect=effect, **options)
    routing = Routing(slow)
    task = asyncio.ensure_future(routing.invoke("slow"))
    await routing.clock.settle()
    await routing.clock.advance(seconds - 0.1)
    routing.deadlines.expire()
    await routing.clock.settle()
    assert not task.done()
    assert slow.calls[0].deadline == seconds
    await routing.clock.settle()
    await routing.clock.advance(0.1)
    routing.deadlines.expire()
    result = await task
    assert (code_of(result), ended) == (code, ["cancelled"])
    assert "slow" in result.for_chat()[0].text


@pytest.mark.requirement("E6")
async def test_a_blocking_function_runs_beside_the_loop_and_is_given_up_in_time() -> None:
    release = threading.Event()

    def block(arguments: dict[str, Any]) -> str:
        release.wait(5)
        return "late"

    routing = Routing(new_spec("block", block))
    task = asyncio.ensure_future(routing.invoke("block"))
    await routing.clock.settle()
    await routing.clock.advance(31)
    routing.deadlines.expire()
    result = await task
    release.set()
    assert code_of(result) is ErrorCode.TIMEOUT


async def test_the_timeout_of_a_nested_run_is_its_own() -> None:
    async def outer(context: Any, arguments: Any, call: Any) -> Any:
        inner = await call.invoke("inner", {})
        return f"inner: {inner.error.code.value}"

    async def wait(*_: Any) -> None:
        await asyncio.Event().wait()

    routing = Routing(Recorder("outer", does=outer), Recorder("inner", does=wait, timeout_seconds=1))
    task = asyncio.ensure_future(routing.invoke("outer"))
    await routing.clock.settle()
    await routing.clock.advance(1)
    routing.deadlines.expire()
    assert (await task).reply == "inner: timeout"


# -- repetitions


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("fails", "effect", "most", "delay", "runs", "ok"),
    [
        ([ErrorCode.TRANSIENT] * 9, "read", 3, 500, 4, False),
        ([ErrorCode.TRANSIENT] * 9, "read", 1, 2000, 2, False),
        ([ErrorCode.TRANSIENT] * 9, "read", 0, 500, 1, False),
        ([ErrorCode.TRANSIENT] * 3, "read", 3, 500, 4, True),
        ([ErrorCode.TRANSIENT] * 2, "read", 2, 0, 3, True),
        ([ErrorCode.TRANSIENT] * 1, "idempotent", 3, 500, 2, True),
        ([ErrorCode.FAILED], "read", 3, 500, 1, False),
        ([ErrorCode.ENVIRONMENT], "read", 3, 500, 1, False),
        ([ErrorCode.TRANSIENT, ErrorCode.NOT_FOUND], "read", 3, 500, 2, False),
        ([], "read", 3, 500, 1, True),
    ],
)
async def test_only_transient_failures_are_repeated_with_the_declared_number_and_delay(
    fails: list[ErrorCode], effect: str, most: int, delay: int, runs: int, ok: bool
) -> None:
    left = list(fails)
    started: list[float] = []
    routing: Routing

    async def try_it(*_: Any) -> str:
        started.append(routing.clock.monotonic())
        if left:
            raise ToolError("not now", left.pop(0))
        return "done"

    act = Recorder("act", does=try_it, effect=effect, retry={"max": most, "delay": delay})
    routing = Routing(act)
    task = asyncio.ensure_future(routing.invoke("act"))
    await routing.clock.settle()
    await routing.clock.advance(10)
    assert (await task).ok is ok
    assert started == [delay / 1000 * n for n in range(runs)]
    assert len({call.key for call in act.calls}) == 1
    assert len(routing.recorded) == 1


async def test_without_being_asked_to_nothing_is_repeated() -> None:
    act = Recorder("act", gives=ToolError("not now", ErrorCode.TRANSIENT))
    await Routing(act).invoke("act")
    assert len(act.runs) == 1


# -- nesting


@pytest.mark.requirement("D2", "E35")
async def test_a_function_may_call_another_with_the_members_rights_and_no_more() -> None:
    results: list[FunctionResult] = []

    async def outer(context: Any, arguments: Any, call: Any) -> Any:
        for name in ("inner", "ban", "nothing"):
            results.append(await call.invoke(name, {"city": "Oslo"}))
        results.append(await call.invoke("inner", {"city": 5}))
        return sorted(spec.name for spec in call.functions())

    inner, ban = Recorder("inner", CITY, offered_to=[]), Recorder("ban", CITY, roles="admin")
    routing = Routing(Recorder("outer", does=outer), inner, ban)
    assert (await routing.invoke("outer")).data == ["inner", "outer"]
    assert [code_of(one) for one in results] == [
        None,
        ErrorCode.REFUSED,
        ErrorCode.NOT_FOUND,
        ErrorCode.BAD_ARGUMENTS,
    ]
    assert (inner.runs, ban.runs) == ([{"city": "Oslo"}], [])
    await routing.invoke("outer", message=a_message(sender=a_member("Olga", Role.OWNER)))
    assert len(ban.runs) == 1
    keys = [call.key for call in (*inner.calls, *ban.calls)]
    assert len(set(keys)) == 3


async def test_functions_that_call_themselves_end_at_four_levels() -> None:
    deepest: list[FunctionResult] = []

    async def again(context: Any, arguments: Any, call: Any) -> Any:
        result = await call.invoke("again", {})
        if result.error is not None:
            deepest.append(result)
        return "back"

    again_ = Recorder("again", does=again)
    assert (await Routing(again_).invoke("again")).ok
    assert len(again_.runs) == 5
    assert [code_of(one) for one in deepest] == [ErrorCode.REFUSED]


async def test_an_effect_stays_in_flight_while_it_calls_other_functions() -> None:
    seen: list[str] = []

    async def pay(context: Any, arguments: Any, call: Any) -> None:
        await call.invoke("look", {})
        await call.invoke("book", {})
        seen.append(routing.turn.memory.in_flight)

    async def look(*_: Any) -> None:
        seen.append(routing.turn.memory.in_flight)

    functions = [Recorder("pay", does=pay, effect="once"), Recorder("look", does=look)]
    routing = Routing(*functions, Recorder("book", does=look, effect="once"))
    await routing.invoke("pay", turn=routing.turn)
    assert (seen, routing.turn.memory.in_flight) == (["pay", "book", "pay"], "")


async def test_nested_runs_have_keys_of_their_own_run_and_leave_those_of_the_turn_alone() -> None:
    async def outer(context: Any, arguments: Any, call: Any) -> None:
        await call.invoke("inner", {})
        await call.invoke("inner", {})

    inner = Recorder("inner", effect="once")
    outer_ = Recorder("outer", does=outer, effect="idempotent")
    routing = Routing(outer_, inner)
    turn = routing.a_turn()
    for name in ("outer", "outer", "inner"):
        await routing.invoke(name, turn=turn)
    assert [call.key for call in outer_.calls] == [f"{turn.input.id}:0", f"{turn.input.id}:1"]
    assert [call.key for call in inner.calls] == [
        *(f"{turn.input.id}:{key}" for key in ("0.0", "0.1", "1.0", "1.1")),
        f"{turn.input.id}:2",
    ]


@pytest.mark.parametrize(
    ("effect", "runs"),
    [("once", 1), ("idempotent", 1), ("read", 2)],
)
async def test_repeating_a_function_does_not_repeat_the_effects_that_it_began(effect: str, runs: int) -> None:
    told: list[str] = []

    async def outer(context: Any, arguments: Any, call: Any) -> str:
        told.append((await call.invoke("note", {})).reply)
        if len(told) == 1:
            raise ToolError("later", ErrorCode.TRANSIENT)
        return "ok"

    note = Recorder("note", effect=effect, gives="noted")
    outer_ = Recorder("outer", does=outer, effect="idempotent", retry={"max": 1, "delay": 0})
    result = await Routing(outer_, note).invoke("outer")
    assert (result.reply, told, len(note.runs)) == ("ok", ["noted", "noted"], runs)


async def test_a_filter_that_repeats_a_function_does_not_repeat_the_effects_that_it_began() -> None:
    async def twice(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        if invocation.spec.name == "outer":
            await proceed(invocation)
        return await proceed(invocation)

    async def outer(context: Any, arguments: Any, call: Any) -> str:
        return str((await call.invoke("note", {})).reply)

    outer_ = Recorder("outer", does=outer, effect="idempotent")
    note = Recorder("note", effect="once", gives="noted")
    result = await Routing(outer_, note, filters=[twice]).invoke("outer")
    assert (result.reply, len(outer_.runs), len(note.runs)) == ("noted", 2, 1)


async def test_a_nested_effect_that_failed_for_the_moment_is_tried_again_with_the_outer_function() -> None:
    async def outer(context: Any, arguments: Any, call: Any) -> str:
        inner = await call.invoke("note", {})
        if inner.error is not None:
            raise ToolError(inner.error.text, inner.error.code)
        return "ok"

    left = [ErrorCode.TRANSIENT]

    async def note(*_: Any) -> str:
        if left:
            raise ToolError("busy", left.pop())
        return "noted"

    note_ = Recorder("note", does=note, effect="idempotent")
    outer_ = Recorder("outer", does=outer, effect="idempotent", retry={"max": 1, "delay": 0})
    result = await Routing(outer_, note_).invoke("outer")
    assert (result.reply, len(note_.runs)) == ("ok", 2)


@pytest.mark.parametrize("ends", ["timeout", "exception", "result"])
async def test_an_effect_that_the_outer_function_did_not_see_end_is_an_unknown_outcome_under_its_own_name(
    ends: str,
) -> None:
    waiting: list[Any] = []

    async def outer(context: Any, arguments: Any, call: Any) -> str:
        if ends == "timeout":
            await call.invoke("pay", {})
        waiting.append(asyncio.ensure_future(call.invoke("pay", {})))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if ends == "exception":
            raise ToolError("later", ErrorCode.TRANSIENT)
        return "fine"

    async def forever(*_: Any) -> None:
        await asyncio.Event().wait()

    pay = Recorder("pay", does=forever, effect="once", commands=["buy"])
    outer_ = Recorder(
        "outer", does=outer, commands=["outer"], effect="idempotent", timeout_seconds=5, retry={"max": 1, "delay": 0}
    )
    routing = Routing(outer_, pay)
    task = asyncio.ensure_future(routing.hears("/outer"))
    await routing.clock.settle()
    await routing.clock.advance(6)
    routing.deadlines.expire()
    outcome = await task
    assert said(outcome) == [EN.say("failures.unknown_outcome", name="/buy")]
    assert (outcome.error, len(pay.runs), routing.turn.memory.in_flight) == (ErrorCode.UNKNOWN_OUTCOME, 1, "")
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.parametrize("value", [10**30, [1, 10**30], "\ud800", {1: 2}])
async def test_arguments_that_json_cannot_hold_are_bad_arguments(value: Any) -> None:
    async def outer(context: Any, arguments: Any, call: Any) -> Any:
        return (await call.invoke("inner", {"value": value})).for_model()

    inner = Recorder("inner", {"type": "object", "properties": {"value": {}}, "required": []}, effect="once")
    result = await Routing(Recorder("outer", does=outer, effect="idempotent"), inner).invoke("outer")
    assert isinstance(result.data, dict)
    assert (result.data["error"], result.data["fields"], inner.runs) == ("bad_arguments", ["value"], [])


# -- the record of a run


@pytest.mark.parametrize(
    ("name", "raw", "outcome"),
    [
        ("ban", {"city": "Oslo"}, ErrorCode.REFUSED),
        ("act", {"city": 5, "more": [1]}, ErrorCode.BAD_ARGUMENTS),
        ("act", {}, ErrorCode.MISSING_ARGUMENTS),
        ("keep", {"raw_text": 7}, ErrorCode.BAD_ARGUMENTS),
    ],
)
async def test_a_call_that_is_turned_away_is_recorded_with_its_arguments_as_they_came(
    name: str, raw: dict[str, Any], outcome: ErrorCode
) -> None:
    routing = Routing(Recorder("ban", CITY, roles="admin"), Recorder("act", CITY), as_spec(keep, {}))
    await routing.invoke(name, raw=raw)
    ((run, result),) = routing.recorded
    assert (run.spec.name, run.spec.arguments.dump(run.arguments), code_of(result)) == (name, raw, outcome)


async def test_a_question_is_not_yet_a_call_and_is_not_recorded() -> None:
    routing = Routing(Recorder("act", confirm="Sure?"))
    assert (await routing.invoke("act")).question is not None
    assert routing.recorded == []


async def test_a_run_that_is_stopped_is_recorded_as_cancelled() -> None:
    async def wait(*_: Any) -> None:
        await asyncio.Event().wait()

    routing = Routing(Recorder("slow", does=wait))
    task = asyncio.ensure_future(routing.invoke("slow"))
    await routing.clock.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(run.spec.name, code_of(result)) for run, result in routing.recorded] == [("slow", ErrorCode.CANCELLED)]


@pytest.mark.requirement("D31", "D48")
async def test_every_run_is_recorded_with_what_the_call_log_needs() -> None:
    act = Recorder("act", CITY, commands=["act"])
    routing = Routing(act)
    await routing.hears("/act Oslo")
    ((run, result),) = routing.recorded
    assert (run.spec.name, run.arguments, run.path) == ("act", {"city": "Oslo"}, Path.COMMAND)
    assert run.key == f"{routing.turn.input.id}:0"
    assert result.ok


@pytest.mark.requirement("E38")
async def test_a_handler_knows_its_run_its_time_and_its_chat() -> None:
    statuses: list[str] = []

    async def status(text: str) -> None:
        statuses.append(text)

    async def act(context: Any, arguments: Any, call: Any) -> str:
        await call.status("working")
        return str(call.say("delivery.resent"))

    recorder = Recorder("act", does=act)
    routing = Routing(recorder)
    turn = routing.a_turn(status=status)
    await routing.invoke("act", turn=turn)
    (call,) = recorder.calls
    assert (call.key, call.deadline, call.profile) == (f"{turn.input.id}:0", 30.0, routing.profile)
    assert (statuses, recorder.contexts[0].sender.name) == (["working"], "Ann")
