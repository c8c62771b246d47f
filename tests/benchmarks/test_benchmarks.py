"""Each benchmark runs with a tiny load and prints its figures. Tests do not assert times."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import BENCHMARKS, main, run_driver
from benchmarks.measuring import Effort, Figure, ratio
from benchmarks.stub import answer_to, expected, question
from services.llm.reading.openai import read_body

UNITS = {"us", "ratio", "seconds", "cpu_seconds", "megabytes", "bytes", "errors"}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_prints_a_line_for_each_of_its_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([name, "--rounds", "1", "--scale", "0.001"], run_driver)
    _all_are_told(name, capsys.readouterr().out)


def test_a_driver_runs_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    main(["argument_check", "--rounds", "1", "--scale", "0.001"])
    _all_are_told("argument_check", capsys.readouterr().out)


def _all_are_told(name: str, printed: str) -> None:
    lines = [json.loads(line) for line in printed.splitlines()]
    assert lines
    for line in lines:
        assert line["name"] == name
        assert line["figure"]
        (unit,) = UNITS & line.keys()
        assert line["holds"] is (line[unit] <= line["limit"])
        assert line[unit] > 0 or unit in ("errors", "us")


@pytest.mark.parametrize(("value", "holds"), [(1.4996, True), (1.50049, True), (1.50051, False)])
def test_whether_a_figure_holds_is_said_of_the_value_that_is_told(value: float, holds: bool) -> None:
    line = json.loads(Figure("turn", "a turn", "ratio", value, 1.5).line())
    assert (line["holds"], line["ratio"] <= line["limit"]) == (holds, holds)


def test_a_benchmark_that_there_is_not_is_an_error_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sprint"])
    assert ended.value.code == 2
    assert "sprint" in capsys.readouterr().err


def test_a_figure_over_its_limit_does_not_hold() -> None:
    assert Figure("x", "what", "ratio", 0.5, 0.5).holds
    assert not Figure("x", "what", "ratio", 0.51, 0.5).holds


def test_a_ratio_is_taken_within_each_round() -> None:
    quiet_then_busy = [{"cpu_us": 10.0}, {"cpu_us": 30.0}, {"cpu_us": 14.0}]
    floor = [{"cpu_us": 5.0}, {"cpu_us": 15.0}, {"cpu_us": 5.0}]
    assert ratio(quiet_then_busy, floor) == 2.0


def test_no_measurement_is_scaled_to_nothing() -> None:
    assert [Effort(scale=scale).count(1000) for scale in (2.0, 1.0, 0.0001)] == [2000, 1000, 2]


def test_the_stub_asks_for_the_city_of_the_question_and_then_answers_for_it() -> None:
    body = f'{{"messages":[{{"role":"user","content":"{question(7)}"}}]}}'.encode()
    (call,) = read_body(200, {}, answer_to(body)).calls
    assert call.name == "get_weather"
    assert call.arguments is not None
    assert call.arguments["city"] in question(7)
    answered = body[:-2] + b',{"role":"tool","content":"..."}]}'
    assert read_body(200, {}, answer_to(answered)).text == expected(7)
