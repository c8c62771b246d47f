"""`rollcall migrate`: copy the database of the settings to a PostgreSQL server, or from there to a SQLite file.

The daemon has to be stopped. The source is not changed. Either everything is copied and equal, or nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TextIO

from pydantic import SecretStr

from bot.cli.options import add_config, on_settings, table
from bot.database.opening import database_of, open_store, operator_connection_of
from config.settings import Settings
from services.clock import Clock, SystemClock
from services.store.copying import CopyConnection, TableCopy, copy_rows
from services.store.port import StoreError
from services.store.sqlite.copying import copy_source, copy_target

_SQLITE = "sqlite"
_SECONDS_BETWEEN_LINES = 2.0
_SECONDS_BETWEEN_UPDATES = 0.2
_CLEAR = "\r\x1b[K"
_NEXT = {
    False: 'store:\n  url: ""\n\nwithout ROLLCALL_STORE_URL in the environment.',
    True: 'store:\n  url: "${ROLLCALL_STORE_URL}"\n\n'
    "with ROLLCALL_STORE_URL in the environment: the address given with --to. It may contain a password.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        type=_target,
        required=True,
        metavar="URL",
        help=f"postgresql://user@host:5432/name of an empty database, or `{_SQLITE}` for a new file in home; "
        "libpq reads a password from PGPASSWORD or ~/.pgpass",
    )
    add_config(parser)
    parser.set_defaults(run=run)


def _target(text: str) -> str:
    """The URL of `text`; empty for a SQLite file. Raises ArgumentTypeError, without the text, which may contain a
    password."""
    if text != _SQLITE and not text.startswith(("postgresql://", "postgres://")):
        raise argparse.ArgumentTypeError(f"expected postgresql://user@host:5432/name, or {_SQLITE}")
    return "" if text == _SQLITE else text


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Copy the database and print the comparison. Returns 1, with the reason on stderr, if nothing was copied."""
    if options.to == settings.store.url.get_secret_value():
        print("nothing was copied: this is the database of the settings already", file=sys.stderr)
        return 1
    store = settings.store.model_copy(update={"url": SecretStr(options.to)})
    target = settings.model_copy(update={"store": store})
    for each in [settings, target] if options.to else [settings]:
        # Raises ReaderError at once if it cannot be reached or does not exist; `open_store` would retry or create it.
        with operator_connection_of(each):
            pass
    try:
        with asyncio.Runner() as runner:
            _migrate(settings, target, runner)
    except (StoreError, OSError) as error:
        print(f"nothing was copied: {error}", file=sys.stderr)
        return 1
    print(f"\nThe source was not changed. To use the copy, start the daemon with\n\n{_NEXT[bool(options.to)]}")
    return 0


def _migrate(settings: Settings, target: Settings, runner: asyncio.Runner) -> None:
    """Copy, print the comparison, and keep the copy if it is equal. Raises StoreError and OSError."""
    progress = Progress(sys.stderr, SystemClock())
    with _opened(settings, runner) as old, _opened(target, runner, is_target=True) as new:
        print(f"From: {old.place}\nTo:   {new.place}", flush=True)
        try:
            copies = copy_rows(old, new, progress)
        finally:
            progress.end()
        print(_comparison(copies))
        if nuls := sum(copy.source.nuls for copy in copies):
            print(f"{nuls} texts have a NUL character, which PostgreSQL cannot store; the copy has U+FFFD instead.")
        if not all(copy.is_equal for copy in copies):
            raise StoreError("the copy differs from the source, and was undone")


@contextmanager
def _opened(settings: Settings, runner: asyncio.Runner, *, is_target: bool = False) -> Iterator[CopyConnection]:
    """The database of the settings with this version's schema, while no daemon can use it. Raises StoreError."""
    path, url = database_of(settings), settings.store.url.get_secret_value()
    with ExitStack() as stack:
        if url or not is_target:
            store = runner.run(open_store(settings, SystemClock()))
            stack.callback(lambda: runner.run(store.close()))
        if url:
            from services.store.postgres.copying import copy_connection

            yield stack.enter_context(copy_connection(url, is_target=is_target))
        else:
            yield stack.enter_context(copy_target(path) if is_target else copy_source(path))


def _comparison(copies: Sequence[TableCopy]) -> str:
    rows = [
        (
            copy.table.name,
            str(copy.source.rows),
            str(copy.target.rows),
            copy.source.checksum,
            copy.target.checksum,
            verdict,
        )
        for copy in copies
        if copy.source.rows or copy.target.rows
        for verdict in ["equal" if copy.is_equal else "DIFFERENT"]
    ]
    return table(("table", "source", "copy", "checksum", "of the copy", ""), rows)


class Progress:
    """Rows and percent: one line that is overwritten in a terminal, else a line every two seconds."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._seconds = _SECONDS_BETWEEN_UPDATES if self._is_terminal else _SECONDS_BETWEEN_LINES
        self._next = clock.monotonic() + self._seconds

    def __call__(self, step: str, total: int, before: int, rows: int) -> None:
        if self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + self._seconds
            done = before + rows
            text = f"{step} {done:,} of {total:,} rows, {done / max(total, done):.0%}"
            self._stream.write(f"{_CLEAR}{text}" if self._is_terminal else f"{text}\n")
            self._stream.flush()

    def end(self) -> None:
        """Clear the line in a terminal."""
        if self._is_terminal:
            self._stream.write(_CLEAR)
            self._stream.flush()
