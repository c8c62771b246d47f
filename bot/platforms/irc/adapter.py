"""The adapter of IRC."""

from __future__ import annotations

from bot.platforms.adapter import Adapter, Host
from bot.platforms.base import ChatPlatform
from config.sections.irc import IrcSettings
from services.clock import Clock


def _open(settings: IrcSettings, host: Host) -> ChatPlatform:
    from bot.platforms.irc.platform import IrcPlatform

    return IrcPlatform(settings, host)


async def _probe(settings: IrcSettings, clock: Clock) -> str:
    from bot.platforms.irc.platform import probe

    return await probe(settings, clock)


ADAPTER = Adapter(IrcSettings, _open, _probe, asks=("account", "host", "port", "nick"))
