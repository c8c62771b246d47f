"""index of budgets by day"""

from __future__ import annotations

from alembic import op

revision = '9c4e1f7a2d35'
down_revision = '541b52469d68'
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.create_index('budgets_by_day', 'budgets', ['day'])


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
