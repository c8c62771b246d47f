"""The adapter of Telegram."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import ChatPlatform, SendFailed
from config.sections.irc import is_loopback
from config.sections.networks import NetworkSettings
from config.terms import WebUrl, settings_error
from services.clock import Clock


def _a_token(secret: SecretStr) -> SecretStr:
    if re.fullmatch(r"\d+:[A-Za-z0-9_-]+", secret.get_secret_value(), re.ASCII) is None:
        raise settings_error("has to be a token of @BotFather, such as 123456:ABC-DEF")
    return secret


def _a_server(url: str) -> str:
    if not url.startswith("https://") and not is_loopback(urlsplit(url).hostname or ""):
        raise settings_error("has to begin with https://, because requests contain the token")
    return url.rstrip("/")


class TelegramSettings(NetworkSettings):
    """One account of the bot on Telegram."""

    token: Annotated[SecretStr, AfterValidator(_a_token)]
    """Token of @BotFather; preferably a reference to the environment."""
    webhook: bool = False
    """True: Telegram sends events to `platforms.web.public_url`, which has to be an https URL and reachable from the
    internet. False: the bot fetches them."""
    api_url: Annotated[WebUrl, AfterValidator(_a_server)] = "https://api.telegram.org"
    """URL of the Bot API server, without the token."""


def _open(settings: TelegramSettings, host: Host) -> ChatPlatform:
    # Imported here: few daemons use Telegram.
    from bot.platforms.telegram.api import BotApi
    from bot.platforms.telegram.platform import TelegramPlatform

    if settings.webhook and not host.public_url.startswith("https://"):
        raise CannotOpen("webhook: true needs platforms.web.public_url with https://")
    api = BotApi(settings.api_url, settings.token.get_secret_value())
    return TelegramPlatform(settings, host, api, by_webhook=settings.webhook)


async def _probe(settings: TelegramSettings, _clock: Clock) -> str:
    from bot.platforms.telegram.api import BotApi

    api = BotApi(settings.api_url, settings.token.get_secret_value())
    try:
        bot = await api.call("getMe")
    except SendFailed as problem:
        raise CannotOpen(f"{problem}. Check token and api_url") from None
    finally:
        await api.close()
    line = f"connected as @{bot['username']}"
    if not bot.get("can_join_groups"):
        line += "; it cannot be added to groups: /setjoingroups at @BotFather changes that"
    if not bot.get("can_read_all_group_messages"):
        line += "; privacy mode is on, so it sees only commands, mentions and replies in groups"
        line += " where it is no administrator: /setprivacy at @BotFather changes that"
    return line


ADAPTER = Adapter(TelegramSettings, _open, _probe, asks=("token",))
