"""`rollcall replay FILE.jsonl`: cases through the real router and the real wire reader, without a network."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TextIO

import orjson

from bot.cli.options import add_config, settings_or_faults
from bot.replay import BadCase, replay
from bot.scratch import scratch_daemon
from config.settings import DEFAULT_BOT, Settings
from config.texts import Texts
from function_calls.definition import DefinitionError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("replay", help="run recorded cases and compare", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the result lines go; else standard output")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write a result line for each case. 0: all as expected; 1: a difference; 2: the file cannot be read."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    try:
        lines = options.file.read_bytes().splitlines()
    except OSError as error:
        print(f"{options.file} cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    out: TextIO = options.out.open("w", encoding="utf-8") if options.out else sys.stdout
    try:
        return asyncio.run(_replayed(lines, settings, out, str(options.file)))
    except (BadCase, DefinitionError) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if options.out:
            out.close()


async def _replayed(lines: list[bytes], settings: Settings, out: TextIO, name: str) -> int:
    texts = Texts()
    good = total = 0
    async with scratch_daemon(settings) as daemon:
        functions = daemon.registry.of(DEFAULT_BOT)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                case = orjson.loads(line)
                result = await replay(case, settings, texts, functions)
            except (ValueError, KeyError, TypeError) as error:
                raise BadCase(f"{name}:{number}: {type(error).__name__}: {error}") from error
            total += 1
            good += result["ok"]
            out.write(orjson.dumps(result, default=str).decode() + "\n")
    print(f"{good} of {total} as expected", file=sys.stderr)
    return 0 if good == total else 1
