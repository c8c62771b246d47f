"""`rollcall why`: explain how messages ended, also while the daemon runs."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import orjson

from bot.checks.recorded import NotRecorded, case_of_turn
from bot.cli.options import add_config, on_settings, positive_count
from bot.database.opening import operator_connection_of
from config.settings import Settings
from config.texts import Texts
from function_calls.profile import reason_text
from services.refs import ReasonCode


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chat", nargs="?", help="platform:account:chat (default: all chats)")
    parser.add_argument("--count", type=positive_count, default=20, help="number of latest messages (default: 20)")
    parser.add_argument(
        "--back", type=positive_count, metavar="N", help="only the Nth message from the end; 1 is the latest"
    )
    parser.add_argument("--id", metavar="ID", help="only the message with this id in its network, and its edits")
    parser.add_argument(
        "--case",
        type=int,
        metavar="ID",
        help="print the turn with this id (in brackets) as a case of `replay`",
    )
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Print the outcome of each message, newest last, or a case. 1: there is no database or no such turn."""
    texts, zone = Texts().of(settings.language), ZoneInfo(settings.timezone)
    with operator_connection_of(settings) as reader:
        if options.case is not None:
            try:
                print(orjson.dumps(case_of_turn(reader, settings, options.case)).decode())
            except NotRecorded as error:
                print(error, file=sys.stderr)
                return 1
            return 0
        count, skip = (1, options.back - 1) if options.back else (options.count, 0)
        rows = reader.last_outcomes(options.chat, count, skip=skip, native_id=options.id)
    if not rows:
        print(_nothing(options))
    for row in reversed(rows):
        at = datetime.fromtimestamp(row.received_ms / 1000, UTC).astimezone(zone)
        reason = reason_text(texts, ReasonCode(row.reason), row.detail)
        print(f"{at:%Y-%m-%d %H:%M:%S}  {row.chat}  {row.sender_name}: {row.text!r}")
        print(f"    {row.reason}: {reason}  [{row.id}]")
    return 0


def _nothing(options: argparse.Namespace) -> str:
    """The message for an empty list."""
    where = "" if options.chat is None else f" in {options.chat}"
    if options.id is not None:
        return f"there is no message {options.id!r}{where}"
    if options.back is not None:
        return f"there is no message that is {options.back} back{where}"
    return f"no message has come{where or ' yet'}"
