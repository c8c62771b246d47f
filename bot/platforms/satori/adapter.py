"""The adapter of Satori, and its settings."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from bot.platforms.adapter import Adapter, Host
from bot.platforms.base import ChatPlatform
from config.sections.irc import is_loopback
from config.sections.networks import NetworkSettings
from config.terms import WebUrl, Word, settings_error
from services.clock import Clock

_PACKAGE = "bot.platforms.satori"
"""Its modules are imported when an account is opened."""


def _a_gateway(url: str) -> str:
    if "?" in url:
        raise settings_error("has to be http(s)://host:port/path without a query")
    if not url.startswith("https://") and not is_loopback(urlsplit(url).hostname or ""):
        raise settings_error("has to begin with https://, because requests contain the token")
    return url.rstrip("/").removesuffix("/v1")


class SatoriSettings(NetworkSettings):
    """One account of the bot at a Satori gateway."""

    url: Annotated[WebUrl, AfterValidator(_a_gateway)]
    """URL of the gateway, without `/v1`, such as `http://127.0.0.1:5140/satori`."""
    token: SecretStr = SecretStr("")
    """Token that is also set in the gateway; preferably a reference to the environment."""
    platform: str = ""
    """Network of the account as named by the gateway, such as `qq`; needed if the gateway has several accounts."""
    user_id: str = ""
    """Id of the account on its network; needed if the gateway has several accounts on it."""
    buttons: bool = False
    """Whether the network shows buttons, as Discord, KOOK and Telegram do. False: choices become text."""
    admin_roles: tuple[Word, ...] = Field(default=(), max_length=50)
    """Ids of more roles whose members are admins. On Discord and KOOK, ids are numbers."""
    file_hosts: tuple[Word, ...] = Field(default=(), max_length=50)
    """Hosts, with their subdomains, from which files in messages are downloaded, in addition to the gateway."""


def _open(settings: SatoriSettings, host: Host) -> ChatPlatform:
    platform: ChatPlatform = import_module(f"{_PACKAGE}.platform").SatoriPlatform(settings, host)
    return platform


async def _probe(settings: SatoriSettings, _clock: Clock) -> str:
    line: str = await import_module(f"{_PACKAGE}.gateway").probe(settings)
    return line


ADAPTER = Adapter(SatoriSettings, _open, _probe, asks=("account", "url", "token", "platform", "user_id"))
