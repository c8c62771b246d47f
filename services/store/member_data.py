"""Data about members in every table: how one member's rows are erased and exported, or why a table has none.

A statement may bind `of_member` (key), `in_chat` (key; empty: all chats), `this_turn` (the turn that runs it, which
has to end normally), `before_day`, `native` and `sender_json` (the member on the HTTP platform), and `script_owner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql import Executable

from services.store.chats.chat_notes import CHAT_NOTES
from services.store.chats.chat_settings import ACTIVATIONS, CHAT_SETTINGS, GRANTS
from services.store.chats.history import HISTORY
from services.store.chats.member_links import CODES, LINKS
from services.store.chats.members import MEMBERS, OWNERS
from services.store.chats.memory import NOTES
from services.store.chats.opt_outs import OPT_OUTS
from services.store.chats.polls import poll_votes, polls
from services.store.chats.script_data import SCRIPT_MEMORY
from services.store.chats.summaries import SUMMARIES
from services.store.chats.todos import todos
from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT
from services.store.turns.audit import AUDIT
from services.store.turns.budgets import BUDGETS, NOTICE_PREFIX, USAGE_PREFIX
from services.store.turns.http_events import EVENTS
from services.store.turns.inbox import INBOX, MAY_RUN, WAITING
from services.store.turns.ledger import LEDGER
from services.store.turns.occurrences import OCCURRENCES
from services.store.turns.outbox import OUTBOX, status_key
from services.store.turns.pending import PENDING
from services.store.turns.timers import TIMERS
from services.store.turns.turn_state import ANSWERS, TURN_MEMORY

_MEMBER = bindparam("of_member", type_=TEXT)
_CHAT = bindparam("in_chat", type_=TEXT)
_TURN = bindparam("this_turn", type_=INTEGER)
_OWNER = bindparam("script_owner", type_=TEXT)
_NATIVE = bindparam("native", type_=TEXT)
_NOTHING: ColumnElement[str] = literal_column("''", TEXT)
_EMPTY_BODY: ColumnElement[str] = literal_column("'{}'", TEXT)
_IN_ALL = _CHAT == _NOTHING


class Erasure(NamedTuple):
    """A statement that deletes or blanks rows; `counted_as` names them for members, or is empty."""

    counted_as: str
    statement: Statement


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


def _here(column: ColumnElement[str]) -> ColumnElement[bool]:
    return or_(_IN_ALL, column == _CHAT)


def _own(table: Table, member: str) -> ColumnElement[bool]:
    """Rows of the chats in scope whose column `member` has the member's key."""
    return and_(table.c[member] == _MEMBER, _here(table.c.chat))


def _erased(table: Table, counted_as: str, clause: Executable, number: str = "") -> Erasure:
    return Erasure(counted_as, Statement(f"member_data.erase_{table.name}{number}", clause))


def _export(table: Table, condition: ColumnElement[bool], columns: str = "") -> Statement:
    """Export of the named columns (all by default), in a stable order."""
    chosen = [table.c[name] for name in columns.split()] or list(table.columns)
    return Statement(
        f"member_data.export_{table.name}", select(*chosen).where(condition).order_by(*table.primary_key.columns)
    )


# The running turn and the turn that asked for its confirmation.
_QUESTION = select(INBOX.c.question_id).where(INBOX.c.id == _TURN, INBOX.c.question_id.is_not(None))
_ASKING = select(PENDING.c.turn_id).where(PENDING.c.id.in_(_QUESTION))
_WAITING_TURNS = select(INBOX.c.id).where(INBOX.c.reason == WAITING)


def _is_over(turn: ColumnElement[int]) -> ColumnElement[bool]:
    return and_(turn != _TURN, turn.not_in(_ASKING), turn.not_in(_WAITING_TURNS))


