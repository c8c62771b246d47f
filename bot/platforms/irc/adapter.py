"""The adapter of IRC."""

from __future__ import annotations

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import ChatPlatform
from config.sections.irc import IrcSettings
from services.clock import Clock


def _open(settings: IrcSettings, host: Host) -> ChatPlatform:
    from bot.platforms.irc.platform import IrcPlatform, Presence

    return IrcPlatform(settings, host.names, host.clock, presence=Presence(settings.account, host.store, host.clock))


async def _probe(settings: IrcSettings, clock: Clock) -> str:
    from bot.platforms.irc.platform import CannotUse, probe

    try:
        return await probe(settings, clock)
    except CannotUse as problem:
        raise CannotOpen(f"{problem}. Check host, port, tls, password and sasl") from problem


ADAPTER = Adapter(IrcSettings, _open, _probe, asks=("account", "host", "port", "nick"))
