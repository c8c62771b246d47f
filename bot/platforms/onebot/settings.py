"""Settings of OneBot v11."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator
from pydantic import ValidationInfo as Info

from config.sections.networks import NetworkSettings
from config.terms import SHORTEST_TOKEN, Count, Word, described_matching, is_loopback, settings_error

_ELSEWHERE = "without TLS, others on the network could read the token and all messages"


def _websocket_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("ws", "wss") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if url and (not is_url or "@" in parts.netloc or parts.query or parts.fragment):
        raise settings_error("has to be ws(s)://host:port/path without user and query; the token is access_token")
    if url and parts.scheme == "ws" and not is_loopback(parts.hostname or ""):
        raise settings_error(f"has to be wss:// for another machine: {_ELSEWHERE}")
    return url


def _local(host: str) -> str:
    if not is_loopback(host):
        raise settings_error(f"has to be a loopback address such as 127.0.0.1: {_ELSEWHERE}; use url, or a proxy")
    return host


class OneBotSettings(NetworkSettings):
    """One account, by its OneBot v11 implementation. Either `url` or `port` is needed."""

    url: Annotated[str, AfterValidator(_websocket_url)] = ""
    """WebSocket server of the implementation, such as `ws://127.0.0.1:3001`, to which the bot connects."""
    host: Annotated[str, AfterValidator(_local)] = "127.0.0.1"
    """Address of the bot's own WebSocket server, with `port`."""
    port: Count = Field(default=0, ge=0, le=65_535)
    """Port of the bot's own WebSocket server, to which the implementation connects. 0: none."""
    access_token: SecretStr = SecretStr("")
    """Token that is also set in the implementation; preferably a reference to the environment. Needed with `port`."""
    self_id: Annotated[str, *described_matching(r"[^\s]{0,64}", "has to be one word, such as a QQ number")] = ""
    """The bot's own id, such as its QQ number; other accounts are rejected. Empty: any."""
    accept_invitations: bool = False
    """Whether invitations to groups are accepted. The bot leaves groups that `chats.allow` does not name."""
    file_hosts: tuple[Word, ...] = Field(default=("qq.com", "qq.com.cn", "qpic.cn"), max_length=50)
    """Hosts, with their subdomains, from which files in messages may be downloaded."""

    @field_validator("port")
    @classmethod
    def _one_direction(cls, port: int, info: Info) -> int:
        if "url" in info.data and bool(port) == bool(info.data["url"]):
            raise settings_error("or url is needed, and not both")
        return port

    @field_validator("access_token")
    @classmethod
    def _long_enough(cls, token: SecretStr, info: Info) -> SecretStr:
        if not token.get_secret_value().isascii() or not token.get_secret_value().isprintable():
            raise settings_error("must hold only visible ASCII characters")
        if info.data.get("port") and len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise settings_error(f"needs at least {SHORTEST_TOKEN} characters with port, because it admits others")
        return token
