"""`rollcall mcp …`: the Model Context Protocol."""

from __future__ import annotations

import argparse

from bot.cli import mcp_pins
from bot.cli.options import add_config


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("mcp", help="servers of tools: what was accepted of them", description=__doc__)
    add_config(parser)
    mcp_pins.add_to(parser.add_subparsers(title="commands", metavar="COMMAND", required=True))
