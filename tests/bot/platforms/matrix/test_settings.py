"""Settings, login and check of an account on Matrix."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.platforms.adapter import CannotOpen
from bot.platforms.contract import receiving, until
from bot.platforms.matrix.adapter import ADAPTER, MatrixSettings
from services.clock import SystemClock
from tests.bot.platforms.matrix.other_side import World, a_network


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"homeserver": "http://matrix.example.org"}, "has to begin with https"),
        ({"homeserver": "matrix.example.org"}, "without user, query or fragment"),
        ({"user": "rollcall"}, "full user id"),
        ({"password": "both"}, "either access_token or password"),
        ({"access_token": ""}, "either access_token or password"),
    ],
)
def test_wrong_settings_are_explained(wrong: dict[str, str], words: str) -> None:
    good = {"homeserver": "https://matrix.example.org/", "user": "@rollcall:example.org", "access_token": "syt_1"}
    settings = MatrixSettings.model_validate(good)
    assert settings.homeserver == "https://matrix.example.org"
    assert settings.secrets == ("syt_1",)
    with pytest.raises(ValidationError, match=words):
        MatrixSettings.model_validate(good | wrong)


async def test_the_device_of_a_password_is_used_again(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path, password="password") as (network, host, side):
        async with receiving(network.platform, host.store):
            pass
        await network.platform.close()
        device = (host.folder / "device.json").read_bytes()
        again = network.reopen() if network.reopen else network.platform
        async with receiving(again, host.store):
            assert (host.folder / "device.json").read_bytes() == device
            # The token becomes invalid, as after a logout of all devices.
            old = again._client.nio.access_token  # type: ignore[attr-defined]
            side.proxy.rejects_token = old
            side.proxy.break_sync()
            await until(lambda: again._client.nio.access_token not in ("", old))  # type: ignore[attr-defined]
            await until(lambda: again.link().is_up)  # type: ignore[attr-defined]
            assert again._client.nio.device_id.encode() in device  # type: ignore[attr-defined]
        await again.close()
        devices = (await side.api(side.bot.user)("GET", "devices"))["devices"]
        assert len(devices) == 2, "the one of the registration, and one of the platform"


async def test_a_check_says_who_is_connected_or_what_to_correct(world: World) -> None:
    bot = world.server.register_bot()
    base = {"homeserver": world.server.url, "user": bot.user}
    for credential in ({"access_token": bot.token}, {"password": "password"}):
        line = await ADAPTER.probe(MatrixSettings.model_validate(base | credential), SystemClock())
        expected = f"connected as {bot.user}; rooms: 0; encryption is off: cannot read encrypted rooms"
        assert line == expected
    for wrong, words in (
        ({"access_token": "syt_wrong"}, "M_UNKNOWN_TOKEN to the login: check homeserver, user and access_token$"),
        ({"password": "wrong"}, "M_FORBIDDEN to the login: check homeserver, user and password$"),
        ({"access_token": world.ann.token}, f"belongs to {world.ann.user}"),
        ({"access_token": "x", "homeserver": "http://127.0.0.1:1"}, "cannot be reached.*: check homeserver$"),
    ):
        with pytest.raises(CannotOpen, match=words) as failed:
            await ADAPTER.probe(MatrixSettings.model_validate(base | wrong), SystemClock())
        assert "syt_" not in str(failed.value)
