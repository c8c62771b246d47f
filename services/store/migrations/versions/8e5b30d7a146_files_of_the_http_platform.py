"""files of the http platform"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '8e5b30d7a146'
down_revision = 'b41d70c5e29a'
branch_labels = None
depends_on = None

_INTEGER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_table('http_files',
    *(sa.Column(name, _INTEGER, autoincrement=False, nullable=False) for name in ('id', 'place')),
    *(sa.Column(name, sa.Text(), nullable=False) for name in ('chat', 'native_id', 'name', 'media_type', 'data')),
    sa.Column('private_to', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id'),
    sqlite_strict=True
    )
    op.create_index('http_files_by_chat', 'http_files', ['chat', 'id'])
    op.create_index('http_files_once', 'http_files', ['chat', 'native_id', 'place'], unique=True)


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
