"""`rollcall basic`: the scripts of the settings, and scripts that are being written. Without a subcommand those of the
settings are checked."""

from __future__ import annotations

import argparse

from bot.cli import basic_check, basic_recompile
from bot.cli.basic_new import add_new
from bot.cli.basic_run import add_run
from bot.cli.options import add_config


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("basic", help="check, try and compile BASIC scripts", description=__doc__)
    add_config(parser)
    parser.set_defaults(run=basic_check.run, paths=[], json=False, profile=None)
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    for module in (basic_check, basic_recompile):
        module.add_to(subcommands)
    add_run(subcommands)
    add_new(subcommands)
