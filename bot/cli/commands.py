"""The commands of `rollcall`, one module each, and its whole command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bot.cli import basic, call, chat, check, doctor, functions, mcp, replay, run, schema, selfcheck, stats, why
from bot.cli.options import VERSION
from bot.logs import set_up_logs_of_a_command

COMMANDS = (run, chat, check, schema, functions, call, basic, mcp, replay, why, doctor, stats, selfcheck)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="rollcall", description="A bot for group chats. Exit: 0 good, 1 findings, 2 usage."
    )
    root.add_argument("--version", action="version", version=f"rollcall {VERSION}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    options = parser().parse_args(arguments)
    # `run` and `chat` set up more.
    set_up_logs_of_a_command(sys.stderr)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read has seen enough; what is still buffered must not complain at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
