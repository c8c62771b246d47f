"""Messages of members and of the bot in each chat, addressed or not, as long as the settings keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Index, and_, bindparam, delete, func, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import TEXT, beyond_newest, binds, delete_batch, integer, table, text
from services.store.turns.inbox import INBOX

OUTSIDE = "outside"
"""Sender of bot messages that may contain text from others: the web, files, or other members."""
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
    text("asked_by", nullable=True),
    text("thread", nullable=True),
)
Index("history_by_chat", HISTORY.c.chat, HISTORY.c.id)

_BINDS = binds(HISTORY)
_THREAD_OF_REPLIED = (
    select(HISTORY.c.thread)
    .where(HISTORY.c.chat == INBOX.c.chat, HISTORY.c.native_id == _BINDS["reply_to"])
    .order_by(HISTORY.c.id.desc())
    .limit(1)
    .correlate(INBOX)
    .scalar_subquery()
)
_THREAD_OF_ANSWERED = (
    select(HISTORY.c.thread).where(HISTORY.c.id == bindparam("answers"), HISTORY.c.chat == _BINDS["chat"])
).scalar_subquery()
_NOTHING: ColumnElement[str] = literal_column("''")
_OF_MEMBER: dict[str, Any] = {
    **{name: INBOX.c[name] for name in ("id", "chat", "native_id", "sender", "sender_name")},
    **{name: _BINDS[name] for name in ("text", "at_ms")},
    "asked_by": INBOX.c.sender,
    "from_bot": 0,
    "change": _NOTHING,
}
_OF_BOT = {
    **{name: _BINDS[name] for name in ("id", "chat", "sender", "sender_name", "text", "at_ms", "asked_by", "reply_to")},
    "from_bot": 1,
    "reply_to_name": _NOTHING,
    "change": _NOTHING,
    "thread": _THREAD_OF_ANSWERED,
}
_BOT_VALUES = ("id", "chat", "sender", "sender_name", "text", "at_ms", "asked_by", "answers", "reply_to")


def _member_statement(name: str, values: Mapping[str, Any], *more: str) -> Statement:
    # Chat and sender are read from the inbox. A duplicate has no row with this id, so nothing is written.
    source = select(*values.values()).where(INBOX.c.id == _BINDS["id"])
    return Statement(name, insert(HISTORY).from_select(list(values), source), takes=("text", "at_ms", *more, "id"))


_ADD_MEMBER_MESSAGE = _member_statement(
    "history.add_member_message", {**_OF_MEMBER, "reply_to_name": _NOTHING, "thread": INBOX.c.native_id}
)
# Only replies need this look-up; it scans from the newest row, because an index would slow down every message.
_ADD_MEMBER_REPLY = _member_statement(
    "history.add_member_reply",
    {
        **_OF_MEMBER,
        "reply_to": _BINDS["reply_to"],
        "reply_to_name": _BINDS["reply_to_name"],
        "thread": func.coalesce(_THREAD_OF_REPLIED, _BINDS["reply_to"]),
    },
    *("reply_to", "reply_to_name"),
)
_ADD_BOT_MESSAGE = Statement("history.add_bot_message", insert(HISTORY).values(_OF_BOT), takes=_BOT_VALUES)
# The scope of a look-up: the whole chat, one member's conversation with the bot, or one chain of replies.
_IN_SCOPE = or_(
    bindparam("scope", type_=TEXT) == "chat",
    and_(bindparam("scope", type_=TEXT) == "member", HISTORY.c.asked_by == bindparam("part")),
    and_(bindparam("scope", type_=TEXT) == "thread", HISTORY.c.thread == bindparam("part")),
)
_SHOWN = (
    HISTORY.c.id,
    HISTORY.c.native_id,
    HISTORY.c.sender,
    HISTORY.c.sender_name,
    HISTORY.c.text,
    HISTORY.c.at_ms,
    HISTORY.c.from_bot,
    HISTORY.c.reply_to_name,
    HISTORY.c.change,
)
_RECENT_OF_CHAT = (
    select(*_SHOWN)
    .where(
        HISTORY.c.chat == bindparam("chat"),
        # The bot's answers to earlier messages have later ids.
        or_(HISTORY.c.id < bindparam("before"), HISTORY.c.from_bot == 1),
        HISTORY.c.change != "deleted",
    )
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count"))
)
_NEWEST_OF_MEMBERS = Statement(
    "history.newest_of_members",
    select(func.max(HISTORY.c.id).label("id")).where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.from_bot == 0),
)
_RECENT = Statement("history.recent", _RECENT_OF_CHAT)
_RECENT_IN = Statement("history.recent_in", _RECENT_OF_CHAT.where(_IN_SCOPE))
_BETWEEN = Statement(
    "history.between",
    select(*_SHOWN)
    .where(
        HISTORY.c.chat == bindparam("chat"),
        HISTORY.c.id > bindparam("after"),
        HISTORY.c.id < bindparam("before"),
        _IN_SCOPE,
    )
    .order_by(HISTORY.c.id)
    .limit(bindparam("count")),
)
_ASKED_AT = (
    select(func.min(HISTORY.c.id))
    .where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.native_id == bindparam("native_id"))
    .scalar_subquery()
)
_NEWEST = 2**62
_PERIOD = Statement(
    "history.period",
    select(*_SHOWN)
    .where(
        HISTORY.c.chat == bindparam("chat"),
        HISTORY.c.at_ms >= bindparam("since_ms"),
        HISTORY.c.at_ms < bindparam("until_ms"),
        HISTORY.c.id < func.coalesce(_ASKED_AT, _NEWEST),
        HISTORY.c.change != "deleted",
        # Commands are addressed to the bot, not to the members.
        func.substr(HISTORY.c.text, 1, 1).not_in(["", "/"]),
    )
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count")),
)
_THREAD = Statement("history.thread", select(HISTORY.c.thread).where(HISTORY.c.id == bindparam("row_id")))
# Scans the chat's rows: changes are too rare to justify an index that would slow down every message.
_EDIT = Statement(
    "history.edit",
    update(HISTORY)
    .where(HISTORY.c.chat == bindparam("in_chat"), HISTORY.c.native_id == bindparam("with_id"))
    .values(text=bindparam("new_text"), change=bindparam("new_change")),
)
_SENT = Statement(
    "history.sent",
    update(HISTORY).where(HISTORY.c.id == bindparam("row_id")).values(native_id=bindparam("new_native_id")),
    takes=("new_native_id", "row_id"),
)
# By time, so that a run that is repeated after a crash deletes no newer messages.
_UP_TO = (HISTORY.c.chat == bindparam("chat"), HISTORY.c.at_ms <= bindparam("until_ms"))
_FORGET = Statement("history.forget", delete(HISTORY).where(*_UP_TO))
_COUNT = Statement("history.count", select(func.count().label("count")).select_from(HISTORY).where(*_UP_TO))
_CHATS_SINCE = Statement(
    "history.chats_since", select(HISTORY.c.chat).distinct().where(HISTORY.c.id >= bindparam("first_id"))
)
_PRUNE = Statement("history.prune", delete_batch(HISTORY, *beyond_newest(HISTORY)))


def add_member_message(*, id: int, text: str, at_ms: int, reply_to: str | None, reply_to_name: str) -> Write:
    """Add a member's message, in the unit that accepts it. `id` is that of its inbox row, which has chat and sender;
    without that row (a duplicate) nothing is written."""
    if reply_to is None:
        return _ADD_MEMBER_MESSAGE.write_row((text, at_ms, id))
    return _ADD_MEMBER_REPLY.write_row((text, at_ms, reply_to, reply_to_name, id))


def add_bot_message(
    *,
    id: int,
    chat: str,
    sender_name: str,
    text: str,
    at_ms: int,
    reply_to: str | None,
    asked_by: str,
    answers: int,
    outside: bool = False,
) -> Write:
    """Add a message of the bot, in the unit that adds it to the outbox. `answers`: row of the answered message, which
    was sent by `asked_by`. `outside`: it may contain text from others."""
    sender = OUTSIDE if outside else ""
    return _ADD_BOT_MESSAGE.write_row((id, chat, sender, sender_name, text, at_ms, asked_by, answers, reply_to))


def edited(chat: str, native_id: str, text: str) -> Write:
    """Replace the text of a stored message that a member edited, and mark it `edited`."""
    return _EDIT.write(in_chat=chat, with_id=native_id, new_text=text, new_change="edited")


def deleted(chat: str, native_id: str) -> Write:
    """Mark a stored message that a member deleted as `deleted`, and erase its text; the row stays."""
    return _EDIT.write(in_chat=chat, with_id=native_id, new_text="", new_change="deleted")


def sent(id: int, native_id: str) -> Write:
    """Set the network's id of a message that the bot sent."""
    return _SENT.write_row((native_id, id))


