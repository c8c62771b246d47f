"""Settings of mail: server, sender and permitted recipients."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints, ValidationInfo, field_validator

from config.terms import (
    Count,
    LocalPath,
    OneLineSecret,
    Seconds,
    Section,
    described_matching,
    is_loopback,
    settings_error,
)

Security = Literal["starttls", "tls", "none"]
"""Encryption of the connection to the mail server."""
_LOCAL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_DOMAIN = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
_HOST = r"[A-Za-z0-9:]([A-Za-z0-9.:_-]{0,251}[A-Za-z0-9:])?"

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
"""A mail address, all addresses of a domain, or all."""


class MailSettings(Section):
    """Mail sent by scripts."""

    host: _Host = Field(default="")
    """Mail server. Empty: no mail is sent."""
    port: Count = Field(default=587, ge=1, le=65_535)
    """Port of the server: usually 587 with starttls, 465 with tls, 25 without."""
    security: Security = "starttls"
    """starttls: encrypted before authentication. tls: encrypted from the first byte. none: only for a server on this
    machine."""
    ca_file: LocalPath | None = None
    """CA certificates for the server, as PEM. Missing: those of this machine."""
    username: _Login = ""
    """User name. Empty: no authentication."""
    password: OneLineSecret = SecretStr("")
    """Password of the user; preferably a reference to the environment."""
    sender: _Address = Field(default="")
    """Sender address; required for sending."""
    sender_name: _Name = "Rollcall"
    """Sender name."""
    allowed: tuple[RecipientPattern, ...] = Field(default=(), max_length=1000)
    """Permitted recipients; none by default."""
    recipients: Count = Field(default=10, ge=1, le=100)
    """Maximum number of recipients of a mail."""
    per_hour: Count = Field(default=30, ge=0, le=100_000)
    """Maximum number of mails per hour, all chats together."""
    attachments_kilobytes: Count = Field(default=5000, ge=0, le=50_000)
    """Maximum total size of a mail's attachments."""
    timeout_seconds: Seconds = 20
    """Timeout for sending a mail."""

    @field_validator("security")
    @classmethod
    def _only_here_without(cls, security: Security, info: ValidationInfo) -> Security:
        host = info.data.get("host", "")
        if security == "none" and host and not is_loopback(host):
            raise settings_error("none is only for a server on this machine; use starttls or tls")
        return security

    @field_validator("password")
    @classmethod
    def _both_or_neither(cls, password: SecretStr, info: ValidationInfo) -> SecretStr:
        if bool(password.get_secret_value()) != bool(info.data.get("username")):
            raise settings_error("and username belong together: set both or neither")
        return password

    @field_validator("sender")
    @classmethod
    def _needed_with_a_host(cls, sender: str, info: ValidationInfo) -> str:
        if info.data.get("host") and not sender:
            raise settings_error("has to be an address such as bot@club.example while mail.host is set")
        return sender


def recipient_fits(patterns: tuple[str, ...], address: str) -> bool:
    """Whether one of `patterns` matches `address`, ignoring case."""
    local, _, domain = address.lower().rpartition("@")
    return any(pattern == "*" or _fits(pattern.lower(), local, domain) for pattern in patterns)


def _fits(pattern: str, local: str, domain: str) -> bool:
    whose, _, where = pattern.rpartition("@")
    if whose not in ("*", local):
        return False
    return domain.endswith(where[1:]) if where.startswith("*.") else domain == where
