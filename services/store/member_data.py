"""Data about members in every table: how one member's rows are erased and exported, or why a table has none.

A statement may bind `of_member` (key), `in_chat` (key; empty: all chats), `this_turn` (the turn that runs it, which
has to end normally), `before_day`, `native` and `sender_json` (the member on the HTTP platform), and `script_owner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, literal_column, or_, select, tuple_, update
from sqlalchemy.sql import Executable

from services.store.all_tables import all_tables
from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, bound, write_bound
from services.store.turns.inbox import INBOX, MAY_RUN, WAITING
from services.store.turns.outbox import OUTBOX, status_key

_TABLES = all_tables().tables
_ANSWERS, _EVENTS, _HISTORY, _LEDGER = (_TABLES[one] for one in ("turn_answers", "http_events", "history", "ledger"))
_LINKS, _PENDING, _TIMERS, _VOTES = (_TABLES[one] for one in ("member_links", "pending", "timers", "poll_votes"))
_MEMBER, _CHAT = bindparam("of_member", type_=TEXT), bindparam("in_chat", type_=TEXT)
_TURN, _OWNER = bindparam("this_turn", type_=INTEGER), bindparam("script_owner", type_=TEXT)
Erasure = tuple[str, Statement]
"""What its rows are called in the counts for members (empty: not counted), and the statement."""


class MemberTable(NamedTuple):
    """What a table holds about members."""

    table: str
    erase: Sequence[Erasure] = ()
    """In `/forget me`."""
    said: Sequence[Erasure] = ()
    """In `/forget me` and `/optout`: recorded words of the member, and of the bot where it may repeat them."""
    export: Statement | None = None
    """The member's own rows, without words of others."""
    why: str = ""
    """Why nothing is erased or exported."""


def _own(table: str, member: str) -> ColumnElement[bool]:
    """Rows of the chats in scope whose column `member` has the member's key."""
    columns = _TABLES[table].c
    return and_(columns[member] == _MEMBER, or_(_IN_ALL, columns["chat"] == _CHAT))


def _erased(counted_as: str, clause: Executable) -> Erasure:
    return counted_as, Statement("member_data.erase", clause)


def _export(table: str, condition: ColumnElement[bool], columns: str = "") -> Statement:
    """Export of the named columns (all by default), in a stable order."""
    found = _TABLES[table]
    chosen = [found.c[name] for name in columns.split()] or list(found.c)
    return Statement(f"member_data.{table}", select(*chosen).where(condition).order_by(*found.primary_key.columns))


def _owned(table: str, rows: str | ColumnElement[bool], counted_as: str = "", *, signed: str = "") -> MemberTable:
    """Table whose `rows`, by a condition or the column with the member's key, are deleted. In the other rows the key is
    erased from the column `signed`."""
    condition = _own(table, rows) if isinstance(rows, str) else rows
    deleted = _erased(counted_as, delete(_TABLES[table]).where(condition))
    return MemberTable(table, [deleted, *_unsigned(table, signed)], export=_export(table, condition))


def _unsigned(table: str, signed: str) -> list[Erasure]:
    return [_erased("", update(_TABLES[table]).where(_own(table, signed)).values({signed: ""}))] if signed else []


def _marked(table: str, member: str) -> MemberTable:
    """Table of a chat's own data, which stays without the key of the member who set it."""
    return MemberTable(table, _unsigned(table, member), export=_export(table, _own(table, member)))


_IN_ALL = literal_column("''", TEXT) == _CHAT
# The running turn, and the turn that asked for its confirmation, have to end.
_QUESTION = select(INBOX.c.question_id).where(INBOX.c.id == _TURN, INBOX.c.question_id.is_not(None))
_NOT_OVER = (
    select(_PENDING.c.turn_id).where(_PENDING.c.id.in_(_QUESTION)),
    select(INBOX.c.id).where(INBOX.c.reason == WAITING),
)


def _is_over(turn: ColumnElement[int]) -> ColumnElement[bool]:
    return and_(turn != _TURN, *(turn.not_in(turns) for turns in _NOT_OVER))


