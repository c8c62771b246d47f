"""`rollcall chat`: talk to the bot in this terminal, without a web server."""

from __future__ import annotations

import argparse

from bot.cli.options import add_config, config_path, on_settings, reread
from bot.cli.serving import SettingsFile, serve
from config.settings import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Chat until the end of input or Ctrl-C. 1: settings, functions or the store cannot be used."""
    file = SettingsFile(config_path(options), lambda: reread(options))
    return serve(settings, file, console=True, page=False)
