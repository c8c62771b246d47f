"""Operations on lists of maps from tables, files and the web: totals, joins, groups, pivot tables. Inputs are not
changed. Field names ignore case, and `a.b` is the field b of the map in a."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from services.refs import JsonObject, JsonValue
from services.scripts.errors import DataError, DataProblem
from services.scripts.filters import field_getter
from services.scripts.values import Mark, as_amount, as_number, as_text, is_empty, key_of, mark_of, order

MOST_ROWS = 50_000
MOST_COLUMNS = 200
MOST_CELLS = 100_000
"""Maximum number of values in the rows of a result, checked before they are created; scripts can hardly hold more."""
MOST_CHARACTERS = 1_000_000
_ALL_COLUMNS = frozenset({"", "*"})
_PLACEHOLDER = re.compile(r"\{\{\s{0,9}([^{}]{1,200}?)\s{0,9}\}\}")
_LARGEST = 2**63


class Total(StrEnum):
    """Aggregate functions of records."""

    SUM = "SUM"
    AVG = "AVG"
    COUNT = "COUNT"
    MIN = "MIN"
    MAX = "MAX"


_SPELLINGS = {**{one.value: one for one in Total}, "AVERAGE": Total.AVG, "MEAN": Total.AVG, "TOTAL": Total.SUM}


def total_named(word: JsonValue) -> Total | None:
    """The aggregate function called `word`, ignoring case; None if unknown."""
    return _SPELLINGS.get(word.strip().upper()) if isinstance(word, str) else None


def total_of(how: Total, rows: Sequence[JsonValue], field: str) -> JsonValue:
    """Aggregate a field of all rows, parsing numbers as people write them. Empty values are not counted; the average of
    none is 0, their minimum and maximum are NULL. COUNT without a field or of `*` is the number of rows, else of those
    with a value. Raises DataError for a field that no row has, and for the sum or average of other values than
    numbers."""
    return _Column(rows, how, field).total(rows)


class _Column:
    """A field of some rows; parts of them can be aggregated, too. The number format is detected from all rows."""

    def __init__(self, rows: Sequence[JsonValue], how: Total, field: str) -> None:
        """Prepare the field for all `rows`. Raises DataError for an unknown field, and for values that a sum or
        average cannot use."""
        self._how = how
        self._is_all = how is Total.COUNT and field in _ALL_COLUMNS
        self._get = field_getter(field or "item")
        self._mark: Mark | None = None
        if self._is_all:
            return
        values = [self._get(row) for row in rows]
        if all(value is None for value in values):
            _check_column(rows, field)
        self._mark = mark_of(values)
        if how in (Total.SUM, Total.AVG):
            for row, value in enumerate(values, 1):
                if not is_empty(value) and as_amount(value, self._mark) is None:
                    raise DataError(DataProblem.NO_NUMBER, found=field or "item", row=row, kind=_kind(value))

    def total(self, rows: Sequence[JsonValue]) -> JsonValue:
        """The aggregate of some of the rows passed to the constructor."""
        if self._is_all:
            return len(rows)
        return _total(self._how, [value for value in map(self._get, rows) if not is_empty(value)], self._mark)


def _total(how: Total, values: Sequence[JsonValue], mark: Mark | None) -> JsonValue:
    if how is Total.COUNT:
        return len(values)
    read = [as_amount(value, mark) for value in values]
    numbers = [number for number in read if number is not None]
    if how in (Total.MIN, Total.MAX):
        return _furthest(numbers if len(numbers) == len(values) else values, -1 if how is Total.MIN else 1)
    if how is Total.AVG:
        return _sum(numbers) / len(numbers) if numbers else 0
    return _sum(numbers)


def renamed(rows: Sequence[JsonValue], mapping: JsonValue) -> list[JsonValue]:
    """The rows with renamed fields: `old->new, c->d` renames these and keeps the others; if a field has no arrow
    (`name, a->b`), only the listed fields are kept. Raises DataError for an incomplete pair."""
    pairs, is_whole = _mapping(mapping)
    getters = [(field_getter(old), old.casefold(), new) for old, new in pairs]
    new_names = {old.casefold(): new for old, new in pairs}
    if is_whole:
        return [_as_map(row, lambda row: {new_names.get(key.casefold(), key): row[key] for key in row}) for row in rows]
    return [_as_map(row, lambda row: {new: get(row) for get, _, new in getters}) for row in rows]


def joined(left: Sequence[JsonValue], right: Sequence[JsonValue], key: str, kind: str) -> list[JsonObject]:
    """Join the rows with equal values in the field `key` (`a=b`: fields a of `left` and b of `right`); for fields of
    both, the left value is used. `kind`: inner, left, right or full, which also keep the unmatched rows of that side,
    or of both. Raises DataError for another kind, or above 50,000 rows or 100,000 cells."""
    sides = {"inner": "", "": "", "left": "l", "right": "r", "full": "lr", "outer": "lr"}.get(kind.strip().lower())
    if sides is None:
        raise DataError(DataProblem.NO_JOIN, found=kind)
    left_key, _, right_key = (part.strip() for part in key.partition("="))
    of_left, of_right = field_getter(left_key), field_getter(right_key or left_key)
    partners: dict[str, list[int]] = {}
    for place, row in enumerate(right):
        if not is_empty(of_right(row)):
            partners.setdefault(key_of(of_right(row)), []).append(place)
    result = _Growing()
    met: set[int] = set()
    for row in left:
        value = of_left(row)
        places = [] if is_empty(value) else partners.get(key_of(value), [])
        met.update(places)
        for place in places:
            result.add(_both(row, right[place]))
        if not places and "l" in sides:
            result.add(_map_of(row))
    if "r" in sides:
        for place, row in enumerate(right):
            if place not in met:
                result.add(_map_of(row))
    return result.rows


def grouped(
    rows: Sequence[JsonValue], fields: Sequence[str], totals: Mapping[str, tuple[Total, str]]
) -> list[JsonObject]:
    """One map for each combination of the fields' values, in order of appearance: the fields, `key` (the value, or the
    texts of several), `items`, `count`, and the named `totals`. Raises DataError as `total_of` does, and for too
    large results."""
    getters = [(name, field_getter(name)) for name in fields]
    wanted = {name: _Column(rows, how, field) for name, (how, field) in totals.items()}
    groups: dict[tuple[str, ...], list[JsonValue]] = {}
    for row in rows:
        groups.setdefault(tuple(key_of(get(row)) for _, get in getters), []).append(row)
    _check_cells(len(groups) * (len(fields) + len(totals) + 3))
    result: list[JsonObject] = []
    for items in groups.values():
        values = {name: get(items[0]) for name, get in getters}
        key = next(iter(values.values())) if len(values) == 1 else ", ".join(map(as_text, values.values()))
        more = {name: one.total(items) for name, one in wanted.items()}
        result.append({**values, "key": key, "items": items, "count": len(items), **more})
    return result


def pivoted(rows: Sequence[JsonValue], down: str, across: str, field: str, how: Total) -> list[JsonObject]:
    """Pivot table: one map for each value of the field `down`, with a column for each value of `across` that has the
    aggregate of `field`; without values it is 0 for a sum, average or count, else NULL. Without `across` the only
    column is `field`. Every map also has the value as `row_header`. Raises DataError as `grouped` does, and above 200
    columns."""
    of_across = field_getter(across) if across else None
    columns = list(_columns(rows, across, of_across)) if of_across else [field]
    groups = grouped(rows, [down], {})
    _check_cells(len(groups) * (len(columns) + 2))
    result: list[JsonObject] = []
    totalled = _Column(rows, how, field)
    for group in groups:
        parts: dict[str, list[JsonValue]] = {column: [] for column in columns}
        for row in group["items"]:
            parts[as_text(of_across(row)) if of_across else field].append(row)
        cells = {column: totalled.total(part) for column, part in parts.items()}
        result.append({down: group["key"], "row_header": group["key"], **cells})
    return result


def filled(template: JsonValue, data: JsonValue) -> JsonValue:
    """`template` with `{{field}}` in all its texts replaced by the fields of `data`; for a list once for each row.
    Missing fields are empty. Raises DataError before the result exceeds a million characters."""
    filling = _Filling()
    if isinstance(data, list):
        return [filling.fill(template, row) for row in data]
    return filling.fill(template, data)


def named_totals(wanted: Mapping[str, JsonValue]) -> dict[str, tuple[Total, str]]:
    """Parse totals such as `#{total: "SUM(amount)", n: "COUNT(*)"}` to function and field by name. Raises DataError
    for other texts."""
    totals: dict[str, tuple[Total, str]] = {}
    for name, text in wanted.items():
        word, opened, rest = as_text(text).partition("(")
        how = total_named(word)
        if how is None or not opened or not rest.rstrip().endswith(")"):
            raise DataError(DataProblem.NO_TOTAL, found=as_text(text))
        totals[name] = (how, rest.rstrip()[:-1].strip())
    return totals


def _columns(rows: Sequence[JsonValue], across: str, of_across: Callable[[JsonValue], JsonValue]) -> dict[str, None]:
    """Names of the pivot table's columns (values of `across`) as keys, in order of appearance. Raises DataError above
    200."""
    columns: dict[str, None] = {}
    for row in rows:
        columns[as_text(of_across(row))] = None
        if len(columns) > MOST_COLUMNS:
            raise DataError(DataProblem.RESULT_COLUMNS, found=across)
    return columns


def _check_cells(count: int) -> None:
    if count > MOST_CELLS:
        raise DataError(DataProblem.RESULT_CELLS)


class _Growing:
    """Rows of a result, limited to 50,000 rows and 100,000 cells."""

    def __init__(self) -> None:
        self.rows: list[JsonObject] = []
        self._cells = 0

    def add(self, row: JsonObject) -> None:
        """Add a row. Raises DataError if the result gets too large."""
        self._cells += len(row)
        _check_cells(self._cells)
        if len(self.rows) >= MOST_ROWS:
            raise DataError(DataProblem.RESULT_ROWS)
        self.rows.append(row)


class _Filling:
    """Fills templates; raises DataError above a million characters in all."""

    def __init__(self) -> None:
        self._room = MOST_CHARACTERS
        self._fields: dict[str, Callable[[JsonValue], JsonValue]] = {}

    def fill(self, template: JsonValue, row: JsonValue) -> JsonValue:
        if isinstance(template, str):
            self._take(len(template))
            return _PLACEHOLDER.sub(lambda found: self._cell(found[1], row), template)
        if isinstance(template, dict):
            return {key: self.fill(value, row) for key, value in template.items()}
        self._take(1)
        return [self.fill(value, row) for value in template] if isinstance(template, list) else template

    def _cell(self, field: str, row: JsonValue) -> str:
        get = self._fields.get(field)
        if get is None:
            get = self._fields[field] = field_getter(field)
        text = as_text(get(row))
        self._take(len(text))
        return text

    def _take(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise DataError(DataProblem.RESULT_TEXT)


def _mapping(mapping: JsonValue) -> tuple[list[tuple[str, str]], bool]:
    """Pairs of old and new names, and whether all other fields are kept (see `renamed`). Raises DataError."""
    if isinstance(mapping, dict):
        return [(old, as_text(new)) for old, new in mapping.items()], True
    parts = mapping if isinstance(mapping, list) else as_text(mapping).split(",")
    pairs, is_whole = list[tuple[str, str]](), True
    for part in map(as_text, parts):
        old, arrow, new = (piece.strip() for piece in part.partition("->"))
        if not old or (arrow and not new):
            raise DataError(DataProblem.NO_MAPPING, found=part)
        is_whole = is_whole and bool(arrow)
        pairs.append((old, new or old))
    return pairs, is_whole


def _as_map(row: JsonValue, change: Callable[[JsonObject], JsonObject]) -> JsonValue:
    return change(row) if isinstance(row, dict) else row


def _map_of(row: JsonValue) -> JsonObject:
    return dict(row) if isinstance(row, dict) else {"value": row}


def _both(left: JsonValue, right: JsonValue) -> JsonObject:
    result = _map_of(left)
    there = {name.casefold() for name in result}
    result.update({name: value for name, value in _map_of(right).items() if name.casefold() not in there})
    return result


def _check_column(rows: Sequence[JsonValue], field: str) -> None:
    """Raises DataError for a field that no row has; otherwise it would be treated as empty."""
    maps = [row for row in rows if isinstance(row, dict)]
    columns = list(dict.fromkeys(name for row in maps for name in row))
    known = {name.casefold() for name in columns}
    first = field.partition(".")[0].casefold()
    if maps and field and first != "item" and not {field.casefold(), first} & known:
        raise DataError(DataProblem.NO_COLUMN, found=field, columns=columns)


def _kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else "map"


def _furthest(values: Sequence[JsonValue], side: int) -> JsonValue:
    """The minimum (side -1) or maximum (1), as a number if it is numeric; None for no values. A value that cannot be
    compared with the extreme so far is skipped."""
    found: JsonValue = None
    for value in values:
        if found is None or order(value, found) == side:
            found = value
    number = as_number(found)
    return found if number is None else number


def _sum(numbers: Sequence[float]) -> float:
    if all(isinstance(number, int) for number in numbers):
        total = sum(numbers)
        return total if -_LARGEST <= total < _LARGEST else float(total)
    try:
        return math.fsum(numbers)
    except OverflowError:
        return 0.0
