"""Column types and table helpers. Each table is defined in the file of its aggregate, together with its statements."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Delete,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    literal_column,
    select,
    tuple_,
)

metadata = MetaData()
"""All tables, once the aggregates are imported (`migrations/` and tests import them all)."""

BATCH_ROWS = 200
"""Maximum of rows that one statement made by `batch` touches; takes the writer a few milliseconds."""

# Only integers and text: they need no conversion and mean the same on SQLite and PostgreSQL.
INTEGER = BigInteger().with_variant(Integer, "sqlite")
TEXT = Text()


def table(
    name: str,
    *columns: Column[int] | Column[str] | Column[int | None] | Column[str | None] | Index,
    rows_in_key_order: bool = False,
) -> Table:
    """A table that rejects values of another type (STRICT on SQLite; PostgreSQL always does). `rows_in_key_order`:
    WITHOUT ROWID on SQLite, so the rows are stored in the tree of the primary key."""
    return Table(name, metadata, *columns, sqlite_strict=True, sqlite_with_rowid=not rows_in_key_order)


def integer(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[int]:
    """A 64-bit integer column. Times are in milliseconds since 1970 UTC and named `…_ms`."""
    return Column(name, INTEGER, primary_key=primary_key, nullable=nullable, autoincrement=False)


def text(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    """A text column; values have no NUL and no lone surrogates (intake removes both)."""
    return Column(name, TEXT, primary_key=primary_key, nullable=nullable)


def batch(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Condition that selects at most BATCH_ROWS of the rows that fulfil `conditions`. Needs an index for these;
    otherwise each batch scans the whole table."""
    keys = list(table.primary_key.columns)
    chosen = select(*keys).where(*conditions).limit(literal_column(str(BATCH_ROWS))).correlate(None)
    return (keys[0] if len(keys) == 1 else tuple_(*keys)).in_(chosen)


def delete_batch(table: Table, *conditions: ColumnElement[bool]) -> Delete:
    """Statement that deletes one `batch` of rows (at most BATCH_ROWS); repeat it while it deletes BATCH_ROWS rows."""
    return delete(table).where(batch(table, *conditions))
