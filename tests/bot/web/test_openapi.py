"""docs/openapi.yaml: complete, up to date, and true of the server for any request that it permits or forbids."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from bot.platforms.base import Outgoing
from bot.web.page import TOKEN_HEADER
from services.refs import ChatRef
from tests.bot.web_world import BEARER, a_post, a_world
from tests.openapi_schemas import DOCUMENT, document, written

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
STATIC = {"GET /", "GET /page.js", "GET /page.css"}


def test_the_schemas_of_bodies_are_those_of_the_server() -> None:
    assert written() == DOCUMENT.read_text(encoding="utf-8"), "python -m tests.openapi_schemas --write"


def test_the_document_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(document()).validate()


async def test_every_route_of_the_api_is_described_and_no_other(tmp_path: Path) -> None:
    described = {
        f"{method.upper()} {path}"
        for path, item in document()["paths"].items()
        for method in item
        if method != "parameters"
    }
    async with a_world(tmp_path) as world:
        routes = [route for route in world.routes if isinstance(route, Route)]
        served = {f"{method} {route.path}" for route in routes for method in (route.methods or {"ANY"}) - {"HEAD"}}
    assert described == served - STATIC


def exercise(base: str, operation: Any, mode: GenerationMode, tokens: list[dict[str, str]]) -> Counter[int]:
    """Send requests for the operation, each with one of the tokens, and check the responses; returns their statuses."""
    # Without `wait`, the response is a stream that does not end.
    fixed: dict[str, Any] = {"query": {"wait": 0}} if operation.path.endswith("/events") else {}
    if "{chat}" in operation.path and mode is GenerationMode.POSITIVE:
        fixed["path_parameters"] = {"chat": "lobby"}
    is_message = operation.path.endswith("/messages") and mode is GenerationMode.POSITIVE
    session = requests.Session()
    session.trust_env = False
    statuses: Counter[int] = Counter()

    @given(case=operation.as_strategy(generation_mode=mode, **fixed), token=st.sampled_from(tokens))
    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def run(case: Case, token: dict[str, str]) -> None:
        if is_message:
            # Rules that a schema does not express: base64, and the fields of a sender that its token permits.
            case.body |= {"sender": {"id": "u1"} if token is BEARER else {"name": "Ann"}, "attachments": []}
        response = case.call(base_url=base, session=session, headers=token, timeout=20)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    run()
    return statuses


@pytest.mark.parametrize("mode", GenerationMode)
async def test_any_request_gets_a_described_response(tmp_path: Path, mode: GenerationMode) -> None:
    api = schemathesis.openapi.from_dict(document())
    api.config.generation.with_security_parameters = False
    statuses: Counter[int] = Counter()
    async with a_world(tmp_path, upload_bytes=10_000) as world, world.client() as client:
        member = (await client.post("/api/v1/members", json={"name": "Ann"})).json()["token"]
        tokens = [BEARER, {TOKEN_HEADER: member}, {}]
        for result in api.get_all_operations():
            operation = result.ok()
            if mode is GenerationMode.POSITIVE or operation.body or any(operation.iter_parameters()):
                statuses += await asyncio.to_thread(exercise, world.base, operation, mode, tokens)
    reached = {200, 201, 202, 400, 401} if mode is GenerationMode.POSITIVE else {400, 401}
    assert reached <= set(statuses)


async def test_every_event_and_file_is_as_described(tmp_path: Path) -> None:
    api = schemathesis.openapi.from_dict(document())
    events, files = (api[f"/api/v1/chats/{{chat}}/{path}"]["GET"] for path in ("events", "files/{file}"))
    lobby = "/api/v1/chats/lobby"
    attachment = {"name": "a.txt", "type": "text/plain", "data": "aGVsbG8="}
    async with a_world(tmp_path, upload_bytes=10_000) as world, world.client() as client:
        client.headers[TOKEN_HEADER] = (await client.post("/api/v1/members", json={"name": "Ann"})).json()["token"]
        for number, more in enumerate(({"text": "choose"}, {"text": "secret"}, {"attachments": [attachment]})):
            posted = await client.post(
                f"{lobby}/messages", json=a_post(**{"id": f"m{number}", "sender": {"name": "Ann"}, **more})
            )
            assert posted.status_code == 202
        chat, bots = ChatRef("web", "main", "lobby"), "bot:answer:m0"
        await world.web.edit(bots, Outgoing(chat, "e1", "**Tea**", markdown=True))
        await world.web.delete(chat, bots)
        response = await client.get(f"{lobby}/events?after=0&wait=0")
        assert {event["type"] for event in response.json()["events"]} == {"said", "message", "edited", "deleted"}
        events.validate_response(response)
        [file] = [file for event in response.json()["events"] for file in event.get("attachments", ())]
        files.validate_response(await client.get(file["url"]))
