"""`rollcall …`: one module of bot/cli for each command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import structlog

from bot.cli import call, chat, check, doctor, functions, replay, run, schema, selfcheck, stats, why
from bot.cli.options import VERSION

_ERROR = 40
COMMANDS = (run, chat, check, schema, functions, call, replay, why, doctor, stats, selfcheck)


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
    # Commands answer on standard output; what is logged meanwhile stands beside it. `run` sets up more.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(_ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
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


if __name__ == "__main__":
    sys.exit(main())
