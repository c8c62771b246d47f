"""`rollcall run`: the daemon, with the chat page, and a console where there is a terminal; `rollcall chat`: only the
console, without a web server."""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.options import add_config, config_path, on_settings, port_number, reread
from bot.cli.serving import SettingsFile, serve
from bot.database.opening import open_store
from config.settings import Settings
from services.clock import SystemClock
from services.store.ids import Ids
from services.store.turns.cluster import ProcessRole

if TYPE_CHECKING:
    from bot.web.setup import FirstOwner

_SETUP_PORT = 8080


def add_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--port", type=port_number, help="port of the chat page; 0 for any free one")
    parser.add_argument(
        "--set-up",
        action="store_true",
        help="set up in a browser if there is no settings file (default: only in a terminal)",
    )
    parser.add_argument(
        "--role",
        type=ProcessRole,
        choices=list(ProcessRole),
        default=ProcessRole.ALL,
        help="work in a cluster: hold accounts and send (gateway), run turns (worker), or both (default)",
    )
    parser.add_argument("--no-console", action="store_true", help="no chat in this terminal")
    parser.set_defaults(run=run, owner=None)


def add_chat_options(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.set_defaults(run=chat)


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; first set up in a browser if there is no settings file and a terminal, or
    `--set-up`. 0: stopped by signal; 1: settings, functions, port or store cannot be used."""
    path = config_path(options)
    if not path.exists() and not (options.set_up or sys.stdout.isatty()):
        print("rollcall run --set-up makes a settings file in a browser", file=sys.stderr)
        return _run(options)
    if path.exists():
        return _run(options)
    # Imported here: needed once.
    from bot.web.setup import set_up

    port = _SETUP_PORT if options.port is None else options.port
    try:
        owner = asyncio.run(set_up(path, port, os.environ, functools.partial(_announce, path)))
    except (OSError, KeyboardInterrupt) as problem:
        print(f"{path} was not written: {problem or 'interrupted'}", file=sys.stderr)
        return 1
    options.owner = owner
    return _run(options)


@on_settings
def chat(options: argparse.Namespace, settings: Settings) -> int:
    """Chat until the end of input or Ctrl-C. 1: settings, functions or the store cannot be used."""
    file = SettingsFile(config_path(options), lambda: reread(options))
    return serve(settings, file, console=True, page=False)


def _announce(path: Path, link: str) -> None:
    print(f"Set-up:      {link}   (there is no {path} yet)", flush=True)


async def _add_owner(settings: Settings, owner: FirstOwner) -> None:
    """Store the account of the desk. Raises StoreError."""
    from bot.web.desk.accounts import Account, Accounts, DeskRole

    clock = SystemClock()
    store = await open_store(settings, clock)
    try:
        account = Account(owner.name, DeskRole.OWNER)
        await Accounts(store, Ids(clock), clock).put(account, owner.password, account.actor)
    finally:
        await store.close()


@on_settings
def _run(options: argparse.Namespace, settings: Settings) -> int:
    if options.owner is not None:
        asyncio.run(_add_owner(settings, options.owner))
    settings = _as_told(settings, options)
    file = SettingsFile(config_path(options), lambda: _reread(options))
    console = _console_wanted(settings) and not options.no_console and settings.engine != "cluster"
    if settings.engine != "cluster" and options.role is not ProcessRole.ALL:
        print("--role needs `engine: cluster` in the settings", file=sys.stderr)
        return 2
    return serve(settings, file, console=console, page=True, role=options.role)


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
