"""`rollcall replay FILE.jsonl`: cases through the real router and the real wire reader, without a network."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import orjson

from bot.cli.options import add_config, settings_or_faults
from bot.replay import Replay
from bot.replay_case import BadCase, id_in, read_case
from config.settings import Settings
from config.texts import Texts
from services.json_values import JsonObject


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may stand behind the command."""
    parser.add_argument("file", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the result lines go; else standard output")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write a result line for each case. 0: all as expected; 1: a difference, or a case that cannot be replayed; 2: a
    file cannot be read or written, or holds no case."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    with ExitStack() as files:
        try:
            lines = [line for line in options.file.read_bytes().splitlines() if line.strip()]
            out = files.enter_context(options.out.open("w", encoding="utf-8")) if options.out else sys.stdout
        except OSError as error:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
            return 2
        if not lines:
            print(f"{options.file} holds no case", file=sys.stderr)
            return 2
        good = asyncio.run(_replayed(lines, settings, out))
    print(f"{good} of {len(lines)} as expected", file=sys.stderr)
    return 0 if good == len(lines) else 1


async def _replayed(lines: Sequence[bytes], settings: Settings, out: TextIO) -> int:
    """How many of the cases in `lines` ended as expected."""
    replay = Replay(settings, Texts())
    good = 0
    for line in lines:
        result = await _result(line, replay)
        good += result["ok"]
        out.write(orjson.dumps(result, default=str).decode() + "\n")
    return good


async def _result(line: bytes, replay: Replay) -> JsonObject:
    try:
        return await replay.run(read_case(line))
    except BadCase as bad:
        nothing: JsonObject = {"id": id_in(line), "calls": [], "reply": "", "reason": None, "error": None}
        return {**nothing, "ok": False, "problem": str(bad)}
