"""Arithmetic, units of measure and currencies."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.calc.calculator import BadExpression, calculate
from services.calc.units import Number, Units, UnitsDiffer, UnknownUnit, bounded
from services.refs import ErrorCode
from services.web.exchange_rates import SOURCE, ExchangeRates, currency_code
from services.web.http import WebError

_CENTS = 100
_BEFORE_TARGET = frozenset({"to", "in", "into", "as", "=", "->", "→", "到", "换成", "等于"})
_Expression = Annotated[str, Field(description="Arithmetic, e.g. '15% of 80', 'sqrt(2)*3', '2^10'", max_length=500)]


def _unit(text: str) -> str:
    """`text` without the word before the target unit, as in `/convert 3 km to miles`."""
    unit, _, last = text.rpartition(" ")
    return unit if unit and last.casefold() in _BEFORE_TARGET else text


class ConvertArguments(BaseModel, frozen=True, extra="forbid"):
    value: float = Field(description="How many of the first unit", allow_inf_nan=False)
    from_unit: Annotated[str, AfterValidator(_unit)] = Field(
        description="Unit or currency, e.g. 'km', 'pounds', '°F', 'EUR'", min_length=1, max_length=40
    )
    to_unit: str = Field(description="Unit or currency to convert to", min_length=1, max_length=40)


@tool_function(
    name="calculate",
    examples=(
        "what's {expression}",
        "what is {expression}",
        "how much is {expression}",
        "calculate {expression}",
        "can you work out {expression}",
        "compute {expression} for me",
        "{expression} equals what",
        "solve {expression}",
        "{expression}等于多少",
        "算一下{expression}",
        "计算{expression}",
        "{expression}是多少",
    ),
    commands=("calc", "calculate", "计算", "算"),
    tags="numbers",
    effect="read",
    ask={"expression": "@calculate.ask_expression"},
)
async def calculate_expression(context: MessageContext, expression: _Expression, *, call: Call) -> FunctionResult:
    """Work out an arithmetic expression"""
    try:
        value = calculate(expression)
    except BadExpression as error:
        text = call.say(f"calculate.problems.{error.problem}", position=error.position, found=error.found)
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["expression"])
    expression = " ".join(expression.split()).rstrip("=?？ ")
    text = call.say("calculate.equals", expression=expression, sign=_sign(value), value=value.text)
    return FunctionResult.say(text, data={"value": value.text, "exact": value.is_shown_exactly})


@tool_function(
    description="Convert between units of length, mass, temperature, volume, speed, time or data, or currencies",
    examples=(
        "convert {value} {from_unit} to {to_unit}",
        "how many {to_unit} are in {value} {from_unit}",
        "how many {to_unit} is {value} {from_unit}",
        "what is {value} {from_unit} in {to_unit}",
        "what's {value} degrees {from_unit} in {to_unit}",
        "how do i convert {from_unit} to {to_unit}",
        "change {value} {from_unit} into {to_unit} please",
        "{value}{from_unit}等于多少{to_unit}",
        "{value}{from_unit}是多少{to_unit}",
        "把{value}{from_unit}换算成{to_unit}",
        "exchange {value} {from_unit} for {to_unit}",
        "{value}{from_unit}能换多少{to_unit}",
    ),
    commands=("convert", "换算"),
    tags="numbers",
    effect="read",
)
async def unit_convert(
    context: MessageContext, args: ConvertArguments, *, units: Units, rates: ExchangeRates, call: Call
) -> FunctionResult:
    """Convert the measure, or the amount if the units are unknown and both are currencies."""
    try:
        converted = units.convert(Fraction(repr(args.value)), args.from_unit, args.to_unit)
    except UnknownUnit as error:
        source, target = currency_code(args.from_unit), currency_code(args.to_unit)
        if source and target:
            return await _exchanged(Fraction(repr(args.value)), source, target, rates, call)
        key = "calculate.unknown_unit_similar" if error.similar else "calculate.unknown_unit"
        text = call.say(key, unit=error.name, similar=", ".join(error.similar))
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["from_unit", "to_unit"])
    except UnitsDiffer as error:
        text = call.say(
            "calculate.units_differ",
            from_unit=error.source.symbol,
            from_kind=call.say(f"calculate.kinds.{error.source.kind}"),
            to_unit=error.target.symbol,
            to_kind=call.say(f"calculate.kinds.{error.target.kind}"),
        )
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["to_unit"])
    result = converted.result
    text = call.say(
        "calculate.converted",
        value=converted.value.text,
        from_unit=converted.source.symbol,
        sign=_sign(result),
        result=result.text,
        to_unit=converted.target.symbol,
    )
    return FunctionResult.say(text, data={"value": result.text, "unit": converted.target.symbol})


async def _exchanged(value: Fraction, source: str, target: str, rates: ExchangeRates, call: Call) -> FunctionResult:
    """The amount at the latest rates, rounded to cents unless that would leave nothing."""
    try:
        known = await rates.latest()
        exact = known.convert(value, source, target)
    except KeyError as error:
        text = call.say("calculate.no_rate", currency=error.args[0])
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["from_unit", "to_unit"])
    except WebError as error:
        code = ErrorCode.TRANSIENT if error.code is ErrorCode.TRANSIENT else ErrorCode.ENVIRONMENT
        return FunctionResult.fail(code, call.say("calculate.rates_down"))
    cents = Fraction(round(exact * _CENTS), _CENTS)
    result = bounded(cents or exact)
    is_exact = result.value == exact and result.is_shown_exactly
    text = call.say(
        "calculate.exchanged",
        value=bounded(value).text,
        from_unit=source,
        sign="=" if is_exact else "≈",
        result=result.text,
        to_unit=target,
        source=SOURCE,
        day=known.day,
    )
    data = {"value": result.text, "unit": target, "source": SOURCE, "rates_of": known.day}
    return FunctionResult.say(text, data=data)


def _sign(value: Number) -> str:
    return "=" if value.is_shown_exactly else "≈"
