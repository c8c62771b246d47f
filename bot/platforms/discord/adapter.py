"""The adapter of Discord."""

from __future__ import annotations

from typing import Annotated

from pydantic import SecretStr

from bot.platforms.adapter import adapter_in
from config.sections.networks import NetworkSettings
from config.terms import matching

_TOKEN = matching(
    r"[\w-]{18,}\.[\w-]{4,}\.[\w-]{20,}",
    "has to be the token from the page Bot of the developer portal: three parts with dots, without `Bot `. "
    "The client secret and the public key are something else",
)


class DiscordSettings(NetworkSettings):
    """One bot of Discord."""

    token: Annotated[SecretStr, _TOKEN]
    """Token from the bot's page at https://discord.com/developers/applications; preferably a reference to the
    environment."""


ADAPTER = adapter_in("bot.platforms.discord.platform:DiscordPlatform", DiscordSettings, ("token",), extra="discord")
