"""The adapter of Discord."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import ChatPlatform
from config.sections.networks import NetworkSettings
from config.terms import settings_error
from services.clock import Clock


def _a_token(token: SecretStr) -> SecretStr:
    if re.fullmatch(r"[\w-]{18,}\.[\w-]{4,}\.[\w-]{20,}", token.get_secret_value()) is None:
        raise settings_error(
            "has to be the token from the page Bot of the developer portal: three parts with dots, without `Bot `. "
            "The client secret and the public key are something else"
        )
    return token


class DiscordSettings(NetworkSettings):
    """One bot of Discord."""

    token: Annotated[SecretStr, AfterValidator(_a_token)]
    """Token from the bot's page at https://discord.com/developers/applications; preferably a reference to the
    environment."""


def _open(settings: DiscordSettings, host: Host) -> ChatPlatform:
    try:
        from bot.platforms.discord.platform import DiscordPlatform
    except ImportError as error:
        raise CannotOpen(f"{error.name} is missing: install rollcall[discord]") from error
    return DiscordPlatform(settings, host)


async def _probe(settings: DiscordSettings, clock: Clock) -> str:
    try:
        from bot.platforms.discord.platform import probe
    except ImportError as error:
        raise CannotOpen(f"{error.name} is missing: install rollcall[discord]") from error
    return await probe(settings)


ADAPTER = Adapter(DiscordSettings, _open, _probe)
