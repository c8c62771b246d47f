"""Secrets are not logged, however they are written."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from services.redaction import HIDDEN, Redactor

PASSWORD = 'my "own" pass/word+ünïq'
FORMS: list[Callable[[str], str]] = [
    str,
    lambda text: json.dumps(text),
    lambda text: quote(text, safe=""),
    quote_plus,
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
]
DISGUISES: list[Callable[[str], str]] = [
    str.upper,
    lambda text: text[::-1],
    lambda text: text.encode().hex(),
    lambda text: text.encode().hex().upper(),
]
"""Forms in which only known secrets are found."""
PLACES = ["{}", "it failed with {}, sorry", "GET /x?q={}&page=2", 'header "x": "{}"', "[{}]"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", [*FORMS, *DISGUISES])
def test_a_known_secret_is_hidden_in_every_encoding(form: Callable[[str], str], place: str) -> None:
    hidden = Redactor([PASSWORD])(place.format(form(PASSWORD)))
    assert HIDDEN in hidden
    assert not any(one(PASSWORD) in hidden for one in (*FORMS, *DISGUISES))


@pytest.mark.parametrize("offset", range(3))
def test_a_known_secret_is_hidden_within_a_longer_text_in_base64(offset: int) -> None:
    secret = "correct horse battery"
    encoded = base64.b64encode(("x" * offset + secret + " staple").encode()).decode()
    hidden = Redactor([secret])(encoded)
    assert hidden != encoded
    assert len(hidden) < len(encoded) / 2


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk_live_abcdefghijklmnop",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghijkl",
        "xoxb-1234567890-abcdefghij",
        "glpat-abcdefghij1234567890",
        "hf_abcdefghijklmnopqrst",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
        "ya29.a0AfH6SMBabcdefghijk",
        "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEow and cut off",
    ],
)
def test_what_looks_like_a_key_is_hidden(secret: str) -> None:
    assert Redactor()(f"using {secret}") == f"using {HIDDEN}"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password: hunter2", "password: ***"),
        ('api_key="zzzzzz"', 'api_key=***"'),
        ("OPENAI_API_KEY=abc123 ./run", "OPENAI_API_KEY=*** ./run"),
        ("?access_token=abc123&page=2", "?access_token=***&page=2"),
        ('{"client_secret": "abc123", "a": 1}', '{"client_secret": ***", "a": 1}'),
        ("Authorization: Basic dXNlcjpwYTU1", "Authorization: ***"),
        ("Set-Cookie: session=abcdef; HttpOnly", "Set-Cookie: ***"),
        ("sent Bearer abcdefgh1234 there", "sent Bearer *** there"),
        ("postgres://bot:hunter2@db:5432/x", "postgres://***@db:5432/x"),
        ("password%3A%20hunter2&b=1", "password%3A%20***&b=1"),
    ],
)
def test_a_value_next_to_the_name_of_a_secret_is_masked_and_the_name_is_kept(text: str, hidden: str) -> None:
    assert Redactor()(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "",
        "remind me to buy milk at 18:00",
        "I forgot my password again",
        "1500 tokens were used; max_tokens=4096",
        "skateboarding-is-fun and sk-short",
        "https://example.org/a/b?c=d#e",
        "meet at 12:30 @home",
        "a basic calculator",
        "services/store/sqlite/writer.py:142",
        "abcdefghijklmnopqrstuvwxyz0123456789",
        "SGVsbG8gd29ybGQhIEhlbGxvIQ==",
        "密码学是什么",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert Redactor(["a secret"])(text) == text


def test_words_too_short_to_be_secrets_are_not_hidden() -> None:
    assert Redactor(["", "note"])("a note") == "a note"


def test_a_value_is_searched_to_its_ends() -> None:
    value: dict[str, Any] = {
        "note": ["token: abcdef", {"deep": ("ghp_abcdefghijklmnop", 7, None, True, 1.5)}],
        "password": "x",
        "x-api-key": ["one", "two"],
        "tokens": 3,
        "empty_secret": "",
        "path": Path("/tmp/password=abc"),
    }
    assert Redactor().value(value) == {
        "note": [f"token: {HIDDEN}", {"deep": [HIDDEN, 7, None, True, 1.5]}],
        "password": HIDDEN,
        "x-api-key": HIDDEN,
        "tokens": 3,
        "empty_secret": "",
        "path": f"/tmp/password={HIDDEN}",
    }


def test_a_value_that_holds_itself_has_an_end() -> None:
    value: dict[str, Any] = {}
    value["again"] = value
    assert HIDDEN not in str(Redactor().value(value))


def core(secret: str) -> str:
    """The part of a recorded example that must not be readable."""
    for word in ("hunter2", "pa55", "session=abcdef", "z" * 16):
        if word in secret:
            return word
    return secret.removeprefix("Bearer ")


def test_every_collected_secret_is_hidden_in_every_encoding(data: Callable[[str], Path]) -> None:
    redact = Redactor()
    leaks = []
    for line in data("G_faults/secrets_redaction.jsonl").read_text(encoding="utf-8").splitlines():
        secret = json.loads(line)["secret"]
        for form in FORMS:
            hidden = [redact(place.format(form(secret))) for place in PLACES]
            leaks += [(secret, one) for one in hidden if core(secret) in one or form(secret) in one]
    assert leaks == []
