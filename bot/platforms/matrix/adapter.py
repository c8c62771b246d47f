"""The adapter of Matrix."""

from __future__ import annotations

from typing import Annotated

from pydantic import SecretStr, model_validator

from bot.platforms.adapter import adapter_in
from config.sections.networks import NetworkSettings
from config.terms import SecureUrl, described_matching, settings_error

_USER = r"@[^\s:,]+:[^\s/,]+"


class MatrixSettings(NetworkSettings):
    """One account on a Matrix server, with `access_token` or `password`."""

    homeserver: SecureUrl
    """URL of the home server's client API. For many servers it differs from the domain of the user ids."""
    user: Annotated[str, *described_matching(_USER, "has to be a full user id, such as @rollcall:example.org")]
    """Full user id of the bot."""
    access_token: SecretStr = SecretStr("")
    """Access token of a device of the bot; preferably a reference to the environment. Use it in this daemon only."""
    password: SecretStr = SecretStr("")
    """Password of the bot, if there is no access token; preferably a reference to the environment. The first start
    creates a device, which is stored in `home`."""
    encryption: bool = False
    """Whether the bot reads and writes in encrypted rooms. Its keys are stored in `home`; without them old messages
    cannot be read. New devices of members are trusted without verification. Needs the extra `matrix-e2ee`."""

    @model_validator(mode="after")
    def _one_credential(self) -> MatrixSettings:
        if bool(self.access_token.get_secret_value()) == bool(self.password.get_secret_value()):
            raise settings_error("needs either access_token or password")
        return self


ADAPTER = adapter_in(
    "bot.platforms.matrix.platform:MatrixPlatform", MatrixSettings, ("homeserver", "user", "password"), extra="matrix"
)
