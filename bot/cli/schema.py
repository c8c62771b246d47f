"""`rollcall schema`: the JSON Schema of the settings, or of files of command tools, for editors that check them."""

from __future__ import annotations

import argparse
import json

from config.editor_schema import command_tools_schema, settings_schema

_SCHEMAS = {"settings": settings_schema, "commands": command_tools_schema}


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may stand behind the command."""
    parser.add_argument("of", nargs="?", choices=_SCHEMAS, default="settings", help="which files are meant")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the schema."""
    print(json.dumps(_SCHEMAS[options.of](), indent=2, ensure_ascii=False))
    return 0
