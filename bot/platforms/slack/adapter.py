"""The adapter of Slack."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from bot.platforms.adapter import Adapter, CannotOpen, Host
from bot.platforms.base import ChatPlatform
from config.sections.irc import is_loopback
from config.sections.networks import NetworkSettings
from config.terms import BaseUrl, settings_error
from services.clock import Clock


def _token(prefix: str) -> AfterValidator:
    def check(token: SecretStr) -> SecretStr:
        if re.fullmatch(rf"{prefix}[A-Za-z0-9-]+", token.get_secret_value()) is None:
            raise settings_error(f"has to be a token that begins with {prefix}")
        return token

    return AfterValidator(check)


def _safe(url: str) -> str:
    if not url.startswith("https://") and not is_loopback(urlsplit(url).hostname or ""):
        raise settings_error("has to begin with https://")
    return url


class SlackSettings(NetworkSettings):
    """One workspace."""

    bot_token: Annotated[SecretStr, _token("xoxb-")]
    """Bot token of the app in the workspace (`xoxb-…`); preferably a reference to the environment."""
    app_token: Annotated[SecretStr, _token("xapp-")]
    """App-level token with the scope `connections:write` (`xapp-…`); preferably a reference to the environment. Each
    account needs its own app: Slack sends an event to only one of the connections of an app."""
    api_url: Annotated[BaseUrl, AfterValidator(_safe)] = "https://slack.com/api/"
    """URL of the Web API; `https://slack-gov.com/api/` for GovSlack."""


def _sdk_module() -> Any:
    try:
        return import_module("bot.platforms.slack.platform")
    except ModuleNotFoundError as error:
        raise CannotOpen("slack-sdk is not installed: pip install 'rollcall[slack]'") from error


def _open(settings: SlackSettings, host: Host) -> ChatPlatform:
    return cast(ChatPlatform, _sdk_module().SlackPlatform(settings, host))


async def _probe(settings: SlackSettings, clock: Clock) -> str:
    return str(await _sdk_module().probe(settings))


ADAPTER = Adapter(SlackSettings, _open, _probe, asks=("bot_token", "app_token"))
