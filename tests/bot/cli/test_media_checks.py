"""`rollcall doctor` and `rollcall check` verify models that see, hear, speak and draw."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.bot.cli.running import a_settings_file, command
from tests.fakes.openai_server import OpenAIServer

KNOWN = {"body": {"id": "m-1", "object": "model", "created": 1, "owned_by": "us"}}
WRONG_KEY = {"status": 401, "body": {"error": {"message": "sk-secret is wrong"}}}


async def test_the_doctor_says_which_models_see_hear_and_draw(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async with OpenAIServer([KNOWN, KNOWN, WRONG_KEY]) as server:
        model = f"model: m-1, base_url: '{server.base_url}', api_key: sk-secret"
        nowhere = "base_url: 'http://127.0.0.1:1/v1', attempts: 1, sees: true"
        settings = a_settings_file(
            tmp_path,
            f"models: [{{name: eyes, model: m, {nowhere}}}]\n"
            f"media: {{documents: true, hearing: [{{name: ears, {model}}}], speaking: [{{name: voice, {model}}}], "
            f"drawing: [{{name: brush, {model}}}, {{name: keyless, model: m-2}}]}}\n",
        )
        printed = await asyncio.to_thread(command, capsys, "doctor", "--no-web", "--config", settings)
        assert [one.path for one in server.requests] == ["/v1/models/m-1"] * 3
    lines = [" ".join(line.split()) for line in printed.out.splitlines()]
    assert "ok sees eyes" in lines
    assert "ok hears ears: m-1" in lines
    assert "ok speaks voice: m-1" in lines
    assert "ok documents readable" in lines
    (refused, keyless) = (line for line in lines if " draws " in line)
    assert refused.startswith("warn draws")
    assert "brush: AuthenticationError 401" in refused
    assert "keyless has neither api_key nor base_url" in keyless
    assert "sk-secret" not in printed.out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("media: {heard_by_name: true}", "has heard_by_name, but no model in hearing"),
        ("media: {hearing: [{name: a, model: m}], drawing: [{name: a, model: m}]}", "models of the same name"),
        ("models: [{name: a, model: m, protocol: json_text, base_url: 'http://x/v1', sees: true}]", "cannot have sees"),
    ],
)
def test_the_check_finds_wrong_settings(
    text: str, problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    printed = command(capsys, "check", a_settings_file(tmp_path, f"{text}\n"))
    assert printed.status == 1
    assert problem in printed.out
