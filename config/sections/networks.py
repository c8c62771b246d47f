"""Chat networks in the settings: the base of their sections, and where the section of each network is defined."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any

from config.terms import Section, described_matching, secrets_in

ENTRY_POINTS = "rollcall.platforms"
"""Group of entry points of installed packages that add networks. Each names an `Adapter`."""
BUILT_IN: Mapping[str, str] = {
    "discord": "bot.platforms.discord.adapter:ADAPTER",
    "feishu": "bot.platforms.feishu.adapter:ADAPTER",
    "irc": "bot.platforms.irc.adapter:ADAPTER",
    "matrix": "bot.platforms.matrix.adapter:ADAPTER",
    "mattermost": "bot.platforms.mattermost.platform:ADAPTER",
    "onebot": "bot.platforms.onebot.platform:ADAPTER",
    "satori": "bot.platforms.satori.platform:ADAPTER",
    "slack": "bot.platforms.slack.platform:ADAPTER",
    "telegram": "bot.platforms.telegram.platform:ADAPTER",
    "xmpp": "bot.platforms.xmpp.adapter:ADAPTER",
}
"""Adapters that come with Rollcall, in the form of entry points. Only those of configured networks are imported."""
_ACCOUNT = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"

Account = Annotated[str, *described_matching(_ACCOUNT, "has to hold only letters, digits, `.`, `_` and `-`")]
"""Name of an account of the bot in `<network>:<account>:<chat>`."""


class NetworkSettings(Section):
    """One account of the bot on a network; the base class of every network's section."""

    account: Account = "main"
    """Name in `<network>:<account>:<chat>`; must be unique on the network."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret values, to be redacted in logs."""
        return tuple(secrets_in(tuple(dict(self).values())))


class NetworkUnavailable(Exception):
    """An adapter cannot be imported. The message names it and says why."""


@cache
def adapter_paths() -> Mapping[str, str]:
    """Import path (`module:attribute`) of each known adapter, by the name of its network. Built-in adapters have
    precedence over those of installed packages."""
    return {one.name: one.value for one in entry_points(group=ENTRY_POINTS)} | dict(BUILT_IN)


def import_adapter(network: str) -> Any:
    """The adapter of a network in `adapter_paths`. Raises NetworkUnavailable."""
    path = adapter_paths()[network]
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise NetworkUnavailable(f"{path} cannot be imported: {type(error).__name__}: {error}") from error


def network_sections(configured: Collection[str]) -> Mapping[str, type[NetworkSettings]]:
    """The section of each network among the `configured` keys of `platforms`; unknown keys are left out. Raises
    NetworkUnavailable."""
    known = adapter_paths()
    return {name: import_adapter(name).settings for name in configured if name in known and name != "irc"}
