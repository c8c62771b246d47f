from pathlib import Path

import pytest
from httpx2 import Response

from bot.web.page import TOKEN_HEADER
from tests.bot.web_world import BEARER, World, a_post, a_world

PORTLESS = ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"]


async def _join(world: World, headers: dict[str, str]) -> Response:
    async with world.client() as client:
        return await client.post("/api/v1/members", json={"name": "Ann"}, headers=headers)


OTHER_HOSTS = [
    "evil.example",
    "evil.example:8080",
    "127.0.0.1.evil.example",
    "",
    "127.0.0.1@evil",
    "127.0.0.1:80@evil.example",
    "127.0.0.1:",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "127.0.0.1:8080:8080",
    "127.0.0.1:x",
    "127.0.0.1/",
    "127.0.0.1#",
    "localhost.",
    "[::1]evil.example",
    "[::1]:x",
    "[::1",
    "::1",
    "xn--evil.example",
    "bot.example.org.evil.example",
]


@pytest.mark.parametrize("host", OTHER_HOSTS)
async def test_a_host_name_that_is_not_ours_gets_nothing(tmp_path: Path, host: str) -> None:
    public_urls = ["https://bot.example.org", "http://192.168.1.5:8080"]
    async with a_world(tmp_path, hosts=["::"], public_urls=public_urls) as world, world.client() as client:
        for path in ("/", "/page.js", "/api/v1/page", "/metrics"):
            assert (await client.get(path, headers={"host": host})).status_code in (400, 403)
        assert (await client.get("/healthz", headers={"host": host or "x"})).status_code == 200


@pytest.mark.parametrize("host", PORTLESS)
async def test_the_names_of_the_loopback_are_served_under_any_port(tmp_path: Path, host: str) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        assert (await client.get("/", headers={"host": f"{host}:1234"})).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "http://localhost"])
async def test_a_page_of_another_origin_can_post_nothing(tmp_path: Path, origin: str) -> None:
    async with a_world(tmp_path) as world:
        answer = await _join(world, {"origin": origin})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        assert "set-cookie" not in answer.headers


PUBLIC = ("https://bot.example.org", "http://192.168.1.5:8080")


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("bot.example.org", "https://bot.example.org", 201),  # a proxy that passes Host on
        ("BOT.example.org:443", "https://bot.example.org", 201),
        ("127.0.0.1:8080", "https://bot.example.org", 201),  # a proxy that rewrites it
        ("192.168.1.5:8080", "http://192.168.1.5:8080", 201),
        ("192.168.1.5:8080", None, 201),
        ("192.168.1.5:8080", "http://192.168.1.5", 403),
        ("192.168.1.5:8080", "https://192.168.1.5:8080", 403),
        ("bot.example.org", "http://bot.example.org", 403),
        ("bot.example.org", "https://bot.example.org:8443", 403),
        ("bot.example.org", "https://evil.example", 403),
        ("127.0.0.1:8080", "https://evil.example", 403),
        ("www.bot.example.org", "https://bot.example.org", 403),
    ],
)
async def test_public_urls_are_served_under_their_hosts_to_their_own_pages(
    tmp_path: Path, host: str, origin: str | None, status: int
) -> None:
    async with a_world(tmp_path, public_urls=PUBLIC) as world:
        answer = await _join(world, {"host": host} | ({"origin": origin} if origin else {}))
        assert answer.status_code == status
        assert ("secure" in answer.headers.get("set-cookie", "").lower()) is (
            status == 201 and str(origin).startswith("https")
        )


async def test_an_address_without_brackets_in_the_settings_is_served_as_browsers_write_it(tmp_path: Path) -> None:
    async with a_world(tmp_path, hosts=["FE80::1"]) as world, world.client() as client:
        assert (await client.get("/", headers={"host": "[fe80::1]:8080"})).status_code == 200


async def test_our_own_page_and_programs_can_post(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        assert (await _join(world, {"origin": world.base})).status_code == 201
        assert (await _join(world, {})).status_code == 201


async def test_a_request_that_the_browser_calls_cross_site_is_refused_unless_it_is_a_link(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        crossing = {"sec-fetch-site": "cross-site"}
        assert (await client.get("/api/v1/page", headers=crossing | {"sec-fetch-mode": "no-cors"})).status_code == 403
        assert (await client.get("/", headers=crossing | {"sec-fetch-mode": "navigate"})).status_code == 200


async def test_every_answer_has_the_headers_that_keep_strangers_out(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        for answer in (
            await client.get("/"),
            await client.get("/nothing"),
            await client.get("/", headers={"host": "evil.example"}),
            await client.post("/api/v1/chats/a/messages", json=a_post(), headers=BEARER),
        ):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in answer.headers


async def test_the_cookie_is_for_this_site_and_not_for_scripts_and_opens_nothing_by_itself(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, world.client() as client:
        joined = await client.post("/api/v1/members", json={"name": "Ann"})
        cookie = joined.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.cookies
        assert (await client.post("/api/v1/chats/lobby/messages", json=a_post())).status_code == 401
        assert (await client.get("/api/v1/chats/lobby/events?wait=0")).status_code == 401
        as_token = {TOKEN_HEADER: next(iter(client.cookies.values()))}
        assert (await client.get("/api/v1/chats/lobby/events?wait=0", headers=as_token)).status_code == 401
