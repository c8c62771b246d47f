"""`rollcall backup`: copy the SQLite database and the keys into one file, also while a daemon runs. `rollcall restore`:
replace the database by a backup; it is renamed, not deleted."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bot.cli.options import add_config, agreed, on_settings, positive_count
from bot.database.opening import database_of
from bot.housekeeping import backups_of
from config.settings import Settings
from services.clock import SystemClock
from services.store.migrations.transaction import VERSIONS, read_revisions
from services.store.port import StoreError
from services.store.sqlite.lock import StoreLock
from services.store.sqlite.upgrade import back_up, damage, newest_good, restore, schema_version, taken_at

_PROGRESS_SECONDS = 2.0
_ON_SERVER = {
    "backup": 'pg_dump --format=custom --file=rollcall.dump "$ROLLCALL_STORE_URL"',
    "restore": 'pg_restore --clean --if-exists --dbname="$ROLLCALL_STORE_URL" rollcall.dump',
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", type=Path, metavar="DIR", help="target folder (default: backups/ in home)")
    parser.add_argument(
        "--keep",
        type=positive_count,
        metavar="N",
        help="number of backups to keep in the folder, the newest (default: store.backups_kept in home; all in --to)",
    )
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Make a backup and print its path. Returns 1, with the reason on stderr, if it failed or the database is on a
    server."""
    if is_on_server(settings, "backup"):
        return 1
    path, folder = database_of(settings), options.to or backups_of(settings)
    if not path.exists():
        print(
            f"there is no database {path}; start the daemon once, or name its settings with --config", file=sys.stderr
        )
        return 1
    keep = options.keep or (None if options.to else settings.store.backups_kept)
    try:
        made = back_up(path, folder, label="manual", clock=SystemClock(), keep=keep, progress=Progress("backup"))
    except StoreError as error:
        print(f"no backup was made: {error}", file=sys.stderr)
        return 1
    print(f"Backup: {made} ({made.stat().st_size / 1e6:.1f} MB, checked; with keys, so keep it secret)")
    return 0


def is_on_server(settings: Settings, command: str) -> bool:
    """Whether the database is on a PostgreSQL server; if so, print the command to use there."""
    if settings.store.is_on_a_server:
        print(
            f"The database is on a PostgreSQL server, which has tools of its own: {_ON_SERVER[command]}",
            file=sys.stderr,
        )
        print(f"The folder {Path(settings.home) / 'keys'} is not in it.", file=sys.stderr)
    return settings.store.is_on_a_server


class Progress:
    """Prints the progress to standard error every two seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + _PROGRESS_SECONDS

    def __call__(self, share: float) -> None:
        if time.monotonic() >= self._next:
            self._next += _PROGRESS_SECONDS
            print(f"{self._what}: {share:.0%}", file=sys.stderr)


def add_restore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="backup file (default: the newest undamaged one in backups/)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_config(parser)
    parser.set_defaults(run=run_restore)


@on_settings
def run_restore(options: argparse.Namespace, settings: Settings) -> int:
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
