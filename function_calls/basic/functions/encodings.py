"""Conversion of values to and from JSON, YAML, Base64 and URL encoding; HTML escapes, slugs and checksums."""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import NoReturn
from urllib.parse import quote, unquote

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.functions.declaration import LanguageFunction, function
from function_calls.basic.value_sizes import DEEPEST, LARGEST, check_length, size_of, too_large
from function_calls.basic.values import as_number, normalized_number, normalized_value, text_of
from services.refs import JsonValue

_PLAIN = re.compile(r"[^\W\d_][\w ()/+.%°€$-]*(?<! )")
_OTHER_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"))


def _lines(value: JsonValue, indent: str) -> Iterator[str]:
    if type(value) is dict and value:
        for key, item in value.items():
            yield from _entry(f"{indent}{_scalar(key)}:", item, indent)
    elif type(value) is list and value:
        for item in value:
            yield from _entry(f"{indent}-", item, indent)
    else:
        yield indent + _scalar(value)


def _entry(head: str, item: JsonValue, indent: str) -> Iterator[str]:
    if type(item) in (list, dict) and item:
        yield head
        yield from _lines(item, indent + "  ")
    else:
        yield f"{head} {_scalar(item)}"


def _scalar(value: JsonValue) -> str:
    if type(value) is not str:
        return "null" if value is None else text_of(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _OTHER_WORDS and as_number(value) is None:
        return value
    return json.dumps(value, ensure_ascii=False)


_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_DANGEROUS = re.compile(r"\\u(?:[dD][89abAB]|[dD][c-fC-F]|0000)")
_LONGEST_INT = 400


def _refuse_heavy(text: str) -> None:
    """Raise RunError for large or deep JSON before parsing, because values take much more memory than their JSON."""
    size = len(text) + 40 * text.count(",") + 64 * (text.count("[") + text.count("{") + text.count(":"))
    if size > 2 * LARGEST:
        raise too_large("the result of PARSEJSON")
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        if found.group() in "[{":
            depth += 1
        elif found.group() in "]}":
            depth -= 1
        if depth > DEEPEST:
            raise RunError(RunCode.BAD_VALUE, f"PARSEJSON: more than {DEEPEST} nested brackets")


def _whole(digits: str) -> int | float:
    if len(digits) > _LONGEST_INT:
        raise RunError(RunCode.BAD_VALUE, "PARSEJSON: a number is too large")
    return normalized_number(int(digits))


def _constant(name: str) -> NoReturn:
    raise RunError(RunCode.BAD_VALUE, f"PARSEJSON: {name} is not a JSON number")


def _cleaned(value: JsonValue) -> JsonValue:
    """Replace lone surrogates and remove NULs, which databases do not store."""
    if type(value) is str:
        return value.encode("utf-8", "replace").decode().replace("\0", "")
    if type(value) is list:
        return [_cleaned(item) for item in value]
    return {_cleaned(key): _cleaned(item) for key, item in value.items()} if type(value) is dict else value


def _bytes(text: str, growth: float) -> bytes:
    check_length(int(len(text) * growth), "the text")
    return text.encode("utf-8", "replace")


ENCODINGS: list[LanguageFunction] = []


@function(ENCODINGS, "TOJSON(value)", "TOJSON([1, NULL])", "[1, null]", also=("jsonstringify",))
def _to_json(value: JsonValue) -> JsonValue:
    """The value as JSON."""
    if type(value) is str:
        check_length(len(value) * (1 if value.isalnum() else 6), "the JSON")
        return json.dumps(value, ensure_ascii=False)
    return "null" if value is None else text_of(value)


@function(ENCODINGS, "PARSEJSON(text)", "PARSEJSON('{\"a\": [1]}')", {"a": [1]}, also=("fromjson", "jsonparse"))
def _parse_json(text: str) -> JsonValue:
    """The value of a JSON text."""
    _refuse_heavy(text)
    try:
        value = json.loads(
            text,
            parse_int=_whole,
            parse_float=lambda digits: normalized_number(float(digits)),
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise RunError(
            RunCode.BAD_VALUE, f"PARSEJSON: invalid JSON at line {error.lineno}, column {error.colno}"
        ) from None
    if _DANGEROUS.search(text):
        value = _cleaned(value)
    return normalized_value(value)


@function(ENCODINGS, "TOYAML(value)", 'TOYAML({"a": [1, "b"]})', "a:\n  - 1\n  - b\n")
def yaml_of(value: JsonValue) -> str:
    """The value as YAML.

    Serialize to block-style YAML with a final newline. Raises RunError (MEMORY) for a large or deep value."""
    if size_of(value, LARGEST) > LARGEST:
        raise too_large("the YAML")
    made: list[str] = []
    length = 0
    for line in _lines(value, ""):
        length += len(line) + 1
        check_length(length, "the YAML")
        made.append(line)
    return "\n".join(made) + "\n"


@function(ENCODINGS, "BASE64(text)", 'BASE64("hi")', "aGk=", also=("tobase64",))
def _base64(text: str) -> JsonValue:
    """The text encoded as Base64."""
    return base64.b64encode(_bytes(text, 1.4)).decode("ascii")


@function(ENCODINGS, "FROMBASE64(text)", 'FROMBASE64("aGk=")', "hi")
def _from_base64(text: str) -> JsonValue:
    """The text decoded from Base64."""
    packed = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        found = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise RunError(RunCode.BAD_VALUE, "FROMBASE64: the text is not valid Base64") from None
    return found.replace("\0", "")


@function(ENCODINGS, "URLENCODE(text)", 'URLENCODE("a b&c")', "a%20b%26c", also=("encodeuri",))
def _url_encode(text: str) -> JsonValue:
    """The text percent-encoded for a URL."""
    return quote(_bytes(text, 3 if text.isascii() else 12), safe="")


@function(ENCODINGS, "URLDECODE(text)", 'URLDECODE("a%20b")', "a b")
def _url_decode(text: str) -> JsonValue:
    """The text decoded from percent-encoding."""
    return unquote(text.replace("+", " "), errors="replace").replace("\0", "")


@function(ENCODINGS, "SHA256(text)", 'LEFT(SHA256("hi"), 8)', "8f434346", also=("hash",))
def _sha256(text: str) -> JsonValue:
    """The SHA-256 checksum in lower-case hexadecimal digits."""
    return hashlib.sha256(_bytes(text, 1)).hexdigest()


@function(ENCODINGS, "HTMLENCODE(text)", 'HTMLENCODE("a<b")', "a&lt;b")
def _html(text: str) -> JsonValue:
    """The text with the special characters of HTML escaped."""
    check_length(len(text) * 6, "the text")
    return html.escape(text)


@function(ENCODINGS, "SLUG(text)", 'SLUG("Ação & Co.")', "acao-co")
def _slug(text: str) -> JsonValue:
    """The text as a name for files and URLs."""
    plain = "".join(
        mark for mark in unicodedata.normalize("NFKD", text[:1000]) if not unicodedata.combining(mark)
    ).lower()
    return "-".join("".join(mark if mark.isalnum() else " " for mark in plain).split())
