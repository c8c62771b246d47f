"""tables of release 0.1.0"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = '9c4e1f7a2d35'
down_revision = None
branch_labels = None
depends_on = None

_INTEGER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    table(
        'activations',
        *texts('chat', 'name', 'given_by'),
        *integers('at_ms'),
        key=('chat', 'name'),
    )
    table(
        'audit',
        *integers('id', 'at_ms'),
        *texts('actor', 'chat', 'action', 'detail'),
        key=('id',),
    )
    index('audit_by_chat', 'audit', ['chat', 'id'])
    table(
        'basic_tools',
        *texts('bot', 'tool_name', 'source', 'path', 'etag', 'content_hash', 'script', 'definition', 'program',
            'findings'),
        *integers('is_active', 'compiled_ms'),
        key=('bot', 'tool_name'),
    )
    table(
        'begun_chats',
        *texts('chat', 'bot'),
        *integers('at_ms'),
        key=('chat', 'bot'),
    )
    table(
        'budgets',
        *texts('holder', 'kind', 'day'),
        *integers('used'),
        key=('holder', 'kind', 'day'),
    )
    index('budgets_by_day', 'budgets', ['day'])
    table(
        'changes',
        *texts('name'),
        *integers('count'),
        key=('name',),
    )
    table(
        'chat_notes',
        *texts('chat', 'bot', 'name', 'words'),
        *integers('is_instruction', 'from_outside', 'from_member'),
        *texts('script', 'set_by'),
        *integers('at_ms'),
        key=('chat', 'bot', 'name'),
    )
    table(
        'chat_settings',
        *texts('chat', 'name', 'value', 'set_by'),
        *integers('at_ms'),
        key=('chat', 'name'),
    )
    table(
        'cursors',
        *texts('name', 'value'),
        *integers('at_ms'),
        key=('name',),
    )
    table(
        'grants',
        *integers('id'),
        *texts('chat', 'digest', 'function', 'arguments', 'given_by', 'given_by_name'),
        *integers('given_ms'),
        *integers('revoked_ms', nullable=True),
        *texts('revoked_by', nullable=True),
        key=('id',),
    )
    index('grants_once', 'grants', ['chat', 'digest'], unique=True, where='revoked_ms IS NULL')
    table(
        'history',
        *integers('id'),
        *texts('chat'),
        *texts('native_id', nullable=True),
        *texts('sender', 'sender_name', 'text'),
        *integers('at_ms', 'from_bot'),
        *texts('reply_to', nullable=True),
        *texts('reply_to_name', 'change'),
        *texts('asked_by', 'thread', nullable=True),
        key=('id',),
    )
    index('history_by_chat', 'history', ['chat', 'id'])
    table(
        'http_events',
        *integers('id'),
        *texts('chat', 'native_id'),
        *texts('private_to', nullable=True),
        *texts('body'),
        key=('id',),
    )
    index('http_events_by_chat', 'http_events', ['chat', 'id'])
    index('http_events_once', 'http_events', ['chat', 'native_id'], unique=True)
    table(
        'inbox',
        *integers('id'),
        *texts('key', 'chat', 'native_id', 'sender', 'sender_name', 'kind', 'body'),
        *integers('received_ms'),
        *texts('reason', 'detail'),
        *integers('turn_id', 'question_id', 'ended_ms', nullable=True),
        *integers('epoch', 'attempts'),
        key=('id',),
    )
    index('inbox_once', 'inbox', ['key'], unique=True)
    index('inbox_waiting', 'inbox', ['id'], where="reason = 'waiting'")
    table(
        'leases',
        *texts('name', 'holder'),
        *integers('token', 'until_ms'),
        key=('name',),
    )
    table(
        'ledger',
        *integers('turn_id'),
        *texts('key', 'chat', 'member', 'function', 'arguments', 'effect', 'path'),
        *integers('round', 'at_ms'),
        *integers('ended_ms', nullable=True),
        *texts('code'),
        *texts('result', 'taint', nullable=True),
        key=('turn_id', 'key'),
        sqlite_with_rowid=False,
    )
    table(
        'mcp_pins',
        *texts('server', 'tool'),
        *texts('accepted', nullable=True),
        *texts('digest', 'definition'),
        *integers('seen_ms'),
        *integers('accepted_ms', nullable=True),
        key=('server', 'tool'),
    )
    table(
        'members',
        *texts('member', 'timezone'),
        *integers('changed_ms'),
        key=('member',),
    )
    table(
        'occurrences',
        *integers('id', 'timer_id'),
        *texts('wall'),
        *integers('due_ms', 'snoozed'),
        *texts('state'),
        *integers('over_ms', 'turn_id', nullable=True),
        *texts('problem'),
        key=('id',),
    )
    index('occurrences_due', 'occurrences', ['due_ms', 'id'], where="state = 'due'")
    index('occurrences_next', 'occurrences', ['timer_id', 'snoozed'], unique=True, where="state = 'due'")
    index('occurrences_once', 'occurrences', ['timer_id', 'wall'], unique=True)
    index('occurrences_turns', 'occurrences', ['turn_id'], where='turn_id IS NOT NULL')
    table(
        'outbox',
        *integers('id'),
        *texts('key'),
        *integers('turn_id'),
        *integers('history_id', nullable=True),
        *texts('chat', 'body', 'state'),
        *integers('epoch', 'attempts', 'at_ms'),
        *texts('native_id', nullable=True),
        *texts('problem'),
        key=('id',),
    )
    index('outbox_once', 'outbox', ['key'], unique=True)
    index('outbox_open', 'outbox', ['id'], where="state IN ('pending', 'sending')")
    table(
        'page_owner_links',
        *texts('token_hash'),
        *integers('made_ms'),
        *texts('used_by', nullable=True),
        key=('token_hash',),
    )
    table(
        'page_owners',
        *texts('member'),
        *integers('since_ms'),
        key=('member',),
    )
    table(
        'pending',
        *integers('id'),
        *texts('chat', 'member'),
        *integers('turn_id'),
        *texts('body', 'state'),
        *integers('asked_ms', 'expires_ms'),
        *integers('answered_by', nullable=True),
        key=('id',),
    )
    index('pending_open', 'pending', ['chat', 'member'], where="state = 'open'")
    table(
        'poll_votes',
        *texts('chat'),
        *integers('poll'),
        *texts('member'),
        *integers('choice', 'voted_ms'),
        key=('chat', 'poll', 'member'),
    )
    table(
        'polls',
        *texts('chat'),
        *integers('number'),
        *texts('call_key', 'author', 'author_name', 'question', 'options'),
        *integers('created_ms'),
        *integers('closed_ms', nullable=True),
        *texts('closed_by', nullable=True),
        key=('chat', 'number'),
    )
    index('polls_call_key', 'polls', ['chat', 'call_key'], unique=True)
    table(
        'script_memory',
        *texts('bot', 'owner', 'name', 'value'),
        *integers('size', 'from_outside', 'changed_ms'),
        *integers('expires_ms', nullable=True),
        key=('bot', 'owner', 'name'),
        sqlite_with_rowid=False,
    )
    index('script_memory_expiry', 'script_memory', ['expires_ms'])
    table(
        'script_rows',
        *texts('bot', 'chat', 'table_name', 'row_id'),
        *integers('number', 'size'),
        *texts('fields'),
        *integers('changed_ms'),
        key=('bot', 'chat', 'table_name', 'row_id'),
    )
    index('script_rows_in_order', 'script_rows', ['bot', 'chat', 'table_name', 'number', 'size'])
    table(
        'summaries',
        *texts('chat', 'part', 'text'),
        *integers('until_id', 'at_ms'),
        key=('chat', 'part'),
    )
    table(
        'timers',
        *integers('id'),
        *texts('kind'),
        *integers('number'),
        *texts('bot', 'chat'),
        *integers('is_group'),
        *texts('private_to', nullable=True),
        *texts('owner', 'owner_name', 'members', 'function', 'arguments', 'title', 'rule', 'zone', 'source', 'state'),
        *integers('done', 'revision'),
        *texts('call_key'),
        *integers('place'),
        *texts('changed_by'),
        *integers('created_ms', 'changed_ms'),
        *integers('fired_ms', 'turn_id', 'ended_ms', nullable=True),
        *texts('removed_by', nullable=True),
        *integers('being_said'),
        key=('id',),
    )
    index('timers_calls', 'timers', ['call_key', 'place'], unique=True)
    index('timers_declared', 'timers', ['source'], where="source != ''")
    index('timers_ended', 'timers', ['ended_ms'], where='ended_ms IS NOT NULL')
    index('timers_numbers', 'timers', ['chat', 'kind', 'number'], unique=True)
    index('timers_owners', 'timers', ['owner', 'kind'], where="state IN ('active', 'paused')")
    table(
        'todos',
        *texts('chat'),
        *integers('number'),
        *texts('call_key', 'author', 'author_name', 'text'),
        *integers('priority', 'created_ms'),
        *integers('done_ms', 'removed_ms', nullable=True),
        *texts('ended_by', nullable=True),
        key=('chat', 'number'),
    )
    index('todos_call_key', 'todos', ['chat', 'call_key'], unique=True)
    table(
        'turn_answers',
        *integers('turn_id', 'round'),
        *texts('body', 'request_id'),
        *integers('at_ms'),
        *texts('taint', nullable=True),
        key=('turn_id', 'round'),
    )
    table(
        'turn_memory',
        *texts('chat', 'member', 'state'),
        *integers('until_ms'),
        key=('chat', 'member'),
    )


def table(name: str, *columns: sa.Column[Any], key: tuple[str, ...], **options: Any) -> None:
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*key), sqlite_strict=True, **options)


def index(name: str, table_name: str, columns: list[str], *, unique: bool = False, where: str | None = None) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table_name, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def integers(*names: str, nullable: bool = False) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, _INTEGER, autoincrement=False, nullable=nullable) for name in names)


def texts(*names: str, nullable: bool = False) -> Iterator[sa.Column[str]]:
    return (sa.Column(name, sa.Text(), nullable=nullable) for name in names)


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
