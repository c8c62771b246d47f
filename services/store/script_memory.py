"""What scripts remember, each value under the name of its owner: a bot, a member, a chat."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, delete, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, delete_batch, integer, table, text

SCRIPT_MEMORY = table(
    "script_memory",
    text("bot", primary_key=True),  # empty for what belongs to a member whatever the bot
    text("owner", primary_key=True),  # empty for the bot's own, else whose and where
    text("name", primary_key=True),
    text("value"),  # JSON
    integer("size"),  # bytes of `value`
    integer("from_outside"),  # 1 where the words of others went into it
    integer("changed_ms"),
    integer("expires_ms", nullable=True),
    Index("script_memory_expiry", "expires_ms"),
    rows_in_key_order=True,
)
_OWNER = tuple(SCRIPT_MEMORY.c[name] == bindparam(name, type_=TEXT) for name in ("bot", "owner"))
_THIS = (*_OWNER, SCRIPT_MEMORY.c.name == bindparam("name", type_=TEXT))
_OTHERS = (*_OWNER, SCRIPT_MEMORY.c.name != bindparam("name", type_=TEXT))
_IS_OVER = SCRIPT_MEMORY.c.expires_ms <= bindparam("now_ms", type_=INTEGER)

_OTHER_COUNT = select(func.count()).select_from(SCRIPT_MEMORY).where(*_OTHERS).scalar_subquery()
_OTHER_BYTES = (
    select(func.coalesce(func.sum(SCRIPT_MEMORY.c.size), literal_column("0"))).where(*_OTHERS).scalar_subquery()
)
_COLUMNS = [column.name for column in SCRIPT_MEMORY.columns]
_INSERT = insert(SCRIPT_MEMORY).from_select(
    _COLUMNS,
    select(*(bindparam(column.name, type_=column.type) for column in SCRIPT_MEMORY.columns)).where(
        bindparam("most_names", type_=INTEGER) > _OTHER_COUNT,
        bindparam("room", type_=INTEGER) >= _OTHER_BYTES,
    ),
)
_PUT = Statement(
    "script_memory.put",
    _INSERT.on_conflict_do_update(
        index_elements=["bot", "owner", "name"],
        set_={name: _INSERT.excluded[name] for name in _COLUMNS[3:]},
    ),
)
_GET = Statement(
    "script_memory.get",
    select(SCRIPT_MEMORY.c.value, SCRIPT_MEMORY.c.from_outside).where(
        *_THIS, SCRIPT_MEMORY.c.expires_ms.is_(None) | ~_IS_OVER
    ),
)
_DROP = Statement("script_memory.drop", delete(SCRIPT_MEMORY).where(*_THIS))
_FORGET_OF = Statement("script_memory.forget_of", delete(SCRIPT_MEMORY).where(*_OWNER, _IS_OVER))
_FORGET = Statement("script_memory.forget", delete_batch(SCRIPT_MEMORY, _IS_OVER))


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
    """Remember `value` (JSON of `size` bytes). Touches no row where the owner would then have more than so many names
    or bytes."""
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
    """The `value` and whether it is `from_outside`; no row where there is none, or none any more."""
    return _GET.query(bot=bot, owner=owner, name=name, now_ms=now_ms)


def drop(bot: str, owner: str, name: str) -> Write:
    """Forget one value."""
    return _DROP.write(bot=bot, owner=owner, name=name)


def forget_of(bot: str, owner: str, now_ms: int) -> Write:
    """Drop what has been remembered long enough, of one owner."""
    return _FORGET_OF.write(bot=bot, owner=owner, now_ms=now_ms)


def forget(now_ms: int) -> Write:
    """Drop what has been remembered long enough, of everybody."""
    return _FORGET.write(now_ms=now_ms)
