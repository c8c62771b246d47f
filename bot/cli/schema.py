"""`rollcall schema`: the JSON Schema of the settings, for completion and checking in editors."""

from __future__ import annotations

import argparse
import json

from config.editor_schema import settings_schema


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("schema", help="print the JSON Schema of the settings", description=__doc__)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the schema."""
    print(json.dumps(settings_schema(), indent=2, ensure_ascii=False))
    return 0
