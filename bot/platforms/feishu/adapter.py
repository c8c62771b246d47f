"""The adapter of Feishu and Lark."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from bot.platforms.adapter import adapter_in
from config.sections.networks import NetworkSettings
from config.terms import is_loopback, settings_error


def _a_domain(domain: str) -> str:
    parts = urlsplit(domain if "//" in domain else f"https://open.{domain}")
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not (is_safe and parts.hostname) or set("?#@") & set(domain):
        raise settings_error("has to be feishu.cn, larksuite.com, or the https:// URL of your own open platform")
    return parts.geturl().rstrip("/").removesuffix("/open-apis")


class FeishuSettings(NetworkSettings):
    """One app on Feishu or Lark."""

    app_id: Annotated[str, Field(pattern=r"^cli_[A-Za-z0-9]+$")]
    """App ID, `cli_…`, from the page *Credentials & Basic Info* of the app."""
    app_secret: SecretStr
    """App Secret from the same page; preferably a reference to the environment."""
    domain: Annotated[str, AfterValidator(_a_domain)] = "feishu.cn"
    """`feishu.cn`, `larksuite.com`, or the URL of your own open platform."""
    events: Literal["websocket", "webhook"] = "websocket"
    """`websocket`: the bot opens a long connection. `webhook`: Feishu sends events to `platforms.web.public_url`, which
    has to be an https URL and reachable from Feishu."""
    encrypt_key: SecretStr = SecretStr("")
    """Encrypt Key of the app's events, which signs and encrypts them; needed for `webhook`. Preferably a reference to
    the environment."""
    verification_token: SecretStr = SecretStr("")
    """Verification Token of the app's events. If it is set, `webhook` rejects events with another one."""

    @model_validator(mode="after")
    def _is_signed(self) -> FeishuSettings:
        if self.events == "webhook" and not self.encrypt_key.get_secret_value():
            raise settings_error("events: webhook needs encrypt_key: events without it are not signed")
        return self


ADAPTER = adapter_in("bot.platforms.feishu.platform:FeishuPlatform", FeishuSettings, ("app_id", "app_secret", "domain"))
