"""${message}"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Runs in the transaction of the whole upgrade: do not commit here."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """The way back is the copy that was made before the upgrade."""
    raise NotImplementedError