_IS_OWN_TURN = _own("inbox", "sender")
_OWN_TURNS = select(INBOX.c.id).where(_IS_OWN_TURN, _is_over(INBOX.c.id))
_FIRST = (
    select(INBOX.c.chat, func.min(INBOX.c.id).label("id")).where(_IS_OWN_TURN).group_by(INBOX.c.chat).subquery("first")
)
_CHATS = select(_FIRST.c.chat)
# Every later answer of the bot may repeat the member's words.
_TURNS = (
    select(INBOX.c.id)
    .join(_FIRST, _FIRST.c.chat == INBOX.c.chat)
    .where(INBOX.c.id >= _FIRST.c.id, or_(~MAY_RUN, INBOX.c.sender == _MEMBER), _is_over(INBOX.c.id))
)
_SAID, _SENT = _HISTORY.alias("said"), _EVENTS.alias("event")
_FROM_BOT = _HISTORY.c.from_bot == 1
_SAID_SINCE = select(_SAID.c.id).join(_FIRST, _FIRST.c.chat == _SAID.c.chat).where(_SAID.c.id >= _FIRST.c.id)
_SENT_SINCE = select(_SENT.c.id).join(_FIRST, _FIRST.c.chat == _SENT.c.chat).where(_SENT.c.id >= _FIRST.c.id)
_NAMES = select(INBOX.c.chat, INBOX.c.sender_name).where(_IS_OWN_TURN)
_IS_MESSAGE = and_(_own("history", "sender"), ~_FROM_BOT)
_OF_TIMER = _TABLES["occurrences"].c.timer_id.in_(select(_TIMERS.c.id).where(_own("timers", "owner")))
_POLLS = select(_TABLES["polls"].c.chat, _TABLES["polls"].c.number).where(_own("polls", "author"))
_IN_OWN_POLL = tuple_(_VOTES.c.chat, _VOTES.c.poll).in_(_POLLS)
_IS_NOTE = or_(*(_own("memory_notes", column) for column in ("author", "about", "private_to")))
_IS_CODE = and_(_IN_ALL, or_(*(_TABLES["link_codes"].c[one] == _MEMBER for one in ("member", "claimed_by"))))
_IS_LINKED = and_(_IN_ALL, _LINKS.c.person.in_(select(_LINKS.c.person).where(_LINKS.c.member == _MEMBER)))
_KEPT_FOR = _TABLES["script_memory"].c.owner
_LENGTH = func.length(_OWNER) + 2
_IS_VALUE = or_(_OWNER + "]" == _KEPT_FOR, func.substr(_KEPT_FOR, 1, _LENGTH) == _OWNER + ", ")
_HOLDER, _DAY = _TABLES["budgets"].c.holder, _TABLES["budgets"].c.day
_END_OF_HOLDER = func.substr(_HOLDER, func.length(_HOLDER) - func.length(_MEMBER))
_IS_COUNT = or_(
    "usage " + _CHAT + "\n" + _MEMBER == _HOLDER,
    and_(_IN_ALL, _HOLDER.like("usage %"), "\n" + _MEMBER == _END_OF_HOLDER),
)
_IS_LIMIT = and_(
    _IN_ALL,
    or_(
        _HOLDER.in_([kind + _MEMBER for kind in ("member ", "link ", "rate member ")]),
        and_(_HOLDER.like("told %"), func.replace(_HOLDER, _MEMBER, "") != _HOLDER),
    ),
)
_FILES = _TABLES["http_files"]
_IS_FILE = tuple_(_FILES.c.chat, _FILES.c.native_id).in_(select(INBOX.c.chat, INBOX.c.native_id).where(_IS_OWN_TURN))
_SENDER = bindparam("sender_json", type_=TEXT)
_IS_EVENT = and_(_EVENTS.c.chat.in_(_CHATS), func.replace(_EVENTS.c.body, _SENDER, "") != _EVENTS.c.body)
_IS_ANSWER = or_(
    _EVENTS.c.private_to == bindparam("native"),
    *(_EVENTS.c.body.like(f'{{"type":"{kind}"%') for kind in ("message", "edited")),
)
_IS_OPEN = _PENDING.c.state == "open"
_IS_USED = ~_PENDING.c.answered_by.in_(select(INBOX.c.id).where(MAY_RUN)) | _PENDING.c.answered_by.is_(None)
_IS_SENT = OUTBOX.c.state.in_(["sent", "dropped", "merged"])
_OF_OTHERS = or_(OUTBOX.c.turn_id.in_(_TURNS), and_(OUTBOX.c.turn_id == 0, OUTBOX.c.chat.in_(_CHATS)))
_NEVER_SENT = and_(OUTBOX.c.state.in_(["failed", "held"]), OUTBOX.c.turn_id.in_(_OWN_TURNS))

