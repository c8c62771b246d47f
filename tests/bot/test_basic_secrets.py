"""Secrets used by scripts are never sent to the chat or the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.testing import call
from tests.bot.basic_group import a_group_with

KEY = "canary-of-the-weather"
BOTS = {"default": {"parameters": {"weather_key": KEY}}}
ASKS = 'x = GET "https://api.example.com/find it?key=" + weather_key\nTALK "never"'


async def test_a_failed_request_names_no_key_to_the_chat_or_the_model(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, settings={"bots": BOTS}, look=ASKS) as group:
        group.model.says(call("look"), "It did not work.")
        said = [*await group.say("Ann", "/look"), *await group.say("Ann", "@Rollcall look it up")]
        heard = " ".join([*said, *(str(request.messages) for request in group.model.requests)])
    assert "api.example.com" in heard
    assert KEY not in heard


@pytest.mark.parametrize(
    "what", ["READ weather_key", "FIND weather_key + '!'", "GET weather_key", "DOWNLOAD weather_key"]
)
async def test_error_message_has_stars_in_the_place_of_a_secret_of_the_settings(tmp_path: Path, what: str) -> None:
    script = f'ON ERROR RESUME NEXT\nx = {what.replace(chr(39), chr(34))}\nTALK "heard: " + ERROR MESSAGE'
    async with a_group_with(tmp_path, settings={"bots": BOTS}, look=script) as group:
        said = " ".join(await group.say("Ann", "/look"))
    assert "heard: " in said
    assert KEY not in said
