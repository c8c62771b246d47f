from __future__ import annotations

from typing import Any

import pytest

from config.texts import Texts
from function_calls.handlers.small import calculate
from services.calc.calculator import Problem
from services.calc.units import Units
from services.refs import ErrorCode
from tests.function_calls.handlers.running import Functions, text_of


@pytest.fixture
def functions() -> Functions:
    return Functions(calculate, Units())


@pytest.mark.requirement("D13", "D32", "D33", "D56")
async def test_an_expression_is_worked_out(functions: Functions) -> None:
    exact = await functions.run("calculate", expression=" 15% of  80 = ?")
    assert (text_of(exact), exact.data) == ("15% of 80 = 12", {"value": "12", "exact": True})
    assert text_of(await functions.run("calculate", expression="10/3")) == "10/3 ≈ 3.33333333333"


async def test_an_error_names_the_position(functions: Functions) -> None:
    result = await functions.run("calculate", expression="2 + foo")
    assert result.error is not None
    assert (result.error.code, result.error.fields) == (ErrorCode.BAD_ARGUMENTS, ("expression",))
    assert result.error.text == "I don't know what foo means at character 5."
    refused = await functions.run("calculate", expression="9**9**9")
    assert text_of(refused) == "The number at character 2 gets too large to write down."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_problem_has_words(language: str) -> None:
    texts = Texts().of(language)
    assert [problem for problem in Problem if not texts.has(f"calculate.problems.{problem}")] == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"value": 5, "from_unit": "km", "to_unit": "miles"}, "5 km ≈ 3.10685596119 mi"),
        ({"value": 0.1, "from_unit": "m", "to_unit": "cm"}, "0.1 m = 10 cm"),
        ({"value": 98.6, "from_unit": "fahrenheit", "to_unit": "celsius"}, "98.6 °F = 37 °C"),
    ],
)
async def test_a_measure_is_converted(functions: Functions, raw: dict[str, Any], said: str) -> None:
    assert text_of(await functions.run("unit_convert", **raw)) == said


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"value": 1, "from_unit": "km", "to_unit": "kg"}, "km measures length and kg measures mass"),
        ({"value": 1, "from_unit": "kilometter", "to_unit": "m"}, "Did you mean kilometer"),
        ({"value": 1, "from_unit": "qqqq", "to_unit": "m"}, "I don't know the unit qqqq."),
    ],
)
async def test_what_cannot_be_converted_is_said(functions: Functions, raw: dict[str, Any], said: str) -> None:
    result = await functions.run("unit_convert", **raw)
    assert result.error is not None
    assert result.error.code is ErrorCode.BAD_ARGUMENTS
    assert said in result.error.text


async def test_the_largest_measure_is_converted_or_refused(functions: Functions) -> None:
    assert (await functions.run("unit_convert", value=1.7e308, from_unit="ly", to_unit="nm")).ok
