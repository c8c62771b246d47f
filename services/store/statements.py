"""Compiled SQL statements with positional binds, and units of writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, Protocol

from sqlalchemy import BindParameter, ClauseElement, Dialect
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.compiler import SQLCompiler

from services.store.port import Statement, StoreBroken, StoreError, Values

DialectName = Literal["sqlite", "postgresql"]
_TAKES_NO_ROW = -1


class NotCompilable(Exception):
    """The statement's text depends on its values or it is no valid SQL; the message has its name and the reason."""


class CompiledStatement:
    """SQL with one placeholder (`?` on SQLite, `%s` on PostgreSQL) for each name in `order`. `pick_row` puts the values
    of a row with `row_length` values into that order."""

    __slots__ = ("_count", "_pick", "is_select", "name", "order", "pick_row", "row_length", "sql")

    def __init__(
        self, name: str, sql: str, order: tuple[str, ...], takes: tuple[str, ...] = (), *, is_select: bool
    ) -> None:
        self.name = name
        self.sql = sql
        self.order = order
        self.is_select = is_select
        self.row_length = len(takes) if takes or not order else _TAKES_NO_ROW
        self.pick_row = _picker_of_rows(order, takes)
        self._pick = _picker(order)
        self._count = len(set(order))

    def bind(self, values: Values) -> tuple[Any, ...]:
        """The values in the order of the placeholders.

        Raises:
            ValueError: a name is missing from `values` or unknown, or a row has the wrong length.
        """
        if isinstance(values, tuple):
            if self.row_length == _TAKES_NO_ROW:
                raise ValueError("takes its values by name, and no row")
            if len(values) != self.row_length:
                raise ValueError(f"takes {self.row_length} values in a row, not {len(values)}")
            return self.pick_row(values)
        try:
            picked = self._pick(values)
        except KeyError as error:
            raise ValueError(f"no value for {error.args[0]!r}") from None
        if len(values) != self._count:
            raise ValueError(f"does not take {', '.join(sorted(set(values) - set(self.order)))}")
        return picked


@lru_cache(maxsize=1024)  # more than all statements
def compile_statement(statement: Statement, dialect: DialectName) -> CompiledStatement:
    """`statement` compiled for `dialect`, once; needs no driver and no server.

    Raises:
        NotCompilable: a bind's value needs a conversion or changes the text, or the SQL is invalid.
    """
    return _compile(statement, _dialect(dialect))


# Constants are inlined in the SQL text so that the planner can use partial indexes. Binds are parameters named by
# `bindparam("name")` and the columns of an INSERT without a value. SQLAlchemy's compilers are untyped.
class _InliningSQLiteCompiler(SQLiteCompiler):
    def visit_bindparam(self, bindparam: BindParameter[Any], *args: Any, **options: Any) -> str:
        options["literal_binds"] = options.get("literal_binds", False) or _is_constant(bindparam)
        text: str = super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]
        return text


class _InliningPostgreSQLCompiler(PGCompiler_psycopg):
    def visit_bindparam(self, bindparam: BindParameter[Any], *args: Any, **options: Any) -> str:
        options["literal_binds"] = options.get("literal_binds", False) or _is_constant(bindparam)
        text: str = super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]
        return text


def _is_constant(bind: BindParameter[Any]) -> bool:
    """Whether the bind is a constant to be written into the SQL text, not a parameter. `bindparam("name", 0)` is none:
    its value only sets the type."""
    return not bind.required and (bind.unique or bind._is_crud)  # noqa: SLF001  # else `.values(name=0)` is not recognised


@lru_cache(maxsize=2)
def _dialect(name: DialectName) -> Dialect:
    dialect: Dialect
    if name == "sqlite":
        dialect = SQLiteDialect_pysqlite(paramstyle="qmark")
        dialect.statement_compiler = _InliningSQLiteCompiler
    else:
        dialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
        dialect.statement_compiler = _InliningPostgreSQLCompiler
    return dialect


def _compile(statement: Statement, dialect: Dialect) -> CompiledStatement:
    try:
        if not isinstance(statement.clause, ClauseElement):
            raise NotCompilable(f"{statement.name}: is no SQL expression")
        compiled = statement.clause.compile(dialect=dialect)
    except SQLAlchemyError as error:
        raise NotCompilable(f"{statement.name} on {dialect.name}: {error}") from error
    if not isinstance(compiled, SQLCompiler):
        raise NotCompilable(f"{statement.name}: defines the schema; migrations do that")
    for name, bind in compiled.binds.items():
        if bind in compiled.post_compile_params or bind in compiled.literal_execute_params:
            raise NotCompilable(f"{statement.name}: the text depends on the value of {name!r}")
        if bind.type.dialect_impl(dialect).bind_processor(dialect) is not None:
            raise NotCompilable(f"{statement.name} on {dialect.name}: {name!r} is converted; store integers and text")
    order, takes = tuple(compiled.positiontup or ()), statement.takes
    if takes and sorted(takes) != sorted(set(order)):
        raise NotCompilable(f"{statement.name}: takes {', '.join(takes)}, and has {', '.join(order)}")
    return CompiledStatement(statement.name, compiled.string, order, takes, is_select=statement.clause.is_select)


def _picker_of_rows(order: tuple[str, ...], takes: tuple[str, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Function that puts a row's values, given in the order of `takes`, into `order`; `tuple` returns a tuple
    unchanged."""
    return itemgetter(*map(takes.index, order)) if takes and order != takes else tuple


def _picker(order: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Function that returns the values of a mapping in `order` as a tuple; raises KeyError for a missing name.
    `itemgetter` fails without names and returns no tuple for a single name."""
    if not order:
        return lambda _: ()
    if len(order) == 1:
        (name,) = order
        return lambda values: (values[name],)
    return itemgetter(*order)


Step = tuple[CompiledStatement, tuple[Any, ...], int | None]
"""One write of a unit, ready for the driver: the statement, its values in order, and the expected number of rows. A
plain tuple, because each turn makes ten."""


class Unit:
    """Writes that are executed as a whole or not at all. `waiter` receives the row counts or the error; None for posted
    units."""

    __slots__ = ("outcome", "steps", "waiter")

    def __init__(self, steps: Sequence[Step], waiter: asyncio.Future[list[int]] | None) -> None:
        self.steps = steps
        self.waiter = waiter
        self.outcome: list[int] | StoreError | None = None
        """The row counts, or the error. None until it was executed."""

    @property
    def names(self) -> str:
        """Names of its statements, for errors."""
        return ", ".join(statement.name for statement, _, _ in self.steps)


def give_all(units: Sequence[Unit], outcome: StoreError) -> None:
    """Set the same outcome of all `units`."""
    for unit in units:
        unit.outcome = outcome


class Committer(Protocol):
    """Executes groups of units on one connection. Used by one thread at a time."""

    commits: int
    """Number of transactions committed so far."""
    broken: StoreBroken | None
    """Why no more units are accepted."""

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. A unit that fails is rolled back without affecting the others. Returns the
        units, in order, that were not executed because the database cannot be reached now."""

    def finish(self) -> None:
        """Clean up after the last group; never raises."""

    def close(self) -> None:
        """Close the connection, whatever its state."""
