"""Stored values and table rows of scripts."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Index, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Row, Statement, Write
from services.store.schema import INTEGER, binds, insert_new, integer, replacing, table, text

PAGE_ROWS = 500

SCRIPT_ROWS = table(
    "script_rows",
    text("bot", primary_key=True),
    text("chat", primary_key=True),  # empty for data shared by all chats of the bot
    text("table_name", primary_key=True),  # in lower case
    text("row_id", primary_key=True),
    integer("number"),  # increases in the order of insertion
    integer("size"),  # bytes of `fields`
    text("fields"),  # JSON object
    integer("changed_ms"),
    Index("script_rows_in_order", "bot", "chat", "table_name", "number", "size"),
)
_PLACE = ("bot", "chat", "table_name")
_OF_PLACE = tuple(SCRIPT_ROWS.c[name] == bindparam(name) for name in _PLACE)
_THIS = (*_OF_PLACE, SCRIPT_ROWS.c.row_id == bindparam("row"))
_AS_IT_WAS = (*_THIS, SCRIPT_ROWS.c.fields == bindparam("old"))

_COUNT = select(func.count()).select_from(SCRIPT_ROWS).where(*_OF_PLACE)
_BYTES = select(func.coalesce(func.sum(SCRIPT_ROWS.c.size), 0)).where(*_OF_PLACE)
_NAMES = select(SCRIPT_ROWS.c.table_name).where(*_OF_PLACE[:2]).distinct().subquery()
_TABLES = select(func.count()).select_from(_NAMES)

_ADD = Statement("script_rows.add", insert_new(SCRIPT_ROWS))
_CHANGE = Statement(
    "script_rows.change",
    update(SCRIPT_ROWS)
    .where(*_AS_IT_WAS)
    .values(fields=bindparam("new"), size=bindparam("bytes"), changed_ms=bindparam("at_ms")),
)
# The last statement of a unit, so that one scan of the table covers all its rows. Tables are counted only if the table
# had no rows before.
_ROWS_BEFORE = exists().where(*_OF_PLACE, SCRIPT_ROWS.c.number < bindparam("first"))
_WITHIN = Statement(
    "script_rows.within",
    update(SCRIPT_ROWS)
    .where(
        *_THIS,
        bindparam("most_rows", type_=INTEGER) >= _COUNT.scalar_subquery(),
        bindparam("most_bytes", type_=INTEGER) >= _BYTES.scalar_subquery(),
        _ROWS_BEFORE | (bindparam("most_tables", type_=INTEGER) >= _TABLES.scalar_subquery()),
    )
    .values(changed_ms=SCRIPT_ROWS.c.changed_ms),
)
_DROP = Statement("script_rows.drop", delete(SCRIPT_ROWS).where(*_AS_IT_WAS))
_CLEAR = Statement("script_rows.clear", delete(SCRIPT_ROWS).where(*_OF_PLACE))
_READ = select(SCRIPT_ROWS.c.row_id, SCRIPT_ROWS.c.number, SCRIPT_ROWS.c.fields)
_ONE = Statement("script_rows.one", _READ.where(*_THIS))
_PAGE = Statement(
    "script_rows.page",
    _READ.where(*_OF_PLACE, SCRIPT_ROWS.c.number > bindparam("after")).order_by(SCRIPT_ROWS.c.number).limit(PAGE_ROWS),
)
_FILLING = Statement(
    "script_rows.filling",
    select(
        _COUNT.scalar_subquery().label("rows"),
        _BYTES.scalar_subquery().label("bytes"),
        _TABLES.scalar_subquery().label("tables"),
    ),
)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Key of one script table: bot, chat and name."""

    bot: str
    chat: str
    """Key of the chat; empty for a table shared by all chats of the bot."""
    table_name: str
    """In lower case."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A stored row of a script table: its id, its number in the order of insertion, and its fields."""

    row_id: str
    number: int
    fields: str
    """JSON object."""


def add(place: TablePlace, row_id: str, *, number: int, fields: str, size: int, at_ms: int) -> Write:
    """Add a row. The unit is undone (Conflict) if the table has a row with that id."""
    return _ADD.write_expecting(
        1, **_named(place), row_id=row_id, number=number, fields=fields, size=size, changed_ms=at_ms
    )


def change(place: TablePlace, row_id: str, *, old: str, new: str, size: int, at_ms: int) -> Write:
    """Replace a row's fields. The unit is undone (Conflict) if they are no longer `old`."""
    return _CHANGE.write_expecting(1, **_named(place), row=row_id, old=old, new=new, bytes=size, at_ms=at_ms)


def within(place: TablePlace, row_id: str, *, first: int, most_rows: int, most_bytes: int, most_tables: int) -> Write:
    """Check the limits without a change: the unit is undone (Conflict) if the table or the number of tables is too
    large. `row_id`: a row written by the unit. `first`: number of the first row it has added."""
    return _WITHIN.write_expecting(
        1,
        **_named(place),
        row=row_id,
        first=first,
        most_rows=most_rows,
        most_bytes=most_bytes,
        most_tables=most_tables,
    )


def drop_rows(place: TablePlace, row_id: str, *, old: str) -> Write:
    """Delete a row. Touches none if it does not exist or its fields are no longer `old`."""
    return _DROP.write(**_named(place), row=row_id, old=old)


