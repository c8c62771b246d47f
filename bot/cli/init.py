"""`rollcall init`: write a settings file for a bot on one or more networks, after checking their tokens."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from getpass import getpass
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from bot.checks.first_settings import Account, probe_account, settings_text, typed, write_private
from bot.platforms.adapter import Adapter
from config.sections.networks import NetworkUnavailable, adapter_paths, import_adapter
from config.terms import attribute_docs
from config.texts import Texts

_NAME = "Rollcall"
_FILE = Path("bot.yaml")


class Aborted(Exception):
    """An answer cannot be used and nobody can be asked. The message says which and why."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, default=_FILE, help="file to write (default: bot.yaml)")
    parser.add_argument("--name", help=f"the bot's name (default: {_NAME})")
    parser.add_argument("--language", choices=Texts().languages, help="language of its texts (default: en)")
    parser.add_argument("--network", choices=sorted(adapter_paths()), help="the network; more can be added later")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the network, such as token=…"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="CHAT", help="id of a chat to serve; '*' for every chat"
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask for what the options leave out if there is a terminal, check the accounts and write the file. Exit status 1,
    without a file, if an account cannot be used."""
    if options.file.exists() and not options.force:
        print(f"{options.file} exists; name another file, or add --force to replace it", file=sys.stderr)
        return 1
    asks = sys.stdin.isatty()
    try:
        name = options.name or (_ask("Name of the bot", _NAME) if asks else _NAME)
        language = options.language or (_language() if asks else "en")
        accounts = [*_accounts(options, asks=asks)]
    except Aborted as problem:
        print(problem, file=sys.stderr)
        return 1
    except (EOFError, KeyboardInterrupt):
        print("\nNothing was written.", file=sys.stderr)
        return 1
    write_private(options.file, settings_text(name, language, accounts))
    print(f"\nWrote {options.file}. Start the bot:  rollcall run --config {options.file}")
    if not all(account.allow for account in accounts):
        print("Add the bot to a chat: it says the chat's id, which belongs into chats.allow.")
    return 0


def _accounts(options: argparse.Namespace, *, asks: bool) -> Iterator[Account]:
    """The accounts of the options, then those that are entered. Raises Aborted."""
    if options.network is not None:
        given = dict(one.partition("=")[::2] for one in options.set)
        yield _account(options.network, given, options.allow, asks=asks)
        return
    known = sorted(adapter_paths())
    while asks:
        network = _ask(f"Network ({', '.join(known)}; empty: no more)", "")
        if not network:
            return
        if network in known:
            yield _account(network, {}, (), asks=True)
        else:
            print(f"There is no network {network!r}.")


def _account(network: str, given: Mapping[str, str], allow: Sequence[str], *, asks: bool) -> Account:
    """The account of a network, checked against its server. Raises Aborted."""
    try:
        adapter: Adapter = import_adapter(network)
    except NetworkUnavailable as problem:
        raise Aborted(str(problem)) from problem
    docs = attribute_docs(adapter.settings)
    unknown = sorted(given.keys() - adapter.settings.model_fields.keys())
    if unknown:
        raise Aborted(
            f"--set: {network} has no setting {unknown[0]!r}; it has {', '.join(adapter.settings.model_fields)}"
        )
    asked = [key for key in adapter.asks if key not in given] if asks else []
    values = dict(given)
    while True:
        for key in asked:
            values[key] = _value(key, adapter.settings.model_fields[key], docs.get(key, ""), values.get(key, ""))
        why_not = _problem(adapter, values)
        if not why_not:
            break
        if not asked:
            raise Aborted(f"{network}: {why_not}")
        print(f"  That does not work: {why_not}")
    if not allow and asks:
        print("Chats to serve, as ids with spaces between; * for every chat that the bot is added to.")
        allow = _ask("Chats (empty: decide later)", "").split()
    return Account(network, typed(values, adapter), allow, docs)


def _problem(adapter: Adapter, values: Mapping[str, str]) -> str:
    """Why the account cannot be used; empty after the server has accepted it, which is printed."""
    print("  Checking …", flush=True)
    try:
        print(f"  {asyncio.run(probe_account(adapter, values))}")
    except ValueError as problem:
        return str(problem)
    return ""


def _value(key: str, field: FieldInfo, doc: str, last: str) -> str:
    """The entered value of a setting; `last`, the one entered before, is its default. Secrets are not shown and have no
    default. `${NAME}` stands for an environment variable."""
    print(f"  {' '.join(doc.split())}")
    if field.annotation is SecretStr:
        return getpass(f"  {key} (not shown; or ${{NAME}} of an environment variable): ").strip()
    default = "" if field.is_required() or field.default is None else str(field.default)
    return _ask(f"  {key}", last or default)


def _ask(question: str, default: str) -> str:
    shown = f" [{default}]" if default else ""
    return input(f"{question}{shown}: ").strip() or default


def _language() -> str:
    languages = Texts().languages
    while (language := _ask(f"Language ({', '.join(languages)})", "en")) not in languages:
        print(f"There are no texts in {language!r}.")
    return language
