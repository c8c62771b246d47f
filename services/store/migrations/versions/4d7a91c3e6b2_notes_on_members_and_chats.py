"""notes on members and chats"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '4d7a91c3e6b2'
down_revision = '7936b97ae935'
branch_labels = None
depends_on = None

_INTEGER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    texts = ('chat', 'private_to', 'about', 'author', 'author_name', 'text', 'subject', 'call_key')
    op.create_table('memory_notes',
    *(sa.Column(name, sa.Text(), nullable=False) for name in texts),
    *(sa.Column(name, _INTEGER, autoincrement=False, nullable=False) for name in ('number', 'at_ms')),
    sa.Column('ended_ms', _INTEGER, autoincrement=False, nullable=True),
    sa.Column('ended_by', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('chat', 'number'),
    sqlite_strict=True
    )
    op.create_index('memory_notes_by_call', 'memory_notes', ['chat', 'call_key'], unique=True)
    op.create_index('memory_notes_by_member', 'memory_notes', ['chat', 'about'])
    op.create_index('memory_notes_ended', 'memory_notes', ['ended_ms'])


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
