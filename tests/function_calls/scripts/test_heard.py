"""Parsing of members' answers to scripts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.texts import Texts
from function_calls.basic.run.answer_parsers import ALIASES, KINDS, Answer, AnswerMismatch, chosen, read
from function_calls.context import Attachment
from services.times import Times

TEXTS = Texts()
NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC).astimezone(ZoneInfo("Europe/Oslo"))
TIMES = Times()
PHOTO = Attachment("cat.png", "image/png", "https://example.org/cat.png", 1000)


def heard(kind: str, text: str, language: str = "en", attachments: tuple[Attachment, ...] = ()) -> Any:
    return read(kind, Answer(text, attachments, NOW, TIMES, TEXTS.of(language)))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", "  anything at all ", "anything at all"),
        ("name", "Zoë  O’Brien-Smith Jr.", "Zoë O’Brien-Smith Jr."),
        ("name", "王小明", "王小明"),
        ("email", "Ann.B+x@Example.ORG", "Ann.B+x@example.org"),
        ("email", "mailto:ann@example.org", "ann@example.org"),
        ("integer", "42", 42),
        ("integer", "-7", -7),
        ("integer", "1,000,000", 1_000_000),
        ("number", "3.5", 3.5),
        ("number", "3,5", 3.5),
        ("number", "1.234.567", 1_234_567),
        ("number", "1,234.5", 1234.5),
        ("number", "1.234,5", 1234.5),
        ("number", "1,234", 1234),
        ("number", "12 345", 12345),
        ("boolean", "yes please", True),
        ("boolean", "nope", False),
        ("boolean", "true", True),
        ("boolean", "0", False),
        ("date", "2026-03-14", "2026-03-14"),
        ("date", "tomorrow", "2026-01-06"),
        ("date", "next Friday", "2026-01-16"),
        ("hour", "15:30", "15:30"),
        ("hour", "3 pm", "15:00"),
        ("datetime", "2026-03-14 15:00", "2026-03-14 15:00:00"),
        ("datetime", "2026-03-14T14:00:00Z", "2026-03-14 15:00:00"),
        ("datetime", "tomorrow at 3 pm", "2026-01-06 15:00:00"),
        ("duration", "90 minutes", 5400),
        ("duration", "2 days", 172_800),
        ("weekday", "fri", "Friday"),
        ("month", "March", 3),
        ("month", "12", 12),
        ("year", "2026", 2026),
        ("money", "€ 12.50", 12.5),
        ("money", "USD 1,200", 1200),
        ("percent", "15 %", 15),
        ("mobile", "+47 912 34 567", "+4791234567"),
        ("mobile", "(02) 1234-5678", "0212345678"),
        ("zipcode", "sw1a 1aa", "SW1A 1AA"),
        ("zipcode", "0150", "0150"),
        ("url", "https://example.org/a?b=1#c", "https://example.org/a?b=1#c"),
        ("url", "example.org/a", "https://example.org/a"),
        ("url", "http://192.0.2.7:8080/", "http://192.0.2.7:8080/"),
        ("domain", "Example.ORG.", "example.org"),
        ("ip", "2001:DB8::1", "2001:db8::1"),
        ("uuid", "{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ("color", "Blue", "#0000ff"),
        ("color", "#3AF", "#33aaff"),
        ("language", "Portuguese", "pt"),
        ("language", "pt-BR", "pt-br"),
        ("timezone", "America/New York", "America/New_York"),
        ("username", "@ann.b", "ann.b"),
    ],
)
def test_what_fits_is_read(kind: str, text: str, value: Any) -> None:
    found = heard(kind, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "好的", True),
        ("boolean", "不要", False),
        ("date", "明天", "2026-01-06"),
        ("hour", "下午三点", "15:00"),
        ("datetime", "明天下午三点", "2026-01-06 15:00:00"),
        ("month", "3月", 3),
        ("year", "2026年", 2026),
        ("percent", "百分之15", 15),
        ("color", "蓝色", "#0000ff"),
        ("language", "中文", "zh"),
    ],
)
def test_what_fits_is_read_in_chinese(kind: str, text: str, value: Any) -> None:
    assert heard(kind, text, "zh") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", " "),
        ("name", "42"),
        ("name", "x" * 101),
        ("email", "ann at example.org"),
        ("email", "ann@example"),
        ("email", "a..b@example.org"),
        ("email", "a@b@example.org"),
        ("integer", "3.5"),
        ("integer", "many"),
        ("integer", "9" * 40),
        ("number", "1.2.3,4,5"),
        ("number", "1,23,456"),
        ("number", "--1"),
        ("number", "1,"),
        ("number", ".,"),
        ("boolean", "perhaps"),
        ("date", "soon"),
        ("date", "2026-02-30"),
        ("hour", "25:00"),
        ("datetime", "2026-13-01 10:00"),
        ("duration", "tomorrow"),
        ("weekday", "fr"),
        ("month", "13"),
        ("year", "0"),
        ("year", "20260"),
        ("mobile", "123"),
        ("mobile", "call me"),
        ("zipcode", "no code"),
        ("url", "ftp://example.org"),
        ("url", "https://user@example.org/"),
        ("url", "not a page"),
        ("domain", "example"),
        ("ip", "300.1.1.1"),
        ("uuid", "123"),
        ("color", "blurple"),
        ("language", "klingon"),
        ("timezone", "Mars/Olympus"),
        ("timezone", "../etc/passwd"),
        ("username", "ann b"),
        ("file", "here it is"),
        ("video", "here it is"),
    ],
)
def test_what_does_not_fit_is_not_heard(kind: str, text: str) -> None:
    with pytest.raises(AnswerMismatch):
        heard(kind, text)


def test_a_file_is_one_that_came_with_the_answer() -> None:
    file = {"name": "cat.png", "type": "image/png", "url": "https://example.org/cat.png", "size": 1000}
    assert heard("file", "here", attachments=(PHOTO,)) == file
    assert heard("image", "here", attachments=(PHOTO,)) == file
    with pytest.raises(AnswerMismatch):
        heard("audio", "here", attachments=(PHOTO,))


@pytest.mark.parametrize("said", ["Large", " large. ", "2", "lar"])
def test_a_choice_is_said_in_its_words_by_its_number_or_its_beginning(said: str) -> None:
    assert chosen(["Small", "Large", "Lavish"], said) == "Large"


@pytest.mark.parametrize("said", ["", "la", "4", "0", "٢x", "Medium"])
def test_what_is_none_of_the_choices_or_may_be_two_is_not_heard(said: str) -> None:
    with pytest.raises(AnswerMismatch):
        chosen(["Small", "Large", "Lavish"], said)


@given(st.sampled_from(sorted(KINDS)), st.text(max_size=400), st.sampled_from(["en", "zh"]))
def test_whatever_is_said_is_a_value_or_is_not_heard(kind: str, text: str, language: str) -> None:
    try:
        value = heard(kind, text, language)
    except AnswerMismatch:
        return
    assert isinstance(value, str | int | float | bool | dict)


@pytest.mark.parametrize("language", TEXTS.languages)
@pytest.mark.parametrize("kind", sorted({*KINDS, "choice", "gave_up"}))
def test_each_kind_has_its_sentence(kind: str, language: str) -> None:
    assert TEXTS.of(language).say(f"basic.hear.{kind}", choices="a, b")


def test_other_words_for_kinds_lead_to_some() -> None:
    assert set(ALIASES.values()) <= set(KINDS)
    assert not set(ALIASES) & set(KINDS)
