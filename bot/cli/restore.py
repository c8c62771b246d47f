"""`rollcall restore`: replace the SQLite database by a backup. The database is renamed, not deleted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bot.cli.backup import Progress, is_on_server
from bot.cli.options import add_config, agreed, on_settings
from bot.database.opening import database_of
from bot.housekeeping import backups_of
from config.settings import Settings
from services.clock import SystemClock
from services.store.migrations.transaction import VERSIONS, read_revisions
from services.store.port import StoreError
from services.store.sqlite.lock import StoreLock
from services.store.sqlite.upgrade import damage, newest_good, restore, schema_version, taken_at


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="backup file (default: the newest undamaged one in backups/)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Restore the backup, and print the result. Returns 0 on success; 1 if nothing was changed, with the reason on
    stderr."""
    if is_on_server(settings, "restore"):
        return 1
    try:
        return _restore(settings, options.file, is_agreed=options.yes)
    except (StoreError, OSError) as error:
        print(f"nothing was restored: {error}", file=sys.stderr)
        return 1


def _restore(settings: Settings, file: Path | None, *, is_agreed: bool) -> int:
    path = database_of(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = StoreLock.take(path)
    try:
        backup = _usable(file or newest_good(path, backups_of(settings)), settings)
        taken = taken_at(backup)
        print(f"Backup:   {backup}{f', taken {taken:%Y-%m-%d %H:%M:%S} UTC' if taken else ''}")
        print(f"Database: {path}{'' if path.exists() else ' (there is none)'}", flush=True)
        if not is_agreed and not agreed("Restore it?", unasked="Nobody can be asked here; --yes restores it."):
            print("Nothing was restored.")
            return 1
        done = restore(backup, path, clock=SystemClock(), progress=Progress("restore"))
    finally:
        lock.release()
    print("Restored, and checked.")
    if done.replaced is not None:
        print(f"The database from before is {done.replaced}; delete it when you do not need it.")
    if not done.keys:
        print("The backup has no keys. Without those in keys/ members of the chat page come back as strangers.")
    print("Start the daemon now. It sends replies again that were waiting when the backup was made.")
    return 0


def _usable(backup: Path | None, settings: Settings) -> Path:
    """`backup`, if it can be restored. Raises StoreError if it is missing, damaged, no backup, or of a newer
    version."""
    if backup is None:
        raise StoreError(f"there is no good backup in {backups_of(settings)}; name a file")
    if not backup.is_file():
        raise StoreError(f"there is no file {backup}")
    fault = damage(backup)
    if fault is not None:
        raise StoreError(f"{backup} is damaged: {fault}")
    version, _ = schema_version(backup)
    if version is None:
        raise StoreError(f"{backup} is no backup of this program: it has no schema version")
    if version not in read_revisions(VERSIONS).known:
        raise StoreError(f"{backup} has schema version {version}, which only a newer version of the program knows")
    return backup
