"""`python -m services.store.migrations "what changes"` writes the next migration: all that the tables in the code have
and the migrations so far have not. Read what it wrote before you commit it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

from sqlalchemy import MetaData

import services.store
from services.store.migrations.commands import migrate, write_revision
from services.store.migrations.transaction import VERSIONS, transaction
from services.store.schema import metadata


def every_table() -> MetaData:
    """The tables of all aggregates, each of which stands in a file of services/store."""
    for module in pkgutil.iter_modules(services.store.__path__):
        if not module.ispkg:
            importlib.import_module(f"services.store.{module.name}")
    return metadata


def main(arguments: list[str]) -> int:
    """The exit status: 0 written, 1 nothing has changed, 2 usage."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    with tempfile.TemporaryDirectory() as folder, transaction(Path(folder) / "scratch.db") as connection:
        migrate(connection, VERSIONS)
        written = write_revision(connection, arguments[0], every_table(), VERSIONS)
    sys.stdout.write(f"{written or 'the migrations have all that the tables have'}\n")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
