"""Arguments of scripts as people give them: `24.12.2026`, `3 pm`, `12,50 €`, read as HEAR reads answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from function_calls.basic.param_types import DoesNotFit, type_named
from function_calls.basic.tool_definition import ParamDecl
from function_calls.profile import ChatProfile
from services.json_values import JsonValue

_KINDS: Mapping[str, str] = {
    "number": "number", "float": "number", "decimal": "number", "double": "number", "integer": "integer",
    "int": "integer", "boolean": "boolean", "bool": "boolean", "money": "money", "currency": "money",
    "percent": "percent", "date": "date", "time": "hour", "hour": "hour", "datetime": "datetime", "email": "email",
    "phone": "mobile", "mobile": "mobile", "url": "url", "uuid": "uuid", "zipcode": "zipcode",
}  # fmt: skip
"""The kind of HEAR that each type of a parameter is read as."""


class ReadsSaid(Protocol):
    """Understands what people say."""

    def heard(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        """What `text` means as a kind of HEAR in a chat. Raises ValueError."""


def kind_of(parameter: ParamDecl) -> str:
    """The kind of HEAR that people's words for this parameter are read as; empty where they are taken as they stand."""
    return "" if parameter.choices else _KINDS.get(parameter.type, "")


def said(
    raw: Mapping[str, Any], parameters: Sequence[ParamDecl], reads: ReadsSaid, profile: ChatProfile
) -> dict[str, Any]:
    """`raw` with what people have said in their words as the schema wants it; what already is, and what nobody
    understands, as it stands."""
    return {**raw, **{one.name: _read(raw[one.name], one, reads, profile) for one in parameters if one.name in raw}}


def _read(value: Any, parameter: ParamDecl, reads: ReadsSaid, profile: ChatProfile) -> Any:
    kind, of_type = kind_of(parameter), type_named(parameter.type)
    if not kind or of_type is None or not isinstance(value, str):
        return value
    try:
        of_type.read(value)
    except DoesNotFit:
        try:
            return reads.heard(kind, value, profile)
        except ValueError:
            return value
    return value
