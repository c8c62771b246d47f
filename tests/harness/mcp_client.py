"""A program that connects to the MCP server in its last argument, logs in and calls its tools, as the conformance suite
expects of clients. Its browser follows the redirect of the login page without asking anybody, and its user skips the
fields of forms."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from config.sections.mcp import McpLoginSettings, McpServerSettings
from config.texts import Texts
from function_calls.loading.foreign_questions import Questionnaire
from services.clock import SystemClock
from services.mcp.connection import Connection
from services.mcp.login import Browser
from services.mcp.opening import Opening
from services.mcp.problems import CallRefused, ServerError
from services.mcp.tools import Questions, ToolDefinition

TEXTS = Texts().of("en")
_DOCUMENT = "https://conformance-test.local/client-metadata.json"


def settings_of(url: str, scenario: str, given: dict[str, Any]) -> McpServerSettings:
    """Settings of the server at `url` for a scenario; `given` is the suite's context."""
    login: dict[str, Any] = {}
    if scenario == "auth/basic-cimd":
        login = {"client_id": _DOCUMENT}
    elif "client_secret" in given:
        login = {key: given[key] for key in ("client_id", "client_secret")}
        login["issuer"] = given.get("issuer") or _issuer_of(url)
    if scenario.startswith("auth/client-credentials"):
        login["grant"] = "client_credentials"
    needs_login = scenario.startswith("auth/")
    return McpServerSettings(name="suite", url=url, login=McpLoginSettings(**login) if needs_login else None)


def _issuer_of(url: str) -> str:
    """The authorization server of the server at `url`, which an operator knows."""
    parts = urlsplit(url)
    about = httpx2.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    issuer: str = about.json()["authorization_servers"][0]
    return issuer


async def _look(url: str, returned: list[str]) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        returned[:] = [urlsplit((await client.get(url)).headers["location"]).query]


def _calls(tools: Sequence[ToolDefinition], given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the suite's context names; else one of each tool, with a value for each required argument. An
    argument that is a schema gets that of the first tool."""
    known = {tool.name: tool.content.get("inputSchema", {}) for tool in tools}
    if "toolCalls" in given:
        return [(call["name"], call["arguments"]) for call in given["toolCalls"] if call["name"] in known]
    values = {"number": 5, "integer": 5, "boolean": True, "object": {}, "array": []}
    values |= {"schema": next(iter(known.values()), {})}
    return [
        (tool, {name: values.get(name, values.get(schema["properties"][name].get("type"), "text")) for name in needed})
        for tool, schema in known.items()
        for needed in [schema.get("required", ())]
    ]


async def _call(connection: Connection, tool: str, arguments: dict[str, Any]) -> None:
    async def progress(_: object) -> None: ...

    outcome = await connection.call(tool, arguments, progress)
    while isinstance(outcome, Questions):
        form = Questionnaire(Questionnaire.started(outcome), "suite", TEXTS)
        while form.next() is not None:
            form.take(TEXTS.say("foreign_tools.skip"))
        outcome = await connection.call(tool, arguments, progress, form.replies)


async def main(url: str) -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    returned: list[str] = []

    async def answer() -> str:
        return returned[0]

    browser = Browser("http://localhost:3000/callback", lambda page: _look(page, returned), answer)
    with tempfile.TemporaryDirectory() as home:
        settings = settings_of(url, scenario, given)
        connection = await Opening(settings, SystemClock(), None, Path(home))(browser)  # type: ignore[arg-type]
        try:
            for tool, arguments in _calls((await connection.list_tools()).tools, given):
                with suppress(CallRefused):
                    await _call(connection, tool, arguments)
        finally:
            await connection.close()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[-1]))
    except ServerError as error:
        sys.exit(f"{error}")
