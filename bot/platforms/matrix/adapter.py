"""The adapter of Matrix."""

from __future__ import annotations

from bot.platforms.adapter import Adapter, Host, needs_extra
from bot.platforms.base import ChatPlatform
from bot.platforms.matrix.settings import MatrixSettings
from services.clock import Clock


def _open(settings: MatrixSettings, host: Host) -> ChatPlatform:
    with needs_extra("matrix"):
        from bot.platforms.matrix.platform import MatrixPlatform
    return MatrixPlatform(settings, host)


async def _probe(settings: MatrixSettings, _clock: Clock) -> str:
    with needs_extra("matrix"):
        from bot.platforms.matrix.client import probe
    return await probe(settings)


ADAPTER = Adapter(MatrixSettings, _open, _probe, asks=("homeserver", "user", "password"))