_IS_OWN_TURN = _own(INBOX, "sender")
_OWN_TURNS = select(INBOX.c.id).where(_IS_OWN_TURN, _is_over(INBOX.c.id))
_FIRST = (
    select(INBOX.c.chat, func.min(INBOX.c.id).label("id")).where(_IS_OWN_TURN).group_by(INBOX.c.chat).subquery("first")
)
_CHATS = select(_FIRST.c.chat)
# A later answer to any member may repeat the member's words.
_TURNS = (
    select(INBOX.c.id)
    .join(_FIRST, _FIRST.c.chat == INBOX.c.chat)
    .where(INBOX.c.id >= _FIRST.c.id, or_(~MAY_RUN, INBOX.c.sender == _MEMBER), _is_over(INBOX.c.id))
)
_SAID = HISTORY.alias("said")
_SAID_BY_BOT = (
    select(_SAID.c.id)
    .join(_FIRST, _FIRST.c.chat == _SAID.c.chat)
    .where(_SAID.c.from_bot == literal_column("1"), _SAID.c.id >= _FIRST.c.id)
)
_OWN_MESSAGES = and_(_own(HISTORY, "sender"), HISTORY.c.from_bot == literal_column("0"))
_REPLIED = select(_SAID.c.chat, _SAID.c.native_id).where(
    _SAID.c.sender == _MEMBER, _SAID.c.from_bot == literal_column("0"), _SAID.c.native_id.is_not(None)
)
_OWN_TIMERS = select(TIMERS.c.id).where(_own(TIMERS, "owner"))
_OWN_POLLS = select(polls.c.chat, polls.c.number).where(_own(polls, "author"))
_PERSON = select(LINKS.c.person).where(LINKS.c.member == _MEMBER)
_IS_LINKED = and_(_IN_ALL, LINKS.c.person.in_(_PERSON))
_IS_CODE = and_(_IN_ALL, or_(CODES.c.member == _MEMBER, CODES.c.claimed_by == _MEMBER))
_IS_OPEN = PENDING.c.state == literal_column("'open'")
_MAY_BE_ANSWERED = PENDING.c.answered_by.in_(select(INBOX.c.id).where(MAY_RUN))
_IS_SENT = OUTBOX.c.state.in_([literal_column(f"'{state}'") for state in ("sent", "dropped", "merged")])
_NEVER_SENT = OUTBOX.c.state.in_([literal_column("'failed'"), literal_column("'held'")])
_IS_OWN_NOTE = and_(_here(NOTES.c.chat), or_(*(NOTES.c[name] == _MEMBER for name in ("author", "about", "private_to"))))
_OWNS = or_(
    SCRIPT_MEMORY.c.owner == _OWNER + literal_column("']'", TEXT),
    func.substr(SCRIPT_MEMORY.c.owner, literal_column("1"), func.length(_OWNER) + literal_column("2"))
    == _OWNER + literal_column("', '", TEXT),
)
_KINDS = ("member ", "link ")
_USED_IN_CHAT = literal_column(f"'{USAGE_PREFIX}'", TEXT) + _CHAT + literal_column("'\n'", TEXT) + _MEMBER
_COUNTS = BUDGETS.c.holder.like(literal_column(f"'{USAGE_PREFIX}%'", TEXT)) & or_(
    BUDGETS.c.holder == _USED_IN_CHAT,
    and_(
        _IN_ALL,
        func.substr(BUDGETS.c.holder, func.length(BUDGETS.c.holder) - func.length(_MEMBER))
        == literal_column("'\n'", TEXT) + _MEMBER,
    ),
)
_LIMITED = and_(
    _IN_ALL,
    or_(
        *(BUDGETS.c.holder == literal_column(f"'{kind}'", TEXT) + _MEMBER for kind in _KINDS),
        BUDGETS.c.holder.like(literal_column(f"'{NOTICE_PREFIX}%'", TEXT))
        & (func.replace(BUDGETS.c.holder, _MEMBER, _NOTHING) != BUDGETS.c.holder),
    ),
)
_IS_OWN_EVENT = and_(
    EVENTS.c.chat.in_(_CHATS),
    func.replace(EVENTS.c.body, bindparam("sender_json", type_=TEXT), _NOTHING) != EVENTS.c.body,
)
_BOT_EVENT = or_(
    *(EVENTS.c.body.like(literal_column(f'\'{{"type":"{kind}"%\'', TEXT)) for kind in ("message", "edited"))
)
_EVENT = EVENTS.alias("event")
_EVENTS_SINCE = select(_EVENT.c.id).join(_FIRST, _FIRST.c.chat == _EVENT.c.chat).where(_EVENT.c.id >= _FIRST.c.id)

