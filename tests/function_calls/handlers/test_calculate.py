from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.testing import a_group
from config.texts import Texts
from function_calls.handlers.small import calculate
from services.calc.calculator import Problem
from services.calc.units import Units
from services.clock import VirtualClock
from services.refs import ErrorCode
from services.web.exchange_rates import ExchangeRates
from services.web.http import WebClient, WebLimits
from tests.fakes.dictionaries import RATES_PATH, rates_answer
from tests.fakes.web_server import Page, WebServer
from tests.function_calls.handlers.running import Functions, text_of


@pytest.fixture
def functions() -> Functions:
    return Functions(calculate, Units(), ExchangeRates(WebClient(), VirtualClock()))


def exchanging(server: WebServer, clock: VirtualClock | None = None) -> Functions:
    http = WebClient(WebLimits(timeout_seconds=2), allow_loopback=True)
    return Functions(calculate, Units(), ExchangeRates(http, clock or VirtualClock(), url=server.url(RATES_PATH)))


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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("3 km to miles", "3 km ≈ 1.86411357671 mi"),
        ("3 km miles", "3 km ≈ 1.86411357671 mi"),
        ("5 in in cm", "5 in = 12.7 cm"),
        ("5 in to cm", "5 in = 12.7 cm"),
        ("3 km = m", "3 km = 3000 m"),
    ],
)
async def test_the_word_before_the_target_unit_is_no_unit(line: str, said: str) -> None:
    async with a_group() as group:
        assert await group.say("Ann", f"/convert {line}") == [said]


async def test_the_largest_measure_is_converted_or_refused(functions: Functions) -> None:
    assert (await functions.run("unit_convert", value=1.7e308, from_unit="ly", to_unit="nm")).ok


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"value": 20, "from_unit": "EUR", "to_unit": "USD"}, "20 EUR = 21.41 USD (ECB rate of 2026-01-02)"),
        ({"value": 20, "from_unit": "dollars", "to_unit": "euros"}, "20 USD ≈ 18.68 EUR (ECB rate of 2026-01-02)"),
        ({"value": 0.1, "from_unit": "pounds", "to_unit": "yuan"}, "0.1 GBP ≈ 0.92 CNY (ECB rate of 2026-01-02)"),
        ({"value": 5, "from_unit": "欧元", "to_unit": "人民币"}, "5 EUR ≈ 38.87 CNY (ECB rate of 2026-01-02)"),
        ({"value": 1, "from_unit": "idr", "to_unit": "€"}, "1 IDR ≈ 0.0000571846509535 EUR (ECB rate of 2026-01-02)"),
        ({"value": 2, "from_unit": "pounds", "to_unit": "kg"}, "2 lb = 0.90718474 kg"),
    ],
)
async def test_an_amount_is_exchanged_with_exact_decimals_and_the_day_of_the_rate(
    raw: dict[str, Any], said: str
) -> None:
    async with WebServer({RATES_PATH: Page(rates_answer())}) as server:
        assert text_of(await exchanging(server).run("unit_convert", **raw)) == said


async def test_the_rates_are_requested_once_a_day_also_for_three_members_at_once() -> None:
    clock = VirtualClock()
    async with WebServer({RATES_PATH: Page(rates_answer())}) as server:
        functions = exchanging(server, clock)
        wanted = {"value": 1, "from_unit": "EUR", "to_unit": "USD"}
        await asyncio.gather(*(functions.run("unit_convert", by=who, **wanted) for who in ("Ann", "Bo", "Cy")))
        assert len(server.asked) == 1
        await clock.advance(24 * 3600)
        server.pages[RATES_PATH] = Page(status=503)
        assert "rate of 2026-01-02" in text_of(await functions.run("unit_convert", **wanted))
        await functions.run("unit_convert", **wanted)
        assert len(server.asked) == 2
        server.pages[RATES_PATH] = Page(rates_answer("2026-01-06"))
        await clock.advance(600)
        assert "rate of 2026-01-06" in text_of(await functions.run("unit_convert", **wanted))


@pytest.mark.parametrize(
    ("page", "code"), [(Page(status=503), ErrorCode.TRANSIENT), (Page(b"<html>"), ErrorCode.ENVIRONMENT)]
)
async def test_missing_rates_are_reported_in_a_sentence(page: Page, code: ErrorCode) -> None:
    async with WebServer({RATES_PATH: page}) as server:
        result = await exchanging(server).run("unit_convert", value=1, from_unit="EUR", to_unit="USD")
    assert result.error is not None
    assert (result.error.code, "exchange rates" in result.error.text) == (code, True)


async def test_a_currency_without_a_rate_is_named() -> None:
    async with WebServer({RATES_PATH: Page(rates_answer())}) as server:
        result = await exchanging(server).run("unit_convert", value=1, from_unit="EUR", to_unit="RUB")
    assert text_of(result) == "The European Central Bank publishes no rate for RUB."
