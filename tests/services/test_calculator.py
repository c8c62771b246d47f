from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.calc.calculator import BadExpression, Problem, calculate


def shown(expression: str) -> str:
    number = calculate(expression)
    return number.text if number.is_shown_exactly else f"≈{number.text}"


def problem_of(expression: str) -> Problem | None:
    try:
        shown(expression)
    except BadExpression as error:
        return error.problem
    return None


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2+3*4", "14"),
        ("(2+3)*4", "20"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("2**-1", "0.5"),
        ("7//2", "3"),
        ("-7//2", "-4"),
        ("17 % 5", "2"),
        ("17 mod 5", "2"),
        ("0.1+0.2", "0.3"),
        ("1/3+1/3+1/3", "1"),
        ("10/3", "≈3.33333333333"),
        ("1,000,000*2", "2000000"),
        ("max(1,200)", "200"),
        ("min(3, 1, 2)", "1"),
        ("15% of 80", "12"),
        ("80 + 10%", "88"),
        ("100 - 15 percent", "85"),
        ("30% off 279", "195.3"),
        ("50% * 3", "1.5"),
        ("10%", "0.1"),
        ("3 plus 4 times 2", "11"),
        ("87 divided by 4", "21.75"),
        ("7 x 7", "49"),
        ("3·4 ÷ 2", "6"),
        ("3×4−2", "10"),
        ("2（3＋4）", "14"),
        ("add 456 and 781", "1237"),
        ("the sum of 3 plus 5", "8"),
        ("subtract 36 from 5", "-31"),
        ("multiply 7 and 42", "294"),
        ("multiply 7 by 42", "294"),
        ("divide 87 by 4", "21.75"),
        ("9 squared + 2²", "85"),
        ("3 cubed", "27"),
        ("3加4乘以2", "11"),
        ("80的15%", "12"),
        ("百分之15的80", "12"),
        ("2的10次方等于多少", "1024"),
        ("16的平方根", "4"),
        ("9的平方", "81"),
        ("sqrt(16)", "4"),
        ("√9", "3"),
        ("the square root of 888", "≈29.7993288515"),
        ("sqrt(4/25)", "0.4"),
        ("cbrt(-27)", "-3"),
        ("2^0.5", "≈1.41421356237"),
        ("abs(-3)", "3"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(3.14159, 2)", "3.14"),
        ("floor(-1.5)+ceil(1.2)", "0"),
        ("sin(30 degrees)", "≈0.5"),
        ("cos(0)", "≈1"),
        ("sin(pi)", "≈0"),
        ("tan(45°)", "≈1"),
        ("2pi", "≈6.28318530718"),
        ("e^2", "≈7.38905609893"),
        ("ln(1)", "0"),
        ("log(1000)", "3"),
        ("log(8, 2)", "3"),
        ("log2(10)", "≈3.32192809489"),
        ("exp(1)", "≈2.71828182846"),
        ("5!", "120"),
        ("8 factorial", "40320"),
        ("4 + 4 = ?", "8"),
        ("5!?", "120"),
        ("1.5e3", "1500"),
        ("10^50", "1 × 10^50"),
        ("2^200", "≈1.60693804426 × 10^60"),
        ("1e-20", "1 × 10^-20"),
        ("123456789012345678901234567890*1", "123456789012345678901234567890"),
        ("1.0001^10000", "≈2.71814592683"),
        ("0^0", "1"),
        ("(-1)^999999999999", "-1"),
    ],
)
def test_an_expression_has_its_value(expression: str, value: str) -> None:
    assert shown(expression) == value


@pytest.mark.parametrize(
    ("expression", "problem", "position", "found"),
    [
        ("", Problem.EMPTY, 1, ""),
        (" = ? ", Problem.EMPTY, 1, ""),
        ("9" * 501, Problem.TOO_LONG, 501, ""),
        ("(" * 60 + "1" + ")" * 60, Problem.TOO_DEEP, 51, "("),
        ("-" * 100 + "1", Problem.TOO_DEEP, 51, "-"),
        ("2^" * 100 + "1", Problem.TOO_DEEP, 102, "^"),
        ("sqrt " * 60 + "1", Problem.TOO_DEEP, 251, "sqrt"),
        ("2+*3", Problem.UNEXPECTED, 3, "*"),
        ("1 2", Problem.UNEXPECTED, 3, "2"),
        ("2)", Problem.UNEXPECTED, 2, ")"),
        ("5 and 6", Problem.UNEXPECTED, 3, "and"),
        ("2+", Problem.UNFINISHED, 3, ""),
        ("(2+3", Problem.UNFINISHED, 5, ""),
        ("subtract 3", Problem.UNFINISHED, 11, ""),
        ("2 + foo(3)", Problem.UNKNOWN, 5, "foo"),
        ("__import__('os')", Problem.UNKNOWN, 1, "_"),
        ("1 + $", Problem.UNKNOWN, 5, "$"),
        ("sqrt(1, 2)", Problem.WRONG_ARGUMENTS, 1, "sqrt"),
        ("round(1, 2, 3)", Problem.WRONG_ARGUMENTS, 1, "round"),
        ("1/0", Problem.DIVISION_BY_ZERO, 2, "/"),
        ("5 mod (2-2)", Problem.DIVISION_BY_ZERO, 3, "mod"),
        ("0^-1", Problem.DIVISION_BY_ZERO, 2, "^"),
        ("9**9**9", Problem.TOO_LARGE, 2, "**"),
        ("1000!", Problem.TOO_LARGE, 5, "!"),
        ("exp(100000)", Problem.TOO_LARGE, 1, "exp"),
        ("1e9999", Problem.TOO_LARGE, 1, "1e9999"),
        ("2.5!", Problem.UNDEFINED, 4, "!"),
        ("sqrt(-1)", Problem.UNDEFINED, 1, "sqrt"),
        ("ln(0)", Problem.UNDEFINED, 1, "ln"),
        ("tan(90 degrees)", Problem.UNDEFINED, 1, "tan"),
        ("(-8)^(1/3)", Problem.UNDEFINED, 5, "^"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(expression: str, problem: Problem, position: int, found: str) -> None:
    with pytest.raises(BadExpression) as caught:
        calculate(expression)
    assert (caught.value.problem, caught.value.position, caught.value.found) == (problem, position, found)


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9^9^9^9^9^9",
        "10^1000000000000000000000",
        "0.5^100000000",
        "1.0000001^99999999",
        "(1/3)^1200 + (1/7)^1200 + (1/11)^1000",
        "*".join(["9" * 9] * 50),
        "450!" + "*450!" * 90,
        "+".join(f"1/{number}" for number in range(1000, 1080)),
        "exp(" * 40 + "1" + ")" * 40,
        "-(" * 24 + "1" + ")" * 24,
        "9" * 500,
    ],
)
def test_no_expression_takes_long(expression: str) -> None:
    started = time.process_time()
    assert problem_of(expression) in (None, Problem.TOO_LARGE, Problem.TOO_DEEP, Problem.TOO_LONG)
    assert time.process_time() - started < 0.5


@given(st.text(alphabet="0123456789.+-*/^%!(), esqrtoflnxpi的加²°", max_size=60))
def test_any_text_is_a_number_or_a_bad_expression(text: str) -> None:
    assert problem_of(text) in (None, *Problem)


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12), st.sampled_from("+-*"))
def test_whole_numbers_are_exact(left: int, right: int, sign: str) -> None:
    assert (
        calculate(f"({left}){sign}({right})").value == {"+": left + right, "-": left - right, "*": left * right}[sign]
    )
