"""timers, occurrences and member settings"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '2b7ba6e4a82e'
down_revision = 'e2a94c6d10f7'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_table('members',
    sa.Column('member', sa.Text(), nullable=False),
    sa.Column('timezone', sa.Text(), nullable=False),
    sa.Column('changed_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('member'),
    sqlite_strict=True,
    sqlite_with_rowid=True
    )
    op.create_table('occurrences',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('timer_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('wall', sa.Text(), nullable=False),
    sa.Column('due_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('snoozed', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('over_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=True),
    sa.Column('turn_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=True),
    sa.Column('problem', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('id'),
    sqlite_strict=True,
    sqlite_with_rowid=True
    )
    with op.batch_alter_table('occurrences', schema=None) as batch_op:
        batch_op.create_index('occurrences_due', ['due_ms', 'id'], unique=False, sqlite_where=sa.text("state = 'due'"), postgresql_where=sa.text("state = 'due'"))
        batch_op.create_index('occurrences_next', ['timer_id', 'snoozed'], unique=True, sqlite_where=sa.text("state = 'due'"), postgresql_where=sa.text("state = 'due'"))
        batch_op.create_index('occurrences_once', ['timer_id', 'wall'], unique=True)
        batch_op.create_index('occurrences_turns', ['turn_id'], unique=False, sqlite_where=sa.text('turn_id IS NOT NULL'), postgresql_where=sa.text('turn_id IS NOT NULL'))

    op.create_table('timers',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('bot', sa.Text(), nullable=False),
    sa.Column('chat', sa.Text(), nullable=False),
    sa.Column('is_group', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('private_to', sa.Text(), nullable=True),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('owner_name', sa.Text(), nullable=False),
    sa.Column('members', sa.Text(), nullable=False),
    sa.Column('function', sa.Text(), nullable=False),
    sa.Column('arguments', sa.Text(), nullable=False),
    sa.Column('title', sa.Text(), nullable=False),
    sa.Column('rule', sa.Text(), nullable=False),
    sa.Column('zone', sa.Text(), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('done', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('revision', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('call_key', sa.Text(), nullable=False),
    sa.Column('place', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('changed_by', sa.Text(), nullable=False),
    sa.Column('created_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('changed_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('fired_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=True),
    sa.Column('turn_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=True),
    sa.Column('ended_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=True),
    sa.Column('removed_by', sa.Text(), nullable=True),
    sa.Column('being_said', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('id'),
    sqlite_strict=True,
    sqlite_with_rowid=True
    )
    with op.batch_alter_table('timers', schema=None) as batch_op:
        batch_op.create_index('timers_calls', ['call_key', 'place'], unique=True)
        batch_op.create_index('timers_declared', ['source'], unique=False, sqlite_where=sa.text("source != ''"), postgresql_where=sa.text("source != ''"))
        batch_op.create_index('timers_ended', ['ended_ms'], unique=False, sqlite_where=sa.text('ended_ms IS NOT NULL'), postgresql_where=sa.text('ended_ms IS NOT NULL'))
        batch_op.create_index('timers_numbers', ['chat', 'kind', 'number'], unique=True)
        batch_op.create_index('timers_owners', ['owner', 'kind'], unique=False, sqlite_where=sa.text("state IN ('active', 'paused')"), postgresql_where=sa.text("state IN ('active', 'paused')"))



def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
