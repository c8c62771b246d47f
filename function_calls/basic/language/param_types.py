"""Parameter types: JSON Schema, and conversion of examples and defaults."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial

from services.refs import JsonObject, JsonValue

STRICT_TYPES = ("string", "number", "boolean")
"""Types allowed by the strict profile."""
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)\s*:")
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_MAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
_CLOCK = "^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"


class DoesNotFit(ValueError):
    """Raised for a value that does not match the type."""


@dataclass(frozen=True, slots=True)
class ParamType:
    """A parameter type."""

    schema: Mapping[str, JsonValue]
    """JSON Schema; a parameter adds its description, choices and others."""
    read: Callable[[JsonValue], JsonValue]
    """Converts a literal to this type. Raises DoesNotFit."""
    wanted: str
    """Description of valid values for authors: `a number such as 9.99`."""

    @property
    def is_text(self) -> bool:
        """Whether values are texts, so that `01234` keeps its zero."""
        return self.schema.get("type") == "string"


def type_named(name: str) -> ParamType | None:
    """Type by its lower-case name; `""`, a PARAM without AS, is a string. None if unknown."""
    return _TYPES.get(name or "string")


def type_names() -> tuple[str, ...]:
    """All names, the common ones first."""
    return tuple(_TYPES)


def type_of_choices(choices: Sequence[JsonValue]) -> ParamType:
    """The common type of literal choices."""
    for name in ("boolean", "integer", "number", "string"):
        if all(_json_type(one) in (name, "integer" if name == "number" else name) for one in choices):
            return _TYPES[name]
    return _TYPES["any"]


def _json_type(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string" if isinstance(value, str) else ""


def _text(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise DoesNotFit


def _number(value: JsonValue) -> JsonValue:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        value = int(text) if _INTEGER.fullmatch(text) else float(text)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DoesNotFit
    return value


def _integer(value: JsonValue) -> JsonValue:
    number = _number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise DoesNotFit
        return int(number)
    return number


def _boolean(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    raise DoesNotFit


def _of_json(value: JsonValue, kind: type) -> JsonValue:
    """A value of the type `kind`, or one converted from JSON in a text, also with single quotes and unquoted keys:
    `"{name: 'Ann'}"`. Raises DoesNotFit for other values."""
    if isinstance(value, str):
        decoded = _decoded(value)
        value = _decoded(_BARE_KEY.sub(r'\1"\2":', value.replace("'", '"'))) if decoded is None else decoded
    if not isinstance(value, kind):
        raise DoesNotFit
    return value


def _decoded(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _date(value: JsonValue) -> JsonValue:
    text = _text(value)
    try:
        if len(text) != len("2026-01-31"):
            raise DoesNotFit
        date.fromisoformat(text)
    except ValueError:
        raise DoesNotFit from None
    return text


def _moment(value: JsonValue) -> JsonValue:
    text = _text(value)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise DoesNotFit from None
    if len(text) <= len("2026-01-31"):
        raise DoesNotFit
    return text


def _fitting(pattern: str) -> Callable[[JsonValue], JsonValue]:
    compiled = re.compile(pattern)

    def read(value: JsonValue) -> JsonValue:
        text = _text(value)
        if not compiled.search(text):
            raise DoesNotFit
        return text

    return read


def _simple(kind: str, read: Callable[[JsonValue], JsonValue], wanted: str, **more: str) -> ParamType:
    return ParamType({"type": kind, **more}, read, wanted)


def _patterned(pattern: str, wanted: str, **more: str) -> ParamType:
    return ParamType({"type": "string", **more, "pattern": pattern}, _fitting(pattern), wanted)


def _parts(text: str) -> JsonValue:
    """Split `red, green` into a list."""
    return [part.strip() for part in text.split(",") if part.strip()]


LOOSE_EXAMPLES: Mapping[str, Callable[[str], JsonValue]] = {
    **dict.fromkeys(("date", "time", "hour", "datetime"), lambda text: text),
    **dict.fromkeys(("money", "currency", "percent"), lambda _: None),
    **dict.fromkeys(("array", "list"), _parts),
}
"""Conversion of examples that do not match the type, such as `tomorrow` or `R$ 150,00`, for models; by type name. A
result of None omits the example."""


def _types() -> dict[str, ParamType]:
    text = _simple("string", _text, "a text")
    number = _simple("number", _number, "a number such as 9.99")
    integer = _simple("integer", _integer, "a whole number such as 3")
    boolean = _simple("boolean", _boolean, "true or false")
    money = _simple("number", _number, "an amount such as 9.99, without a sign of its currency")
    items: JsonObject = {}
    # Some providers reject an array schema without `items`.
    array = ParamType({"type": "array", "items": items}, partial(_of_json, kind=list), 'a list such as ["a", "b"]')
    hash_map = _simple("object", partial(_of_json, kind=dict), 'a map such as {"a": 1}')
    clock = _patterned(_CLOCK, "a time such as 14:30")
    moment = _simple("string", _moment, "a date and time such as 2026-01-31T14:30", format="date-time")
    phone = _patterned(r"^[+]?[0-9(][0-9 ().\-/]{2,30}$", "a phone number such as +1 555 123 4567")
    # `format: uri` would reject addresses with non-ASCII letters.
    url = _patterned(r"^[A-Za-z][A-Za-z0-9+.\-]*://\S+$", "an address such as https://example.com/page")
    digits = "[0-9A-Fa-f]"
    return {
        "string": text,
        "number": number,
        "boolean": boolean,
        "text": text,
        **dict.fromkeys(("integer", "int"), integer),
        **dict.fromkeys(("float", "decimal", "double"), number),
        "bool": boolean,
        "money": money,
        "currency": money,
        "percent": _simple("number", _number, "a number such as 12.5, without a sign"),
        "date": _simple("string", _date, "a date such as 2026-01-31", format="date"),
        "time": clock,
        "hour": clock,
        "datetime": moment,
        "name": text,
        "email": _simple("string", _fitting(_MAIL), "an address such as ann@example.com", format="email"),
        "phone": phone,
        "mobile": phone,
        "url": url,
        "uuid": _patterned(
            f"^{digits}{{8}}-{digits}{{4}}-{digits}{{4}}-{digits}{{4}}-{digits}{{12}}$",
            "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
            format="uuid",
        ),
        "zipcode": _patterned("^[0-9A-Za-z][0-9A-Za-z -]{1,10}[0-9A-Za-z]$", "a postal code such as 10115"),
        **dict.fromkeys(("color", "colour", "language", "login", "file"), text),
        **dict.fromkeys(("image", "audio", "video", "document", "qrcode"), text),
        "cpf": _patterned(r"^[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}$", "a CPF such as 123.456.789-09"),
        "cnpj": _patterned(
            r"^[0-9]{2}\.?[0-9]{3}\.?[0-9]{3}/?[0-9]{4}-?[0-9]{2}$", "a CNPJ such as 12.345.678/0001-95"
        ),
        **dict.fromkeys(("object", "map"), hash_map),
        **dict.fromkeys(("array", "list"), array),
        "any": ParamType({}, lambda value: value, "anything"),
    }


_TYPES = _types()
