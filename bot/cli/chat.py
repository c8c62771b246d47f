"""`rollcall chat`: talk to the bot in this terminal, without a web server."""

from __future__ import annotations

import argparse

from bot.cli.options import add_config, config_path, reread, settings_or_faults
from bot.cli.serving import SettingsFile, serve


def add_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Chat until the end of input or Ctrl-C. 1: settings, functions or the store cannot be used."""
    settings = settings_or_faults(options)
    file = SettingsFile(config_path(options), lambda: reread(options))
    return 1 if settings is None else serve(settings, file, console=True, page=False)
