"""members who opted out"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = 'b41d70c5e29a'
down_revision = 'b7d40c9e5a12'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_table('opt_outs',
    *(sa.Column(name, sa.Text(), nullable=False) for name in ('member', 'chat')),
    sa.Column('at_ms', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('member', 'chat'),
    sqlite_strict=True
    )


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
