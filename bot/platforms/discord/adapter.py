"""The adapter of Discord."""

from __future__ import annotations

from bot.platforms.adapter import adapter_in
from bot.platforms.discord.settings import DiscordSettings

ADAPTER = adapter_in("bot.platforms.discord.platform:DiscordPlatform", DiscordSettings, ("token",), extra="discord")
