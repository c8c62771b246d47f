from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from config.texts import FALLBACK, FOLDER, MissingText, Phrases, Texts, placeholders
from config.yaml_document import read_yaml_file

ROOT = Path(__file__).parents[2]
SOURCES = ("bot", "function_calls", "services", "config")
LANGUAGES = Texts().languages
_KEY = re.compile(r"[a-z_]+(\.[a-z0-9_]+)+")
_BEGINNING = re.compile(r"[a-z_]+(\.[a-z0-9_]*)+")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_sentences(language: str) -> None:
    reference, other = Texts().of(FALLBACK).templates, Texts().of(language).templates
    assert set(other) ^ set(reference) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_names_the_same_values_in_a_sentence(language: str) -> None:
    reference, other = Texts().of(FALLBACK).templates, Texts().of(language).templates
    differing = {key for key in reference if placeholders(reference[key]) != placeholders(other.get(key, ""))}
    assert differing == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_file_of_texts_is_without_fault(language: str) -> None:
    assert str(read_yaml_file(FOLDER / f"{language}.yaml").faults) == ""


def test_there_are_texts_in_english_and_chinese() -> None:
    assert {"en", "zh"} <= set(LANGUAGES)


def test_a_sentence_that_does_not_exist_is_an_error_that_names_file_and_key() -> None:
    with pytest.raises(MissingText, match=r"no text 'no\.such' in config/texts/zh\.yaml"):
        Texts().of("zh").say("no.such")


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError, match="name"):
        Phrases("en", {"greeting": "Hello {name}"}).say("greeting")


def test_a_value_is_never_read_as_a_template() -> None:
    phrases = Phrases("en", {"greeting": "{name}, {city}"})
    hostile = "{city} {name.__class__} {0} %s \\1 @greeting"
    assert phrases.say("greeting", name=hostile, city="Oslo") == f"{hostile}, Oslo"
    assert phrases.resolve("@greeting", name=hostile, city="Oslo") == f"{hostile}, Oslo"


def test_text_of_a_function_is_itself_and_a_key_is_looked_up() -> None:
    phrases = Phrases("en", {"ask.city": "Which city, {name}?"})
    assert phrases.resolve("Where to, {name}? {unknown}", name="Ann") == "Where to, Ann? {unknown}"
    assert phrases.resolve("@ask.city", name="Ann") == "Which city, Ann?"


@pytest.mark.parametrize(
    ("asked", "found"), [("zh", "zh"), ("zh-TW", "zh"), ("zh_Hans_CN", "zh"), ("fr", "en"), ("../en", "en")]
)
def test_a_language_without_texts_falls_back_to_its_stem_or_english(asked: str, found: str) -> None:
    assert Texts().of(asked).language == found


def test_words_that_people_may_say_are_split_at_commas_of_both_scripts() -> None:
    assert Phrases("zh", {"yes": "是, 好，可以"}).words("yes") == ("是", "好", "可以")


class Use(NamedTuple):
    """A use of a text in the code."""

    place: str
    key: str
    given: frozenset[str] | None
    """Names of the values; None if they are computed."""
    is_beginning: bool = False
    """`key` is only the start of the key; the rest is computed."""


def test_every_sentence_that_the_code_asks_for_exists() -> None:
    missing = {
        f"{use.place} {use.key}"
        for use in _uses_in_the_code()
        if not (
            any(key.startswith(use.key) for key in _templates(use)) if use.is_beginning else use.key in _templates(use)
        )
    }
    assert missing == set()


def test_every_value_that_a_sentence_names_is_given_by_the_code() -> None:
    lacking = {
        f"{use.place} {use.key}"
        for use in _uses_in_the_code()
        if use.given is not None and not placeholders(_templates(use).get(use.key, "")) <= use.given
    }
    assert lacking == set()


@pytest.mark.parametrize(
    ("code", "uses"),
    [
        ('call.say("a.b", x=1)', [("a.b", {"x"}, False)]),
        ('say("a.b" if x else "a.c")', [("a.b", set(), False), ("a.c", set(), False)]),
        ('texts.say(f"a.{x}")', [("a.", None, True)]),
        ('texts.words("a.b")', [("a.b", None, False)]),
        ('say("a.b", **values)', [("a.b", None, False)]),
        ('ask = {"city": "@a.b"}', [("a.b", None, False)]),
        ('FunctionResult.say("Done. Thanks.")', []),
    ],
)
def test_the_search_for_sentences_finds(code: str, uses: list[tuple[str, set[str] | None, bool]]) -> None:
    assert [(use.key, use.given, use.is_beginning) for use in _uses(ast.parse(code), "x.py")] == uses


_BOT, _DESK = Texts(), Texts(FOLDER / "desk")


def _templates(use: Use) -> Mapping[str, str]:
    """The texts that code at that place uses: those of the bot, or of the desk."""
    return (_DESK if use.place.startswith(("bot/web/desk/", "bot/web/setup")) else _BOT).of(FALLBACK).templates


@functools.cache
def _uses_in_the_code() -> list[Use]:
    files = [file for folder in SOURCES for file in sorted((ROOT / folder).rglob("*.py"))]
    return [
        use for file in files for use in _uses(ast.parse(file.read_text(encoding="utf-8")), str(file.relative_to(ROOT)))
    ]


def _uses(tree: ast.AST, file: str) -> Iterator[Use]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KEY.fullmatch(node.value[1:]):
            if node.value.startswith("@"):
                yield Use(f"{file}:{node.lineno}", node.value[1:], None)
        elif isinstance(node, ast.Call) and node.args:
            yield from _asked_in(node, f"{file}:{node.lineno}")


def _asked_in(call: ast.Call, place: str) -> Iterator[Use]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("say", "words"):
        return
    names = {keyword.arg for keyword in call.keywords}
    given = None if name == "words" or None in names else frozenset(name for name in names if name)
    key = call.args[0]
    for choice in [key.body, key.orelse] if isinstance(key, ast.IfExp) else [key]:
        if isinstance(choice, ast.Constant) and isinstance(choice.value, str) and _KEY.fullmatch(choice.value):
            yield Use(place, choice.value, given)
        elif isinstance(choice, ast.JoinedStr) and isinstance(choice.values[0], ast.Constant):
            beginning = str(choice.values[0].value)
            if _BEGINNING.fullmatch(beginning):
                yield Use(place, beginning, None, is_beginning=True)
