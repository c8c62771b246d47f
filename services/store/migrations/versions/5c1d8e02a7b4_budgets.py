"""budgets"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = '5c1d8e02a7b4'
down_revision = '7c1f0b52d9ae'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_table('budgets',
    sa.Column('holder', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('day', sa.Text(), nullable=False),
    sa.Column('used', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('holder', 'kind', 'day'),
    sqlite_strict=True
    )


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
