"""Column types and table helpers. Each table is defined in the file of its aggregate, together with its statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnCollection,
    ColumnElement,
    Delete,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    func,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import Insert, insert

from services.store.port import Statement, Write

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


def binds(table: Table) -> dict[str, BindParameter[Any]]:
    """A parameter for each column, with its name and type."""
    return {column.name: bindparam(column.name, type_=column.type) for column in table.columns}


def insert_new(table: Table, *unique: str) -> Insert:
    """Statement that inserts a row, unless there is one with the same values in the `unique` columns (by default in
    those of any unique key)."""
    return insert(table).values(binds(table)).on_conflict_do_nothing(index_elements=list(unique) or None)


def insert_numbered(
    table: Table, names: Sequence[str], within: ColumnElement[bool], *conditions: ColumnElement[bool]
) -> Insert:
    """Statement that inserts a row with the columns `names` and the next `number` of the rows `within`, if the
    `conditions` are fulfilled and no unique key is violated."""
    number = select(func.coalesce(func.max(table.c.number), 0) + 1).where(within)
    values = (bindparam(name, type_=table.c[name].type) for name in names)
    row = select(number.scalar_subquery(), *values).where(*conditions)
    return insert(table).from_select(["number", *names], row).on_conflict_do_nothing()


def delete_row(table: Table) -> Delete:
    """Statement that deletes the row with the bound primary key."""
    return delete(table).where(*(column == bindparam(column.name) for column in table.primary_key.columns))


NewRow = ColumnCollection[str, Any]
"""The columns of the row to be inserted."""


def upsert(table: Table, *names: str, where: Callable[[NewRow], ColumnElement[bool]] | None = None) -> Insert:
    """Statement that inserts a row, or replaces the columns `names` (all by default) of the row with the same primary
    key if that fulfils `where`."""
    return replacing(table, insert(table).values(binds(table)), *names, where=where)


def replacing(
    table: Table, new: Insert, *names: str, where: Callable[[NewRow], ColumnElement[bool]] | None = None
) -> Insert:
    """`new`, a statement that inserts rows into `table`, as an `upsert`."""
    keys = [column.name for column in table.primary_key.columns]
    return new.on_conflict_do_update(
        index_elements=keys,
        set_={
            name: new.excluded[name] for name in names or [one.name for one in table.columns if one.name not in keys]
        },
        where=None if where is None else where(new.excluded),
    )


def batch(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Condition that selects at most BATCH_ROWS of the rows that fulfil `conditions`. Needs an index for these;
    otherwise each batch scans the whole table."""
    keys = list(table.primary_key.columns)
    chosen = select(*keys).where(*conditions).limit(BATCH_ROWS).correlate(None)
    return (keys[0] if len(keys) == 1 else tuple_(*keys)).in_(chosen)


def beyond_newest(table: Table) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Conditions for the rows of the bound `chat` beyond the newest `keep`."""
    in_chat = table.c.chat == bindparam("chat")
    newest = select(table.c.id).where(in_chat).order_by(table.c.id.desc())
    return in_chat, table.c.id <= newest.limit(1).offset(bindparam("keep")).scalar_subquery()


def write_bound(statement: Statement, values: Mapping[str, Any]) -> Write:
    """The statement with those of `values` that it binds."""
    return statement.write(**bound(statement, values))


def bound(statement: Statement, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of `values` that the statement binds."""
    names = statement.clause.compile().params  # type: ignore[attr-defined]  # every clause here is an expression
    return {name: value for name, value in values.items() if name in names}


def delete_batch(table: Table, *conditions: ColumnElement[bool]) -> Delete:
    """Statement that deletes one `batch` of rows (at most BATCH_ROWS); repeat it while it deletes BATCH_ROWS rows."""
    return delete(table).where(batch(table, *conditions))
