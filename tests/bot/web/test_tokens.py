"""Endpoints of the web server by token, and clients that guess tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from bot.live.settings import secrets_of
from bot.web.wiring import is_exposed
from config.settings import Settings, WebSettings
from tests.bot.web_world import a_world
from tests.harness.mcp_programs import TOKEN, Programs, programs

API_TOKEN, METRICS_TOKEN = "a-token-for-the-api", "a-token-for-prometheus"
EVENTS, COMMANDS = "/api/v1/chats/family/events?wait=0", "/api/v1/commands"
PLACES = [("GET", EVENTS, API_TOKEN), ("DELETE", "/mcp", TOKEN), ("GET", "/metrics", METRICS_TOKEN)]


def served(**web: Any) -> AbstractAsyncContextManager[Programs]:
    """A server with page, API, MCP and metrics."""
    platforms = {"web": {"port": 0, **web}, "http": {"enabled": True, "token": API_TOKEN}}
    clients = [{"name": "editor", "token": TOKEN}]
    return programs(settings={"platforms": platforms, "mcp": {"serve": {"enabled": True, "clients": clients}}})


def bearer(token: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token}"}


def opened(world: Programs) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=world.address, trust_env=False, verify=False, timeout=20)


@pytest.mark.parametrize(("method", "path", "token"), PLACES, ids=["api", "mcp", "metrics"])
async def test_many_wrong_tokens_are_told_to_wait_and_the_right_one_still_opens(
    method: str, path: str, token: str
) -> None:
    async with served(metrics_token=METRICS_TOKEN) as world, opened(world) as client:

        async def guess(number: int) -> httpx2.Response:
            return await client.request(method, path, headers=bearer(f"{token[:-2]}{number:02}"))

        answers = [await guess(number) for number in range(40)]
        assert Counter(answer.status_code for answer in answers) == {401: 10, 429: 30}
        last = answers[-1]
        assert (last.headers["retry-after"], last.json()["error"]["code"]) == ("6", "too_many")
        assert "x-content-type-options" in last.headers
        assert (await client.request(method, path, headers=bearer(token))).status_code not in (401, 429)
        assert (await client.get("/api/v1/page")).status_code == 200
        await world.group.clock.advance(6)
        assert [(await guess(number)).status_code for number in range(2)] == [401, 429]


async def test_requests_without_a_token_are_not_guesses() -> None:
    async with served() as world, opened(world) as client:
        assert {(await client.get(EVENTS)).status_code for _ in range(30)} == {401}


async def test_metrics_want_the_token_that_is_set() -> None:
    async with served(metrics_token=METRICS_TOKEN) as world, opened(world) as client:
        for headers in ({}, bearer(API_TOKEN), {"authorization": "Bearer"}):
            answer = await client.get("/metrics", headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "rollcall" not in answer.text.replace("rollcall.web", "")
        answer = await client.get("/metrics", headers=bearer(METRICS_TOKEN))
        assert (answer.status_code, "rollcall_turns_waiting" in answer.text) == (200, True)


@pytest.mark.parametrize(
    ("host", "exposed"),
    [
        *[(host, False) for host in ("127.0.0.1", "127.0.0.9", "localhost", "::1")],
        *[(host, True) for host in ("0.0.0.0", "::", "192.0.2.7", "bot.example")],
    ],
)
def test_a_server_is_exposed_unless_it_listens_on_the_loopback(host: str, exposed: bool) -> None:
    assert is_exposed(WebSettings(host=host)) is exposed


def test_a_server_behind_a_proxy_is_exposed() -> None:
    assert is_exposed(WebSettings.model_validate({"public_url": "https://bot.example.org"}))


async def test_beyond_this_machine_metrics_and_commands_want_a_token(tmp_path: Any) -> None:
    async with a_world(tmp_path, exposed=True) as world, world.client() as client:
        joined = (await client.post("/api/v1/members", json={"name": "Ann"})).json()
        member = {"x-rollcall-member": joined["token"]}
        api = bearer("a-token-for-tests")
        nobody: Mapping[str, str] = {}
        statuses = [(await client.get(COMMANDS, headers=headers)).status_code for headers in (nobody, member, api)]
        assert statuses == [401, 200, 200]
        for headers in (nobody, member, api, {"authorization": "Bearer"}):
            assert (await client.get("/metrics", headers=headers)).status_code == 401
        assert (await client.get("/healthz")).status_code == 200


async def test_on_this_machine_alone_metrics_and_commands_are_open() -> None:
    async with served() as world, opened(world) as client:
        assert (await client.get(COMMANDS)).status_code == (await client.get("/metrics")).status_code == 200


def test_the_token_for_metrics_is_kept_out_of_logs() -> None:
    settings = Settings.model_validate({"platforms": {"web": {"metrics_token": METRICS_TOKEN}}})
    assert METRICS_TOKEN in secrets_of(settings)
    assert settings.platforms.web.metrics_token == SecretStr(METRICS_TOKEN)
