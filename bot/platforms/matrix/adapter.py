"""The adapter of Matrix."""

from __future__ import annotations

from bot.platforms.adapter import adapter_in
from bot.platforms.matrix.settings import MatrixSettings

ADAPTER = adapter_in(
    "bot.platforms.matrix.platform:MatrixPlatform", MatrixSettings, ("homeserver", "user", "password"), extra="matrix"
)
