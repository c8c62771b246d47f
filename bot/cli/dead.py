"""`rollcall dead`: list, show, retry or drop dead letters: messages without an answer, replies that no network
accepted, and timers that failed. A running daemon applies changes within a second."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import orjson

from bot.cli.options import add_config, on_database
from config.settings import Settings
from services.clock import SystemClock
from services.refs import JsonObject
from services.store.chats import outcomes
from services.store.chats.outcomes import COUNTER, DeadKind
from services.store.port import Row, Write
from services.store.reader import OperatorConnection
from services.store.turns import audit
from services.times.recurrence import instant_text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command, and the subcommands `list`, `show`, `retry` and `drop`, to `parser`."""
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    parser.set_defaults(run=on_database(_list))
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    listing = subcommands.add_parser("list", help="list all, oldest first (default)")
    show = subcommands.add_parser("show", help="show one with its text")
    show.add_argument("id", type=int, metavar="ID")
    for one in (listing, show):
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    retry = subcommands.add_parser("retry", help="retry, with the current permissions")
    drop = subcommands.add_parser("drop", help="drop without a retry")
    for one in (retry, drop):
        one.add_argument("ids", type=int, nargs="+", metavar="ID")
    for one, act in ((listing, _list), (show, _show), (retry, _retry), (drop, _drop)):
        # A value before the subcommand is already parsed.
        add_config(one, default=argparse.SUPPRESS)
        one.set_defaults(run=on_database(act))


def _list(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    rows = database.rows(outcomes.EVERYTHING)
    if options.json:
        print(json.dumps([_as_json(row) for row in rows], ensure_ascii=False))
        return 0
    if not rows:
        print("no dead letters")
    for row in rows:
        print(_line(row, settings))
    return 0


def _show(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    row = _found(options.id, database)
    if row is None:
        return 1
    if options.json:
        print(json.dumps({**_as_json(row), "text": _text(row)}, ensure_ascii=False))
        return 0
    print(_line(row, settings))
    if row["name"]:
        print(f"    from: {row['name']}")
    print(f"    text: {_text(row)!r}")
    return 0


def _retry(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    instant = instant_text(SystemClock().now())
    return _changed(options.ids, database, lambda row: outcomes.retry(row, instant), "retried")


def _drop(options: argparse.Namespace, settings: Settings, database: OperatorConnection) -> int:
    return _changed(options.ids, database, lambda row: [outcomes.drop(row)], "dropped")


def _changed(
    ids: Sequence[int], database: OperatorConnection, writes: Callable[[Row], Sequence[Write]], done: str
) -> int:
    status = 0
    for id_ in dict.fromkeys(ids):
        row = _found(id_, database)
        if row is None:
            status = 1
        elif database.commit([*writes(row), audit.touch(COUNTER)])[0]:
            print(f"{id_}: {done}")
        else:
            print(f"{id_}: cannot be {done} now; `rollcall dead show {id_}` shows whether it still exists")
            status = 1
    return status


def _found(id_: int, database: OperatorConnection) -> Row | None:
    row = next(iter(database.rows(outcomes.of_id(id_))), None)
    if row is None:
        print(f"error: there is no dead letter {id_}", file=sys.stderr)
    return row


def _line(row: Row, settings: Settings) -> str:
    at = datetime.fromtimestamp(row["at_ms"] / 1000, UTC).astimezone(ZoneInfo(settings.timezone))
    return f"{row['id']}  {at:%Y-%m-%d %H:%M:%S}  {row['kind']:<7}  {row['chat']}  {row['why']}"


def _as_json(row: Row) -> JsonObject:
    at = datetime.fromtimestamp(row["at_ms"] / 1000, UTC)
    shown = {name: row[name] for name in ("id", "kind", "chat", "name", "why")}
    return {**shown, "at": at.isoformat(timespec="seconds")}


def _text(row: Row) -> str:
    """The message's text, from the history if it was edited since."""
    if row["kind"] == DeadKind.MESSAGE:
        return str(orjson.loads(row["body"])["text"])
    return str(row["text"] if row["text"] is not None else orjson.loads(row["body"])["text"])
