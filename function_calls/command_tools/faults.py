"""What is wrong with a file of command tools, at its places."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ValidationError

from config.diagnostics import Code as SettingsCode
from config.diagnostics import Diagnostic, Position
from config.wording import diagnostic_of
from config.yaml_document import Location, YamlDocument


class Code(StrEnum):
    """What can be wrong with a command tool. Closed."""

    UNKNOWN_KEY = "commands.unknown_key"
    BAD_VALUE = "commands.bad_value"
    MISSING = "commands.missing"
    UNKNOWN_VARIABLE = "commands.unknown_variable"
    BAD_PYTHON = "commands.bad_python"
    BAD_PARAMETERS = "commands.bad_parameters"
    DUPLICATE_NAME = "commands.duplicate_name"
    UNUSABLE = "commands.unusable"


_CODES: dict[str, Code] = {
    SettingsCode.UNKNOWN_KEY: Code.UNKNOWN_KEY,
    SettingsCode.BAD_VALUE: Code.BAD_VALUE,
    SettingsCode.MISSING: Code.MISSING,
}


@dataclass(slots=True)
class Entry:
    """One entry of a file, with what is wrong with it."""

    document: YamlDocument
    at: Location
    faults: list[Diagnostic] = field(default_factory=list)

    @property
    def where(self) -> str:
        """`file:line` of the entry."""
        return f"{self.document.file}:{self.document.key_at(self.at).line}"

    def complain(self, inner: Sequence[str | int], code: Code, message: str) -> None:
        """Add a fault of the value at `inner`, from the entry on."""
        place = self._place(self._written(inner))
        self.faults.append(Diagnostic(self.document.file, place.line, place.column, code.value, message))

    def complain_of(self, error: ValidationError, root: type[BaseModel]) -> None:
        """Add all that pydantic found when it read the entry as a `root`."""
        for details in error.errors(include_url=False):
            written = self._written(details["loc"])
            if self.document.is_unknown((*self.at, *written)):
                continue
            found = diagnostic_of(self.document, details, root, self.at, "known here")
            place = self._place(written, is_key=details["type"] in ("extra_forbidden", "missing"))
            code = _CODES.get(found.code, Code.BAD_VALUE)
            self.faults.append(replace(found, code=code.value, line=place.line, column=place.column))

    def without_unknown(self, value: object, error: ValidationError) -> object:
        """`value` without the keys that `error` says nobody knows, so that the rest can be looked at as well."""
        rest = deepcopy(value)
        for details in error.errors(include_url=False):
            if details["type"] != "extra_forbidden":
                continue
            *above, key = self._written(details["loc"])
            holder: Any = rest
            for step in above:
                holder = holder[step]
            if isinstance(holder, dict):
                holder.pop(key, None)
        return rest

    def _place(self, written: Location, *, is_key: bool = False) -> Position:
        location = (*self.at, *written)
        return self.document.key_at(location) if is_key else self.document.value_at(location)

    def _written(self, inner: Sequence[str | int]) -> Location:
        """`inner` without the steps that a short form leaves out: the words of a command that is just a list."""
        value = self._value()
        written: list[str | int] = []
        for step in inner:
            if step == "[key]" or (isinstance(step, str) and not isinstance(value, dict)):
                continue
            written.append(step)
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                value = None
        return tuple(written)

    def _value(self) -> object:
        value: object = self.document.value
        for step in self.at:
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
        return value
