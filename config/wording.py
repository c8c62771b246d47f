"""Messages for invalid settings: key, position in the file, and expected value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from config.diagnostics import Code, Diagnostic, did_you_mean
from config.sections.networks import adapter_paths
from config.settings import Settings
from config.yaml_document import Location, YamlDocument

_MESSAGES = {
    "dict_type": "has to be a mapping (key: value)",
    "mapping_type": "has to be a mapping (key: value)",
    "model_type": "has to be a mapping (key: value)",
    "model_attributes_type": "has to be a mapping (key: value)",
    "tuple_type": "has to be a list",
    "frozen_set_type": "has to be a list",
    "string_type": "has to be a text; put it in quotes",
    "bool_type": "has to be true or false",
    "bool_parsing": "has to be true or false",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_from_float": "has to be a whole number",
    "float_type": "has to be a number",
    "float_parsing": "has to be a number",
}


def diagnostic_of(
    document: YamlDocument,
    details: ErrorDetails,
    root: type[BaseModel] = Settings,
    within: Location = (),
    noun: str = "a setting",
) -> Diagnostic:
    """Diagnostic for a pydantic error in the value at `within` of `document`, validated as `root`: unknown key, missing
    key, wrong version or bad value. `noun`: the kind of key in the message."""
    kind = details["type"]
    inner = tuple(step for step in details["loc"] if step != "[key]")
    location = (*within, *inner)
    is_key = kind in {"extra_forbidden", "missing"} or "[key]" in details["loc"]
    at = document.key_at(location) if is_key else document.value_at(location)
    name = dotted(location)
    if kind == "extra_forbidden":
        code, message = Code.UNKNOWN_KEY, f"{name} is not {noun}{_suggestion(inner, root)}"
    elif kind == "missing":
        code, message = Code.MISSING, f"{name} is missing"
    elif location == ("config_version",) and kind == "settings":
        code, message = Code.WRONG_VERSION, f"{name} {details['msg']}"
    elif details["input"] is None:
        code, message = Code.BAD_VALUE, f"{name} is empty: give it a value, or remove the key"
    else:
        code, message = Code.BAD_VALUE, f"{name} {_words(details)}"
    return Diagnostic(document.file, at.line, at.column, code, message)


def _words(details: ErrorDetails) -> str:
    text = _MESSAGES.get(details["type"], details["msg"].removeprefix("Input ").removeprefix("Value "))
    if details["type"] == "literal_error":
        text += did_you_mean(str(details["input"]), re.findall(r"'([^']*)'", details["ctx"]["expected"]))
    return text


def _suggestion(location: Location, root: type[BaseModel]) -> str:
    names = _names_known_at(location[:-1], root)
    if location[:-1] == ("platforms",):
        names = sorted({*names, *adapter_paths()})
    return did_you_mean(str(location[-1]), names) or f"; there are: {', '.join(names)}"


def _names_known_at(location: Sequence[str | int], root: type[BaseModel]) -> list[str]:
    """Keys of the section at `location` of `root`, sorted; empty if it is no section."""
    kind: Any = root
    for step in location:
        section = _section(kind)
        kind = section.model_fields[str(step)].annotation if section else _item_type(kind)
    section = _section(kind)
    return sorted(field.alias or name for name, field in section.model_fields.items()) if section else []


def _section(kind: Any) -> type[BaseModel] | None:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return next((one for one in get_args(kind) if _section(one)), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _item_type(kind: Any) -> Any:
    """Item type of a list or mapping type, without its wrappers; None without a type argument."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return _item_type(get_args(kind)[0])
    arguments = [argument for argument in get_args(kind) if argument is not Ellipsis]
    return arguments[-1] if arguments else None


def dotted(location: Sequence[str | int]) -> str:
    """`location` in the form `models[0].api_key`; empty for the top."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")
