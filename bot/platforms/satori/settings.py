"""Settings of Satori."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from config.sections.networks import NetworkSettings
from config.terms import SecureUrl, Word


class SatoriSettings(NetworkSettings):
    """One account of the bot at a Satori gateway."""

    url: Annotated[SecureUrl, AfterValidator(lambda url: url.removesuffix("/v1"))]
    """URL of the gateway, without `/v1`, such as `http://127.0.0.1:5140/satori`."""
    token: SecretStr = SecretStr("")
    """Token that is also set in the gateway; preferably a reference to the environment."""
    platform: str = ""
    """Network of the account as named by the gateway, such as `qq`; needed if the gateway has several accounts."""
    user_id: str = ""
    """Id of the account on its network; needed if the gateway has several accounts on it."""
    buttons: bool = False
    """Whether the network shows buttons, as Discord, KOOK and Telegram do. False: choices become text."""
    admin_roles: tuple[Word, ...] = Field(default=(), max_length=50)
    """Ids of more roles whose members are admins. On Discord and KOOK, ids are numbers."""
    file_hosts: tuple[Word, ...] = Field(default=(), max_length=50)
    """Hosts, with their subdomains, from which files in messages are downloaded, in addition to the gateway."""
