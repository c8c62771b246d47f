"""Settings of IRC: the networks that the bot is on, one account on each."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, field_validator
from pydantic import ValidationInfo as Info

from config.terms import Count, LocalPath, MemberKey, Number, Seconds, Section, Word, described_matching, fault

BY_NICK = "~"
"""Begins the id of a member of whom nothing is known but a nick."""
_NICK = r"[A-Za-z\[\]\\`_^{|}][A-Za-z0-9\[\]\\`_^{|}-]{0,63}"
_CHANNEL = r"[#&+!][^\x00-\x20\x7f,:*]{1,63}"
_NO_BREAK = r"[^\x00\r\n]*"
_WORD = r"[^\x00-\x20\x7f:@][^\x00-\x20\x7f@]{0,63}"
_ACCOUNT = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


def _no_nick(key: str) -> str:
    platform, _, rest = key.partition(":")
    if platform == "irc" and rest.partition(":")[2].startswith(BY_NICK):
        raise fault(
            "is a nick, and a nick is no identity: anybody can take it. Name the account that services know, without ~"
        )
    return key


def _a_secret(secret: SecretStr) -> SecretStr:
    if re.fullmatch(_NO_BREAK, secret.get_secret_value()) is None:
        raise fault("must not hold line ends")
    return secret


def _a_key(secret: SecretStr) -> SecretStr:
    if re.search(r"[\x00-\x20,]", secret.get_secret_value()) or secret.get_secret_value().startswith(":"):
        raise fault("must not hold spaces, commas or control characters, or begin with a colon")
    return secret


RoleHolder = Annotated[MemberKey, AfterValidator(_no_nick)]
"""The key of a member who may be given a role."""
_Nick = Annotated[str, *described_matching(_NICK, "has to be a nick: a letter, then letters, digits and []\\`_^{|}-")]
_Channel = Annotated[
    str, *described_matching(_CHANNEL, "has to be a channel such as #family, without spaces, commas and colons")
]
_Account = Annotated[str, *described_matching(_ACCOUNT, "has to hold only letters, digits, `.`, `_` and `-`")]
_Username = Annotated[str, *described_matching(_WORD, "has to be one word, without @")]
_Text = Annotated[str, StringConstraints(max_length=128), *described_matching(_NO_BREAK, "must not hold line ends")]
_Secret = Annotated[SecretStr, AfterValidator(_a_secret)]
_Key = Annotated[SecretStr, AfterValidator(_a_key)]


class IrcChannelSettings(Section):
    """One channel that the bot is in."""

    name: _Channel
    """Such as `#family`; each once."""
    key: _Key = SecretStr("")
    """The key that the channel asks for; best a reference to the environment. Empty: none."""


class IrcSaslSettings(Section):
    """How the bot proves to the network who it is."""

    mechanism: Literal["none", "plain", "external", "scram-sha-256", "scram-sha-512"] = "none"
    """plain: with an account and a password. scram-sha-256, scram-sha-512: the same without showing the password, and
    the server has to know it too. external: with the certificate in `client_certificate`."""
    account: _Text = ""
    """The bot's account at the network's services. For external it may be left out."""
    password: _Secret = SecretStr("")
    """The account's password; best a reference to the environment."""
    required: bool = True
    """True: without it the bot does not go on, and tries again later. False: it goes on as nobody."""

    @field_validator("password")
    @classmethod
    def _needed_with_an_account(cls, password: SecretStr, info: Info) -> SecretStr:
        mechanism = info.data.get("mechanism", "none")
        is_used = mechanism == "plain" or mechanism.startswith("scram-")
        if is_used and not (password.get_secret_value() and info.data.get("account")):
            raise fault(f"and account are needed for the mechanism {mechanism}")
        return password


class IrcFloodSettings(Section):
    """How fast the bot writes, so that the server does not take it for a flood."""

    burst_lines: Count = Field(default=5, ge=1, le=1000)
    """Lines that may be sent at once after a silence."""
    seconds_per_line: Number = Field(default=2, ge=0, le=60)
    """After them one line in so many seconds. 0: as fast as it goes, for servers of one's own."""


class IrcReconnectSettings(Section):
    """When a lost connection is tried again."""

    first_delay_seconds: Seconds = 2
    """The pause after the first failure; each further pause is twice as long, and a little is left to chance."""
    longest_delay_seconds: Seconds = 300
    """The longest of these pauses."""

    @field_validator("longest_delay_seconds")
    @classmethod
    def _not_shorter_than_the_first(cls, longest: float, info: Info) -> float:
        if longest < info.data.get("first_delay_seconds", 0):
            raise fault("has to be at least first_delay_seconds")
        return longest


class IrcSettings(Section):
    """One network."""

    account: _Account
    """What it is called in `irc:<account>:#channel`; each once."""
    host: Word
    """The server."""
    port: Count = Field(default=6697, ge=1, le=65_535)
    """Its port: 6697 is usual with TLS, 6667 without."""
    tls: bool = True
    """Whether the connection is encrypted."""
    tls_verify: bool = True
    """False: any certificate will do, so whoever sits between can read along and act as the server."""
    ca_file: LocalPath | None = None
    """The certificates that the server's is checked against, as PEM. Left out: those of this machine."""
    client_certificate: LocalPath | None = None
    """A certificate with its key, as PEM, that the bot shows to the server: for the mechanism external."""
    password: _Secret = SecretStr("")
    """The server's password, where it asks for one; best a reference to the environment."""
    nick: _Nick = "Rollcall"
    """The bot's nick there."""
    alternatives: tuple[_Nick, ...] = Field(default=(), max_length=20)
    """Nicks to take while `nick` is taken, in this order. After them `_` and numbers are put behind `nick`."""
    username: _Username = "rollcall"
    """The user name in its hostmask."""
    realname: _Text = "Rollcall"
    """What /whois shows as its name."""
    sasl: IrcSaslSettings = IrcSaslSettings()
    channels: tuple[IrcChannelSettings, ...] = Field(default=(), max_length=500)
    """The channels that it is in."""
    flood: IrcFloodSettings = IrcFloodSettings()
    max_lines: Count = Field(default=12, ge=1, le=1000)
    """The longest reply in lines; the rest is cut, and the reply says so."""
    reconnect: IrcReconnectSettings = IrcReconnectSettings()
    ping_seconds: Seconds = 60
    """After so long a silence the server is asked whether it is still there."""
    answer_seconds: Seconds = 30
    """A server that does not answer for so long is taken for lost."""

    @field_validator("sasl")
    @classmethod
    def _has_its_certificate(cls, sasl: IrcSaslSettings, info: Info) -> IrcSaslSettings:
        if sasl.mechanism == "external" and not (info.data.get("client_certificate") and info.data.get("tls")):
            raise fault("mechanism external needs tls and client_certificate")
        return sasl

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, to be kept out of logs."""
        keys = (channel.key for channel in self.channels)
        return tuple(one.get_secret_value() for one in (self.password, self.sasl.password, *keys))

    @property
    def is_in_clear(self) -> bool:
        """Whether secrets go over a network where others can read them, or to whoever says to be the server."""
        return any(self.secrets) and not (self.tls and self.tls_verify) and not _is_loopback(self.host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
