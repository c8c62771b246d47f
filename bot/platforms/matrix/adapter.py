"""The adapter of Matrix."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, model_validator

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import ChatPlatform
from config.sections.irc import is_loopback
from config.sections.networks import NetworkSettings
from config.terms import described_matching, settings_error
from services.clock import Clock

_URL = r"https?://[^\s/?#@]+/?"
_USER = r"@[^\s:,]+:[^\s/,]+"


def _encrypted_transport(url: str) -> str:
    address = urlsplit(url)
    if address.scheme == "http" and not is_loopback(address.hostname or ""):
        raise settings_error("has to be https, because it receives the access token; http only for this machine")
    return url.rstrip("/")


class MatrixSettings(NetworkSettings):
    """One account on a Matrix server, with `access_token` or `password`."""

    homeserver: Annotated[
        str,
        *described_matching(_URL, "has to be the server's URL, such as https://matrix.example.org"),
        AfterValidator(_encrypted_transport),
    ]
    """URL of the home server's client API. For many servers it differs from the domain of the user ids."""
    user: Annotated[str, *described_matching(_USER, "has to be a full user id, such as @rollcall:example.org")]
    """Full user id of the bot."""
    access_token: SecretStr = SecretStr("")
    """Access token of a device of the bot; preferably a reference to the environment. Use it in this daemon only."""
    password: SecretStr = SecretStr("")
    """Password of the bot, if there is no access token; preferably a reference to the environment. The first start
    creates a device, which is stored in `home`."""
    encryption: bool = False
    """Whether the bot reads and writes in encrypted rooms. Its keys are stored in `home`; without them old messages
    cannot be read. New devices of members are trusted without verification. Needs the extra `matrix-e2ee`."""

    @model_validator(mode="after")
    def _one_credential(self) -> MatrixSettings:
        if bool(self.access_token.get_secret_value()) == bool(self.password.get_secret_value()):
            raise settings_error("needs either access_token or password")
        return self


def _module(name: str) -> Any:
    try:
        return import_module(f"bot.platforms.matrix.{name}")
    except ImportError as problem:
        raise CannotOpen("install the extra `matrix`: pip install 'rollcall[matrix]'") from problem


def _open(settings: MatrixSettings, host: Host) -> ChatPlatform:
    platform: ChatPlatform = _module("platform").MatrixPlatform(settings, host)
    return platform


async def _probe(settings: MatrixSettings, clock: Clock) -> str:
    return str(await _module("client").probe(settings))


ADAPTER = Adapter(MatrixSettings, _open, _probe, asks=("homeserver", "user", "password"))
