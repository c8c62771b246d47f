"""Copy of all rows of a database into an empty one, and comparison of both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Select, Table, func, select

from services.store.all_tables import all_tables
from services.store.port import StoreError

Row = tuple[Any, ...]
Progress = Callable[[str, int, int, int], None]
"""Callback after each thousand rows, with the step ("copied" or "compared"), the total of rows, those of finished
tables, and those of the current table."""
_ROWS_TO_REPORT = 1000
_CHECKSUM_BYTES = 8


class CopyConnection(Protocol):
    """One transaction on a database that has all tables of this version."""

    place: str
    """Name of the database for messages, without user and password."""
    keeps_nul: bool
    """Whether it can store NUL characters."""

    def select(self, query: Select[Any]) -> Iterator[Row]:
        """Rows of a query, fetched in batches."""

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Insert `rows`, with values in the order of the table's columns."""


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

    def measured(self, rows: Iterable[Row], report: Callable[[int], None], *, keeps_nul: bool) -> Iterator[Row]:
        """Iterate over `rows` and add them to the content, with NUL replaced by U+FFFD unless `keeps_nul`. `report` is
        called with the number of rows after each thousand."""
        for row in rows:
            shown = repr(row)
            if not keeps_nul and "\\x00" in shown:
                self.nuls += sum(isinstance(value, str) and "\0" in value for value in row)
                row = tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)
                shown = repr(row)
            self._sum += int.from_bytes(blake2b(shown.encode(), digest_size=_CHECKSUM_BYTES).digest(), "big")
            self.rows += 1
            if not self.rows % _ROWS_TO_REPORT:
                report(self.rows)
            yield row


class TableCopy(NamedTuple):
    """Contents of one table after the copy."""

    table: Table
    source: Content
    target: Content

    @property
    def is_equal(self) -> bool:
        return (self.source.rows, self.source.checksum) == (self.target.rows, self.target.checksum)


def copy_rows(source: CopyConnection, target: CopyConnection, progress: Progress) -> list[TableCopy]:
    """Copy all rows, then read those of the target again. Returns the contents of each table; the caller commits the
    target's transaction if they are equal. Raises StoreError if the target is not empty."""
    copies = [TableCopy(table, Content(), Content()) for table in all_tables().sorted_tables]
    used = [copy.table.name for copy in copies if _count(target, copy.table)]
    if used:
        raise StoreError(
            f"{target.place} is not empty, it has rows in {', '.join(used)}. Name a new database, or another schema "
            "of this one (?options=-csearch_path%3Drollcall)"
        )
    total = sum(_count(source, copy.table) for copy in copies)
    done = 0
    for copy in copies:
        rows = source.select(select(copy.table))
        report = partial(progress, "copied", total, done)
        target.insert(copy.table, copy.source.measured(rows, report, keeps_nul=target.keeps_nul))
        done += copy.source.rows
    done = 0
    for copy in copies:
        rows = target.select(select(copy.table))
        deque(copy.target.measured(rows, partial(progress, "compared", total, done), keeps_nul=True), maxlen=0)
        done += copy.target.rows
    return copies


def _count(database: CopyConnection, table: Table) -> int:
    ((count,),) = database.select(select(func.count()).select_from(table))
    return int(count)
