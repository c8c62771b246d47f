"""`rollcall functions`: the functions of a bot, as a table, in a provider's spelling, or as a page of documentation."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from bot.checks.scratch import scratch_daemon
from bot.cli.options import add_config, on_settings, table
from config.diagnostics import Diagnostic
from config.settings import DEFAULT_BOT, Settings
from config.texts import FALLBACK, Texts
from function_calls.encodings import ENCODERS, inventory, who_may
from function_calls.schema.commands import about, usage_line
from function_calls.spec import FunctionSpec


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="only this function")
    parser.add_argument("--format", default="table", choices=["table", *ENCODERS, "markdown"])
    parser.add_argument("--bot", default=DEFAULT_BOT, help="the bot (default: default)")
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Print the functions. 1: the settings or a function cannot be used, or the name is unknown."""
    if options.bot not in settings.bots:
        print(f"there is no bot {options.bot!r}; the settings name {', '.join(settings.bots)}", file=sys.stderr)
        return 1

    async def specs() -> tuple[Sequence[FunctionSpec], Sequence[Diagnostic]]:
        async with scratch_daemon(settings) as daemon:
            return daemon.registry.of(options.bot).specs, daemon.functions.faults

    found, unusable = asyncio.run(specs())
    for one in unusable:
        print(one, file=sys.stderr)
    if options.name:
        found = tuple(spec for spec in found if spec.name == options.name)
        if not found:
            print(f"there is no function {options.name!r}; `rollcall functions` lists them", file=sys.stderr)
            return 1
    print(_rendered(found, options.format))
    return 1 if unusable else 0


def _rendered(specs: Sequence[FunctionSpec], style: str) -> str:
    if style in ENCODERS:
        return json.dumps([ENCODERS[style](spec) for spec in specs], indent=2, ensure_ascii=False)
    return inventory(specs) if style == "markdown" else _table(specs)


def _table(specs: Sequence[FunctionSpec]) -> str:
    texts = Texts().of(FALLBACK)
    rows = [
        (spec.name, usage_line(spec), spec.execution.effect.value, spec.access.scope, who_may(spec), about(spec, texts))
        for spec in specs
    ]
    return table(("NAME", "USAGE", "EFFECT", "WHERE", "WHO", "DESCRIPTION"), rows)
