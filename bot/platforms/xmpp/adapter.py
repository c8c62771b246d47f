"""The adapter of XMPP."""

from __future__ import annotations

from bot.platforms.adapter import Adapter, Host, needs_extra
from bot.platforms.base import ChatPlatform
from bot.platforms.xmpp.settings import XmppSettings
from services.clock import Clock


def _open(settings: XmppSettings, host: Host) -> ChatPlatform:
    with needs_extra("xmpp"):
        from bot.platforms.xmpp.platform import XmppPlatform
    return XmppPlatform(settings, host)


async def _probe(settings: XmppSettings, _clock: Clock) -> str:
    with needs_extra("xmpp"):
        from bot.platforms.xmpp.platform import probe
    return await probe(settings)


ADAPTER = Adapter(XmppSettings, _open, _probe, asks=("jid", "password"))
