"""`rollcall check`: report all errors and warnings in the settings and functions, without starting the daemon.
`rollcall selfcheck`: checks that every function has to pass."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from bot.checks.functions_check import Code, check_functions
from bot.cli.options import SHIPPED, add_config, config_path, on_settings
from bot.registration.functions import at_their_places
from config.diagnostics import Diagnostic, Diagnostics, Position
from config.loader import check_settings, usable_part
from config.settings import Settings
from config.yaml_document import YamlDocument, read_yaml_file
from function_calls.schema.definition import Code as Unfit


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


_NATIVE_PROTOCOLS = frozenset({"openai", "anthropic", "function"})


async def self_check(settings: Settings, document: YamlDocument | None = None) -> dict[str, list[Diagnostic]]:
    """Diagnostics by description of the check, all empty if good. `document`: the settings file, for places."""
    found = await check_functions(settings, document)

    def of(*codes: Code | Unfit) -> list[Diagnostic]:
        return [one for one in found if one.code in codes]

    return {
        "names and commands are unique, and all definitions are usable": of(Unfit.UNUSABLE, Unfit.TAKEN),
        "all schemas are valid and can be sent to models": of(Code.BAD_SCHEMA),
        "no handler reads the text of a message": of(Code.READS_TEXT, Code.RAW_TEXT),
        "a model with native function calling can be used": _without_native_protocol(settings, document),
    }


def _without_native_protocol(settings: Settings, document: YamlDocument | None) -> list[Diagnostic]:
    if not settings.models or any(model.protocol in _NATIVE_PROTOCOLS for model in settings.models):
        return []
    file, at = ("models", Position(1, 1)) if document is None else (document.file, document.key_at(("models",)))
    message = "no model in the settings has function calling: give one the protocol openai, anthropic or function"
    return [Diagnostic(file, at.line, at.column, "models.no_native_protocol", message)]


def add_selfcheck_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.set_defaults(run=run_selfcheck)


@on_settings
def run_selfcheck(options: argparse.Namespace, settings: Settings) -> int:
    """Print each check and its findings. Returns 1 if something was found, else 0."""
    failed = False
    for name, found in asyncio.run(self_check(settings, read_yaml_file(config_path(options)))).items():
        print(f"{'ERROR' if found else 'ok':<6} {name}")
        for diagnostic in found:
            print(f"       {diagnostic}")
        failed = failed or bool(found)
    return 1 if failed else 0
