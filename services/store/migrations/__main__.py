"""`python -m services.store.migrations "what changes"` writes the next migration: all that the tables in the code have
and the migrations so far have not. Read what it wrote before you commit it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from services.store.all_tables import all_tables
from services.store.migrations.commands import migrate, write_revision
from services.store.migrations.transaction import VERSIONS, transaction


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 written, 1 no changes, 2 wrong usage."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    with tempfile.TemporaryDirectory() as folder, transaction(Path(folder) / "scratch.db") as connection:
        migrate(connection, VERSIONS)
        written = write_revision(connection, arguments[0], all_tables(), VERSIONS)
    sys.stdout.write(f"{written or 'the migrations have all that the tables have'}\n")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
