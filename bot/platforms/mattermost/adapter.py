"""The adapter of Mattermost."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from bot.platforms.adapter import Adapter, Host
from bot.platforms.base import ChatPlatform
from config.sections.irc import is_loopback
from config.sections.networks import NetworkSettings
from config.terms import WebUrl, settings_error
from services.clock import Clock

_PLATFORM = "bot.platforms.mattermost.platform"


def _a_server(url: str) -> str:
    if not url.startswith("https://") and not is_loopback(urlsplit(url).hostname or ""):
        raise settings_error("has to begin with https://, because requests contain the token")
    return url.rstrip("/").removesuffix("/api/v4")


def _a_token(secret: SecretStr) -> SecretStr:
    token = secret.get_secret_value()
    if len(token) != 26 or not (token.isascii() and token.isalnum()):
        raise settings_error("has to be a token of 26 letters and digits; it is not the token's id")
    return secret


class MattermostSettings(NetworkSettings):
    """One account of the bot on a Mattermost server."""

    url: Annotated[WebUrl, AfterValidator(_a_server)]
    """URL of the server, such as https://chat.example.org."""
    token: Annotated[SecretStr, AfterValidator(_a_token)]
    """Token of a bot account, or a personal access token; preferably a reference to the environment."""


def _open(settings: MattermostSettings, host: Host) -> ChatPlatform:
    platform: ChatPlatform = import_module(_PLATFORM).MattermostPlatform(settings, host)
    return platform


async def _probe(settings: MattermostSettings, clock: Clock) -> str:
    found: str = await import_module(_PLATFORM).probe(settings)
    return found


ADAPTER = Adapter(MattermostSettings, _open, _probe, asks=("url", "token"))
