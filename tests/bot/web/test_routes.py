"""Every route of the web application and of the set-up page: requests of other origins, without a session and without
a form's token, and the headers of every response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from enum import Enum, auto
from itertools import product
from pathlib import Path
from typing import NamedTuple

import httpx2
from starlette.routing import BaseRoute, Mount, Route

from bot.platforms.telegram.platform import ADAPTER
from bot.web.app import WebServer
from bot.web.desk.accounts import Account, DeskRole, csrf_token
from bot.web.desk.desk import SESSION_COOKIE
from bot.web.setup import Setup
from tests.bot.platforms.telegram.side import on_telegram, settings
from tests.harness.desk import PASSWORD, DeskWorld, a_desk


class Kind(Enum):
    """Required credentials of a route."""

    OPEN = auto()
    """None: the same for everybody. The content is static or contains no data of members."""
    PROBE = auto()
    """None, under any host name and for any origin."""
    TOKEN = auto()
    """A token in a header, never a cookie."""
    ENTRY = auto()
    """A form that creates a session: the header Origin, and a password or an owner link."""
    PAGE = auto()
    """A session of the desk."""
    FORM = auto()
    """A session of the desk, the header Origin and the form's token."""


OPEN_ROUTES = {
    "GET /": Kind.OPEN,
    "GET /page.js": Kind.OPEN,
    "GET /page.css": Kind.OPEN,
    "GET /api/v1/page": Kind.OPEN,
    "GET /api/v1/commands": Kind.OPEN,
    "POST /api/v1/members": Kind.OPEN,
    "GET /login/mcp": Kind.OPEN,
    "GET /metrics": Kind.OPEN,
    "GET /healthz": Kind.PROBE,
    "GET /readyz": Kind.PROBE,
    "POST /api/v1/owner": Kind.TOKEN,
    "POST /api/v1/chats/{chat}/messages": Kind.TOKEN,
    "GET /api/v1/chats/{chat}/files/{file}": Kind.TOKEN,
    "GET /api/v1/chats/{chat}/events": Kind.TOKEN,
    "POST /platforms/telegram/main/update": Kind.TOKEN,
    "ANY /mcp": Kind.TOKEN,
    "GET /desk/desk.css": Kind.OPEN,
    "GET /desk/htmx.min.js": Kind.OPEN,
    "GET /desk/login": Kind.OPEN,
    "GET /desk/welcome": Kind.OPEN,
    "POST /desk/login": Kind.ENTRY,
    "POST /desk/welcome": Kind.ENTRY,
}
VALUES = {"{chat}": "lobby", "{chat:path}": "web:main:lobby", "{file}": "1", "{turn:int}": "1", "{id:int}": "1"}
VALUES |= {"{name}": "roll"}
OTHERS = ("https://evil.example", "null")


class Endpoint(NamedTuple):
    """A method of a route."""

    method: str
    """ANY: the route has no list of methods."""
    path: str

    @property
    def kind(self) -> Kind | None:
        """Its kind; None if it has to be classified. New routes of the desk need a session."""
        if (kind := OPEN_ROUTES.get(f"{self.method} {self.path}")) is not None:
            return kind
        if self.path == "/desk" or self.path.startswith("/desk/"):
            return {"GET": Kind.PAGE, "POST": Kind.FORM}.get(self.method)
        return None

    @property
    def url(self) -> str:
        """The path with a value for each placeholder."""
        path = self.path
        for placeholder, value in VALUES.items():
            path = path.replace(placeholder, value)
        return path


def endpoints_of(routes: Sequence[BaseRoute], below: str = "") -> Iterator[Endpoint]:
    """All endpoints, those of mounted routes included."""
    for route in routes:
        if isinstance(route, Mount):
            yield from endpoints_of(route.routes, below + route.path)
        else:
            assert isinstance(route, Route), f"{route} is of a kind that this test does not know"
            for method in route.methods or {"ANY"}:
                if method != "HEAD":
                    yield Endpoint(method, below + route.path)


class Try(NamedTuple):
    """A request without its address."""

    origin: str
    """own, missing, or another origin."""
    has_session: bool
    form: str
    """right, wrong, non-ASCII or missing."""


TRIES = [Try(*each) for each in product(("own", "missing", *OTHERS), (True, False), ("right", "wrong", "é", "missing"))]


def expected(kind: Kind, attempt: Try) -> set[int]:
    """Permitted status codes."""
    if kind is Kind.PROBE:
        return {200}
    if attempt.origin in OTHERS:
        return {403}
    if kind is Kind.OPEN:
        return {200, 201, 303, 404}
    if kind is Kind.TOKEN:
        return {401}
    if kind is Kind.ENTRY:
        return {403} if attempt.origin == "missing" else {401, 422, 429}
    if kind is Kind.PAGE:
        return {200, 404} if attempt.has_session else {303}
    if attempt.origin == "missing":
        return {403}
    if not attempt.has_session:
        return {401}
    return {200, 204, 303, 404, 409, 422} if attempt.form == "right" else {403}


def problems_of_headers(response: httpx2.Response, kind: Kind) -> list[str]:
    """Missing or unsafe headers."""
    headers = response.headers
    directives = dict(each.strip().partition(" ")[::2] for each in headers["content-security-policy"].split(";"))
    checks = {
        "nosniff": headers.get("x-content-type-options") == "nosniff",
        "frames": directives.get("frame-ancestors") == "'none'" and headers.get("x-frame-options") == "DENY",
        "default": directives.get("default-src") == "'none'" and directives.get("base-uri") == "'none'",
        "unsafe": "unsafe" not in headers["content-security-policy"] and "*" not in headers["content-security-policy"],
        "scripts": directives.get("script-src") == "'self'",
        "cors": "access-control-allow-origin" not in headers,
        "stored": "no-store" in headers.get("cache-control", "") or not _is_personal(response, kind),
    }
    return [name for name, holds in checks.items() if not holds]


