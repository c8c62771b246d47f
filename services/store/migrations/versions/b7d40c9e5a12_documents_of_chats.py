"""documents of chats"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = 'b7d40c9e5a12'
down_revision = '4d7a91c3e6b2'
branch_labels = None
depends_on = None

_INTEGER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_table('chat_documents',
    *(sa.Column(name, sa.Text(), nullable=False) for name in ('chat', 'kind')),
    sa.Column('version', _INTEGER, autoincrement=False, nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('changed_ms', _INTEGER, autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('chat', 'kind'),
    sqlite_strict=True
    )


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
