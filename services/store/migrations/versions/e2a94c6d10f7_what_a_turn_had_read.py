"""data labels of runs and model answers"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "e2a94c6d10f7"
down_revision = "bfdd8722dbe0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade; must not commit."""
    op.add_column("ledger", sa.Column("taint", sa.Text(), nullable=True))
    op.add_column("turn_answers", sa.Column("taint", sa.Text(), nullable=True))


def downgrade() -> None:
    """Not supported: restore the backup made before the upgrade."""
    raise NotImplementedError
