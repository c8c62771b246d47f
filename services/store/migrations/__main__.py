"""`python -m services.store.migrations "what changes"` writes the next revision: all that the tables in the code have and
the revisions so far have not. Read what it wrote before you commit it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

from sqlalchemy import MetaData

import services.store
from services.store.schema import metadata
from services.store.upgrade import VERSIONS, write_revision


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
    with tempfile.TemporaryDirectory() as folder:
        written = write_revision(arguments[0], every_table(), Path(folder) / "scratch.db", VERSIONS)
    sys.stdout.write(f"{written or 'the revisions have all that the tables have'}\n")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
