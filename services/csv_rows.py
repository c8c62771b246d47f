"""Rows of a CSV file, as a spreadsheet writes it: its first line names the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import islice

from services.json_values import JsonObject

MOST_BYTES = 1_000_000
MOST_ROWS = 50_000
MOST_COLUMNS = 500
_SEPARATORS = ",;\t|"
_LOOKED_AT = 20


class CsvProblem(StrEnum):
    """Why a file cannot be read."""

    TOO_LARGE = "too_large"
    TOO_MANY_ROWS = "too_many_rows"
    TOO_MANY_COLUMNS = "too_many_columns"
    NOT_CSV = "not_csv"


class CsvFault(ValueError):
    """A file that cannot be read as rows."""

    def __init__(self, problem: CsvProblem, line: int = 0) -> None:
        super().__init__(f"{problem} in line {line}")
        self.problem = problem
        self.line = line
        """From 1; 0 where it is about the whole file."""


def csv_rows(content: bytes) -> list[JsonObject]:
    """The rows as maps of texts, in their order; a cell that a row has not is NULL. Commas, semicolons, tabs and bars
    may separate; UTF-8 and UTF-16 are understood, else each byte is a western character. A column without a name is
    `column3`, one whose name comes again `name_2`. Raises CsvFault."""
    if len(content) > MOST_BYTES:
        raise CsvFault(CsvProblem.TOO_LARGE)
    text = _decoded(content)
    if "\0" in text:
        raise CsvFault(CsvProblem.NOT_CSV)
    first, _, rest = text.partition("\n")
    said = first.strip().lower()
    if said.startswith("sep=") and len(said) == len("sep=;"):  # spreadsheets say so in the first line
        return _rows(rest, said[-1])
    return _rows(text, _separator_of(text))


def _decoded(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _separator_of(text: str) -> str:
    """The one that makes most columns, the same number in the most of the first lines."""

    def columns(separator: str) -> tuple[int, int]:
        try:
            lines = list(islice(csv.reader(io.StringIO(text), delimiter=separator), _LOOKED_AT))
        except csv.Error:
            return 0, 0
        counts = [len(line) for line in lines if line]
        if not counts or counts[0] == 1:
            return 0, 0
        return sum(count == counts[0] for count in counts), counts[0]

    return max(_SEPARATORS, key=columns)


def _rows(text: str, separator: str) -> list[JsonObject]:
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        head = next((line for line in reader if any(map(str.strip, line))), [])
        return _maps(_names(head), reader)
    except csv.Error:
        raise CsvFault(CsvProblem.NOT_CSV, reader.line_num) from None


def _maps(names: list[str], lines: Iterable[Sequence[str]]) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for line in lines:
        if not any(map(str.strip, line)):
            continue
        if len(rows) >= MOST_ROWS:
            raise CsvFault(CsvProblem.TOO_MANY_ROWS)
        if len(line) > len(names):
            names = _names([*names, *[""] * (len(line) - len(names))])
        rows.append({name: line[place].strip() if place < len(line) else None for place, name in enumerate(names)})
    return rows


def _names(head: Sequence[str]) -> list[str]:
    if len(head) > MOST_COLUMNS:
        raise CsvFault(CsvProblem.TOO_MANY_COLUMNS)
    names: dict[str, None] = {}
    for place, cell in enumerate(head, 1):
        name = known = cell.strip() or f"column{place}"
        count = 1
        while name in names:
            count += 1
            name = f"{known}_{count}"
        names[name] = None
    return list(names)
