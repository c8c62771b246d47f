"""The adapter of Discord."""

from __future__ import annotations

import warnings
from typing import Any

from bot.platforms.adapter import Adapter, Host, needs_extra
from bot.platforms.base import ChatPlatform
from bot.platforms.discord.settings import DiscordSettings
from services.clock import Clock


def _module() -> Any:
    with warnings.catch_warnings(), needs_extra("discord"):
        # discord.py imports audioop for voice.
        warnings.simplefilter("ignore", DeprecationWarning)
        from bot.platforms.discord import platform
    return platform


def _open(settings: DiscordSettings, host: Host) -> ChatPlatform:
    platform: ChatPlatform = _module().DiscordPlatform(settings, host)
    return platform


async def _probe(settings: DiscordSettings, _clock: Clock) -> str:
    return str(await _module().probe(settings.token.get_secret_value()))


ADAPTER = Adapter(DiscordSettings, _open, _probe, asks=("token",))
