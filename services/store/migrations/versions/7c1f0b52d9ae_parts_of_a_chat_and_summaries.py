"""threads and members in the history, and summaries"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '7c1f0b52d9ae'
down_revision = 'bac0872a2487'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.add_column('history', sa.Column('asked_by', sa.Text(), nullable=True))
    op.add_column('history', sa.Column('thread', sa.Text(), nullable=True))
    # Only members' own messages can be assigned: the addressee of an answer and the thread were not stored before.
    op.execute("UPDATE history SET asked_by = sender, thread = native_id WHERE from_bot = 0")
    op.create_table('summaries',
    sa.Column('chat', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('until_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('at_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('chat', 'part'),
    sqlite_strict=True
    )
