"""YAML 1.2 as plain data with the position of every key and value, and references to environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StringMark, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)
from ruamel.yaml.reader import ReaderError

from config.diagnostics import Code, Diagnostic, Diagnostics, Position, Severity

MOST_BYTES = 1_000_000
DEEPEST = 32

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Location = tuple[str | int, ...]
"""Keys and list indexes from the top to a value."""

_START = Position(1, 1)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_OCTAL = re.compile(r"0o[0-7]{1,20}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]{1,30}|(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,3})?")
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Places(NamedTuple):
    """Positions of one entry: its key and its value."""

    key: Position
    """For a list item the item itself."""
    value: Position
    is_scalar: bool


@dataclass(slots=True)
class YamlDocument:
    """The single YAML document of a file as plain data, with positions and faults."""

    file: str
    value: Plain = None
    """Also None if the file could not be parsed."""
    places: dict[Location, Places] = field(default_factory=dict)
    faults: Diagnostics = field(default_factory=Diagnostics)
    unknown: set[Location] = field(default_factory=set)
    """Values that are unknown because of an error and must not be checked further."""

    def key_at(self, location: Sequence[str | int]) -> Position:
        """Position of the key of `location`, or of its nearest ancestor in the file."""
        return self._nearest(location).key

    def value_at(self, location: Sequence[str | int]) -> Position:
        """Position of the value at `location`; if missing, of the scalar in its place or of the nearest ancestor's
        key."""
        found = self._nearest(location)
        return found.value if found.is_scalar or tuple(location) in self.places else found.key

    def add_diagnostic(self, at: Position, code: Code, message: str, severity: Severity = "error") -> None:
        """Add a diagnostic for this file to `faults`."""
        self.faults.append(Diagnostic(self.file, at.line, at.column, code, message, severity))

    def is_unknown(self, location: Sequence[str | int]) -> bool:
        """Whether `location` is at or below an unknown value."""
        return any(tuple(location[:end]) in self.unknown for end in range(len(location) + 1))

    def _nearest(self, location: Sequence[str | int]) -> Places:
        for end in range(len(location), 0, -1):
            found = self.places.get(tuple(location[:end]))
            if found is not None:
                return found
        return Places(_START, _START, is_scalar=False)


def read_yaml_file(path: Path) -> YamlDocument:
    """Parse the file `path`, UTF-8 of at most MOST_BYTES. Errors are in the document's `faults`."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        document = YamlDocument(str(path))
        document.add_diagnostic(_START, Code.UNREADABLE, f"cannot be read: {error.strerror or type(error).__name__}")
        return document
    return read_yaml_bytes(data, str(path))


def read_yaml_bytes(data: bytes, file: str) -> YamlDocument:
    """Parse `data`, UTF-8 of at most MOST_BYTES. Errors are in the document's `faults`. `file`: name for
    diagnostics."""
    document = YamlDocument(file)
    if len(data) > MOST_BYTES:
        document.add_diagnostic(_START, Code.TOO_BIG, f"is larger than {MOST_BYTES:,} bytes")
        return document
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = _position_in(data[: error.start].decode("utf-8", "replace"))
        document.add_diagnostic(at, Code.ENCODING, "is not UTF-8 from here on; save the file as UTF-8")
        return document
    return read_yaml(text, file)


def read_yaml(text: str, file: str) -> YamlDocument:
    """Parse `text`, a single document without anchors, aliases and tags, nested up to DEEPEST levels. `file`: name for
    diagnostics. Errors are in the document's `faults`."""
    document = YamlDocument(file)
    try:
        _Reader(document).read(YAML(typ="safe", pure=True).parse(text))
    except _Hopeless:
        document.value = None
    except YAMLError as error:
        document.value = None
        _add_diagnostic_of_syntax(document, text, error)
    return document


