"""The adapter of XMPP."""

from __future__ import annotations

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import ChatPlatform
from bot.platforms.xmpp.settings import XmppSettings
from services.clock import Clock

_INSTALL = "slixmpp is not installed: pip install 'rollcall[xmpp]'"


def _open(settings: XmppSettings, host: Host) -> ChatPlatform:
    try:
        from bot.platforms.xmpp.platform import XmppPlatform
    except ModuleNotFoundError as error:
        raise CannotOpen(_INSTALL) from error
    return XmppPlatform(settings, host)


async def _probe(settings: XmppSettings, _clock: Clock) -> str:
    try:
        from bot.platforms.xmpp.platform import probe
    except ModuleNotFoundError as error:
        raise CannotOpen(_INSTALL) from error
    return await probe(settings)


ADAPTER = Adapter(XmppSettings, _open, _probe, asks=("jid", "password"))