MEMBER_TABLES: Sequence[MemberTable] = (
    MemberTable(
        "occurrences",
        [_erased(OCCURRENCES, "", delete(OCCURRENCES).where(OCCURRENCES.c.timer_id.in_(_OWN_TIMERS)))],
        export=_export(OCCURRENCES, OCCURRENCES.c.timer_id.in_(_OWN_TIMERS)),
    ),
    MemberTable(
        "timers",
        [
            _erased(TIMERS, "timers", delete(TIMERS).where(_own(TIMERS, "owner"))),
            _erased(TIMERS, "", update(TIMERS).where(_own(TIMERS, "removed_by")).values(removed_by=None), "_2"),
        ],
        export=_export(TIMERS, _own(TIMERS, "owner")),
    ),
    MemberTable(
        "poll_votes",
        [
            _erased(
                poll_votes,
                "votes",
                delete(poll_votes).where(
                    or_(_own(poll_votes, "member"), tuple_(poll_votes.c.chat, poll_votes.c.poll).in_(_OWN_POLLS))
                ),
            )
        ],
        export=_export(poll_votes, _own(poll_votes, "member")),
    ),
    MemberTable(
        "polls",
        [_erased(polls, "polls", delete(polls).where(_own(polls, "author")))],
        export=_export(polls, _own(polls, "author")),
    ),
    MemberTable(
        "todos",
        [_erased(todos, "todos", delete(todos).where(_own(todos, "author")))],
        export=_export(todos, _own(todos, "author")),
    ),
    MemberTable(
        "memory_notes",
        [_erased(NOTES, "notes", delete(NOTES).where(_IS_OWN_NOTE))],
        export=_export(NOTES, _own(NOTES, "author")),
    ),
    MemberTable(
        "chat_notes",
        [_erased(CHAT_NOTES, "values", delete(CHAT_NOTES).where(_own(CHAT_NOTES, "set_by")))],
        export=_export(CHAT_NOTES, and_(_own(CHAT_NOTES, "set_by"), CHAT_NOTES.c.from_member == literal_column("1"))),
    ),
    MemberTable(
        "script_memory",
        [_erased(SCRIPT_MEMORY, "values", delete(SCRIPT_MEMORY).where(_OWNS))],
        export=_export(SCRIPT_MEMORY, _OWNS),
    ),
    MemberTable(
        "turn_memory",
        [_erased(TURN_MEMORY, "values", delete(TURN_MEMORY).where(_own(TURN_MEMORY, "member")))],
        export=_export(TURN_MEMORY, _own(TURN_MEMORY, "member")),
    ),
    MemberTable(
        "members",
        [_erased(MEMBERS, "values", delete(MEMBERS).where(_IN_ALL, MEMBERS.c.member == _MEMBER))],
        export=_export(MEMBERS, and_(_IN_ALL, MEMBERS.c.member == _MEMBER)),
    ),
    # Codes before links: the person is read from the links.
    MemberTable(
        "link_codes", [_erased(CODES, "links", delete(CODES).where(_IS_CODE))], export=_export(CODES, _IS_CODE)
    ),
    MemberTable(
        "member_links", [_erased(LINKS, "links", delete(LINKS).where(_IS_LINKED))], export=_export(LINKS, _IS_LINKED)
    ),
    MemberTable(
        "grants",
        [
            _erased(GRANTS, "grants", delete(GRANTS).where(_own(GRANTS, "given_by"))),
            _erased(GRANTS, "", update(GRANTS).where(_own(GRANTS, "revoked_by")).values(revoked_by=_NOTHING), "_2"),
        ],
        export=_export(GRANTS, _own(GRANTS, "given_by")),
    ),
    MemberTable(
        "chat_settings",
        [
            _erased(
                CHAT_SETTINGS, "", update(CHAT_SETTINGS).where(_own(CHAT_SETTINGS, "set_by")).values(set_by=_NOTHING)
            )
        ],
        export=_export(CHAT_SETTINGS, _own(CHAT_SETTINGS, "set_by")),
    ),
    MemberTable(
        "activations",
        [_erased(ACTIVATIONS, "", update(ACTIVATIONS).where(_own(ACTIVATIONS, "given_by")).values(given_by=_NOTHING))],
        export=_export(ACTIVATIONS, _own(ACTIVATIONS, "given_by")),
    ),
    MemberTable(
        "budgets",
        # Today's limits hold: a limit that its member can reset is none.
        [
            _erased(
                BUDGETS,
                "usage",
                delete(BUDGETS).where(
                    or_(_COUNTS, and_(_LIMITED, BUDGETS.c.day < bindparam("before_day", type_=TEXT)))
                ),
            )
        ],
        export=_export(BUDGETS, or_(_COUNTS, _LIMITED)),
    ),
    MemberTable(
        "http_events",
        [
            _erased(EVENTS, "", delete(EVENTS).where(_IS_OWN_EVENT)),
            _erased(
                EVENTS,
                "",
                delete(EVENTS).where(EVENTS.c.id.in_(_EVENTS_SINCE), or_(_BOT_EVENT, EVENTS.c.private_to == _NATIVE)),
                "_2",
            ),
        ],
        export=_export(EVENTS, _IS_OWN_EVENT, "id chat body"),
    ),
    MemberTable(
        "summaries",
        said=[
            _erased(
                SUMMARIES, "", delete(SUMMARIES).where(or_(SUMMARIES.c.chat == _CHAT, SUMMARIES.c.chat.in_(_CHATS)))
            )
        ],
        why="written by a model from messages of several members",
    ),
    MemberTable(
        "history",
        said=[
            _erased(
                HISTORY,
                "",
                update(HISTORY)
                .where(_here(HISTORY.c.chat), tuple_(HISTORY.c.chat, HISTORY.c.reply_to).in_(_REPLIED))
                .values(reply_to_name=_NOTHING),
                "_names",
            ),
            _erased(HISTORY, "messages", delete(HISTORY).where(_OWN_MESSAGES)),
            _erased(
                HISTORY,
                "answers",
                delete(HISTORY).where(
                    HISTORY.c.from_bot == literal_column("1"),
                    or_(_own(HISTORY, "asked_by"), HISTORY.c.id.in_(_SAID_BY_BOT)),
                ),
                "_answers",
            ),
        ],
        export=_export(HISTORY, _OWN_MESSAGES),
    ),
    MemberTable(
        "turn_answers",
        said=[_erased(ANSWERS, "", delete(ANSWERS).where(ANSWERS.c.turn_id.in_(_TURNS)))],
        why="written by a model, perhaps with words of others",
    ),
    MemberTable(
        "ledger",
        said=[
            _erased(
                LEDGER,
                "calls",
                delete(LEDGER).where(
                    or_(
                        LEDGER.c.turn_id.in_(_TURNS),
                        and_(_own(LEDGER, "member"), _is_over(LEDGER.c.turn_id)),
                    )
                ),
            )
        ],
        export=_export(LEDGER, _own(LEDGER, "member"), "turn_id key chat function arguments path at_ms ended_ms code"),
    ),
    MemberTable(
        "outbox",
        [
            _erased(
                OUTBOX,
                "",
                update(OUTBOX).where(_NEVER_SENT, OUTBOX.c.turn_id.in_(_OWN_TURNS)).values(state="dropped"),
            )
        ],
        # The native ids stay, by which replies to the bot are recognised.
        said=[
            _erased(
                OUTBOX,
                "",
                update(OUTBOX)
                .where(
                    _IS_SENT,
                    or_(
                        OUTBOX.c.turn_id.in_(_TURNS),
                        and_(OUTBOX.c.turn_id == literal_column("0"), OUTBOX.c.chat.in_(_CHATS)),
                    ),
                )
                .values(body=_EMPTY_BODY),
                "_bodies",
            )
        ],
        why="messages of the bot, perhaps with words of others",
    ),
    MemberTable(
        "pending",
        [
            _erased(
                PENDING,
                "",
                delete(PENDING).where(
                    or_(_own(PENDING, "member"), PENDING.c.turn_id.in_(_OWN_TURNS)),
                    PENDING.c.id.not_in(_QUESTION),
                    PENDING.c.turn_id != _TURN,
                ),
            )
        ],
        said=[
            _erased(
                PENDING,
                "",
                delete(PENDING).where(
                    ~_IS_OPEN,
                    PENDING.c.turn_id.in_(_TURNS),
                    PENDING.c.id.not_in(_QUESTION),
                    or_(PENDING.c.answered_by.is_(None), ~_MAY_BE_ANSWERED),
                ),
                "_closed",
            )
        ],
        export=_export(PENDING, _own(PENDING, "member"), "id chat state asked_ms expires_ms"),
    ),
    MemberTable(
        "inbox",
        said=[
            _erased(INBOX, "", update(INBOX).where(_IS_OWN_TURN).values(sender_name=_NOTHING), "_names"),
            # The rest of the row recognises a redelivery. Last, because the other statements read the sender.
            _erased(
                INBOX,
                "received",
                update(INBOX)
                .where(_IS_OWN_TURN, _is_over(INBOX.c.id))
                .values(sender=_NOTHING, body=_NOTHING, detail=_NOTHING),
            ),
        ],
        export=_export(INBOX, _IS_OWN_TURN, "id chat native_id sender_name kind received_ms reason"),
    ),
    MemberTable(
        "audit",
        export=_export(AUDIT, _own(AUDIT, "actor"), "id at_ms chat action detail"),
        why="proof of changes for operators, deleted after store.days_kept",
    ),
    MemberTable(
        "page_owners",
        export=_export(OWNERS, and_(_IN_ALL, OWNERS.c.member == _MEMBER)),
        why="rights of owners of the chat page, which the operator manages",
    ),
    MemberTable("page_owner_links", why="who used a link of the operator to become owner of the chat page"),
    MemberTable(
        "opt_outs",
        export=_export(OPT_OUTS, _own(OPT_OUTS, "member")),
        why="the mark holds until /optin",
    ),
    MemberTable("basic_tools", why="scripts of the operator"),
    MemberTable("begun_chats", why="chats only"),
    MemberTable("changes", why="counters"),
    MemberTable("cursors", why="positions in the event streams of networks"),
    MemberTable("leases", why="daemons"),
    MemberTable("mcp_pins", why="definitions of tools"),
    MemberTable("script_rows", why="tables of the operator's scripts, whose rows do not say whose they are"),
)
"""One entry per table. The statements are executed in this order."""


