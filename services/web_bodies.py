"""What a web server has answered, as a value: JSON where it is JSON, else text."""

from __future__ import annotations

import codecs
from email.message import EmailMessage

import orjson

from services.http import WebAnswer
from services.json_values import JsonValue
from services.refs import ErrorCode
from services.web_addresses import WebError

MOST_DEPTH = 32
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Names that a server may write but that stand for no charset of texts lead nowhere.
_CHARSETS = ("utf", "iso8859", "cp", "gb", "big5", "shift_jis", "euc", "koi8", "iso2022", "ascii", "latin", "mac", "hz")


def body_value(answer: WebAnswer) -> JsonValue:
    """The body as JSON where the server says so or it looks like it, and as text otherwise, without what cannot be
    read. Raises WebError for JSON that is nested too deeply."""
    content_type = _content_type(answer.content_type)
    body = answer.body.removeprefix(_BYTE_ORDER_MARK)
    if "json" in content_type.get_content_subtype() or body.lstrip()[:1] in (b"{", b"["):
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _text(body, content_type.get_content_charset())
        if is_deeper(value, MOST_DEPTH):
            problem = f"the answer is JSON that is nested deeper than {MOST_DEPTH} levels"
            raise WebError(ErrorCode.FAILED, problem, is_unknown=True)
        return value
    return _text(body, content_type.get_content_charset())


def is_deeper(value: JsonValue, levels: int) -> bool:
    """Whether lists and maps in `value` are nested deeper than that."""
    now = [value]
    for _ in range(levels):
        now = [
            inner
            for one in now
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not now:
            return False
    return True


def _content_type(header: str) -> EmailMessage:
    message = EmailMessage()
    if header.isascii() and header.isprintable():
        message["Content-Type"] = header
    return message


def _text(body: bytes, charset: str | None) -> str:
    return body.decode(_known(charset), "replace")


def _known(charset: str | None) -> str:
    if not charset:
        return "utf-8"
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return "utf-8"
    is_text = name.replace("-", "").startswith(tuple(one.replace("-", "") for one in _CHARSETS)) and name != "utf-7"
    return name if is_text else "utf-8"
