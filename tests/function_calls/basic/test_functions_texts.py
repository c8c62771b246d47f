"""Functions for texts and numbers."""

from __future__ import annotations

from typing import Any

import pytest

from function_calls.basic.codes import RunCode
from tests.function_calls.basic.calls import call, refused

LONG = "x" * 4_000_000


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("len", ("日本語é",), 4),
        ("len", ([1, 2],), 2),
        ("len", (None,), 0),
        ("len", (1234,), 4),
        ("left", ("hello", 0), ""),
        ("left", ("hello", -1), ""),
        ("left", (12345, 2), "12"),
        ("right", ("hello", 99), "hello"),
        ("right", ("hello", 0), ""),
        ("mid", ("hello", 2), "ello"),
        ("mid", ("hello", 9), ""),
        ("mid", ("hello", "2", "1"), "e"),
        ("instr", ("hello", "z"), 0),
        ("instr", (4, "hello", "l"), 4),
        ("instr", ("4", "hello", "l"), 4),
        ("instr", ("hello", "l", 4), 4),
        ("instr", ("12", "2"), 2),
        ("instr", (1, "212", 2), 1),
        ("instrrev", ("a/b/c", "/"), 4),
        ("replace", ("aaa", "a", ""), ""),
        ("replace", ("abc", "", "x"), "abc"),
        ("split", ("a, b", ", "), ["a", "b"]),
        ("split", ("one  two",), ["one", "two"]),
        ("split", ("abc", ""), ["a", "b", "c"]),
        ("split", ("", ","), []),
        ("split", ("a,b,c", ",", 2), ["a", "b,c"]),
        ("lines", ("a\r\nb\n",), ["a", "b"]),
        ("join", ([1, None, "x"],), "1, , x"),
        ("join", ([], "-"), ""),
        ("concat", (1, None, True), "1true"),
        ("string", (3, "ab"), "aaa"),
        ("string", ("-", 3), "---"),
        ("proper", ("don't STOP-now",), "Don't Stop-Now"),
        ("contains", (["a", "b"], "b"), True),
        ("contains", ({"a": 1}, "a"), True),
        ("contains", ("hello", "HE"), False),
        ("reverse", ([1, 2],), [2, 1]),
        ("strcomp", ("b", "a"), 1),
        ("capitalize", ("élan",), "Élan"),
        ("slug", ("  Über uns!  ",), "uber-uns"),
        ("val", ("  -3.5kg",), -3.5),
        ("val", ("abc",), 0),
        ("val", (None,), 0),
        ("val", ("1,234",), 1234),
        ("val", ("12e",), 12),
        ("int", ("2.9",), 2),
        ("round", (2.5,), 3),
        ("round", (-2.5,), -3),
        ("round", (2.675, 2), 2.68),
        ("round", (1250, -2), 1300),
        ("round", (1250.0, -2), 1300),
        ("round", (1e300, 5), 1e300),
        ("sqr", (2,), 2**0.5),
        ("sgn", (0,), 0),
        ("hex", (-255,), "-FF"),
    ],
)
def test_texts_and_numbers(name: str, arguments: tuple[Any, ...], result: Any) -> None:
    given = call(name, *arguments)
    assert given == result
    assert isinstance(given, bool) is isinstance(result, bool)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("left", ([1], 2), "LEFT needs a text and a number, not a list as its first argument"),
        ("left", ("a", "b"), "LEFT needs a text and a number, not a text as its second argument"),
        ("upper", ({},), "UPPER needs a text, not a map"),
        ("join", ("a", ","), "JOIN needs a list and a text, not a text as its first argument"),
        ("sum", ([1, "x"],), "SUM needs numbers; item 1 is a text"),
        ("year", ("soon",), "YEAR needs a date, not a text; write dates as 2026-11-20 or 2026-11-20 22:15"),
        ("year", (["x"],), "YEAR needs a date, not a list; write dates as 2026-11-20 or 2026-11-20 22:15"),
        ("mid", ("hello", 0), "MID: the start must be at least 1"),
        ("sqr", (-1,), "SQR is not defined for this number"),
        ("log", (0,), "LOG is not defined for this number"),
        ("exp", (1000,), "EXP: the number is too large"),
        ("chr", (0xD800,), "CHR: there is no character 55296"),
        ("left", ("a",), "wrong number of arguments; write LEFT(text, count)"),
    ],
)
def test_a_refusal_names_the_function_and_what_it_needs(name: str, arguments: tuple[Any, ...], says: str) -> None:
    code, detail = refused(name, *arguments)
    assert detail == says
    assert code in (RunCode.WRONG_TYPE, RunCode.BAD_VALUE)


def test_a_refusal_never_repeats_a_text_that_may_be_a_stranger_s() -> None:
    for name, arguments in (
        ("abs", ("SECRET",)),
        ("cbool", ("SECRET",)),
        ("cdate", ("SECRET",)),
        ("dateadd", ("SECRET", 1)),
        ("dateadd", ("2026-11-20", 1, "SECRET")),
        ("parsejson", ("SECRET",)),
        ("frombase64", ("SECRET!",)),
    ):
        assert "SECRET" not in refused(name, *arguments)[1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("space", (1_000_000_000,)),
        ("string", (10**12, "x")),
        ("repeat", (LONG, 3)),
        ("replace", (LONG, "x", "yyyy")),
        ("join", ([LONG] * 3,)),
        ("join", (["a", "b", "c"] * 50_000, LONG)),
        ("concat", (LONG, LONG, LONG)),
        ("split", (LONG, "x")),
        ("split", ("a " * 500_000,)),
        ("split", (LONG, "")),
        ("lines", ("\n" * 500_000,)),
        ("lpad", ("a", 10**9)),
        ("rpad", ("a", 10**9, "-")),
        ("range", (1, 10**9)),
        ("range", (0, 1, 1e-300)),
        ("push", ([None] * 200_000, 1)),
        ("flatten", ([[None] * 100_000] * 3,)),
        ("base64", (LONG * 2,)),
        ("urlencode", (LONG,)),
        ("parsejson", ("[" + "[]," * 1_000_000 + "1]",)),
        ("format", (LONG, "@" + "!" + "@ @ @")),
        ("tojson", ([LONG] * 3,)),
        ("toyaml", ([LONG] * 3,)),
    ],
)
def test_what_would_be_huge_is_refused_before_it_is_made(name: str, arguments: tuple[Any, ...]) -> None:
    assert refused(name, *arguments)[0] is RunCode.MEMORY
