"""Settings of mail: through which server the bot sends it, as whom, and to whom."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, ValidationInfo, field_validator

from config.terms import Count, LocalPath, Seconds, Section, described_matching, fault

Security = Literal["starttls", "tls", "none"]
"""How a connection to a mail server is encrypted."""
_LOCAL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_DOMAIN = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
_HOST = r"[A-Za-z0-9:]([A-Za-z0-9.:_-]{0,251}[A-Za-z0-9:])?"


def _in_one_line(secret: SecretStr) -> SecretStr:
    if re.search(r"[\x00\r\n]", secret.get_secret_value()):
        raise fault("must not hold line ends")
    return secret


_Host = Annotated[str, *described_matching(f"({_HOST})?", "has to be the name or address of a mail server")]
_Address = Annotated[
    str,
    StringConstraints(max_length=254),
    *described_matching(f"({_LOCAL}@{_DOMAIN})?", "has to be a mail address such as bot@club.example"),
]
_Name = Annotated[
    str,
    StringConstraints(max_length=64),
    *described_matching(r'[^\x00-\x1f\x7f"<>@]*', "has to be a plain name"),
]
_Login = Annotated[
    str, StringConstraints(max_length=254), *described_matching(r"[^\x00-\x1f\x7f]*", "has to be one line")
]
RecipientPattern = Annotated[
    str,
    StringConstraints(max_length=254),
    *described_matching(
        rf"\*|(\*|{_LOCAL})@(\*\.)?{_DOMAIN}",
        "has to be a mail address such as ann@club.example, *@club.example, *@*.club.example, or * for everybody",
    ),
]
"""A mail address, all of a domain, or all."""


class MailSettings(Section):
    """Mail that scripts send."""

    host: _Host = Field(default="")
    """The server that takes it. Empty: there is none, and nothing is sent."""
    port: Count = Field(default=587, ge=1, le=65_535)
    """Its port: 587 is usual with starttls, 465 with tls, 25 without."""
    security: Security = "starttls"
    """starttls: encrypted before anything is said. tls: encrypted from the first byte. none: only for a server on this
    machine."""
    ca_file: LocalPath | None = None
    """The certificates that the server's is checked against, as PEM. Left out: those of this machine."""
    username: _Login = ""
    """The name to log in with. Empty: without a login."""
    password: Annotated[SecretStr, AfterValidator(_in_one_line)] = SecretStr("")
    """The password to it; best a reference to the environment."""
    sender: _Address = Field(default="")
    """The address that mail comes from. It is needed to send any."""
    sender_name: _Name = "Rollcall"
    """The name beside it."""
    allowed: tuple[RecipientPattern, ...] = Field(default=(), max_length=1000)
    """To whom mail may go. Nobody, unless there is an entry."""
    recipients: Count = Field(default=10, ge=1, le=100)
    """Recipients of one mail."""
    per_hour: Count = Field(default=30, ge=0, le=100_000)
    """Mails in an hour, of all chats together."""
    attachments_kilobytes: Count = Field(default=5000, ge=0, le=50_000)
    """All files of one mail together."""
    timeout_seconds: Seconds = 20
    """How long it may take to hand one over."""

    @field_validator("security")
    @classmethod
    def _only_here_without(cls, security: Security, info: ValidationInfo) -> Security:
        host = info.data.get("host", "")
        if security == "none" and host and not _is_loopback(host):
            raise fault("none is only for a server on this machine; use starttls or tls")
        return security

    @field_validator("password")
    @classmethod
    def _both_or_neither(cls, password: SecretStr, info: ValidationInfo) -> SecretStr:
        if bool(password.get_secret_value()) != bool(info.data.get("username")):
            raise fault("and username belong together: set both or neither")
        return password

    @field_validator("sender")
    @classmethod
    def _needed_with_a_host(cls, sender: str, info: ValidationInfo) -> str:
        if info.data.get("host") and not sender:
            raise fault("has to be an address such as bot@club.example while mail.host is set")
        return sender

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, to be kept out of logs."""
        return (self.password.get_secret_value(),)


def recipient_fits(patterns: tuple[str, ...], address: str) -> bool:
    """Whether one of `patterns` is `address`, or stands for it; capitals and small letters are the same."""
    local, _, domain = address.lower().rpartition("@")
    return any(pattern == "*" or _fits(pattern.lower(), local, domain) for pattern in patterns)


def _fits(pattern: str, local: str, domain: str) -> bool:
    whose, _, where = pattern.rpartition("@")
    if whose not in ("*", local):
        return False
    return domain.endswith(where[1:]) if where.startswith("*.") else domain == where


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
