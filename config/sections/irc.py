"""Settings of IRC networks, with one account of the bot on each."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, field_validator
from pydantic import ValidationInfo as Info

from config.sections.networks import Account, NetworkSettings
from config.terms import (
    Count,
    LocalPath,
    MemberKey,
    Number,
    OneLineSecret,
    Seconds,
    Section,
    Word,
    described_matching,
    is_loopback,
    not_below_first_delay,
    settings_error,
)

BY_NICK = "~"
"""Prefix of a member id that is only a nick."""
_NICK = r"[A-Za-z\[\]\\`_^{|}][A-Za-z0-9\[\]\\`_^{|}-]{0,63}"
_CHANNEL = r"[#&+!][^\x00-\x20\x7f,:*]{1,63}"
_NO_BREAK = r"[^\x00\r\n]*"
_WORD = r"[^\x00-\x20\x7f:@][^\x00-\x20\x7f@]{0,63}"


def _no_nick(key: str) -> str:
    platform, _, rest = key.partition(":")
    native = rest.partition(":")[2]
    if (platform == "irc" and native.startswith(BY_NICK)) or (platform == "xmpp" and f"/{BY_NICK}" in native):
        raise settings_error(
            "is a nick, and a nick is no identity: anybody can take it. Name the account that services know, without ~"
        )
    return key


def _a_key(secret: SecretStr) -> SecretStr:
    if re.search(r"[\x00-\x20,]", secret.get_secret_value()) or secret.get_secret_value().startswith(":"):
        raise settings_error("must not hold spaces, commas or control characters, or begin with a colon")
    return secret


RoleHolder = Annotated[MemberKey, AfterValidator(_no_nick)]
"""Key of a member who can be given a role."""
_Nick = Annotated[str, *described_matching(_NICK, "has to be a nick: a letter, then letters, digits and []\\`_^{|}-")]
_Channel = Annotated[
    str, *described_matching(_CHANNEL, "has to be a channel such as #family, without spaces, commas and colons")
]
_Username = Annotated[str, *described_matching(_WORD, "has to be one word, without @")]
_Text = Annotated[str, StringConstraints(max_length=128), *described_matching(_NO_BREAK, "must not hold line ends")]
_Key = Annotated[SecretStr, AfterValidator(_a_key)]


class IrcChannelSettings(Section):
    """A channel that the bot joins."""

    name: _Channel
    """Name such as `#family`; must be unique."""
    key: _Key = SecretStr("")
    """Key of the channel; preferably a reference to the environment. Empty: none."""


class IrcSaslSettings(Section):
    """Authentication of the bot with the network."""

    mechanism: Literal["none", "plain", "external", "scram-sha-256", "scram-sha-512"] = "none"
    """plain: account and password. scram-sha-256, scram-sha-512: the same without revealing the password, and the
    server is authenticated, too. external: by the certificate in `client_certificate`."""
    account: _Text = ""
    """The bot's account with the network's services. Optional for external."""
    password: OneLineSecret = SecretStr("")
    """Password of the account; preferably a reference to the environment."""
    required: bool = True
    """True: if it fails, the bot disconnects and retries later. False: it continues without an account."""

    @field_validator("password")
    @classmethod
    def _needed_with_an_account(cls, password: SecretStr, info: Info) -> SecretStr:
        mechanism = info.data.get("mechanism", "none")
        is_used = mechanism == "plain" or mechanism.startswith("scram-")
        if is_used and not (password.get_secret_value() and info.data.get("account")):
            raise settings_error(f"and account are needed for the mechanism {mechanism}")
        return password


class IrcFloodSettings(Section):
    """Rate limit of sent lines, so that the server does not detect a flood."""

    burst_lines: Count = Field(default=5, ge=1, le=1000)
    """Lines that may be sent at once after a pause."""
    seconds_per_line: Number = Field(default=2, ge=0, le=60)
    """Then one line in this time. 0: no limit, for private servers."""


class IrcReconnectSettings(Section):
    """Delays before reconnecting."""

    first_delay_seconds: Seconds = 2
    """Delay after the first failure; doubled for each further one, with some jitter."""
    longest_delay_seconds: Annotated[Seconds, AfterValidator(not_below_first_delay)] = 300
    """Maximum delay."""


class IrcSettings(NetworkSettings):
    """One network."""

    account: Account
    """Name in `irc:<account>:#channel`; must be unique."""
    host: Word
    """Host name of the server."""
    port: Count = Field(default=6697, ge=1, le=65_535)
    """Port of the server: usually 6697 with TLS, 6667 without."""
    tls: bool = True
    """Whether to use TLS."""
    tls_verify: bool = True
    """False: any certificate is accepted, so an attacker can read the traffic and impersonate the server."""
    ca_file: LocalPath | None = None
    """CA certificates for the server, as PEM. Missing: those of this machine."""
    client_certificate: LocalPath | None = None
    """Certificate and key, as PEM, that the bot presents to the server: for the mechanism external."""
    password: OneLineSecret = SecretStr("")
    """Server password, if required; preferably a reference to the environment."""
    nick: _Nick = "Rollcall"
    """The bot's nick."""
    alternatives: tuple[_Nick, ...] = Field(default=(), max_length=20)
    """Nicks to use if `nick` is taken, in this order; then `nick` with `_` and numbers appended."""
    username: _Username = "rollcall"
    """User name in its hostmask."""
    realname: _Text = "Rollcall"
    """Real name shown by /whois."""
    sasl: IrcSaslSettings = IrcSaslSettings()
    channels: tuple[IrcChannelSettings, ...] = Field(default=(), max_length=500)
    """Channels to join."""
    flood: IrcFloodSettings = IrcFloodSettings()
    max_lines: Count = Field(default=12, ge=1, le=1000)
    """Maximum number of lines of a reply; the rest is cut with a note."""
    reconnect: IrcReconnectSettings = IrcReconnectSettings()
    ping_seconds: Seconds = 60
    """Interval of pings to the server. After this silence and `answer_seconds`, the bot reconnects."""
    answer_seconds: Seconds = 30
    """Time to wait for an answer of the server."""

    @field_validator("sasl")
    @classmethod
    def _has_its_certificate(cls, sasl: IrcSaslSettings, info: Info) -> IrcSaslSettings:
        if sasl.mechanism == "external" and not (info.data.get("client_certificate") and info.data.get("tls")):
            raise settings_error("mechanism external needs tls and client_certificate")
        return sasl

    @property
    def is_in_clear(self) -> bool:
        """Whether secrets are sent unencrypted over a network, or to a server without a verified certificate."""
        return any(self.secrets) and not (self.tls and self.tls_verify) and not is_loopback(self.host)