_NO_SUMMARY = _erased("", delete(_TABLES["summaries"]).where(_TABLES["summaries"].c.chat.in_(_CHATS)))
_IS_REPLY = tuple_(_HISTORY.c.chat, _HISTORY.c.reply_to_name).in_(_NAMES)
_IS_REPEATED = and_(_FROM_BOT, _own("history", "asked_by") | _HISTORY.c.id.in_(_SAID_SINCE))
_NO_MESSAGES = (
    _erased("", update(_HISTORY).where(_IS_REPLY).values(reply_to_name="")),
    _erased("messages", delete(_HISTORY).where(_IS_MESSAGE)),
    _erased("answers", delete(_HISTORY).where(_IS_REPEATED)),
)
_NO_ANSWERS = _erased("", delete(_ANSWERS).where(_ANSWERS.c.turn_id.in_(_TURNS)))
_IS_RUN = _LEDGER.c.turn_id.in_(_TURNS) | (_own("ledger", "member") & _is_over(_LEDGER.c.turn_id))
_RUN_FACTS = "turn_id key chat function arguments path at_ms ended_ms code"
_IS_ASKED = and_(_own("pending", "member") | _PENDING.c.turn_id.in_(_OWN_TURNS), _PENDING.c.id.not_in(_QUESTION))
_NO_QUESTIONS = _erased("", delete(_PENDING).where(~_IS_OPEN, _PENDING.c.turn_id.in_(_TURNS), _IS_USED))
_NO_EVENTS = delete(_EVENTS).where(_IS_EVENT | (_EVENTS.c.id.in_(_SENT_SINCE) & _IS_ANSWER))
_NO_BODIES = _erased("", update(OUTBOX).where(_IS_SENT, _OF_OTHERS).values(body="{}"))
_NO_SENDER = (
    _erased("", update(INBOX).where(_IS_OWN_TURN).values(sender_name="")),
    _erased("received", update(INBOX).where(_IS_OWN_TURN, _is_over(INBOX.c.id)).values(sender="", body="", detail="")),
)
_RECEIVED = _export("inbox", _IS_OWN_TURN, "id chat native_id sender_name kind received_ms reason")
_ASKED = _export("pending", _own("pending", "member"), "id chat state asked_ms expires_ms")
_USED = _export("budgets", _IS_COUNT | _IS_LIMIT)
# Today's limits stay, because a member could reset them otherwise.
_NO_USE = delete(_TABLES["budgets"]).where(_IS_COUNT | (_IS_LIMIT & (bindparam("before_day") > _DAY)))

MEMBER_TABLES: Sequence[MemberTable] = (
    _owned("occurrences", _OF_TIMER),
    _owned("timers", "owner", "timers", signed="removed_by"),
    MemberTable(
        "poll_votes",
        [_erased("votes", delete(_VOTES).where(_own("poll_votes", "member") | _IN_OWN_POLL))],
        export=_export("poll_votes", _own("poll_votes", "member")),
    ),
    _owned("polls", "author", "polls"),
    _owned("todos", "author", "todos"),
    _owned("memory_notes", _IS_NOTE, "notes"),
    _owned("chat_notes", "set_by", "values"),
    _owned("script_memory", _IS_VALUE, "values"),
    _owned("turn_memory", "member", "values"),
    _owned("members", and_(_IN_ALL, _TABLES["members"].c.member == _MEMBER), "values"),
    _owned("link_codes", _IS_CODE, "links"),
    _owned("member_links", _IS_LINKED, "links"),
    _owned("grants", "given_by", "grants", signed="revoked_by"),
    _marked("chat_settings", "set_by"),
    _marked("activations", "given_by"),
    MemberTable("budgets", [_erased("usage", _NO_USE)], export=_USED),
    MemberTable("http_events", [_erased("", _NO_EVENTS)], export=_export("http_events", _IS_EVENT, "id chat body")),
    MemberTable(
        "http_files",
        said=[_erased("files", delete(_FILES).where(_IS_FILE))],
        export=_export("http_files", _IS_FILE, "chat native_id name media_type"),
    ),
    MemberTable("summaries", said=[_NO_SUMMARY], why="written by a model from messages of several members"),
    MemberTable("history", said=_NO_MESSAGES, export=_export("history", _IS_MESSAGE)),
    MemberTable("turn_answers", said=[_NO_ANSWERS], why="written by a model, perhaps with words of others"),
    MemberTable(
        "ledger",
        said=[_erased("", delete(_LEDGER).where(_IS_RUN))],
        export=_export("ledger", _own("ledger", "member"), _RUN_FACTS),
    ),
    MemberTable(
        "outbox",
        [_erased("", update(OUTBOX).where(_NEVER_SENT).values(state="dropped"))],
        said=[_NO_BODIES],
        why="messages of the bot, perhaps with words of others; native ids stay, by which replies are recognised",
    ),
    MemberTable("pending", [_erased("", delete(_PENDING).where(_IS_ASKED))], said=[_NO_QUESTIONS], export=_ASKED),
    # Last, because the other statements read the sender. The rest of a row recognises a redelivery.
    MemberTable("inbox", said=_NO_SENDER, export=_RECEIVED),
    MemberTable("audit", export=_export("audit", _own("audit", "actor")), why="proof of changes for operators"),
    MemberTable("opt_outs", export=_export("opt_outs", _own("opt_outs", "member")), why="holds until /optin"),
    MemberTable("page_owners", why="rights on the chat page, which the operator manages"),
    MemberTable("page_owner_links", why="who became owner of the chat page by a link of the operator"),
    MemberTable("basic_tools", why="scripts of the operator"),
    MemberTable("begun_chats", why="chats only"),
    MemberTable("chat_documents", why="expenses, sign-ups and shopping lists belong to all members of the chat"),
    MemberTable("changes", why="counters"),
    MemberTable("cursors", why="positions in the event streams of networks"),
    MemberTable("desk_accounts", why="operators' accounts, which the owners of the desk manage"),
    MemberTable("desk_sessions", why="operators' accounts, which the owners of the desk manage"),
    MemberTable("cluster_processes", why="processes"),
    MemberTable("cluster_requests", why="requests between processes, deleted within a minute"),
    MemberTable("mcp_pins", why="definitions of tools"),
    MemberTable("script_rows", why="tables of the operator's scripts, whose rows do not say whose they are"),
)
"""One entry per table. The statements are executed in this order."""


