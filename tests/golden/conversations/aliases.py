"""Replaces ids, codes, ports and folders, which vary between runs, by names in order of appearance."""

from __future__ import annotations

import re
from typing import Any

_ID = re.compile(r"(?<![\d.])\d{16,19}(?![\d.])")
_CODE = re.compile(r"#([0-9a-f]{5})\b|grants revoke ([0-9a-f]{4,8})\b")


class Aliases:
    """Names of one conversation."""

    def __init__(self) -> None:
        self._plain: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._codes: dict[str, str] = {}

    def set(self, value: str, name: str) -> None:
        """Show `value` as `name` in the recording."""
        self._plain[value] = name

    def code(self, value: str) -> None:
        """Show this short code by its number."""
        if value not in self._codes:
            self._codes[value] = f"<code {len(self._codes) + 1}>"

    def codes(self) -> list[str]:
        """All codes so far, in order of appearance."""
        return list(self._codes)

    def learn(self, text: str) -> None:
        """Record the codes in `text`."""
        for found in _CODE.finditer(text):
            self.code(found[1] or found[2])

    def text(self, text: str) -> str:
        """`text` with values replaced by names."""
        for value, name in sorted(self._plain.items(), key=lambda item: -len(item[0])):
            text = text.replace(value, name)
        for code, name in self._codes.items():
            text = re.sub(rf"\b{code}\b", name, text)
        return _ID.sub(self._id, text)

    def value(self, value: Any) -> Any:
        """A JSON value with values replaced by names."""
        match value:
            case bool() | None:
                return value
            case str():
                return self.text(value)
            case int():
                named = self.text(str(value))
                return value if named == str(value) else named
            case list():
                return [self.value(item) for item in value]
            case dict():
                return {self.text(name): self.value(item) for name, item in value.items()}
            case _:
                return value

    def _id(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"<id {len(self._ids) + 1}>")
