"""The adapter of IRC."""

from __future__ import annotations

from bot.platforms.adapter import adapter_in
from config.sections.irc import IrcSettings

ADAPTER = adapter_in("bot.platforms.irc.platform:IrcPlatform", IrcSettings, ("account", "host", "port", "nick"))
