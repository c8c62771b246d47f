"""`rollcall basic`: the scripts of the settings, and scripts that are being written. Without a subcommand those of the
settings are checked."""

from __future__ import annotations

import argparse

from bot.cli import basic_check, basic_recompile
from bot.cli.basic_new import add_new
from bot.cli.basic_run import add_run
from bot.cli.options import add_config


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may stand behind the command."""
    add_config(parser)
    parser.set_defaults(run=basic_check.run, paths=[], json=False, profile=None)
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    for module in (basic_check, basic_recompile):
        module.add_to(subcommands)
    add_run(subcommands)
    add_new(subcommands)
