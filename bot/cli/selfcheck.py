"""`rollcall selfcheck`: the promises that every function has to keep: unique, a valid schema, no reading of raw text,
and a model protocol with function calling."""

from __future__ import annotations

import argparse
import asyncio

from bot.cli.options import add_config, config_path, settings_or_faults
from bot.selfcheck import self_check
from config.yaml_document import read_yaml_file


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may stand behind the command."""
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print each check and what it found. 1: something was found."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    failed = False
    for name, found in asyncio.run(self_check(settings, read_yaml_file(config_path(options)))).items():
        print(f"{'FOUND' if found else 'good ':<6} {name}")
        for diagnostic in found:
            print(f"       {diagnostic}")
        failed = failed or bool(found)
    return 1 if failed else 0