def _is_personal(response: httpx2.Response, kind: Kind) -> bool:
    """Whether the content depends on who asks. Only static files and redirects of everybody are not."""
    return kind in (Kind.PAGE, Kind.FORM, Kind.ENTRY) and response.status_code != 403


@asynccontextmanager
async def everything(folder: Path) -> AsyncIterator[DeskWorld]:
    """A daemon with all kinds of routes."""
    async with AsyncExitStack() as stack:
        _, server, host = await stack.enter_async_context(on_telegram(folder))
        telegram = ADAPTER.open(settings(server, webhook=True), replace(host, public_url="https://bot.example.org"))
        login = {"name": "notes", "url": "https://127.0.0.1:9/mcp", "login": {}, "roles": "member"}
        serve = {"enabled": True, "clients": [{"name": "editor", "token": "a-token-for-the-program"}]}
        given = {
            "platforms": {"web": {"port": 0}, "http": {"enabled": True, "token": "a-token-for-the-programs"}},
            "mcp": {"servers": [login], "serve": serve},
        }
        file = folder / "bot.yaml"
        file.write_text("language: en\n", encoding="utf-8")
        yield await stack.enter_async_context(a_desk(settings=given, settings_file=file, other_platforms=[telegram]))


async def test_every_route_refuses_other_origins_strangers_and_forms_without_a_token(tmp_path: Path) -> None:
    async with everything(tmp_path) as world, world.visitor() as browser:
        endpoints = sorted(endpoints_of(world.web.routes), key=lambda each: (each.path == "/desk/logout", each))
        assert [each for each in endpoints if each.kind is None] == [], "classify these routes in OPEN_ROUTES"
        assert {each.kind for each in endpoints} == set(Kind)
        known = {f"{each.method} {each.path}" for each in endpoints}
        assert OPEN_ROUTES.keys() - known == set(), "these routes do not exist"
        await world.accounts.put(Account("ann", DeskRole.OWNER), PASSWORD, "test")
        session = await world.accounts.log_in("ann", PASSWORD) or ""
        joined = await browser.http.post("/api/v1/members", json={"name": "Ann"})
        cookies = f"{SESSION_COOKIE}={session}; {joined.headers['set-cookie'].partition(';')[0]}"
        browser.http.cookies.clear()
        wrong = []
        for endpoint in endpoints:
            for attempt in _tries_of(endpoint):
                response = await _response(browser.http, endpoint, attempt, world.address, session, cookies)
                kind = endpoint.kind
                assert kind is not None
                if response.status_code not in expected(kind, attempt):
                    wrong.append(f"{endpoint} {attempt}: {response.status_code} {response.text[:100]}")
                wrong += [f"{endpoint} {attempt}: {name}" for name in problems_of_headers(response, kind)]
        assert "\n".join(wrong) == ""


def _tries_of(endpoint: Endpoint) -> list[Try]:
    """The request that changes something is the last one, because logging out ends the session."""
    tries = [each for each in TRIES if endpoint.method != "GET" or each.form == "missing"]
    return sorted(tries, key=lambda each: each.form == "right" and each.origin == "own" and each.has_session)


async def _response(
    http: httpx2.AsyncClient, endpoint: Endpoint, attempt: Try, own: str, session: str, cookies: str
) -> httpx2.Response:
    headers = _headers(attempt, own, cookies)
    fields = {"other": "1"} | _token(attempt, "csrf", csrf_token(session))
    http.cookies.clear()
    if endpoint.method == "GET":
        return await http.get(endpoint.url, headers=headers)
    if endpoint.path == "/api/v1/members":
        return await http.post(endpoint.url, json={"name": "Ann"}, headers=headers)
    return await http.post(endpoint.url, data=fields, headers=headers)


def _token(attempt: Try, name: str, right: str) -> dict[str, str]:
    """The field of the form's token."""
    return (
        {} if attempt.form == "missing" else {name: {"right": right, "wrong": "0" * 64}.get(attempt.form, attempt.form)}
    )


def _headers(attempt: Try, own: str, cookies: str) -> Mapping[str, str]:
    origin = {} if attempt.origin == "missing" else {"origin": own if attempt.origin == "own" else attempt.origin}
    return origin | ({"cookie": cookies} if attempt.has_session else {})


async def test_every_route_of_the_set_up_page_needs_its_link_and_its_own_origin(tmp_path: Path) -> None:
    setup = Setup(tmp_path / "bot.yaml", {})
    app = setup.app()
    server = WebServer(app, port=0)
    own = (await server.start()).url
    wrong = []
    async with httpx2.AsyncClient(base_url=own, timeout=20, trust_env=False, verify=False) as http:
        for endpoint, attempt in product(endpoints_of(app.routes), TRIES):
            fields = {"other": "1"} | _token(attempt, "token", setup.token)
            sent = {"params": fields} if endpoint.method == "GET" else {"data": fields}
            response = await http.request(endpoint.method, endpoint.url, headers=_headers(attempt, own, "a=b"), **sent)
            is_static = endpoint.path.startswith("/desk/")
            may = is_static or (attempt.form == "right" and (endpoint.method, attempt.origin) != ("POST", "missing"))
            status = {200, 422} if may and attempt.origin not in OTHERS else {403}
            if response.status_code not in status:
                wrong.append(f"{endpoint} {attempt}: {response.status_code}")
            kind = Kind.OPEN if is_static else Kind.FORM
            wrong += [f"{endpoint} {attempt}: {name}" for name in problems_of_headers(response, kind)]
    await server.stop()
    assert "\n".join(wrong) == ""
    assert not (tmp_path / "bot.yaml").exists()
