"""The adapter of Discord."""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Any

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


def _module() -> Any:
    with warnings.catch_warnings():
        # discord.py imports audioop for voice.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            from bot.platforms.discord import platform
        except ImportError as error:
            raise CannotOpen(f"{error.name} is missing: install rollcall[discord]") from error
    return platform


def _open(settings: DiscordSettings, host: Host) -> ChatPlatform:
    platform: ChatPlatform = _module().DiscordPlatform(settings.account, settings.token.get_secret_value(), host)
    return platform


async def _probe(settings: DiscordSettings, clock: Clock) -> str:
    return str(await _module().probe(settings.token.get_secret_value()))


ADAPTER = Adapter(DiscordSettings, _open, _probe, asks=("token",))
