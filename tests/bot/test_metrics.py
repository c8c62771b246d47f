"""/metrics: success, errors and latency of each function, turns by reason, and queue lengths."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.telemetry.metrics import Metrics
from bot.testing import a_group
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.clock import VirtualClock
from services.llm.model import ModelAnswer, Usage
from services.refs import ReasonCode


def samples(text: bytes) -> dict[tuple[str, str], float]:
    """Value of each series, by name and labels."""
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.requirement("D63")
async def test_success_errors_and_latency_are_shown_for_each_function() -> None:
    clock = VirtualClock()

    @tool_function(commands=("rest",))
    async def rest(context: MessageContext) -> str:
        """Rest."""
        await clock.advance(0.3)
        return "rested"

    @tool_function(commands=("break",))
    async def fall_apart(context: MessageContext) -> str:
        """Fail."""
        raise RuntimeError("broken")

    async with a_group([rest, fall_apart], clock=clock) as group:
        for text in ("/rest", "/rest", "/break", "/nonsense", "nothing for the bot"):
            await group.say("Ann", text)
        found = samples(group.daemon.metrics.render())
    assert found["rollcall_calls_total", "rest,ok"] == 2
    assert found["rollcall_calls_total", "fall_apart,failed"] == 1
    assert found["rollcall_call_seconds_count", "rest"] == 2
    assert found["rollcall_call_seconds_sum", "rest"] == pytest.approx(0.6)
    assert found["rollcall_call_seconds_bucket", "rest,0.1"] == 0
    assert found["rollcall_call_seconds_bucket", "rest,0.5"] == 2
    assert found["rollcall_turns_total", "command"] == 2
    assert found["rollcall_turns_total", "function_failed"] == 1
    assert found["rollcall_messages_dropped_total", "unknown_command"] == 1
    assert found["rollcall_messages_dropped_total", "not_addressed"] == 1
    assert found["rollcall_turns_waiting", ""] == found["rollcall_turns_running", ""] == 0
    assert found["rollcall_messages_given_up", ""] == 0


async def test_turns_tokens_money_timers_and_the_database_are_measured() -> None:
    clock = VirtualClock()
    prices = {"budgets": {"prices": {"dear": {"prompt": 2, "completion": 10}}}}

    @tool_function(commands=("rest",))
    async def rest(context: MessageContext) -> str:
        """Rest."""
        await clock.advance(3)
        return "rested"

    async with a_group([rest], settings=prices, clock=clock) as group:
        group.model.says(ModelAnswer("Hi.", usage=Usage(1_000, 100), by="dear"))
        await group.say("Ann", "@Rollcall hi")
        await group.say("Ann", "/rest")
        await group.say("Ann", "/remind in 2 hours tea")
        await group.daemon.timers.count()
        found = samples(group.daemon.metrics.render())
    assert found["rollcall_turn_seconds_count", "command"] == 2
    assert found["rollcall_turn_seconds_bucket", "2.0,command"] == 1
    assert found["rollcall_turn_seconds_sum", "command"] == pytest.approx(3)
    assert found["rollcall_model_prompt_tokens_total", "dear"] == 1_000
    assert found["rollcall_model_completion_tokens_total", "dear"] == 100
    assert found["rollcall_model_cost_total", "dear"] == pytest.approx(0.003)
    assert found["rollcall_timers_pending", ""] == 1
    assert found["rollcall_store_bytes", ""] > 0
    assert found["rollcall_store_wal_bytes", ""] > 0
    assert found["rollcall_outbox_waiting", ""] == found["rollcall_oldest_waiting_seconds", ""] == 0


async def test_the_age_of_the_oldest_waiting_turn_and_the_waiting_messages_are_shown() -> None:
    clock, shown = VirtualClock(), dict[str, float]()

    @tool_function(commands=("hold",))
    async def hold(context: MessageContext) -> str:
        """Hold up the chat."""
        if context.sender.name == "Ann":
            await group.hear("Bob", "/hold")
            await clock.advance(7)
            shown.update({name: value for (name, _), value in samples(group.daemon.metrics.render()).items()})
        return "done"

    async with a_group([hold], clock=clock) as group:
        await group.say("Ann", "/hold")
    assert shown["rollcall_oldest_waiting_seconds"] == pytest.approx(7, abs=0.1)
    assert shown["rollcall_turns_waiting"] == 1


def test_the_number_of_series_has_a_limit() -> None:
    metrics = Metrics()
    for number in range(3_000):
        metrics.called(f"f{number}", "ok", 5)
    found = samples(metrics.render())
    counted = {labels: value for (name, labels), value in found.items() if name == "rollcall_calls_total"}
    assert (len(counted), counted["(others),ok"]) == (1_001, 2_000)


async def test_a_turn_that_runs_is_shown_while_it_does() -> None:
    shown: list[float] = []

    @tool_function(commands=("look",))
    async def look(context: MessageContext) -> str:
        """Look at the gauges."""
        shown.append(samples(group.daemon.metrics.render())["rollcall_turns_running", ""])
        return "seen"

    async with a_group([look]) as group:
        await group.say("Ann", "/look")
    assert shown == [1]


def test_every_duration_falls_into_its_bucket() -> None:
    metrics = Metrics()
    for duration_us in (0, 1000, 1001, 60_000_000, 60_000_001):
        metrics.called("f", "ok", duration_us)
    found = samples(metrics.render())
    buckets = {labels.split(",")[1]: value for (name, labels), value in found.items() if name.endswith("_bucket")}
    assert buckets == {"0.001": 2, "0.005": 3, "0.02": 3, "0.1": 3, "0.5": 3, "2.0": 3, "10.0": 3, "60.0": 4, "+Inf": 5}


def test_names_and_values_keep_to_the_format_whatever_functions_are_called() -> None:
    metrics = Metrics()
    metrics.called('查天气 "now"\\\n', "ok", 5)
    metrics.turn_ended(ReasonCode.CHAT, 5)
    text = metrics.render()
    assert samples(text)["rollcall_calls_total", '查天气 "now"\\\n,ok'] == 1
    assert all(re.match(rb"(# (HELP|TYPE) )?rollcall_\w+", line) for line in text.splitlines())