def _add_diagnostic_of_syntax(document: YamlDocument, text: str, error: YAMLError) -> None:
    if isinstance(error, ReaderError):
        at = _position_in(text[: error.position])
        document.add_diagnostic(
            at, Code.BAD_CHARACTER, f"the character U+{ord(text[error.position]):04X} is not allowed"
        )
    elif isinstance(error, MarkedYAMLError):
        at, message = _syntax_problem(text, error)
        document.add_diagnostic(at, Code.SYNTAX, message)
    else:
        document.add_diagnostic(_START, Code.SYNTAX, _NO_YAML)


_NO_YAML = "is not valid YAML: check the indentation, quotes and brackets of this line and of the lines above"
_PROBLEMS: tuple[tuple[str, str, bool], ...] = (
    (r"\|found character '\\t'", "a tab; YAML indents and separates with spaces", False),
    (r"\|found character '(.)'", "a text cannot begin with {0}; put it in quotes", False),
    (r"(?:alias|anchor)\|", "a text cannot begin with {char}; put it in quotes", True),
    (r"simple key\|", "this line has no colon followed by a space; write key: value", True),
    (r"\|.* found '<scalar>'", "text follows a closing quote, or is indented less than its first line", False),
    (r"mapping\|.* found '-'", "a list item (- …) where keys were expected; indent it below its key", False),
    (r"collection\|.* found '\?'", "a key where list items (- …) were expected; correct its indentation", False),
    (r"\|.* found '<block", "the indentation of this line fits no line above; align it with its neighbours", False),
    (r"\|.* found \(?'([\]}}])'", "a closing {0} without an opening bracket", False),
    (r"\|.* found ','", "an entry is missing before the comma", False),
    (r"\|.* found '<stream end>'", "the file ends within an open bracket; add the missing ] or }}", False),
    (r"\|.* got '<stream end>'", "the bracket {char} is never closed; add its counterpart", True),
    (r"quoted scalar\|.* (?:stream|document)", "the quote {char} is never closed; add it at the end of the text", True),
    (r"double-quoted scalar\|", 'an unknown escape sequence in "…"; write \\\\, or use single quotes', False),
    (r"\|sequence entries", "a list item (- …) cannot follow a key on the same line; start a new line", False),
    (r"block scalar\|", "after | or > the text begins on the next line; to begin with them, it needs quotes", False),
)
"""Regular expressions for the library's `context|problem`, our explanation, and whether its position is the start of
the construct instead of the character where the parser stopped. The first match counts."""


def _syntax_problem(text: str, error: MarkedYAMLError) -> tuple[Position, str]:
    """Position and explanation of a syntax error. Contains nothing of the file but keys, which are no secrets."""
    at = _position_of(error.problem_mark or error.context_mark)
    start = _position_of(error.context_mark or error.problem_mark)
    lines = text.splitlines() or [""]
    problem = f"{error.context or ''}|{error.problem or ''}"
    if "|mapping values are" in problem:
        return _colon_problem(lines, at)
    if "|expected ',' or" in problem and "<stream end>" not in problem:
        return at, _comma_problem(lines, start, at)
    for pattern, message, is_at_start in _PROBLEMS:
        found = re.search(pattern, problem)
        if found:
            place = start if is_at_start else at
            return place, message.format(*found.groups(), char=_char_at(lines, place))
    return at, _NO_YAML


def _colon_problem(lines: Sequence[str], at: Position) -> tuple[Position, str]:
    """Position and explanation of a colon where no key may be."""
    before = lines[at.line - 1][: at.column - 1]
    if re.search(r":\s", before):
        key = re.match(r"\s*(?:- +)*([\w.-]+):\s", before)
        return at, f'a text with a colon needs quotes: {key[1] if key else "key"}: "…"'
    above = next((number for number in range(at.line - 1, 0, -1) if lines[number - 1].split("#")[0].strip()), 1)
    if re.search(r":(?:\s|$)", lines[above - 1]):
        return at, f"this line is indented deeper than line {above}, which has a value already; align the two"
    return Position(above, 1), "this line has no colon followed by a space; write key: value"


