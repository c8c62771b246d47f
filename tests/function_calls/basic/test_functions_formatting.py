"""FORMAT, and formats for other programs."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from function_calls.basic.codes import RunCode
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.calls import call, refused


@pytest.mark.parametrize(
    ("number", "pattern", "result"),
    [
        (1234.5, "#,##0.00", "1,234.50"),
        (-1234.565, "#,##0.00", "-1,234.57"),
        ("1234.5", "#,##0.00", "1,234.50"),
        (1234567, "#,##0", "1,234,567"),
        (0, "#,##0.00", "0.00"),
        (42, "0000", "0042"),
        (3.14159, "0.0", "3.1"),
        (3.0, "0.0#", "3.0"),
        (3.146, "0.0#", "3.15"),
        (3.7, "#", "4"),
        (0, "#", "0"),
        (0.856, "0%", "86%"),
        (0.8565, "0.0%", "85.7%"),
        (1234.567, "n", "1234.57"),
        (1234.5, "F", "1234.50"),
        (1234.5, "F0", "1235"),
        (1234.5, "f", "1234.5"),
        (1234567.891, "N", "1,234,567.89"),
        (1234567.891, "N0", "1,234,568"),
        (1234567.89, "C2[en]", "$1,234,567.89"),
        (1234567.89, "C2[pt]", "R$ 1.234.567,89"),
        (1234567.89, "C2[pt-BR]", "R$ 1.234.567,89"),
        (-5, "C2", "-$5.00"),
        (5, "C0[de]", "5 €"),
        (5, "C[zh]", "¥5.00"),
        (0.5, "P1", "50.0%"),
        (7, "D3", "007"),
        (255, "X", "FF"),
        (1234.5, "R$ #,##0.00", "R$ 1,234.50"),
        (12, "0 km", "12 km"),
        (-5, "0.00;(0.00)", "(5.00)"),
        (0, "0;-0;none", "none"),
        (-0.001, "0.00", "0.00"),
        (1e22, "#,##0", "10,000,000,000,000,000,000,000"),
        (11987654321, "(00) 00000-0000", "(11) 98765-4321"),
        (12345678909, "000.000.000-00", "123.456.789-09"),
        (1234.5, "Currency", "$1,234.50"),
        (2.5, "0", "3"),
    ],
)
def test_numbers_are_written_as_the_pattern_wants(number: Any, pattern: str, result: str) -> None:
    assert call("format", number, pattern) == result


@pytest.mark.parametrize(
    ("date", "pattern", "result"),
    [
        ("2026-11-20 22:05:09", "dd/MM/yyyy", "20/11/2026"),
        ("2026-11-20 22:05:09", "dd/mm/yyyy", "20/11/2026"),
        ("2026-11-20 22:05:09", "YYYY-MM-DD HH:MM:SS", "2026-11-20 22:05:09"),
        ("2026-11-20 22:05:09", "yyyy-MM-dd HH:mm", "2026-11-20 22:05"),
        ("2026-11-20 22:05:09", "hh:mm", "22:05"),
        ("2026-11-20 22:05:09", "hh:mm tt", "10:05 PM"),
        ("2026-11-20 22:05:09", "h:nn AM/PM", "10:05 PM"),
        ("2026-11-20 22:05:09", "mm:ss", "05:09"),
        ("2026-11-20 22:05:09", "mm", "05"),
        ("2026-11-20 22:05:09", "MM", "11"),
        ("2026-11-20 22:05:09", "d/M/yy", "20/11/26"),
        ("2026-11-20 22:05:09", "dddd, d MMMM yyyy", "Friday, 20 November 2026"),
        ("2026-11-20 22:05:09", "ddd d. MMM", "Fri 20. Nov"),
        ("2026-11-20 22:05:09", "d 'de' MMMM 'de' yyyy", "20 de November de 2026"),
        ("2026-11-20 22:05:09", "d de MMMM", "20 de November"),
        ("2026-11-20 22:05:09", "yyyy年MM月dd日", "2026年11月20日"),
        ("2026-11-20 22:05:09", "yyyyMMdd_HHmmss", "20261120_220509"),
        ("2026-11-20 22:05:09", "yyyy-MM-ddTHH:mm:ssZ", "2026-11-20T22:05:09Z"),
        ("2026-11-20 22:05:09", "Ymd", "20261120"),
        ("2026-01-05 08:05:09", "d/m/Y H:i", "05/01/2026 08:05"),
        ("2026-11-20 22:05:09", "%Y-%m-%d %I:%M %p", "2026-11-20 10:05 PM"),
        ("2026-11-20 22:05:09", "HH:mm dd/MM", "22:05 20/11"),
        ("2026-11-20", "HH:mm", "00:00"),
        ("08:05", "H:mm", "8:05"),
        ("2026-11-20T22:05:09Z", "HH:mm", "23:05"),
    ],
)
def test_dates_are_written_as_the_pattern_wants(date: str, pattern: str, result: str) -> None:
    assert call("format", date, pattern) == result


@pytest.mark.parametrize(
    ("text", "pattern", "result"),
    [
        ("Mary", "Ms. @", "Ms. Mary"),
        ("John", "Hello @!", "Hello John!"),
        ("Mary", "!", "MARY"),
        ("Mary", ">", "MARY"),
        ("Mary", "<", "mary"),
        ("5551234", "@@@-@@@@", "555-1234"),
        ("2026-11-20", "Due: @", "Due: 2026-11-20"),
        (5, "@ apples", "5 apples"),
        (None, "#,##0.00", ""),
        ("", "dd/MM/yyyy", ""),
        (True, "@", "true"),
    ],
)
def test_texts_are_written_as_the_pattern_wants(text: Any, pattern: str, result: str) -> None:
    assert call("format", text, pattern) == result


def test_names_in_a_date_are_in_the_language_of_the_chat() -> None:
    assert (
        call("format", "2026-11-20 08:00", "MMMM d dddd tt", world=FixedWorld(language="zh")) == "十一月 20 星期五 上午"
    )
    assert call("format", "2026-11-20", "MMM ddd", world=FixedWorld(language="zh")) == "11月 周五"


@pytest.mark.parametrize(
    ("value", "pattern", "part"),
    [
        (5, "wxyz", "wxyz"),
        (5, "dd/MM/yyyy", "dd/MM/yyyy"),
        ("hello", "dd/MM/yyyy", "dd/MM/yyyy"),
        ("2026-11-20", "abc", "abc"),
        ("08:05", "dd/MM", "the value is a time of day"),
        (5, "C2[xx]", "[xx]"),
        ([1], "0", "a list"),
        (5, "0" * 300, "200 characters"),
    ],
)
def test_a_pattern_that_does_not_fit_is_named(value: Any, pattern: str, part: str) -> None:
    code, detail = refused("format", value, pattern)
    assert code in (RunCode.BAD_VALUE, RunCode.WRONG_TYPE)
    assert part in detail


def test_a_pattern_that_repeats_itself_takes_no_time() -> None:
    before = time.process_time()
    for pattern in ("y" * 190 + "x", "d" * 190 + "q", "#," * 90, "t" * 190 + "u", "T" * 190):
        call("format", "2026-11-20", pattern + " yyyy")
        call("format", 5, "0" + pattern)
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "invalid JSON at line 1, column 2"),
        ("", "invalid JSON"),
        ("NaN", "not a JSON number"),
        ("1e999", "too large"),
        ("9" * 5000, "too large"),
        ("[" * 100_000, "nested"),
        ("[" * 200 + "]" * 200, "nested"),
        ('{"a":' * 5000, "nested"),
    ],
)
def test_json_that_is_none_or_too_much_is_refused(text: str, says: str) -> None:
    code, detail = refused("parsejson", text)
    assert code is RunCode.BAD_VALUE
    assert says in detail


def test_brackets_within_texts_are_no_depth() -> None:
    assert call("parsejson", json.dumps(["[" * 1000, '"{' * 1000])) == ["[" * 1000, '"{' * 1000]


def test_json_brings_nothing_that_cannot_be_kept() -> None:
    assert call("parsejson", '["\\ud83d\\ude00", "a\\ud800b", "c\\u0000d"]') == ["😀", "a?b", "cd"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=12)
    | st.sampled_from(["yes", "~", "1.5", "- a", "a: b", "#", "'x", " a", "0x1F", "2026-11-20", "1:30"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_what_is_written_is_read_back_as_it_was(value: Any) -> None:
    assert call("parsejson", call("tojson", value)) == call("parsejson", json.dumps(value))
    text = call("toyaml", value)
    if text.isprintable() or text.replace("\n", "").isprintable():
        assert YAML(typ="safe", pure=True).load(text) == value


@given(st.text(max_size=30))
def test_texts_survive_their_encodings(text: str) -> None:
    kept = text.encode("utf-8", "replace").decode().replace("\0", "")
    assert call("frombase64", call("base64", text)) == kept
    assert call("urldecode", call("urlencode", text)) == kept
