"""Long answers are split into parts that a network accepts, without losing text or breaking characters."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.delivery.outgoing import LONGEST_REPLY, outgoing_from_json, outgoing_to_json, pieces, split
from bot.platforms.base import Limits, Outgoing
from config.texts import Texts
from function_calls.context import Attachment
from function_calls.spec import Choice, Message
from services.refs import ChatRef, MemberRef

TEXTS = Texts()
CHAT = ChatRef("test", "bot", "family")
ANN = MemberRef("test", "bot", "ann")
FAMILY = "👨\u200d👩\u200d👧\u200d👦"
ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
WHOLE = [FAMILY, ENGLAND, "🇳🇴", "👍🏽", "1️⃣", "❤️", "e\u0301", "o\u0302\u0323", "नि", "க்", "น้", "한", "中"]
READABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`"), max_size=400)


def limits(**changes: object) -> Limits:
    known = {"text_chars": 100, "sends_are_idempotent": True, "sends_per_minute": 60, "choices": True}
    return Limits(**{**known, **changes})  # type: ignore[arg-type]


def without_white_space(text: str) -> str:
    return "".join(text.split())


@given(text=READABLE, longest=st.integers(20, 120))
def test_pieces_are_within_the_limit_and_lose_nothing_but_white_space_at_cuts(text: str, longest: int) -> None:
    found = split(text, longest)
    assert all(len(piece) <= longest for piece in found)
    assert without_white_space("".join(found)) == without_white_space(text)
    assert len(found) == 1 or all(piece.strip() for piece in found)


@given(text=READABLE)
def test_what_fits_is_left_as_it_is(text: str) -> None:
    assert split(text, 400) == [text]


@given(parts=st.lists(st.sampled_from(WHOLE), min_size=1, max_size=120), longest=st.integers(20, 60))
def test_no_character_is_torn(parts: list[str], longest: int) -> None:
    text = "".join(parts)
    starts, place = set(), 0
    for part in parts:
        starts.add(place)
        place += len(part)
    place = 0
    for piece in split(text, longest):
        assert place in starts, f"{piece!r} begins within a character"
        place += len(piece)


@pytest.mark.parametrize("character", WHOLE)
def test_no_character_is_torn_wherever_the_cut_falls(character: str) -> None:
    for before in range(30):
        for piece in split("x" * before + character * 40, 30):
            assert piece.lstrip("x").count(character) * len(character) == len(piece.lstrip("x"))


def test_endless_white_space_makes_no_empty_pieces() -> None:
    assert split("a" + " " * 500 + "b" + "\n" * 500, 30)[0] == "a"
    assert all(piece.strip() for piece in split("a" + " " * 500 + "b" + " \n" * 500, 30))


def test_many_flags_in_a_row_stay_flags() -> None:
    for piece in split("🇳🇴🇨🇳" * 500, 33):
        assert len(piece) % 2 == 0


def test_a_character_that_never_ends_is_cut_all_the_same() -> None:
    found = split("a" + "\u0301" * 500, 50)
    assert "".join(found) == "a" + "\u0301" * 500
    assert all(len(piece) <= 50 for piece in found)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One paragraph here.\n\nAnd another one that is long enough.", "One paragraph here."),
        ("A line that is quite long\nand another line that is long", "A line that is quite long"),
        ("It is a sentence. This is the next one, and it is longer.", "It is a sentence."),
        ("这是第一句话，说得比较长一些。这是第二句话，说得还要再长一点点才行。", "这是第一句话，说得比较长一些。"),
        ("words and words and words and words and words", "words and words and words"),
        ("x" * 100, "x" * 26),
    ],
)
def test_a_cut_is_made_at_the_best_place_there_is(text: str, first: str) -> None:
    assert split(text, 30)[0] == first


def test_a_code_block_that_is_cut_is_closed_and_opened_again() -> None:
    code = "\n".join(f"    line {number}" for number in range(40))
    found = split(f"Look:\n```python\n{code}\n```\nThat is all.", 120)
    assert len(found) > 3
    for piece in found:
        assert piece.count("```") % 2 == 0
        assert len(piece) <= 120
    assert found[1].startswith("```python\n    line")
    lines = re.findall(r"^    line \d+$", "\n".join(found), re.MULTILINE)
    assert lines == code.split("\n")


@given(
    blocks=st.lists(
        st.tuples(st.sampled_from(["", "python", "c++", "x" * 80]), st.text("ab \n", max_size=120)), max_size=6
    ),
    longest=st.integers(40, 90),
)
def test_whatever_code_there_is_every_piece_is_within_the_limit(blocks: list[tuple[str, str]], longest: int) -> None:
    text = "\n".join(f"said\n```{language}\n{code}\n```" for language, code in blocks)
    for piece in split(text, longest):
        assert len(piece) <= longest


def test_an_answer_of_20_000_characters_arrives_in_a_few_pieces() -> None:
    text = "Forty characters of text are a sentence. " * 487
    found = pieces(Message(text), CHAT, None, "t:0", limits(text_chars=4000), TEXTS.of("en"), "Rollcall")
    assert len(text) <= LONGEST_REPLY
    assert len(found) <= 6
    assert " ".join(piece.text for piece in found).split() == text.split()


def test_pieces_have_keys_of_their_own_and_share_what_goes_with_a_message() -> None:
    photo = (Attachment("a.png", "image/png"),)
    message = Message("word " * 60, reply_to="x1", mentions=(ANN,), attachments=photo, choices=(Choice("Yes", "y"),))
    there = limits(attachments=True)
    first, *others = pieces(message, CHAT, ANN, "t:0", there, TEXTS.of("en"), "Rollcall")
    assert [one.key for one in (first, *others)] == [f"t:0:{number}" for number in range(len(others) + 1)]
    assert (first.reply_to, first.mentions, first.attachments, first.choices) == ("x1", (ANN,), (), ())
    assert all((one.reply_to, one.mentions) == (None, ()) for one in others)
    assert (others[-1].attachments, others[-1].choices) == (photo, (Choice("Yes", "y"),))
    assert all(one.private_to == ANN for one in (first, *others))


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (Attachment("a.png", "image/png", "https://a.example/a.png"), "a.png: https://a.example/a.png"),
        (Attachment("a.txt", "text/plain", "data:text/plain;base64,b25lCnR3bw=="), "a.txt:\n```\none\ntwo\n```"),
        (Attachment("a.txt", "text/plain", "data:text/plain,a%60%60%60b"), "a.txt:\na```b"),
        (Attachment("a.txt", "text/plain", "data:text/plain,red%1b[31m"), "a.txt:\n```\nred<U+001B>[31m\n```"),
        (
            Attachment("a.png", "image/png", "data:image/png;base64," + "AAAA" * 1000),
            "a.png (3.0 kB): I can't send files here",
        ),
        (Attachment("a.txt", "text/plain", "data:text/plain;base64,!"), "a.txt (0.0 kB): I can't send files here"),
        (Attachment("a.bin", "text/plain", "data:,%ff%00"), "a.bin (0.0 kB): I can't send files here"),
        (Attachment("a.pdf", "application/pdf", "", 2000), "a.pdf (2.0 kB): I can't send files here"),
    ],
)
def test_files_are_words_where_a_network_takes_none(file: Attachment, said: str) -> None:
    message = Message("Here:", attachments=(file,))
    (only,) = pieces(message, CHAT, None, "t:0", limits(text_chars=400), TEXTS.of("en"), "Rollcall")
    assert (only.text, only.attachments) == (f"Here:\n{said}", ())


def test_of_a_long_file_its_beginning_is_shown() -> None:
    file = Attachment("a.txt", "text/plain", "data:text/plain," + "word%20" * 2000)
    found = pieces(Message("", attachments=(file,)), CHAT, None, "t:0", limits(text_chars=10_000), TEXTS.of("en"), "R")
    assert found[0].text.startswith("a.txt:\n```\nword word")
    assert found[0].text.endswith("…\n```")
    assert len(found[0].text) < 3100


@pytest.mark.parametrize(("language", "words"), [("en", "Reply with: yes / no"), ("zh", "yes / no")])
def test_choices_are_words_where_there_are_no_buttons(language: str, words: str) -> None:
    message = Message("Sure?", choices=(Choice("Yes", "yes"), Choice("No", "no")))
    (only,) = pieces(message, CHAT, None, "t:0", limits(choices=False), TEXTS.of(language), "Rollcall")
    assert only.text.startswith("Sure?\n")
    assert words in only.text
    assert only.choices == ()


@pytest.mark.parametrize(
    ("keeps", "said"),
    [
        (False, "Tea?\nReply with: /vote 1 · /vote 2"),
        (True, "Tea?\nSay “Rollcall:” and one of these: /vote 1 · /vote 2"),
    ],
)
def test_commands_among_choices_are_as_they_can_be_typed_there(keeps: bool, said: str) -> None:
    message = Message("Tea?", choices=(Choice("Yes", "/vote 1"), Choice("No", "/vote 2")))
    there = limits(choices=False, clients_keep_slashes=keeps)
    (only,) = pieces(message, CHAT, None, "t:0", there, TEXTS.of("en"), "Rollcall")
    assert only.text == said


@pytest.mark.parametrize(
    ("keeps", "said"),
    [
        (False, "Reminder 1 is set.\nUndo: /unremind 1"),
        (True, "Reminder 1 is set.\nSay “Rollcall:” and one of these: /unremind 1"),
    ],
)
def test_a_command_that_does_not_answer_the_message_is_shown_with_its_label(keeps: bool, said: str) -> None:
    message = Message("Reminder 1 is set.", choices=(Choice("Undo", "/unremind 1", stays=True),))
    there = limits(choices=False, clients_keep_slashes=keeps)
    (only,) = pieces(message, CHAT, None, "t:0", there, TEXTS.of("en"), "Rollcall")
    assert only.text == said


@given(text=READABLE, private=st.booleans())
def test_what_is_kept_in_the_outbox_is_what_is_sent(text: str, private: bool) -> None:
    one = Outgoing(
        CHAT,
        "t:0:0",
        unicodedata.normalize("NFC", text),
        reply_to="x1",
        mentions=(ANN,),
        attachments=(Attachment("a.png", "image/png", "https://a.example/a.png", 7),),
        choices=(Choice("Yes", "y"),),
        private_to=ANN if private else None,
    )
    assert outgoing_from_json(one.key, outgoing_to_json(one)) == one


def test_an_answer_that_is_too_long_for_a_chat_is_cut_and_says_so() -> None:
    text = "word " * 5000
    found = pieces(Message(text), CHAT, None, "t:0", limits(text_chars=4000), TEXTS.of("en"), "Rollcall")
    assert found[-1].text.endswith(TEXTS.of("en").say("delivery.cut"))
    assert sum(len(piece.text) for piece in found) < LONGEST_REPLY + 200
