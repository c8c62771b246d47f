"""What was said in each chat, by members and by the bot: addressed or not, as far back as the settings keep it."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, delete, exists, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.inbox import INBOX
from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

HISTORY = table(
    "history",
    integer("id", primary_key=True),
    text("chat"),
    text("native_id", nullable=True),
    text("sender"),
    text("sender_name"),
    text("text"),
    integer("at_ms"),
    integer("from_bot"),
    text("reply_to", nullable=True),
    text("reply_to_name"),
    text("change"),
)
Index("history_by_chat", HISTORY.c.chat, HISTORY.c.id)
Index("history_by_native_id", HISTORY.c.chat, HISTORY.c.native_id)

_COLUMNS = [column.name for column in HISTORY.columns]
_BINDS = {name: bindparam(name, type_=HISTORY.c[name].type) for name in _COLUMNS}
_SAID = Statement("history.said", insert(HISTORY).values(_BINDS))
# For a duplicate there is no inbox row of this id, so nothing is written.
_HEARD = Statement(
    "history.heard",
    insert(HISTORY).from_select(
        _COLUMNS, select(*_BINDS.values()).where(exists().where(INBOX.c.id == bindparam("inbox_id")))
    ),
)
_RECENT = Statement(
    "history.recent",
    select(
        HISTORY.c.id,
        HISTORY.c.native_id,
        HISTORY.c.sender,
        HISTORY.c.sender_name,
        HISTORY.c.text,
        HISTORY.c.at_ms,
        HISTORY.c.from_bot,
        HISTORY.c.reply_to_name,
    )
    .where(
        HISTORY.c.chat == bindparam("chat"),
        # The bot's answers to what was said before have later ids.
        or_(HISTORY.c.id < bindparam("before"), HISTORY.c.from_bot == literal_column("1")),
        HISTORY.c.change != literal_column("'deleted'"),
    )
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count")),
)
_FIND = Statement(
    "history.find",
    select(HISTORY.c.id, HISTORY.c.sender_name, HISTORY.c.text, HISTORY.c.from_bot)
    .where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.native_id == bindparam("native_id"))
    .order_by(HISTORY.c.id.desc())
    .limit(literal_column("1")),
)
_EDIT = Statement(
    "history.edit",
    update(HISTORY)
    .where(HISTORY.c.chat == bindparam("in_chat"), HISTORY.c.native_id == bindparam("with_id"))
    .values(text=bindparam("new_text"), change=bindparam("new_change")),
)
_SENT = Statement(
    "history.sent",
    update(HISTORY).where(HISTORY.c.id == bindparam("row_id")).values(native_id=bindparam("new_native_id")),
)
_OLDEST_KEPT = (
    select(HISTORY.c.id)
    .where(HISTORY.c.chat == bindparam("chat"))
    .order_by(HISTORY.c.id.desc())
    .limit(literal_column("1"))
    .offset(bindparam("keep"))
    .scalar_subquery()
)
_PRUNE = Statement(
    "history.prune", delete(HISTORY).where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.id <= _OLDEST_KEPT)
)


def heard(
    *,
    id: int,
    inbox_id: int,
    chat: str,
    native_id: str,
    sender: str,
    sender_name: str,
    said: str,
    at_ms: int,
    reply_to: str | None,
    reply_to_name: str,
) -> Write:
    """A member's message, in the unit that accepts it: written only when the inbox took it."""
    return _HEARD.write(
        id=id,
        inbox_id=inbox_id,
        chat=chat,
        native_id=native_id,
        sender=sender,
        sender_name=sender_name,
        text=said,
        at_ms=at_ms,
        from_bot=0,
        reply_to=reply_to,
        reply_to_name=reply_to_name,
        change="",
    )


def said(*, id: int, chat: str, sender: str, sender_name: str, text: str, at_ms: int, reply_to: str | None) -> Write:
    """A message of the bot's own, in the unit that puts it into the outbox."""
    return _SAID.write(
        id=id,
        chat=chat,
        native_id=None,
        sender=sender,
        sender_name=sender_name,
        text=text,
        at_ms=at_ms,
        from_bot=1,
        reply_to=reply_to,
        reply_to_name="",
        change="",
    )


def edited(chat: str, native_id: str, text: str) -> Write:
    """A member changed what they said."""
    return _EDIT.write(in_chat=chat, with_id=native_id, new_text=text, new_change="edited")


def deleted(chat: str, native_id: str) -> Write:
    """A member took back what they said: the text is forgotten."""
    return _EDIT.write(in_chat=chat, with_id=native_id, new_text="", new_change="deleted")


def sent(id: int, native_id: str) -> Write:
    """The network's own id of a message that the bot sent."""
    return _SENT.write(row_id=id, new_native_id=native_id)


def recent(chat: str, before: int, count: int) -> Query:
    """The last `count` messages of `chat` before the row `before`, newest first; and what the bot said since."""
    return _RECENT.query(chat=chat, before=before, count=count)


def find(chat: str, native_id: str) -> Query:
    """The message of `chat` with the network's id `native_id`."""
    return _FIND.query(chat=chat, native_id=native_id)


def prune(chat: str, keep: int) -> Write:
    """Forget all but the newest `keep` messages of `chat`."""
    return _PRUNE.write(chat=chat, keep=keep)
