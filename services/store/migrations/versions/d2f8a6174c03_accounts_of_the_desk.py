"""accounts of the desk"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = 'd2f8a6174c03'
down_revision = '8e5b30d7a146'
branch_labels = None
depends_on = None

_INTEGER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_table('desk_accounts',
    *(sa.Column(name, sa.Text(), nullable=False) for name in ('name', 'role', 'password')),
    sa.Column('changed_ms', _INTEGER, autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('name'),
    sqlite_strict=True
    )
    op.create_table('desk_sessions',
    *(sa.Column(name, sa.Text(), nullable=False) for name in ('token', 'account')),
    sa.Column('ends_ms', _INTEGER, autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('token'),
    sqlite_strict=True
    )


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