def newest_of_members(chat: str) -> Query:
    """The highest `id` of the messages of members in the chat, as one row; null without one."""
    return _NEWEST_OF_MEMBERS.query(chat=chat)


def recent(chat: str, before: int, count: int) -> Query:
    """The last `count` messages of `chat` before the row `before`, newest first, and the bot's messages since; without
    deleted ones."""
    return _RECENT.query(chat=chat, before=before, count=count)


def recent_in(chat: str, scope: str, part: str, before: int, count: int) -> Query:
    """`recent`, limited to `scope`: `member` or `thread`, with `part` naming which one."""
    return _RECENT_IN.query(chat=chat, scope=scope, part=part, before=before, count=count)


def between(chat: str, scope: str, part: str, after: int, before: int, count: int) -> Query:
    """The rows of `chat` between two ids (both excluded), at most `count`, oldest first, with `change`; deleted
    messages are included."""
    return _BETWEEN.query(chat=chat, scope=scope, part=part, after=after, before=before, count=count)


def period(chat: str, since_ms: int, until_ms: int, before_native_id: str, count: int) -> Query:
    """The last `count` messages of `chat` in that period (`until_ms` excluded), newest first, without commands and
    deleted ones; only those before the message `before_native_id`, if it is stored."""
    return _PERIOD.query(chat=chat, since_ms=since_ms, until_ms=until_ms, native_id=before_native_id, count=count)


def count_until(chat: str, until_ms: int) -> Query:
    """Number of stored messages of `chat` that were sent by `until_ms` (included), as `count`."""
    return _COUNT.query(chat=chat, until_ms=until_ms)


def forget_until(chat: str, until_ms: int) -> Write:
    """Delete the messages that `count_until` counts."""
    return _FORGET.write(chat=chat, until_ms=until_ms)


def thread(id: int) -> Query:
    """The `thread` of a row: the native id of the first message of its chain of replies; no row if it was deleted."""
    return _THREAD.query(row_id=id)


def chats_since(first_id: int) -> Query:
    """The `chat` keys of the rows with ids from `first_id` on."""
    return _CHATS_SINCE.query(first_id=first_id)


def prune(chat: str, keep: int) -> Write:
    """Delete a batch (see `schema.delete_batch`) of the messages of `chat` beyond the newest `keep`."""
    return _PRUNE.write(chat=chat, keep=keep)
