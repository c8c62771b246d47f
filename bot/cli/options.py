"""What several commands share: which settings, and how their faults are shown."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from config.loader import SettingsInvalid, load_settings
from config.settings import Settings

VERSION = "0.1.0"
SHIPPED = Path(__file__).parents[2] / "config" / "bot.yaml"


def add_config(parser: argparse.ArgumentParser) -> None:
    """The option that names the settings."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the settings; without it $ROLLCALL_CONFIG, else the shipped config/bot.yaml",
    )


def config_path(options: argparse.Namespace) -> Path:
    """The file of settings that the command is to use."""
    if options.config is not None:
        return Path(options.config)
    named = os.environ.get("ROLLCALL_CONFIG")
    return Path(named) if named else SHIPPED


def settings_or_faults(options: argparse.Namespace) -> Settings | None:
    """The settings; None when they cannot be used: then every fault stands on standard error."""
    try:
        return load_settings(config_path(options), os.environ)
    except SettingsInvalid as error:
        print(error, file=sys.stderr)
        return None
