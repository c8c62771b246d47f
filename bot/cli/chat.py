"""`rollcall chat`: talk to the bot in this terminal, without a web server."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bot.cli.options import add_config, settings_or_faults
from bot.cli.run import serve
from bot.logs import set_up_logs
from bot.wiring import secrets_of
from function_calls.definition import DefinitionError
from services.redaction import Redactor
from services.store.port import StoreError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("chat", help="talk to the bot in this terminal", description=__doc__)
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Chat until the input ends or Ctrl-C."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    close_logs = set_up_logs(settings.logging, redact=Redactor(secrets_of(settings)), somebody_chats_here=True)
    try:
        return asyncio.run(serve(settings, console=True, page=False))
    except (StoreError, DefinitionError) as error:
        print(f"rollcall cannot start: {error}", file=sys.stderr)
        return 1
    finally:
        close_logs()
