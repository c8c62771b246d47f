"""The effective settings of a file as plain data, with the names of the settings. Only this module of the package
imports the product."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, SecretStr

from config.loader import load_settings

_VALID = Path(__file__).parent / "valid"
"""The folder of the files, which relative paths in them count from."""
_REFERENCE = re.compile(r"\$\{([A-Z_]+)")


class Effective(NamedTuple):
    """Effective values."""

    values: Any
    """Entries of lists and mappings contain only values that differ from their defaults."""
    entries: dict[str, Any]
    """Defaults of these entries, by path: `models[]`, `functions[]`."""


def effective(file: Path) -> Effective:
    """Effective values. All environment variables in the file are set. Raises the loader's exceptions."""
    names = _REFERENCE.findall(file.read_text(encoding="utf-8"))
    entries: dict[str, Any] = {}
    settings = load_settings(file, {name: _value_of(name) for name in names})
    return Effective(_plain(settings, "", entries), entries)


def _value_of(name: str) -> str:
    if name == "ROLLCALL_STORE_URL":
        return "postgresql://rollcall:secret@db.example:5432/rollcall"
    return "https://models.example/v1" if name.endswith("URL") else f"value-of-{name.lower().replace('_', '-')}"


def _plain(value: Any, path: str, entries: dict[str, Any]) -> Any:
    match value:
        case BaseModel():
            told = {name: _plain(getattr(value, name), f"{path}.{name}", entries) for name in type(value).model_fields}
            return _entry(value, told, path, entries) if path.endswith("[]") else told
        case SecretStr():
            return value.get_secret_value()
        case Mapping():
            return {str(key): _plain(item, f"{path}[]", entries) for key, item in value.items()}
        case set() | frozenset():
            return sorted(_plain(item, f"{path}[]", entries) for item in value)
        case list() | tuple():
            return [_plain(item, f"{path}[]", entries) for item in value]
        case Path():
            return str(value).removeprefix(f"{_VALID}/").replace(str(Path.home()), "~")
        case bool() | int() | float() | str() | None:
            return value
    return str(value)


def _entry(value: BaseModel, told: dict[str, Any], path: str, entries: dict[str, Any]) -> dict[str, Any]:
    """`told` without its defaults, which are added to `entries`."""
    fields = {name: field for name, field in type(value).model_fields.items() if not field.is_required()}
    defaults = {
        name: _plain(field.get_default(call_default_factory=True), f"{path}.{name}", {})
        for name, field in fields.items()
    }
    entries[path.removeprefix(".")] = defaults
    return {name: item for name, item in told.items() if name not in defaults or item != defaults[name]}
