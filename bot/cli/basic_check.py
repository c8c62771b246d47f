"""`rollcall basic check`: every mistake in BASIC scripts, with its line, and what is allowed instead."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from bot.cli.options import add_config, has_settings, settings_or_faults
from bot.scripts_check import Checked, check_scripts, functions_beside
from config.basic import BasicSource
from config.diagnostics import Diagnostic
from function_calls.definition import DefinitionError


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command to those of `rollcall basic`."""
    parser = subcommands.add_parser("check", help="find mistakes in scripts", description=__doc__)
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="DIR|FILE",
        help="what to check; without one, the scripts of the settings",
    )
    parser.add_argument("--json", action="store_true", help="a list of findings instead of lines")
    parser.add_argument(
        "--profile",
        choices=["extended", "strict"],
        help="what is allowed; without it, what the settings say, or extended",
    )
    # Where it stands before the subcommand it was read already.
    add_config(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings. 0: no errors; 1: errors, or nothing to check; 2: a path that is not there."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    if absent := [path for path in options.paths if not path.exists()]:
        for path in absent:
            print(f"{path}: there is no such folder or file; make it, or correct the path", file=sys.stderr)
        return 2
    sources = [BasicSource(path=path) for path in options.paths] or list(settings.sources.basic)
    if not sources:
        print("There is nothing to check: name a folder or a file, or put one under sources.basic in the settings.")
        return 1
    if options.profile is not None:
        sources = [one.model_copy(update={"profile": options.profile}) for one in sources]
    try:
        others = asyncio.run(functions_beside(settings))
        bots = tuple(settings.bots) if has_settings(options) else ()
        checked = check_scripts(settings, sources, others, bots)
    except DefinitionError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps([_facts(one) for one in checked.findings], indent=2, ensure_ascii=False))
    else:
        _show(checked)
    return 1 if checked.broken or checked.unread else 0


def _show(checked: Checked) -> None:
    for one in checked.findings:
        print(one if one.severity == "error" else f"{one} (warning)")
    if not checked.scripts:
        # What was found says why there are none.
        return
    warned = sum(one.severity == "warning" for one in checked.findings)
    scripts = "1 script" if checked.scripts == 1 else f"{checked.scripts} scripts"
    warnings = "1 warning" if warned == 1 else f"{warned or 'no'} warnings"
    print(f"{scripts}: {checked.broken or 'none'} broken, {warnings}")


def _facts(one: Diagnostic) -> dict[str, object]:
    return {
        "file": one.file,
        "line": one.line,
        "column": one.column,
        "code": one.code,
        "message": one.message,
        "severity": one.severity,
    }
