"""Compiled SQL statements with positional binds, and the units of writes made of them."""

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
    """This statement cannot be compiled once and for all; the message names it and says why."""


class CompiledStatement:
    """`sql` with one placeholder (`?` on SQLite, `%s` on PostgreSQL) for each name in `order`. `pick_row` gives the
    values in that order, of a row that is as long as `row_length`."""

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
            ValueError: a name is missing from `values`, or is not one of this statement; or a row has another length.
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


class StatementCompiler:
    """Compiles for one dialect, each statement once."""

    def __init__(self, dialect: DialectName) -> None:
        self._dialect: DialectName = dialect
        self._compiled: dict[Statement, CompiledStatement] = {}

    def compiled(self, statement: Statement) -> CompiledStatement:
        """`statement` in this dialect.

        Raises:
            NotCompilable: it has a bind whose value needs a conversion or changes the text, or is no valid SQL here.
        """
        known = self._compiled.get(statement)
        if known is None:
            known = self._compiled[statement] = compile_statement(statement, self._dialect)
        return known


@lru_cache(maxsize=1024)  # stores that are opened one after another have the same statements
def compile_statement(statement: Statement, dialect: DialectName) -> CompiledStatement:
    """`statement` in `dialect`, a pure function: needs no driver and no server. Raises NotCompilable."""
    return _compile(statement, _dialect(dialect))


# Constants of a statement stand in its text, so that the planner can use partial indexes; binds are what was named by
# `bindparam("name")` and the columns of an INSERT that were given no value. SQLAlchemy's compilers are untyped.
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
    """`bindparam("name", 0)` is no constant: there the value only tells the type."""
    return not bind.required and (bind.unique or bind._is_crud)  # noqa: SLF001  # `.values(name=0)` shows in no other way


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
    """A tuple of a tuple is that one itself."""
    return itemgetter(*map(takes.index, order)) if takes and order != takes else tuple


def _picker(order: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """itemgetter gives a bare value for one name and nothing for none."""
    if not order:
        return lambda _: ()
    if len(order) == 1:
        (name,) = order
        return lambda values: (values[name],)
    return itemgetter(*order)


Step = tuple[CompiledStatement, tuple[Any, ...], int | None]
"""One write of a unit, ready for the driver: the statement, its values in order, and how many rows it has to touch. A
plain tuple, since each turn makes ten."""


class Unit:
    """What is done as a whole or not at all. `waiter` is None where nobody waits."""

    __slots__ = ("outcome", "steps", "waiter")

    def __init__(self, steps: Sequence[Step], waiter: asyncio.Future[list[int]] | None) -> None:
        self.steps = steps
        self.waiter = waiter
        self.outcome: list[int] | StoreError | None = None
        """The row counts, or why it was not done. None until that is known."""

    @property
    def names(self) -> str:
        """What it is about, for errors."""
        return ", ".join(statement.name for statement, _, _ in self.steps)


class Committer(Protocol):
    """Executes groups of units on one connection. Belongs to one thread at a time."""

    commits: int
    """Transactions committed so far."""
    broken: StoreBroken | None
    """Why nothing is taken any more."""

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. A unit that fails is undone and leaves no trace in the others. Returns the
        units, in their order, of which nothing was done because the database cannot be reached now."""

    def finish(self) -> None:
        """What is done after the last group; never raises."""

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