def erasures(values: Mapping[str, Any], *, only_said: bool) -> Sequence[tuple[str, Write]]:
    """The writes that erase a member's rows, each with the name under which its rows are counted. `only_said`: only
    recorded words."""
    chosen = [one for entry in MEMBER_TABLES for one in (*(() if only_said else entry.erase), *entry.said)]
    # The rows of the inbox tell which turns are the member's, so they are last.
    return [(one.counted_as, one.statement.write(**_bound(one.statement, values))) for one in chosen]


def exports(values: Mapping[str, Any]) -> Mapping[str, Query]:
    """The queries of a member's own rows, by table."""
    queries = ((entry.table, entry.export) for entry in MEMBER_TABLES if entry.export is not None)
    return {table: statement.query(**_bound(statement, values)) for table, statement in queries}


def _bound(statement: Statement, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that the statement binds."""
    names = statement.clause.compile().params  # type: ignore[attr-defined]  # every clause here is an expression
    return {name: value for name, value in values.items() if name in names}


def _is_opted_out(table: Table, member: str) -> ColumnElement[bool]:
    in_chat = or_(OPT_OUTS.c.chat == _NOTHING, OPT_OUTS.c.chat == table.c.chat)
    return and_(OPT_OUTS.c.member == table.c[member], in_chat)


_DROP_ANSWERS = Statement("member_data.drop_answers", delete(ANSWERS).where(ANSWERS.c.turn_id == _TURN))
_DROP_RUNS = Statement("member_data.drop_runs", delete(LEDGER).where(LEDGER.c.turn_id == _TURN))
_DROP_STATE = Statement("member_data.drop_state", delete(TURN_MEMORY).where(_own(TURN_MEMORY, "member")))
_DROP_STATUS = Statement(
    "member_data.drop_status",
    update(OUTBOX).where(OUTBOX.c.key == bindparam("status_key", type_=TEXT)).values(body=_EMPTY_BODY),
)
_DROP_QUESTION = Statement(
    "member_data.drop_question",
    delete(PENDING).where(PENDING.c.id == bindparam("question", type_=INTEGER), ~_IS_OPEN),
)
_DROP_CLOSED = Statement(
    "member_data.drop_closed_questions",
    delete(PENDING).where(
        ~_IS_OPEN,
        or_(PENDING.c.answered_by.is_(None), ~_MAY_BE_ANSWERED),
        or_(
            PENDING.c.turn_id.in_(select(INBOX.c.id).join(OPT_OUTS, _is_opted_out(INBOX, "sender"))),
            exists().where(_is_opted_out(PENDING, "member")),
        ),
    ),
)


def drop_turn(turn_id: int, question_id: int, chat: str, member: str) -> list[Write]:
    """Delete what an ended turn of a member who opted out has stored, and the question that it has closed."""
    return [
        _DROP_ANSWERS.write(this_turn=turn_id),
        _DROP_RUNS.write(this_turn=turn_id),
        _DROP_STATE.write(of_member=member, in_chat=chat),
        _DROP_STATUS.write(status_key=status_key(turn_id)),
        _DROP_QUESTION.write(question=question_id),
    ]


def drop_closed_questions() -> Write:
    """Delete the closed questions of members who opted out; few rows, since each turn deletes those that it closes."""
    return _DROP_CLOSED.write()
