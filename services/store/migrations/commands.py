"""Alembic commands. Importing this module takes a second, so it is imported only if there is something to migrate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.operations.ops import MigrationScript
from alembic.script import Script
from sqlalchemy import Connection, MetaData

_HERE = Path(__file__).parent


def migrate(connection: Connection, versions: Path) -> None:
    """Apply all migrations in the folder `versions` that the database lacks, in order, in the transaction of
    `connection`."""
    command.upgrade(_config(connection, versions), "head")


def write_revision(connection: Connection, message: str, tables: MetaData, versions: Path) -> Path | None:
    """Write the migration from the database, which has to be at the latest revision, to `tables`. Returns its file;
    None if there is no difference."""

    def drop_if_empty(_context: object, _revision: object, scripts: list[MigrationScript]) -> None:
        scripts[:] = [script for script in scripts if script.upgrade_ops and not script.upgrade_ops.is_empty()]

    config = _config(connection, versions, tables=tables)
    script = command.revision(config, message, autogenerate=True, process_revision_directives=drop_if_empty)
    return Path(script.path) if isinstance(script, Script) else None


def _config(connection: Connection, versions: Path, **attributes: Any) -> Config:
    config = Config(attributes={"connection": connection, **attributes})
    for option, value in (
        ("script_location", str(_HERE)),
        ("version_locations", str(versions)),
        ("path_separator", "newline"),
    ):
        config.set_main_option(option, value.replace("%", "%%"))
    return config
