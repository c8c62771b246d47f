"""Set-up in a browser: one-time link, checks of the model and the networks, and the written file."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from bot.web.setup import FirstOwner, set_up
from config.loader import load_settings
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.telegram_server import TOKEN, FakeTelegram

OWNER = {"owner": "Ann", "password": "correct horse battery"}
_WEATHER = {"name": "weather", "arguments": '{"city":"Paris"}'}
CALL: dict[str, Any] = {
    "body": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "type": "function", "function": _WEATHER}],
                },
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
}
WORDS: dict[str, Any] = {
    "body": {
        **CALL["body"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Sunny."}}],
    }
}


class Wizard:
    """Somebody in front of the page."""

    def __init__(self, http: httpx2.AsyncClient, token: str, ended: asyncio.Task[FirstOwner]) -> None:
        self.http = http
        self.token = token
        self.ended = ended

    async def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> httpx2.Response:
        sent = {"token": self.token, **(fields or {})}
        return await self.http.post(path, data=sent, headers={"origin": str(self.http.base_url).rstrip("/"), **headers})


@asynccontextmanager
async def a_wizard(file: Path) -> AsyncIterator[Wizard]:
    links: asyncio.Queue[str] = asyncio.Queue()
    ended = asyncio.create_task(set_up(file, 0, {}, links.put_nowait))
    link = await links.get()
    base, _, token = link.partition("/setup?token=")
    async with httpx2.AsyncClient(base_url=base, timeout=20, trust_env=False, verify=False) as http:
        try:
            yield Wizard(http, token, ended)
        finally:
            ended.cancel()
            await asyncio.wait([ended])


async def test_the_page_answers_only_its_own_link(tmp_path: Path) -> None:
    async with a_wizard(tmp_path / "bot.yaml") as wizard:
        assert (await wizard.http.get("/setup", params={"token": wizard.token})).status_code == 200
        assert (await wizard.http.get("/setup")).status_code == 403
        assert (await wizard.http.get("/setup", params={"token": "guessed"})).status_code == 403
        assert (await wizard.post("/setup", OWNER, origin="https://evil.example")).status_code == 403
        without_origin = await wizard.http.post("/setup", data={"token": wizard.token, **OWNER})
        assert without_origin.status_code == 403
        assert not (tmp_path / "bot.yaml").exists()


async def test_a_model_is_probed_with_a_function_call(tmp_path: Path) -> None:
    async with a_wizard(tmp_path / "bot.yaml") as wizard, OpenAIServer([CALL, WORDS]) as server:
        fields = {"model": "stub", "base_url": server.base_url, "api_key": "k"}
        assert "stub-1 answers and calls functions" in (await wizard.post("/setup/model", fields)).text
        assert "did not call the function" in (await wizard.post("/setup/model", fields)).text
        nobody = await wizard.post("/setup/model", {**fields, "base_url": "http://127.0.0.1:1/v1"})
        assert "badge bad" in nobody.text
        assert "only commands" in (await wizard.post("/setup/model", {})).text


async def test_answers_become_a_private_file_that_serves(tmp_path: Path) -> None:
    file = tmp_path / "config" / "bot.yaml"
    async with a_wizard(file) as wizard, FakeTelegram() as telegram, OpenAIServer([CALL]) as model:
        asked = await wizard.http.get(
            "/setup/network", params={"network": "telegram", "number": "3", "token": wizard.token}
        )
        names = re.findall(r'name="(n3\.\w+)"', asked.text)
        assert "n3.token" in names
        account = {"n3.network": "telegram", "n3.token": TOKEN, "n3.api_url": telegram.url, "n3.allow": "-1001 -1002"}
        checked = await wizard.post("/setup/account", {**account, "number": "3"})
        assert "rollcall_bot" in checked.text, checked.text
        form = {"name": "Helper", "language": "en", "timezone": "Europe/Paris", **OWNER, **account}
        form |= {"model": "stub", "base_url": model.base_url, "api_key": "k"}
        done = await wizard.post("/setup", form)
        assert done.status_code == 200, done.text
        assert await wizard.ended == FirstOwner("Ann", OWNER["password"])
    settings = load_settings(file, {})
    assert settings.chats.allow == ("web:main:*", "console:main:*", "telegram:main:-1001", "telegram:main:-1002")
    assert settings.bots["default"].name == "Helper"
    assert settings.models[0].model == "stub"
    assert settings.timezone == "Europe/Paris"
    assert file.stat().st_mode & 0o777 == 0o600
    assert OWNER["password"] not in file.read_text(encoding="utf-8")


async def test_what_cannot_be_used_is_said_and_the_answers_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with a_wizard(file) as wizard, FakeTelegram() as telegram:
        form = {"name": "Helper", **OWNER, "n0.network": "telegram", "n0.token": "1:wrong", "n0.api_url": telegram.url}
        answer = await wizard.post("/setup", form)
        assert answer.status_code == 422
        assert "401" in answer.text
        assert 'value="Helper"' in answer.text
        assert 'value="1:wrong"' in answer.text
        short = await wizard.post("/setup", {**OWNER, "password": "short"})
        assert "at least 10 characters" in short.text
        zone = await wizard.post("/setup", {**OWNER, "timezone": "Mars/Base"})
        assert zone.status_code == 422
        assert not file.exists()


async def test_a_model_without_function_calls_is_written_with_functions_as_text(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with a_wizard(file) as wizard, OpenAIServer([WORDS]) as model:
        form = {**OWNER, "bot_language": "zh", "model": "stub", "base_url": model.base_url, "api_key": "k"}
        assert (await wizard.post("/setup", form)).status_code == 200
        await wizard.ended
    settings = load_settings(file, {})
    assert settings.models[0].protocol == "json_text"
    assert settings.language == "zh"
