"""What a file of settings comes to, as plain data under the operator's own keys. The one module here that imports the
product."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from config.loader import load_settings

_REFERENCE = re.compile(r"\$\{([A-Z_]+)")


def effective(file: Path) -> Any:
    """The values in force. Every environment variable that the file names is set. Raises what the loader raises."""
    names = _REFERENCE.findall(file.read_text(encoding="utf-8"))
    return _plain(load_settings(file, {name: _value_of(name) for name in names}))


def _value_of(name: str) -> str:
    if name == "ROLLCALL_STORE_URL":
        return "postgresql://rollcall:secret@db.example:5432/rollcall"
    return "https://models.example/v1" if name.endswith("URL") else f"value-of-{name.lower().replace('_', '-')}"


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
        case SecretStr():
            return value.get_secret_value()
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(_plain(item) for item in value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case Path():
            return str(value).replace(str(Path.home()), "~")
        case bool() | int() | float() | str() | None:
            return value
    if hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)
