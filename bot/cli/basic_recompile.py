"""`rollcall basic recompile`: compile scripts anew although they have not changed. It works beside a daemon that is
running, which does it within seconds; else the next start does."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable

from bot.beside import beside_of
from bot.cli.options import add_config, settings_or_faults
from services.basic_tools import COUNTER
from services.store import basic_tools, changes
from services.store.beside import Beside
from services.store.side import ReaderError


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command to those of `rollcall basic`."""
    parser = subcommands.add_parser("recompile", help="compile scripts anew", description=__doc__)
    parser.add_argument("bot", nargs="?", metavar="BOT", help="only the scripts of this bot")
    parser.add_argument("tool", nargs="?", metavar="TOOL", help="only this tool")
    # Where it stands before the subcommand it was read already.
    add_config(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """0: it will be done; 1: there is no such bot or tool, or no database."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    try:
        with beside_of(settings) as database:
            return _outdate(options, database)
    except ReaderError as error:
        print(error, file=sys.stderr)
        return 1


def _outdate(options: argparse.Namespace, database: Beside) -> int:
    kept = [(row["bot"], row["tool_name"]) for row in database.rows(basic_tools.everything())]
    if not kept:
        print("No script was compiled yet: name their folder under sources.basic, and start the daemon.")
        return 1
    bots = dict.fromkeys(bot for bot, _ in kept)
    if options.bot is not None and options.bot not in bots:
        owners = [bot for bot, tool in kept if tool == options.bot]
        if owners and options.tool is None:
            right = " or ".join(f"rollcall basic recompile {bot} {options.bot}" for bot in owners)
            print(f"{options.bot!r} is a tool, and the bot stands before it: {right}", file=sys.stderr)
            return 1
        return _unknown("bot with scripts", options.bot, bots)
    tools = [name for bot, name in kept if bot == options.bot]
    if options.tool is not None and options.tool not in tools:
        return _unknown(f"tool of bot {options.bot!r}", options.tool, tools)
    touched, _ = database.commit([basic_tools.outdate(options.bot, options.tool), changes.touch(COUNTER)])
    tools_said = "1 tool" if touched == 1 else f"{touched} tools"
    print(f"To be compiled anew: {tools_said}. A daemon that is running does it within seconds, else the next start.")
    return 0


def _unknown(what: str, name: str, known: Iterable[str]) -> int:
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    print(f"there is no {what} {name!r}; {hint}", file=sys.stderr)
    return 1
