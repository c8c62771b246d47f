"""Adapters: how the daemon opens the accounts of a configured network, built in or from an installed package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bot.platforms.base import ChatPlatform
from config.chat_settings import is_allowed
from config.sections.networks import NetworkSettings, import_adapter
from config.settings import Settings
from services.clock import Clock
from services.extras import missing_extra
from services.refs import ChatRef
from services.store.ids import Ids
from services.store.port import Store


@dataclass(frozen=True, slots=True)
class Host:
    """Services and facts of the daemon for a platform."""

    store: Store
    """For cursors; events go through `Deliver`."""
    ids: Ids
    clock: Clock
    names: Sequence[str]
    """Names of the bots, with their aliases. A chat has one bot, so the name of any bot addresses it."""
    folder: Path
    """For files of the account, such as encryption keys; not created yet."""
    public_url: str = ""
    """URL of the web server from outside, without a slash at the end; empty if it has none."""
    allows: Callable[[ChatRef], bool] = lambda chat: True
    """Whether `chats.allow` included a chat at the start."""


class CannotOpen(Exception):
    """An account cannot be used as configured. The message says why and what to do, in words for operators."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """A network, as named by an entry point in the group `rollcall.platforms`. Its module is imported to read the
    settings, so it must not import an SDK at its top."""

    settings: type[NetworkSettings]
    open: Callable[[Any, Host], ChatPlatform]
    """The platform of one account, not connected yet. Raises CannotOpen, for example if its SDK is not installed."""
    probe: Callable[[Any, Clock], Coroutine[Any, Any, str]]
    """Connect to the network and disconnect; returns a line for operators about the account. Raises CannotOpen."""
    asks: Sequence[str] = ()
    """Settings that `rollcall init` asks for."""


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """For imports of packages in Rollcall's extra `name`. Raises CannotOpen if one is missing."""
    try:
        yield
    except ImportError as error:
        raise CannotOpen(missing_extra(name, str(error.name))) from error


def adapter_in(path: str, settings: type[NetworkSettings], asks: Sequence[str] = (), *, extra: str = "") -> Adapter:
    """The adapter of the platform at `path` (`module:class`). The module, which also has `probe`, is imported for the
    first account. `extra`: Rollcall's extra with its packages."""
    module, _, name = path.partition(":")

    def imported() -> Any:
        with warnings.catch_warnings(), needs_extra(extra) if extra else nullcontext():
            # discord.py imports audioop for voice.
            warnings.simplefilter("ignore", DeprecationWarning)
            return import_module(module)

    def open_account(account: NetworkSettings, host: Host) -> ChatPlatform:
        platform: ChatPlatform = getattr(imported(), name)(account, host)
        return platform

    async def probe(account: NetworkSettings, clock: Clock) -> str:
        return str(await imported().probe(account, clock))

    return Adapter(settings, open_account, probe, asks)


def open_platforms(settings: Settings, store: Store, ids: Ids, clock: Clock) -> list[ChatPlatform]:
    """A platform for each configured account, not connected yet. Raises CannotOpen."""
    opened: list[ChatPlatform] = []
    for name, account in settings.platforms.networks:
        adapter: Adapter = import_adapter(name)
        try:
            opened.append(adapter.open(account, host_of(name, account, settings, store, ids, clock)))
        except CannotOpen as problem:
            raise CannotOpen(f"platforms.{name}, account {account.account}: {problem}") from problem
    return opened


def host_of(name: str, account: NetworkSettings, settings: Settings, store: Store, ids: Ids, clock: Clock) -> Host:
    """The host for an account of the network `name`."""
    return Host(
        store=store,
        ids=ids,
        clock=clock,
        names=[name for bot in settings.bots.values() for name in (bot.name, *bot.aliases)],
        folder=Path(settings.home) / "platforms" / name / account.account,
        public_url=next(iter(settings.platforms.web.public_url), "").rstrip("/"),
        allows=lambda chat: is_allowed(settings, chat.key) is not None,
    )
