"""A program that logs in to the MCP server in its last argument and calls its tools, as the conformance suite expects
of clients. Its browser follows the redirect of the login page without asking anybody."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from config.sections.mcp import McpLoginSettings, McpServerSettings
from services.clock import SystemClock
from services.mcp.login import Browser
from services.mcp.opening import Opening
from services.mcp.problems import ServerError
from services.mcp.tools import Questions, Replies, ToolDefinition

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
    return McpServerSettings(name="suite", url=url, login=McpLoginSettings(**login))


def _issuer_of(url: str) -> str:
    """The authorization server of the server at `url`, which an operator knows."""
    parts = urlsplit(url)
    about = httpx2.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    issuer: str = about.json()["authorization_servers"][0]
    return issuer


async def _look(url: str, returned: list[str]) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        returned[:] = [urlsplit((await client.get(url)).headers["location"]).query]


def _arguments(tool: ToolDefinition) -> dict[str, Any]:
    """A value for each required argument of a tool."""
    schema = tool.content.get("inputSchema", {})
    values = {"number": 5, "integer": 5, "boolean": True, "object": {}, "array": []}
    return {name: values.get(schema["properties"][name].get("type"), "text") for name in schema.get("required", ())}


async def main(url: str) -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    returned: list[str] = []

    async def answer() -> str:
        return returned[0]

    async def progress(_: object) -> None: ...

    browser = Browser("http://localhost:3000/callback", lambda page: _look(page, returned), answer)
    with tempfile.TemporaryDirectory() as home:
        settings = settings_of(url, scenario, given)
        connection = await Opening(settings, SystemClock(), None, Path(home))(browser)  # type: ignore[arg-type]
        try:
            for tool in (await connection.list_tools()).tools:
                outcome = await connection.call(tool.name, _arguments(tool), progress)
                while isinstance(outcome, Questions):
                    accepted = {key: {"action": "accept", "content": {"confirmed": True}} for key in outcome.requests}
                    replies = Replies(outcome.token, accepted)
                    outcome = await connection.call(tool.name, _arguments(tool), progress, replies)
        finally:
            await connection.close()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[-1]))
    except ServerError as error:
        sys.exit(f"{error}")
