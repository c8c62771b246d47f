"""The operator's settings file: effective values with their places, and checked changes that keep its comments."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, SecretStr
from ruamel.yaml import YAML

from bot.checks.plan import Plan, plan
from bot.live.settings import LiveSettings, secrets_of
from bot.web.desk.desk import Verbatim
from config.diagnostics import Diagnostic
from config.loader import check_settings
from config.settings import Settings
from config.terms import attribute_docs
from config.yaml_document import read_yaml_file
from function_calls.schema.definition import DefinitionError, problems_of

_HIDDEN = "********"
_MARK = "<secret {}>"
_WIDTH = 120
_NESTED_LIST = re.compile(r"^( *)[\w-]+:\s*(?:#.*)?\n(?:\s*#.*\n)*( *)- ", re.MULTILINE)


class Entry(NamedTuple):
    """One effective setting."""

    path: str
    value: str
    """Without secrets."""
    line: int
    """Line in the file; 0: a default."""
    about: str
    """Its documentation."""


class Checked(NamedTuple):
    """A changed text that was checked."""

    text: str
    """With marks for secrets."""
    diagnostics: Sequence[Diagnostic]
    diff: Sequence[str]
    """Lines of a unified diff, with marks for secrets."""
    at_once: Sequence[str]
    """Settings that will change at once."""
    at_start: Sequence[str]
    """Settings that will change at the next start."""

    @property
    def is_valid(self) -> bool:
        """Whether the text may be written."""
        return not any(found.severity == "error" for found in self.diagnostics)


class FileChanged(Exception):
    """The file was changed since the form was loaded."""


class SettingsFile:
    """The file. Secrets in it are replaced by marks in all texts that leave this class. All methods read the file and
    may block; they raise OSError if it cannot be read."""

    def __init__(self, path: Path, live: LiveSettings) -> None:
        self.path = path
        self._live = live

    def version(self) -> str:
        """Digest of the content, which identifies it in forms."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def text(self) -> str:
        """The content with marks for secrets."""
        return self._masked(self._content())

    def entries(self) -> list[Entry]:
        """All effective settings in the order of the sections, each with its line in the file."""
        document = read_yaml_file(self.path)
        return [
            Entry(
                ".".join(location), value, document.places[location].key.line if location in document.places else 0, doc
            )
            for location, value, doc in _flat(self._live.now, ())
        ]

    def checked(self, text: str) -> Checked:
        """`text` compared with the file, its diagnostics, and what would change."""
        before, after = self._content(), self._unmasked(text)
        settings, found = check_settings(self.path, os.environ, after.encode())
        diagnostics: list[Diagnostic] = list(found)
        at_once: Sequence[str] = ()
        at_start: Sequence[str] = ()
        if settings is not None:
            try:
                at_once, at_start = self._changes_of(settings)
            except DefinitionError as error:
                diagnostics += problems_of(error)
        lines = difflib.unified_diff(
            self._masked(before).splitlines(), text.splitlines(), self.path.name, self.path.name, lineterm=""
        )
        return Checked(Verbatim(text), diagnostics, list(lines), at_once, at_start)

    def _changes_of(self, settings: Settings) -> tuple[Sequence[str], Sequence[str]]:
        """Settings that `settings` change at once and at the next start, without those that differ from the file
        already, as by options of the command line. Raises DefinitionError."""
        replacement, known = self._live.replacement(settings), set[str]()
        unchanged, _ = check_settings(self.path, os.environ)
        if unchanged is not None:
            before = self._live.replacement(unchanged)
            known = {*before.changed, *before.waiting}
        return (
            [name for name in replacement.changed if name not in known],
            [name for name in replacement.waiting if name not in known],
        )

    def plan(self, text: str, count: int) -> Plan | None:
        """How the last `count` messages would end with `text` as the settings; None if it has errors. Raises
        ReaderError, and DefinitionError for settings that cannot be used."""
        settings, _ = check_settings(self.path, os.environ, self._unmasked(text).encode())
        return None if settings is None else plan(self._live.now, settings, count=count)

    def with_value(self, location: Sequence[str], value: bool | int | str | None) -> str:
        """The text with another value at `location`, or without it for None; comments are kept. Mappings on the way are
        added."""
        text = self.text()
        nested = _NESTED_LIST.search(text)
        yaml = YAML(typ="rt")
        yaml.preserve_quotes = True
        yaml.width = _WIDTH
        yaml.indent(mapping=2, sequence=4, offset=2)
        if nested and len(nested[2]) == len(nested[1]):
            yaml.indent(mapping=2, sequence=2, offset=0)
        content = yaml.load(text) or {}
        *parents, name = location
        place = content
        for parent in parents:
            if not isinstance(place.get(parent), dict):
                place[parent] = {}
            place = place[parent]
        if value is None:
            place.pop(name, None)
        else:
            place[name] = value
        written = StringIO()
        yaml.dump(content, written)
        return written.getvalue()

    def write(self, text: str, version: str) -> None:
        """Replace the content. Raises FileChanged unless it still is `version`."""
        if self.version() != version:
            raise FileChanged
        replace_text(self.path, self._unmasked(text))

    def _content(self) -> str:
        return self.path.read_text(encoding="utf-8-sig")

    def _marks(self) -> Mapping[str, str]:
        """Marks by the secrets that are in the file, longest first."""
        content = self._content()
        found = sorted({secret for secret in secrets_of(self._live.now) if secret and secret in content}, key=len)
        return {secret: _MARK.format(number) for number, secret in enumerate(reversed(found), 1)}

    def _masked(self, text: str) -> str:
        for secret, mark in self._marks().items():
            text = text.replace(secret, mark)
        return text

    def _unmasked(self, text: str) -> str:
        text = text.replace("\r\n", "\n")
        for secret, mark in self._marks().items():
            text = text.replace(mark, secret)
        return text


def replace_text(path: Path, text: str) -> None:
    """Write a file in one step, with the permissions of the one that it replaces."""
    aside = path.with_name(f".{path.name}.new")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def _flat(model: BaseModel, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield location, shown value and documentation of each setting."""
    docs = attribute_docs(type(model))
    for name in type(model).model_fields:
        value, location = getattr(model, name), (*at, name)
        if isinstance(value, BaseModel):
            yield from _flat(value, location)
        elif isinstance(value, Mapping) and value and all(isinstance(each, BaseModel) for each in value.values()):
            for key, each in value.items():
                yield from _flat(each, (*location, str(key)))
        else:
            yield location, _shown(value), docs.get(name, "")


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return _HIDDEN if value.get_secret_value() else ""
    if isinstance(value, BaseModel):
        return "{" + ", ".join(f"{name}: {_shown(getattr(value, name))}" for name in value.model_fields_set) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (tuple, list, frozenset)):
        return ", ".join(_shown(each) for each in value)
    return "" if value is None else str(value)
