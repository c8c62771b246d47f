"""Polls and their votes. Polls are numbered from 1 in each chat; a member has one vote per poll."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Index, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Row, Statement, Write
from services.store.schema import INTEGER, binds, insert_numbered, integer, replacing, table, text

polls = table(
    "polls",
    text("chat", primary_key=True),
    integer("number", primary_key=True),
    text("call_key"),
    text("author"),
    text("author_name"),
    text("question"),
    text("options"),
    integer("created_ms"),
    integer("closed_ms", nullable=True),
    text("closed_by", nullable=True),
    Index("polls_call_key", "chat", "call_key", unique=True),
)
poll_votes = table(
    "poll_votes",
    text("chat", primary_key=True),
    integer("poll", primary_key=True),
    text("member", primary_key=True),
    integer("choice"),
    integer("voted_ms"),
)
_CHAT = polls.c.chat == bindparam("chat")
_OPEN = polls.c.closed_ms.is_(None)
_OLD = _CHAT & (polls.c.closed_ms < bindparam("before_ms"))
_OPEN_COUNT = select(func.count()).select_from(polls).where(_CHAT & _OPEN).scalar_subquery()
_VOTED_ON = exists().where(_CHAT & (polls.c.number == bindparam("poll")) & _OPEN)

_VALUES = ("chat", "call_key", "author", "author_name", "question", "options", "created_ms")
CREATE = Statement(
    "polls.create", insert_numbered(polls, _VALUES, _CHAT, bindparam("most_open", type_=INTEGER) > _OPEN_COUNT)
)
_NEW_VOTE = insert(poll_votes).from_select(
    list(binds(poll_votes)), select(*binds(poll_votes).values()).where(_VOTED_ON)
)
VOTE = Statement("polls.vote", replacing(poll_votes, _NEW_VOTE))
CLOSE = Statement(
    "polls.close",
    update(polls)
    .where(_CHAT & (polls.c.number == bindparam("poll")) & _OPEN)
    .values(closed_ms=bindparam("at_ms"), closed_by=bindparam("closing_key")),
)
FORGET_VOTES = Statement(
    "polls.forget_votes",
    delete(poll_votes).where(
        (poll_votes.c.chat == bindparam("chat")) & poll_votes.c.poll.in_(select(polls.c.number).where(_OLD))
    ),
)
FORGET = Statement("polls.forget", delete(polls).where(_OLD))
ALL = Statement("polls.all", select(polls).where(_CHAT).order_by(polls.c.number))
TALLY = Statement(
    "polls.tally",
    select(poll_votes.c.choice, func.count().label("votes"))
    .where((poll_votes.c.chat == bindparam("chat")) & (poll_votes.c.poll == bindparam("poll")))
    .group_by(poll_votes.c.choice),
)


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll of a chat, without its votes."""

    number: int
    question: str
    options: tuple[str, ...]
    author: str
    """Key of the member who created it."""
    author_name: str
    call_key: str
    """Key of the call that created it."""
    closed_by: str | None
    """Key of the call that closed it; None while it is open."""

    @property
    def is_open(self) -> bool:
        """Whether it accepts votes, that is, was not closed."""
        return self.closed_by is None


def create(options: Sequence[str], **values: str | int) -> Write:
    """Add a poll with the chat's next number. Touches no row if the call has added it before, if `most_open` are open,
    or if a concurrent poll took the number."""
    return CREATE.write(**values, options=json.dumps(list(options), ensure_ascii=False))


def vote(chat: str, poll: int, *, member: str, choice: int, at_ms: int) -> Write:
    """Set the member's vote, replacing an earlier one. `choice` is the option's index. Touches no row if the poll is
    closed or does not exist."""
    return VOTE.write(chat=chat, poll=poll, member=member, choice=choice, voted_ms=at_ms)


def close(chat: str, poll: int, *, call_key: str, at_ms: int) -> Write:
    """Close a poll, recording the call. Touches no row if it is closed or does not exist."""
    return CLOSE.write(chat=chat, poll=poll, closing_key=call_key, at_ms=at_ms)


def forget(chat: str, before_ms: int) -> Sequence[Write]:
    """Delete the polls that were closed before that time, with their votes."""
    return [FORGET_VOTES.write(chat=chat, before_ms=before_ms), FORGET.write(chat=chat, before_ms=before_ms)]


def everything(chat: str) -> Query:
    """All columns of all polls of the chat, open and closed, by number."""
    return ALL.query(chat=chat)


def tally(chat: str, poll: int) -> Query:
    """Number of `votes` by `choice`; choices without votes are left out."""
    return TALLY.query(chat=chat, poll=poll)


def poll(row: Row) -> Poll:
    """Convert a row of `everything` to a Poll."""
    copied = {name: row[name] for name in ("number", "question", "author", "author_name", "call_key", "closed_by")}
    return Poll(options=tuple(json.loads(row["options"])), **copied)


def counts(rows: Sequence[Row]) -> Mapping[int, int]:
    """Votes by choice, from the rows of `tally`; choices without votes are missing."""
    return {row["choice"]: row["votes"] for row in rows}
