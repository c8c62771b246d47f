"""The adapter of XMPP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints, field_validator
from pydantic import ValidationInfo as Info

from bot.platforms.adapter import adapter_in
from config.sections.networks import NetworkSettings
from config.terms import Count, LocalPath, Seconds, Section, described_matching, is_loopback, matching, settings_error

JID = r"[^\x00-\x20\"&'/:<>@]{1,200}@[A-Za-z0-9.\[\]:-]{1,200}"
"""A bare JID with an ASCII domain."""


_Jid = Annotated[str, *described_matching(JID, "has to be an address such as bot@example.org, without a resource")]
_Nick = Annotated[str, StringConstraints(min_length=1, max_length=60), *described_matching(r"[^\x00-\x1f/]*", "no `/`")]
_Password = Annotated[SecretStr, matching("(?s:.+)", "must not be empty: the account needs a password")]


class XmppRoomSettings(Section):
    """A room that the bot joins."""

    jid: _Jid
    """Address such as `family@rooms.example.org`; must be unique."""
    nick: _Nick | None = None
    """The bot's nick in this room. Missing: `nick` of the account."""
    password: SecretStr = SecretStr("")
    """Password of the room; preferably a reference to the environment. Empty: none."""


class XmppSettings(NetworkSettings):
    """One account."""

    jid: _Jid
    """Address of the bot's account, such as `rollcall@example.org`."""
    password: _Password
    """Password of the account; preferably a reference to the environment."""
    host: Annotated[str, StringConstraints(max_length=253)] = ""
    """Host name of the server. Empty: looked up in DNS."""
    port: Count = Field(default=5222, ge=1, le=65_535)
    """Port at `host`: usually 5222 with STARTTLS, 5223 with direct TLS."""
    tls: Literal["starttls", "direct", "none"] = "starttls"
    """starttls, direct: the form of TLS at `host`; the certificate has to be valid for the domain of `jid`. Without
    `host`, DNS names it. none: no encryption, only for a server on this machine."""
    ca_file: LocalPath | None = None
    """CA certificates for the server, as PEM. Missing: those of this machine."""
    nick: _Nick = "Rollcall"
    """The bot's nick in rooms."""
    rooms: tuple[XmppRoomSettings, ...] = Field(default=(), max_length=500)
    """Rooms to join."""
    accept_invitations: bool = True
    """Whether to join rooms to which the bot is invited; it remains in them until it is removed."""
    answer_seconds: Seconds = 20
    """Time to wait for an answer of the server or a room."""
    ping_seconds: Seconds = 60
    """Interval of pings to the server and the rooms."""

    @field_validator("tls")
    @classmethod
    def _encrypted_over_a_network(cls, tls: str, info: Info) -> str:
        if tls == "none" and not is_loopback(info.data.get("host", "")):
            raise settings_error("can only be none if host is this machine, such as 127.0.0.1")
        return tls

    @field_validator("rooms")
    @classmethod
    def _unique(cls, rooms: tuple[XmppRoomSettings, ...]) -> tuple[XmppRoomSettings, ...]:
        if len({room.jid.lower() for room in rooms}) < len(rooms):
            raise settings_error("names a room twice")
        return rooms


ADAPTER = adapter_in("bot.platforms.xmpp.platform:XmppPlatform", XmppSettings, ("jid", "password"), extra="xmpp")