def erasures(values: Mapping[str, Any], *, only_said: bool) -> Sequence[tuple[str, Write]]:
    """The writes that erase a member's rows, each with the name under which its rows are counted. `only_said`: only
    recorded words."""
    chosen = [one for entry in MEMBER_TABLES for one in (*(() if only_said else entry.erase), *entry.said)]
    return [(name, write_bound(statement, values)) for name, statement in chosen]


def exports(values: Mapping[str, Any]) -> Mapping[str, Query]:
    """The queries of a member's own rows, by table."""
    queries = ((entry.table, entry.export) for entry in MEMBER_TABLES if entry.export is not None)
    return {table: statement.query(**bound(statement, values)) for table, statement in queries}


_OPTED_OUT = select(_TABLES["opt_outs"].c.member)
_BY_OPTED_OUT = select(INBOX.c.id).where(INBOX.c.sender.in_(_OPTED_OUT))
_IS_UNRECORDED = _PENDING.c.turn_id.in_(_BY_OPTED_OUT) | _PENDING.c.member.in_(_OPTED_OUT)
_CLOSED = Statement("member_data.drop_closed", delete(_PENDING).where(~_IS_OPEN, _IS_USED, _IS_UNRECORDED))
_STATUS, _ANSWERED = bindparam("status", type_=TEXT), bindparam("answered", type_=INTEGER)
_OF_TURN = (
    Statement("member_data.drop_answers", delete(_ANSWERS).where(_ANSWERS.c.turn_id == _TURN)),
    Statement("member_data.drop_runs", delete(_LEDGER).where(_LEDGER.c.turn_id == _TURN)),
    Statement("member_data.drop_state", delete(_TABLES["turn_memory"]).where(_own("turn_memory", "member"))),
    Statement("member_data.drop_status", update(OUTBOX).where(OUTBOX.c.key == _STATUS).values(body="{}")),
    Statement("member_data.drop_question", delete(_PENDING).where(_PENDING.c.id == _ANSWERED, ~_IS_OPEN)),
)


def drop_turn(turn_id: int, answered: int, chat: str, member: str) -> list[Write]:
    """Delete what an ended turn of a member who opted out has stored, and the question with the id `answered`."""
    values = {"this_turn": turn_id, "answered": answered, "in_chat": chat, "of_member": member}
    return [write_bound(one, values | {"status": status_key(turn_id)}) for one in _OF_TURN]


def drop_closed_questions() -> Write:
    """Delete the closed questions of members who opted out; each turn deletes those that it closes."""
    return _CLOSED.write()
