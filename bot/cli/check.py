"""`rollcall check`: report all errors and warnings in the settings and functions, without starting the daemon."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from bot.checks.functions_check import check_functions
from bot.cli.options import SHIPPED, config_path
from bot.registration.functions import at_their_places
from config.diagnostics import Diagnostics
from config.loader import check_settings, usable_part
from config.yaml_document import read_yaml_file


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="settings file to check (default: that of the daemon)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one line per finding in each file. Returns 0 without errors, 1 with errors."""
    failed = False
    for path in options.files or [config_path(options)]:
        settings, found = check_settings(path, os.environ)
        # Functions are checked even if the settings have errors.
        usable = settings or usable_part(path, os.environ)
        if usable is not None:
            document = read_yaml_file(path)
            unusable = asyncio.run(check_functions(usable, document))
            found = Diagnostics([*found, *at_their_places(unusable, document, usable)])
        for diagnostic in found:
            print(diagnostic)
        failed = failed or bool(found.errors)
        if not found:
            print(f"{path if path != SHIPPED else 'config/bot.yaml'}: no problems found")
    return 1 if failed else 0
