"""The adapter of XMPP."""

from __future__ import annotations

from bot.platforms.adapter import adapter_in
from bot.platforms.xmpp.settings import XmppSettings

ADAPTER = adapter_in("bot.platforms.xmpp.platform:XmppPlatform", XmppSettings, ("jid", "password"), extra="xmpp")
