"""`rollcall backup`: copy the SQLite database and the keys into one file, also while a daemon runs."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bot.cli.options import add_config, on_settings, positive_count
from bot.database.opening import database_of
from bot.housekeeping import backups_of
from config.settings import Settings
from services.clock import SystemClock
from services.store.port import StoreError
from services.store.sqlite.upgrade import back_up

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
