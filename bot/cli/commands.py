"""Command line of `rollcall`; a module has one command, or commands on one subject."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

from bot import VERSION

COMMANDS = {
    "init": "write a settings file for a bot on a network",
    "run": "start the daemon",
    "chat": "talk to the bot in this terminal",
    "check": "report errors in settings and functions",
    "schema": "print the JSON Schema of the settings",
    "functions": "list the functions, or show one",
    "call": "run one function",
    "basic": "check, run and compile BASIC scripts",
    "mcp": "offer the functions to other programs over MCP",
    "replay": "run recorded cases and compare",
    "plan": "compare recorded messages under the current and under new settings",
    "why": "explain how messages ended",
    "dead": "list, show, retry or drop dead letters",
    "doctor": "check settings, database, disk, sandbox, model, search, feeds and networks",
    "cluster": "show the state of a cluster",
    "backup": "copy the database and the keys into one file",
    "restore": "replace the database by a backup",
    "migrate": "copy the database to PostgreSQL, or back to a SQLite file",
    "stats": "success, errors and latency by function",
    "selfcheck": "run the checks that every function has to pass",
}
"""Help text by name."""
_MODULES = {"chat": "run", "restore": "backup", "selfcheck": "check"}
"""Modules of commands that share one; they add their options with `add_NAME_options`."""


class _Command(argparse.ArgumentParser):
    """Subparser that imports its module on use: imports are half of the start time, and most commands need few of
    them."""

    def __init__(self, *, module: str = "", function: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._module, self._function = module, function

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._module:
            command = importlib.import_module(self._module)
            self.description, self._module = command.__doc__, ""
            getattr(command, self._function)(self)
        return super().parse_known_args(args, namespace)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line, with a subparser for each of COMMANDS, which imports its module on use."""
    root = argparse.ArgumentParser(
        prog="rollcall",
        description="A bot for group chats. Exit codes: 0 success, 1 findings or a failure, 2 wrong usage.",
    )
    root.add_argument("--version", action="version", version=f"rollcall {VERSION}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Command)
    for name, text in COMMANDS.items():
        module, function = _MODULES.get(name, name), f"add_{name}_options" if name in _MODULES else "add_options"
        commands.add_parser(name, help=text, module=f"{__package__}.{module}", function=function)
    return root


def run(options: argparse.Namespace) -> int:
    """Run the parsed command; returns the exit status: the command's, 130 if interrupted, 0 if the reader has closed
    the pipe."""
    # Imported here, since help needs no log. `run` and `chat` configure more.
    from bot.cli.options import use_platform_folders
    from bot.telemetry.logs import set_up_logs_of_a_command

    use_platform_folders(os.environ)
    # `run` and `chat` set up more.
    set_up_logs_of_a_command(sys.stderr)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe; the rest of the buffer must not cause an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
