"""An MCP server that requires an OAuth login, with its authorization server, as one ASGI app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.harness.mcp_sdk import Asked, Played, over_http


class Guarded:
    """The authorization server, and the check of tokens. Tokens are `token-1`, `token-2`, …"""

    def __init__(self, app: Asked, url: str) -> None:
        self._app = app
        self._inner = app._app
        self._base = url.removesuffix("/mcp")
        self.issued = 0
        """Number of tokens; only the last one is accepted."""
        self.refuses_refresh = False
        self.grants: list[str] = []
        self._login = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server", self._metadata),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/mcp":
            await self._login(scope, receive, send)
            return
        offered = dict(scope["headers"]).get(b"authorization", b"").decode()
        if offered == f"Bearer token-{self.issued}":
            await self._inner(scope, receive, send)
            return
        about = f"{self._base}/.well-known/oauth-protected-resource/mcp"
        refusal = Response("secret words", 401, {"www-authenticate": f'Bearer resource_metadata="{about}"'})
        await refusal(scope, receive, send)

    async def _resource(self, _request: Request) -> Response:
        return JSONResponse({"resource": f"{self._base}/mcp", "authorization_servers": [self._base]})

    async def _metadata(self, _request: Request) -> Response:
        ends = {f"{name}_endpoint": f"{self._base}/{path}" for name, path in _ENDPOINTS.items()}
        types = {"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
        return JSONResponse({"issuer": self._base, **ends, **types})

    async def _register(self, request: Request) -> Response:
        return JSONResponse({**await request.json(), "client_id": "registered"}, 201)

    async def _authorize(self, request: Request) -> Response:
        query = {"code": "c0de", "state": request.query_params["state"]}
        return RedirectResponse(f"{request.query_params['redirect_uri']}?{urlencode(query)}")

    async def _token(self, request: Request) -> Response:
        given = dict(parse_qsl((await request.body()).decode()))
        self.grants.append(given["grant_type"])
        if given["grant_type"] == "refresh_token" and self.refuses_refresh:
            return JSONResponse({"error": "invalid_grant", "refresh_token": given["refresh_token"]}, 400)
        self.issued += 1
        token = {"access_token": f"token-{self.issued}", "token_type": "Bearer", "expires_in": 3600}
        return JSONResponse({**token, "refresh_token": f"refresh-{self.issued}"})


_ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


@asynccontextmanager
async def guarded() -> AsyncIterator[tuple[str, Guarded]]:
    """URL of the server on 127.0.0.1, and its control."""
    async with over_http(Played()) as (url, app):
        app.instead = guard = Guarded(app, url)
        yield url, guard
