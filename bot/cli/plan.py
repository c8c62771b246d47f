"""`rollcall plan NEW.yaml`: which of the latest messages would end differently under changed settings or functions."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import orjson

from bot.checks.plan import Plan, Planned, plan
from bot.cli.options import add_config, chat_ref, on_settings, positive_count
from config.loader import SettingsInvalid, load_settings
from config.settings import Settings
from config.texts import Phrases, Texts
from function_calls.profile import reason_text
from function_calls.schema.definition import DefinitionError
from services.store.reader import ReaderError

_LONGEST = 120


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("new", type=Path, metavar="NEW.yaml", help="the changed settings file")
    parser.add_argument("--count", type=positive_count, default=5000, help="number of messages (default: %(default)s)")
    parser.add_argument("--chat", type=chat_ref, help="only messages of this chat, platform:account:chat")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Print the messages that would end differently. 0: none; 1: some, or there is no database; 2: the new settings
    cannot be used."""
    chat = None if options.chat is None else options.chat.key
    try:
        new = load_settings(options.new, os.environ)
        found = plan(settings, new, count=options.count, chat=chat, progress=_show_progress)
    except (SettingsInvalid, DefinitionError) as error:
        print(error, file=sys.stderr)
        return 2
    except ReaderError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        _print(found, Texts().of(settings.language), ZoneInfo(settings.timezone))
    return 1 if found.changes else 0


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{done * 100 // total} %" if done < total else "\r\033[K", end="", file=sys.stderr, flush=True)


def _print(found: Plan, texts: Phrases, zone: ZoneInfo) -> None:
    for change in found.changes:
        at = datetime.fromtimestamp(change.received_ms / 1000, UTC).astimezone(zone)
        print(f"{at:%Y-%m-%d %H:%M:%S}  {change.chat}  {change.sender_name}: {_cut(change.text)!r}  [{change.id}]")
        print(f"    {change.difference}\n    - {_end(change.old, texts)}\n    + {_end(change.new, texts)}")
    counts = Counter(change.difference for change in found.changes)
    listed = "".join(f", {count:,} {difference}" for difference, count in counts.most_common())
    print(f"{found.compared:,} compared: {found.compared - len(found.changes):,} same{listed}")
    for obstacle, count in found.not_compared.most_common():
        print(f"{count:,} not compared: {obstacle}")
    if found.assumed_roles:
        print(f"{found.assumed_roles:,} with an assumed role of the sender, since roles in networks are not stored")


def _end(planned: Planned, texts: Phrases) -> str:
    parts = [f"{planned.end} ({planned.reason}: {reason_text(texts, planned.reason, planned.detail)})"]
    parts += [f"{call.function} {_cut(call.arguments)}" for call in planned.calls]
    parts += [f"the recorded answer calls {name}, which does not exist" for name in planned.unknown]
    if planned.asks_model:
        parts.append("the model is asked, and no answer is recorded")
    if planned.reply:
        parts.append(repr(_cut(planned.reply)))
    return "; ".join(parts)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
