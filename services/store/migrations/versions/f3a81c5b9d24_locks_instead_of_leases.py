"""locks instead of leases"""

from __future__ import annotations

from alembic import op

revision = 'f3a81c5b9d24'
down_revision = 'd2f8a6174c03'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.drop_table('leases')


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
