"""Options and error output shared by commands."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from bot.database.opening import operator_connection_of
from config.loader import SettingsInvalid, load_settings
from config.settings import Settings
from function_calls.schema.definition import DefinitionError
from services.refs import ChatRef, MemberRef
from services.store.reader import OperatorConnection, ReaderError

_ROOT = Path(__file__).parents[2]
SHIPPED = _ROOT / "config" / "bot.yaml"
_MOST_HOURS = 1_000_000.0
_HIGHEST_PORT = 65_535


def use_platform_folders(environment: MutableMapping[str, str], root: Path = _ROOT) -> None:
    """Set the variables of data, settings and logs that are not set to the folders of the user, as the platform names
    them. The source tree, which has the script `run`, keeps its own."""
    if (root / "run").is_file():
        return
    # Imported here: not needed in the source tree.
    from platformdirs import PlatformDirs

    folders = PlatformDirs("rollcall", appauthor=False)
    environment.setdefault("ROLLCALL_HOME", folders.user_data_dir)
    environment.setdefault("ROLLCALL_LOGS", folders.user_log_dir)
    settings = folders.user_config_path / "bot.yaml"
    if settings.is_file():
        environment.setdefault("ROLLCALL_CONFIG", str(settings))


def add_config(parser: argparse.ArgumentParser, **default: Any) -> None:
    """Add the option for the settings file; `default` replaces its default value."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings file (default: $ROLLCALL_CONFIG, else the user's bot.yaml, else the shipped one)",
        **default,
    )


def config_path(options: argparse.Namespace) -> Path:
    """Path of the settings file to use: that of the options, else of ROLLCALL_CONFIG, which `use_platform_folders` may
    have set, else the shipped one."""
    if options.config is not None:
        return Path(options.config)
    named = os.environ.get("ROLLCALL_CONFIG")
    return Path(named) if named else SHIPPED


def has_settings(options: argparse.Namespace) -> bool:
    """Whether a settings file was named; otherwise the shipped one is used."""
    return config_path(options) != SHIPPED


def positive_count(text: str) -> int:
    """Parse a positive integer. Raises ArgumentTypeError for other texts."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def positive_hours(text: str) -> float:
    """Parse a number of hours above 0. Raises ArgumentTypeError for other texts, and above _MOST_HOURS."""
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0")
    return hours


def port_number(text: str) -> int:
    """Parse a TCP port, or 0. Raises ArgumentTypeError for other texts."""
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_HIGHEST_PORT}")
    return int(text)


def reread(options: argparse.Namespace) -> Settings:
    """Load the settings from the file again. Raises SettingsInvalid."""
    return load_settings(config_path(options), os.environ)


def on_settings(act: Callable[[argparse.Namespace, Settings], int]) -> Callable[[argparse.Namespace], int]:
    """A command that calls `act` with the settings. Exit status 1, with all problems on standard error, if they are
    invalid, the database cannot be read, or a definition cannot be used."""

    @functools.wraps(act)
    def run(options: argparse.Namespace) -> int:
        try:
            return act(options, reread(options))
        except (SettingsInvalid, ReaderError, DefinitionError) as error:
            print(error, file=sys.stderr)
            return 1

    return run


def on_database(
    act: Callable[[argparse.Namespace, Settings, OperatorConnection], int],
) -> Callable[[argparse.Namespace], int]:
    """A command that calls `act` with the settings and their database, which a running daemon may have open. Exit
    status 1, with the reason on standard error, if either cannot be used."""

    def run(options: argparse.Namespace, settings: Settings) -> int:
        with operator_connection_of(settings, writes=True) as database:
            return act(options, settings, database)

    return on_settings(run)


def chat_ref(text: str) -> ChatRef:
    """Parse a chat, `platform:account:chat`. Raises ArgumentTypeError for other texts."""
    try:
        return ChatRef.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form platform:account:chat") from None


def member_ref(text: str) -> MemberRef:
    """Parse a member, `platform:account:member`. Raises ArgumentTypeError for other texts."""
    try:
        return MemberRef.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form platform:account:member") from None


def agreed(question: str, *, unasked: str) -> bool:
    """Ask for a yes on the terminal; without a terminal print `unasked` to standard error and return False."""
    if not sys.stdin.isatty():
        print(unasked, file=sys.stderr)
        return False
    try:
        return input(f"{question} [y/N] ").strip().casefold() in ("y", "yes")
    except EOFError:
        print()
        return False


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in columns, with `head` as its first line."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)
