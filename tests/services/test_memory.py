"""Texts of notes: their subjects, the request around them, and whether they are in somebody's words."""

from __future__ import annotations

import pytest

from services.chats.memory import is_in_words, subject_of, without_request


@pytest.mark.parametrize(
    ("text", "fact", "for_all"),
    [
        ("that I like tea", "I like tea", False),
        ("everyone likes tea", "everyone likes tea", False),
        ("for everybody: we meet at 8", "we meet at 8", True),
        ("for us that we meet at 8", "we meet at 8", True),
        ("about this group: it sings", "it sings", True),
        ("Everyone: bring cake", "bring cake", True),
        ("大家：排练在周二", "排练在周二", True),
        ("给大家记住排练在周二", "排练在周二", True),
        ("大家喜欢茶", "大家喜欢茶", False),
        ("for us", "for us", False),
    ],
)
def test_a_note_is_taken_out_of_its_request(text: str, fact: str, for_all: bool) -> None:
    assert without_request(text) == (fact, for_all)


@pytest.mark.parametrize(
    ("text", "said", "is_in"),
    [
        ("Ann is allergic to peanuts", "btw, I'm allergic to peanuts!", True),
        ("likes hiking", "I like to hike, you know", True),
        ("allergic to nuts", "I'm allergic to peanuts", False),
        ("phone 5551234", "my phone is 5551234", True),
        ("phone 5551235", "my phone is 5551234", False),
        ("喜欢喝茶", "我最喜欢喝茶了", True),
        ("喜欢喝酒", "我最喜欢喝茶了", False),
        ("she is", "anything", False),
    ],
)
def test_a_note_is_in_somebodys_words_or_not(text: str, said: str, is_in: bool) -> None:
    assert is_in_words(text, [said], "Ann") is is_in


@pytest.mark.parametrize("text", ["", "tea", "I have a dog", "what is my name?", "is it", "我有一只狗"])
def test_other_texts_have_no_subject(text: str) -> None:
    assert subject_of(text, on_chat=False) == ""


def test_a_statement_without_an_article_has_a_subject_only_about_a_chat() -> None:
    assert subject_of("rehearsal is on Friday", on_chat=True) == subject_of("The rehearsal is today", on_chat=True)
    assert subject_of("tea is good", on_chat=False) == ""
