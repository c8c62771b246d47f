"""one row for a message and its turn, fewer B-trees for the ledger and the history"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '5d1c7e2f90ab'
down_revision = '03300af6cec5'
branch_labels = None
depends_on = None

_INTEGER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    _inbox()
    _ledger()
    op.drop_index('turns_open', 'turns')
    op.drop_table('turns')
    op.drop_index('history_by_native_id', 'history')


def _inbox() -> None:
    """Add the columns of the turn, and put the native id first in the keys."""
    for name in ('inbox_by_chat', 'inbox_once', 'inbox_waiting'):
        op.drop_index(name, 'inbox')
    op.rename_table('inbox', 'inbox_before')
    op.create_table('inbox',
    sa.Column('id', _INTEGER, autoincrement=False, nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('chat', sa.Text(), nullable=False),
    sa.Column('native_id', sa.Text(), nullable=False),
    sa.Column('sender', sa.Text(), nullable=False),
    sa.Column('sender_name', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('received_ms', _INTEGER, nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('detail', sa.Text(), nullable=False),
    sa.Column('turn_id', _INTEGER, nullable=True),
    sa.Column('question_id', _INTEGER, nullable=True),
    sa.Column('ended_ms', _INTEGER, nullable=True),
    sa.Column('epoch', _INTEGER, nullable=False),
    sa.Column('attempts', _INTEGER, nullable=False),
    sa.PrimaryKeyConstraint('id'),
    sqlite_strict=True
    )
    # A key was `chat\nnative id`, with a suffix for edits and reactions.
    op.execute(sa.text(
        "INSERT INTO inbox SELECT b.id, b.native_id || :line || b.chat || "
        "substr(b.key, length(b.chat) + length(b.native_id) + 2), "
        "b.chat, b.native_id, b.sender, b.sender_name, b.kind, b.body, b.received_ms, b.reason, b.detail, b.turn_id, "
        "b.question_id, b.ended_ms, coalesce(t.epoch, 0), coalesce(t.attempts, 0) "
        "FROM inbox_before AS b LEFT JOIN turns AS t ON t.id = b.id"
    ).bindparams(line='\n'))
    op.drop_table('inbox_before')
    op.create_index('inbox_once', 'inbox', ['key'], unique=True)
    op.create_index('inbox_waiting', 'inbox', ['id'], unique=False, sqlite_where=sa.text("reason = 'waiting'"), postgresql_where=sa.text("reason = 'waiting'"))


def _ledger() -> None:
    """Store rows in the tree of the primary key, which begins with the turn."""
    op.drop_index('ledger_by_turn', 'ledger')
    op.rename_table('ledger', 'ledger_before')
    op.create_table('ledger',
    sa.Column('turn_id', _INTEGER, autoincrement=False, nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('chat', sa.Text(), nullable=False),
    sa.Column('member', sa.Text(), nullable=False),
    sa.Column('function', sa.Text(), nullable=False),
    sa.Column('arguments', sa.Text(), nullable=False),
    sa.Column('effect', sa.Text(), nullable=False),
    sa.Column('path', sa.Text(), nullable=False),
    sa.Column('round', _INTEGER, nullable=False),
    sa.Column('at_ms', _INTEGER, nullable=False),
    sa.Column('ended_ms', _INTEGER, nullable=True),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('result', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('turn_id', 'key'),
    sqlite_strict=True,
    sqlite_with_rowid=False
    )
    op.execute(
        "INSERT INTO ledger SELECT turn_id, key, chat, member, function, arguments, effect, path, round, at_ms, "
        "ended_ms, code, result FROM ledger_before ORDER BY turn_id, key"
    )
    op.drop_table('ledger_before')
