"""`rollcall run`: the daemon, with the chat page, and a console where there is a terminal."""

from __future__ import annotations

import argparse
import sys

from bot.cli.options import add_config, config_path, on_settings, port_number, reread
from bot.cli.serving import SettingsFile, serve
from config.settings import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--port", type=port_number, help="port of the chat page; 0 for any free one")
    parser.add_argument("--no-console", action="store_true", help="no chat in this terminal")
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Run until SIGTERM or SIGINT. 0: stopped by signal; 1: settings, functions, port or store cannot be used."""
    settings = _as_told(settings, options)
    file = SettingsFile(config_path(options), lambda: _reread(options))
    return serve(settings, file, console=_console_wanted(settings) and not options.no_console, page=True)


def _reread(options: argparse.Namespace) -> Settings:
    return _as_told(reread(options), options)


def _as_told(settings: Settings, options: argparse.Namespace) -> Settings:
    """The settings with the options of the command line applied."""
    return settings if options.port is None else _on_port(settings, options.port)


def _on_port(settings: Settings, port: int) -> Settings:
    web = settings.platforms.web.model_copy(update={"port": port})
    platforms = settings.platforms.model_copy(update={"web": web})
    return settings.model_copy(update={"platforms": platforms})


def _console_wanted(settings: Settings) -> bool:
    wanted = settings.platforms.console.enabled
    return wanted == "on" or (wanted == "auto" and sys.stdin.isatty() and sys.stdout.isatty())
