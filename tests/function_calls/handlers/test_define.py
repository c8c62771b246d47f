"""Definitions of words, from the answers of the dictionaries to the reply."""

from __future__ import annotations

import asyncio

import pytest

from function_calls.handlers.lookup import define
from services.refs import ErrorCode
from services.web.dictionary import Dictionary
from services.web.http import WebClient, WebLimits
from tests.fakes.dictionaries import DICTIONARY_PATH, chinese_answer, english_answer
from tests.fakes.web_server import Page, WebServer
from tests.function_calls.handlers.running import Functions, text_of

FATE = "%E7%BC%98%E5%88%86"


def a_dictionary(server: WebServer) -> Functions:
    http = WebClient(WebLimits(timeout_seconds=2), allow_loopback=True)
    return Functions(define, Dictionary(http, url=server.url(DICTIONARY_PATH)))


async def test_an_english_word_is_shown_with_its_meanings_and_the_source() -> None:
    async with WebServer({f"{DICTIONARY_PATH}/test": Page.json(english_answer())}) as server:
        result = await a_dictionary(server).run("define", word="test")
    assert text_of(result).splitlines() == [
        "test",
        "noun:",
        "1. A challenge, trial.",
        "2. A cupel for melting metals.",
        "   e.g. The test was cracked.",
        "verb:",
        "1. To challenge.",
        "French, noun:",
        "1. test",
        "Source: Wiktionary",
    ]
    assert result.data[1] == ["English", "verb", "To challenge."]


async def test_a_chinese_word_is_looked_up_with_its_chinese_meanings_first() -> None:
    async with WebServer({f"{DICTIONARY_PATH}/{FATE}": Page.json(chinese_answer())}) as server:
        result = await a_dictionary(server).run("define", word="缘分", language="zh")
    assert text_of(result).splitlines() == [
        "缘分",
        "Chinese，noun：",
        "1. predestined affinity",
        "   例：缘分天注定",
        "Japanese，noun：",
        "1. fate",
        "来源：Wiktionary",
    ]


async def test_an_unknown_word_is_named() -> None:
    async with WebServer({}) as server:
        result = await a_dictionary(server).run("define", word="qwrtz")
    assert result.error is not None
    assert (result.error.code, result.error.text) == (
        ErrorCode.NOT_FOUND,
        "I can't find “qwrtz” in the dictionary.",
    )


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (Page(status=503), ErrorCode.TRANSIENT),
        (Page(b"<html>"), ErrorCode.ENVIRONMENT),
        (Page.json(5), ErrorCode.ENVIRONMENT),
    ],
)
async def test_failing_dictionaries_are_reported_in_a_sentence(page: Page, code: ErrorCode) -> None:
    async with WebServer({f"{DICTIONARY_PATH}/mark": page}) as server:
        result = await a_dictionary(server).run("define", word="mark")
    assert result.error is not None
    assert result.error.code is code
    assert "dictionary" in result.error.text


async def test_three_members_look_words_up_at_once() -> None:
    pages = {f"{DICTIONARY_PATH}/test": Page.json(english_answer())}
    async with WebServer(pages) as server:
        functions = a_dictionary(server)
        results = await asyncio.gather(*(functions.run("define", by=who, word="test") for who in ("Ann", "Bo", "Cy")))
    assert [text_of(one).splitlines()[0] for one in results] == ["test"] * 3
