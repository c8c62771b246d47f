"""Normalization of incoming texts for storage and comparison."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.intake.intake import normalized, normalized_name, normalized_text
from bot.testing import a_group
from config.texts import Texts
from function_calls.context import Quoted
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import Recorder
from tests.fakes.kept import heard

TEXTS = Texts().of("en")

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("hello", "hello"),
        ("e\u0301", "é"),
        ("a\r\nb", "a\nb"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\x00b\x1bc", "a\ufffdb\ufffdc"),
        ("\ud800", "\ufffd"),
        ("/no\x00te", "/no\ufffdte"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
    ],
)
def test_a_text_is_made_fit(written: str, kept: str) -> None:
    assert normalized_text(written, 100) == kept


@given(text=ANYTHING, longest=st.integers(1, 100))
def test_any_text_can_be_kept_afterwards(text: str, longest: int) -> None:
    kept = normalized_text(text, longest)
    assert len(kept) <= longest
    assert kept.encode() is not None
    assert "\0" not in kept
    assert normalized_text(kept, longest) == kept


@given(name=ANYTHING)
def test_any_name_is_one_short_line(name: str) -> None:
    kept = normalized_name(name)
    assert 1 <= len(kept) <= 128
    assert "\n" not in kept
    assert kept == kept.strip()


def test_everything_that_people_wrote_is_made_fit() -> None:
    context = a_message("a\x00", a_member("A\nnn"), reply_to=Quoted("q", "B\nob", "b\x00"), chat_title="T\nwo")
    kept = normalized(context, 100, TEXTS)
    assert (kept.text, kept.sender.name, kept.chat_title) == ("a\ufffd", "A nn", "T wo")
    assert kept.reply_to == Quoted("q", "B ob", "b\ufffd")
    assert kept.sender.ref == context.sender.ref


def test_what_is_fit_stays_the_same_object() -> None:
    context = a_message(unicodedata.normalize("NFC", "Grüße 你好"))
    assert normalized(context, 100, TEXTS) is context


async def test_nothing_that_is_stripped_turns_a_text_into_a_command() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec]) as group:
        for text in ("\x00/note", "/no\x00te", "/\u200bnote", "\ud800/note"):
            await group.say("Ann", text)
        assert note.runs == []
        assert len(await heard(group)) == 4
