"""Copy of all rows of a database into an empty one, and comparison of both."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from typing import NamedTuple, Protocol

from sqlalchemy import Table, func, insert, select

from services.store.all_tables import all_tables
from services.store.port import Statement, StoreError
from services.store.schema import binds
from services.store.statements import DialectName, compile_statement

Row = tuple[int | str | None, ...]
Progress = Callable[[str, int, int], None]
"""Callback with a step ("copied" or "compared"), the rows in total and the rows done, after each thousand rows."""
_ROWS_TO_PROGRESS = 1000
_CHECKSUM_BYTES = 8


class CopyConnection(Protocol):
    """One transaction on a database that has all tables of this version. All methods raise StoreError."""

    place: str
    """Name of the database for messages, without user and password."""
    holds_nul: bool
    """Whether text may contain NUL."""

    def count(self, table: Table) -> int:
        """Number of rows."""

    def rows(self, table: Table) -> Iterator[Row]:
        """All rows, in any order, fetched in batches."""

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Insert `rows`, which are consumed once."""


class TableSql(NamedTuple):
    """Statements for copying one table, with the values in the order of its columns."""

    size: str
    rows: str
    insert: str

    @classmethod
    def of(cls, table: Table, dialect: DialectName) -> TableSql:
        clauses = (select(func.count()).select_from(table), select(table), insert(table).values(binds(table)))
        return cls(*(compile_statement(Statement(f"copy.{table.name}", each), dialect).sql for each in clauses))


class Content:
    """Number and checksum of the rows of a table. The checksum does not depend on the order of the rows, which the
    databases may sort differently."""

    def __init__(self) -> None:
        self.rows = 0
        self.nuls = 0
        """Values whose NUL characters were replaced by U+FFFD."""
        self._sum = 0

    @property
    def checksum(self) -> str:
        """Sum of the hashes of all rows, in hexadecimal digits."""
        return f"{self._sum % (1 << 8 * _CHECKSUM_BYTES):0{2 * _CHECKSUM_BYTES}x}"

    def measured(self, rows: Iterable[Row], *, keeps_nul: bool) -> Iterator[Row]:
        """Iterate over `rows` and add them to the content; with NUL replaced by U+FFFD unless `keeps_nul`."""
        for row in rows:
            shown = repr(row)
            if not keeps_nul and "\\x00" in shown:
                self.nuls += sum(isinstance(value, str) and "\0" in value for value in row)
                row = tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)
                shown = repr(row)
            self._sum += int.from_bytes(blake2b(shown.encode(), digest_size=_CHECKSUM_BYTES).digest(), "big")
            self.rows += 1
            yield row


class TableCopy(NamedTuple):
    """Contents of one table after the copy."""

    name: str
    source: Content
    target: Content

    @property
    def is_equal(self) -> bool:
        return (self.source.rows, self.source.checksum) == (self.target.rows, self.target.checksum)


def copy_rows(source: CopyConnection, target: CopyConnection, progress: Progress) -> list[TableCopy]:
    """Copy all rows, then read those of the target again. Returns the contents of each table; the caller commits the
    target's transaction if they are equal.

    Raises:
        StoreError: the target is not empty, or one of the databases failed.
    """
    tables = all_tables().sorted_tables
    used = [table.name for table in tables if target.count(table)]
    if used:
        raise StoreError(
            f"{target.place} is not empty, it has rows in {', '.join(used)}. Name a new database, or another schema "
            "of this one (?options=-csearch_path%3Drollcall)"
        )
    total = sum(map(source.count, tables))
    copies = [TableCopy(table.name, Content(), Content()) for table in tables]
    numbers = itertools.count(1)
    for table, copy in zip(tables, copies, strict=True):
        rows = copy.source.measured(source.rows(table), keeps_nul=target.holds_nul)
        target.insert(table, _reported(rows, numbers, partial(progress, "copied", total)))
    numbers = itertools.count(1)
    for table, copy in zip(tables, copies, strict=True):
        rows = copy.target.measured(target.rows(table), keeps_nul=True)
        deque(_reported(rows, numbers, partial(progress, "compared", total)), maxlen=0)
    return copies


def _reported(rows: Iterator[Row], numbers: Iterator[int], report: Callable[[int], None]) -> Iterator[Row]:
    for row, number in zip(rows, numbers, strict=False):
        if not number % _ROWS_TO_PROGRESS:
            report(number)
        yield row
