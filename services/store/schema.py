"""The types that every table is made of. A table stands in the file of its aggregate, beside its statements."""

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
"""The most rows that one statement made by `batch` touches: a few milliseconds of the writer."""

# Only integers and text: they need no conversion on the way in, and mean the same on SQLite and PostgreSQL.
INTEGER = BigInteger().with_variant(Integer, "sqlite")
TEXT = Text()


def table(
    name: str,
    *columns: Column[int] | Column[str] | Column[int | None] | Column[str | None] | Index,
    rows_in_key_order: bool = False,
) -> Table:
    """A table that refuses values of another type (STRICT on SQLite, as PostgreSQL always does). `rows_in_key_order`:
    SQLite keeps the rows in the tree of the primary key, without another tree of row numbers beside it."""
    return Table(name, metadata, *columns, sqlite_strict=True, sqlite_with_rowid=not rows_in_key_order)


def integer(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[int]:
    """A 64-bit integer. Instants are milliseconds since 1970 UTC and named `…_ms`."""
    return Column(name, INTEGER, primary_key=primary_key, nullable=nullable, autoincrement=False)


def text(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    """Text without NUL and lone surrogates (intake strips both)."""
    return Column(name, TEXT, primary_key=primary_key, nullable=nullable)


def batch(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Condition that at most BATCH_ROWS of the rows which fulfil `conditions` fulfil. An index has to find those rows,
    or each batch looks through the whole table."""
    keys = list(table.primary_key.columns)
    chosen = select(*keys).where(*conditions).limit(literal_column(str(BATCH_ROWS))).correlate(None)
    return (keys[0] if len(keys) == 1 else tuple_(*keys)).in_(chosen)


def delete_batch(table: Table, *conditions: ColumnElement[bool]) -> Delete:
    """Delete such a batch; repeat it while it deletes BATCH_ROWS."""
    return delete(table).where(batch(table, *conditions))