def clear(place: TablePlace) -> Write:
    """Delete all rows of a table, however many."""
    return _CLEAR.write(**_named(place))


def one(place: TablePlace, row_id: str) -> Query:
    """`row_id`, `number` and `fields` of the row with that id; no row if it does not exist."""
    return _ONE.query(**_named(place), row=row_id)


def page(place: TablePlace, after: int) -> Query:
    """At most `PAGE_ROWS` rows after that number, in order of insertion, with the columns of `one`."""
    return _PAGE.query(**_named(place), after=after)


def filling(place: TablePlace) -> Query:
    """The table's number of `rows` and `bytes`, and the number of `tables` including this one."""
    return _FILLING.query(**_named(place))


def stored_row(row: Row) -> StoredRow:
    """Convert a row of `one` or `page` to a StoredRow."""
    return StoredRow(row["row_id"], row["number"], row["fields"])


def _named(place: TablePlace) -> dict[str, str]:
    return {"bot": place.bot, "chat": place.chat, "table_name": place.table_name}


SCRIPT_MEMORY = table(
    "script_memory",
    text("bot", primary_key=True),  # empty for a member's values that all bots share
    text("owner", primary_key=True),  # empty for the bot's own values, else member or chat
    text("name", primary_key=True),
    text("value"),  # JSON
    integer("size"),  # bytes of `value`
    integer("from_outside"),  # 1 if text from others went into it
    integer("changed_ms"),
    integer("expires_ms", nullable=True),
    Index("script_memory_expiry", "expires_ms"),
    rows_in_key_order=True,
)
_OWNER = tuple(SCRIPT_MEMORY.c[name] == bindparam(name) for name in ("bot", "owner"))
_THIS_VALUE = (*_OWNER, SCRIPT_MEMORY.c.name == bindparam("name"))
_OTHERS = (*_OWNER, SCRIPT_MEMORY.c.name != bindparam("name"))
IS_EXPIRED = SCRIPT_MEMORY.c.expires_ms <= bindparam("now_ms")

_OTHER_COUNT = select(func.count()).select_from(SCRIPT_MEMORY).where(*_OTHERS).scalar_subquery()
_OTHER_BYTES = select(func.coalesce(func.sum(SCRIPT_MEMORY.c.size), 0)).where(*_OTHERS).scalar_subquery()
_INSERT = insert(SCRIPT_MEMORY).from_select(
    list(binds(SCRIPT_MEMORY)),
    select(*binds(SCRIPT_MEMORY).values()).where(
        bindparam("most_names", type_=INTEGER) > _OTHER_COUNT,
        bindparam("room", type_=INTEGER) >= _OTHER_BYTES,
    ),
)
_PUT = Statement("script_memory.put", replacing(SCRIPT_MEMORY, _INSERT))
_GET = Statement(
    "script_memory.get",
    select(SCRIPT_MEMORY.c.value, SCRIPT_MEMORY.c.from_outside).where(
        *_THIS_VALUE, SCRIPT_MEMORY.c.expires_ms.is_(None) | ~IS_EXPIRED
    ),
)
_DROP_VALUE = Statement("script_memory.drop", delete(SCRIPT_MEMORY).where(*_THIS_VALUE))
_FORGET_OF = Statement("script_memory.forget_of", delete(SCRIPT_MEMORY).where(*_OWNER, IS_EXPIRED))


def put(
    bot: str,
    owner: str,
    name: str,
    *,
    value: str,
    size: int,
    from_outside: bool,
    at_ms: int,
    expires_ms: int | None,
    most_names: int,
    most_bytes: int,
) -> Write:
    """Store `value` (JSON of `size` bytes). Touches no row if the owner would exceed the number of names or bytes."""
    return _PUT.write(
        bot=bot,
        owner=owner,
        name=name,
        value=value,
        size=size,
        from_outside=int(from_outside),
        changed_ms=at_ms,
        expires_ms=expires_ms,
        most_names=most_names,
        room=most_bytes - size,
    )


def get(bot: str, owner: str, name: str, now_ms: int) -> Query:
    """`value` and `from_outside`; no row if the value is missing or expired."""
    return _GET.query(bot=bot, owner=owner, name=name, now_ms=now_ms)


def drop_value(bot: str, owner: str, name: str) -> Write:
    """Delete one value; touches no row if it does not exist."""
    return _DROP_VALUE.write(bot=bot, owner=owner, name=name)


def forget_of(bot: str, owner: str, now_ms: int) -> Write:
    """Delete one owner's expired values."""
    return _FORGET_OF.write(bot=bot, owner=owner, now_ms=now_ms)


ALL_ROWS = Statement(
    "script_reports.rows",
    select(SCRIPT_ROWS.c.table_name, SCRIPT_ROWS.c.row_id, SCRIPT_ROWS.c.fields).order_by(
        SCRIPT_ROWS.c.table_name, SCRIPT_ROWS.c.number
    ),
).query()
"""All rows of all tables of all bots: `table_name`, `row_id` and `fields` (JSON)."""
ALL_VALUES = Statement(
    "script_reports.memories",
    select(SCRIPT_MEMORY.c.owner, SCRIPT_MEMORY.c.name, SCRIPT_MEMORY.c.value).order_by(
        SCRIPT_MEMORY.c.owner, SCRIPT_MEMORY.c.name
    ),
).query()
"""All stored values of all bots, expired ones included: `owner`, `name` and `value` (JSON)."""