def _comma_problem(lines: Sequence[str], start: Position, at: Position) -> str:
    """Explanation of an entry in brackets that is followed by neither a comma nor the closing bracket."""
    bracket = _char_at(lines, start)
    if at.line != start.line:
        closing = "]" if bracket == "[" else "}"
        return f"the {bracket} of line {start.line} is not closed with {closing}, or a comma is missing before this"
    if _char_at(lines, at) == ":":
        return "a comma is missing between two entries, or a text with a colon needs quotes"
    return "a comma is missing between two entries, or a text needs quotes"


def _char_at(lines: Sequence[str], at: Position) -> str:
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    return line[at.column - 1 : at.column]


class _Hopeless(Exception):
    """The rest of the file has no meaning; the error is recorded already."""


@dataclass(slots=True)
class _Open:
    """A mapping or list that has not ended; `key` is the last key without a value yet."""

    location: Location
    value: dict[str, Plain] | list[Plain]
    key: str | None = None
    key_at: Position = _START
    key_is_duplicate: bool = False
    """If True, the value is parsed only for errors, under a location that no key can have."""


class _Reader:
    """Builds the document from the events of the YAML parser."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self._open: list[_Open] = []
        self._documents = 0

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    self._give_up(event, Code.SYNTAX, "a second document begins here; a file holds one")
            elif isinstance(event, CollectionEndEvent):
                self._open.pop()
            elif isinstance(event, NodeEvent):
                self._node(event)

    def _node(self, event: NodeEvent) -> None:
        at = _position_of(event.start_mark)
        if not isinstance(event, AliasEvent) and event.anchor is not None:
            self._document.add_diagnostic(at, Code.ALIAS, f"the anchor &{event.anchor} is not allowed; repeat the text")
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            self._document.add_diagnostic(at, Code.TAG, "a tag (!…) is not allowed here; write the plain value")
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            self._take_key(parent, event, at)
        else:
            self._take_value(parent, event, at)

    def _take_key(self, parent: _Open, event: NodeEvent, at: Position) -> None:
        if not isinstance(event, ScalarEvent):
            self._give_up(
                event,
                Code.BAD_KEY,
                "a key has to be a word, not an alias or a collection; a text that begins with { or [ needs quotes",
            )
        key = self._text(event, at)
        parent.key, parent.key_at = key, at
        parent.key_is_duplicate = isinstance(parent.value, dict) and key in parent.value
        if parent.key_is_duplicate:
            first = self._document.key_at((*parent.location, key))
            self._document.add_diagnostic(
                at, Code.DUPLICATE_KEY, f"{key!r} is already defined in line {first.line}; keep one"
            )

    def _take_value(self, parent: _Open | None, event: NodeEvent, at: Position) -> None:
        location, value = self._location(parent), self._value(event, at)
        if parent is not None and parent.key is not None and _is_left_out(event):
            at = parent.key_at  # for an omitted value the parser returns the position of the next key
        if isinstance(event, AliasEvent):
            self._document.add_diagnostic(
                at,
                Code.ALIAS,
                f"the alias *{event.anchor} is not allowed; repeat the text. A text that begins with * needs quotes",
            )
            self._document.unknown.add(location)
        self._attach(parent, location, value, at)
        if isinstance(value, dict | list):
            if len(self._open) == DEEPEST:
                self._give_up(event, Code.TOO_DEEP, f"is nested deeper than {DEEPEST} levels")
            self._open.append(_Open(location, value))

    def _attach(self, parent: _Open | None, location: Location, value: Plain, at: Position) -> None:
        is_scalar = not isinstance(value, dict | list)
        if parent is None:
            self._document.value = value
        elif isinstance(parent.value, list):
            parent.value.append(value)
            self._document.places[location] = Places(at, at, is_scalar)
        elif parent.key is not None:
            if not parent.key_is_duplicate:
                parent.value[parent.key] = value
                self._document.places[location] = Places(parent.key_at, at, is_scalar)
            parent.key = None

    @staticmethod
    def _location(parent: _Open | None) -> Location:
        if parent is None:
            return ()
        if isinstance(parent.value, list):
            return (*parent.location, len(parent.value))
        key = parent.key or ""
        return (*parent.location, f"{key}\0" if parent.key_is_duplicate else key)

    def _value(self, event: NodeEvent, at: Position) -> Plain:
        if isinstance(event, MappingStartEvent):
            return {}
        if isinstance(event, CollectionStartEvent):
            return []
        if isinstance(event, ScalarEvent):
            text = self._text(event, at)
            return _plain_scalar(text) if event.style is None else text
        return None

    def _text(self, event: ScalarEvent, at: Position) -> str:
        text = str(event.value)
        found = _UNWANTED.search(text)
        if found:
            message = f"the character U+{ord(found[0]):04X} is not allowed in a text"
            self._document.add_diagnostic(at, Code.BAD_CHARACTER, message)
            return _UNWANTED.sub("\N{REPLACEMENT CHARACTER}", text)
        return text

    def _give_up(self, event: Event, code: Code, message: str) -> NoReturn:
        self._document.add_diagnostic(_position_of(event.start_mark), code, message)
        raise _Hopeless


def _is_left_out(event: NodeEvent) -> bool:
    return isinstance(event, ScalarEvent) and event.style is None and event.value == ""


def _plain_scalar(text: str) -> Plain:
    """The value of an unquoted scalar in YAML 1.2's core schema. Values that other versions parse differently (`no`,
    `010`, `12:30`, dates) and numbers without an exact form (`.inf`, very many digits) stay texts."""
    if text in _NULLS:
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    if _FRACTION.fullmatch(text):
        return float(text)
    return text


def _position_of(mark: StringMark | None) -> Position:
    return _START if mark is None else Position(mark.line + 1, mark.column + 1)


def _position_in(text_before: str) -> Position:
    line = text_before.count("\n") + 1
    return Position(line, len(text_before) - (text_before.rfind("\n") + 1) + 1)


REFERENCE = r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}"
_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fill_references(document: YamlDocument, environment: Mapping[str, str]) -> None:
    """Replace the references in all texts of `document`, after parsing, so that values cannot become YAML structure. As
    in a shell, the default also replaces an empty variable. References inside values are not expanded. A reference that
    cannot be filled is an error, and its value unknown."""
    document.value = _filled(document.value, (), document, environment)


def _filled(value: Plain, location: Location, document: YamlDocument, environment: Mapping[str, str]) -> Plain:
    if isinstance(value, dict):
        return {key: _filled(item, (*location, key), document, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, (*location, index), document, environment) for index, item in enumerate(value)]
    if isinstance(value, str) and "${" in value:
        return _filled_text(value, location, document, environment)
    return value


def _filled_text(text: str, location: Location, document: YamlDocument, environment: Mapping[str, str]) -> str:
    def add_diagnostic(code: Code, message: str) -> str:
        document.add_diagnostic(document.value_at(location), code, message)
        document.unknown.add(location)
        return ""

    def replace(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        name = found["name"]
        if name is None:
            return add_diagnostic(Code.ENV_BAD_REFERENCE, "write ${NAME} or ${NAME:-default}, or $${ for a literal ${")
        if "${" in (found["default"] or ""):
            message = f"the default of {name} contains a reference, which is not expanded; write a value"
            return add_diagnostic(Code.ENV_BAD_REFERENCE, message)
        value = environment.get(name, "")
        if _SURROGATE.search(value):
            return add_diagnostic(Code.ENV_BAD_VALUE, f"the environment variable {name} is not UTF-8")
        if value or (name in environment and found["default"] is None):
            return value
        if found["default"] is None:
            message = f"the environment variable {name} is not set; set it, or give a default: ${{{name}:-default}}"
            return add_diagnostic(Code.ENV_UNSET, message)
        return str(found["default"])

    return _TOKEN.sub(replace, text)
