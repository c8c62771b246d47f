from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from services.refs import ErrorCode
from services.web.http import WebClient, WebError, WebLimits
from tests.fakes.web_server import Page, WebServer

PUBLIC = "93.184.216.34"


class Names:
    """A resolver with given answers, one after the other for a name with several."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(addresses) for name, addresses in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host, [[PUBLIC]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Wire:
    """Accepts requests that would leave the machine, and answers each URL of the intended host."""

    def __init__(self, **answers: httpx2.Response) -> None:
        self.sent: list[httpx2.Request] = []
        self._answers = {host.replace("_", "."): answer for host, answer in answers.items()}

    def transport(self) -> httpx2.AsyncBaseTransport:
        return httpx2.MockTransport(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        return self._answers.get(request.headers["host"], httpx2.Response(200, content=_streamed(b"{}")))


async def _streamed(body: bytes) -> AsyncIterator[bytes]:
    yield body


def a_client(wire: Wire, names: Names | None = None) -> WebClient:
    return WebClient(resolve=names or Names(), transport=wire.transport)


def to(location: str, status: int = 302) -> httpx2.Response:
    return httpx2.Response(status, headers={"location": location})


async def refusal(client: WebClient, url: str) -> WebError:
    with pytest.raises(WebError) as caught:
        await client.get(url)
    return caught.value


# Addresses


async def test_every_url_of_the_attack_set_is_blocked_or_let_through_as_it_says(data: Callable[[str], Path]) -> None:
    rows = [json.loads(line) for line in data("G_faults/ssrf_urls.jsonl").read_text().splitlines()]
    wrong = []
    for row in rows:
        if "url" not in row:
            continue
        wire = Wire()
        try:
            await a_client(wire).get(row["url"])
        except WebError as error:
            outcome = "blocked" if error.code is ErrorCode.REFUSED and not wire.sent else str(error)
        else:
            outcome = "allowed_syntactically"
        if outcome != row["expect"]:
            wrong.append((row["id"], row["url"], outcome))
    assert wrong == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.8",
        "192.88.99.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "0.0.0.0",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
        "fe80::1",
        "fec0::1",
        "fd00::1",
        "ff02::1",
    ],
)
async def test_a_name_with_one_address_that_is_not_public_is_refused(address: str) -> None:
    wire = Wire()
    error = await refusal(a_client(wire, Names(example_com=[[PUBLIC, address]])), "http://example.com/")
    assert (error.code, wire.sent) == (ErrorCode.REFUSED, [])


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:220:1:248:1893:25c8:1946"])
async def test_the_connection_goes_to_the_address_that_was_checked_and_the_name_goes_along(address: str) -> None:
    wire, names = Wire(), Names(example_com=[[address], ["127.0.0.1"]])
    await a_client(wire, names).get("https://example.com/path?q=1")
    (sent,) = wire.sent
    assert (sent.url.host, sent.url.port or 443, sent.url.raw_path) == (address, 443, b"/path?q=1")
    assert sent.headers["host"] == "example.com"
    assert sent.extensions["sni_hostname"] == "example.com"
    assert names.asked == ["example.com"]


async def test_a_name_that_turns_to_this_machine_between_two_hops_is_refused() -> None:
    wire = Wire(example_com=to("/again"))
    names = Names(example_com=[[PUBLIC], ["127.0.0.1"]])
    error = await refusal(a_client(wire, names), "http://example.com/")
    assert (error.code, len(wire.sent)) == (ErrorCode.REFUSED, 1)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://printer/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://1.2.3.08/",
        "http://[fe80::1%25eth0]/",
        "http://user:pass@example.com/",
        "http://example.com:22/",
        "http://example.com:99999/",
        "http://exa mple.com/",
        "http://example.com\t/",
        "http://",
        "file:///etc/passwd",
        "gopher://example.com/",
    ],
)
async def test_odd_spellings_and_local_names_are_refused_before_any_look_up(url: str) -> None:
    wire, names = Wire(), Names()
    error = await refusal(a_client(wire, names), url)
    assert (error.code, wire.sent, names.asked) == (ErrorCode.REFUSED, [], [])


async def test_a_server_of_this_machine_is_refused_unless_it_was_allowed() -> None:
    async with WebServer({"/": Page.json(1)}) as server:
        assert (await refusal(WebClient(), server.url("/"))).code is ErrorCode.REFUSED
        assert server.asked == []
        allowing = WebClient(allow_loopback=True)
        assert await allowing.get_json(server.url("/")) == 1
        assert await allowing.get_json(f"http://localhost:{server.port}/") == 1
        assert (await refusal(allowing, "http://10.0.0.1/")).code is ErrorCode.REFUSED
        await allowing.close()


async def test_a_name_that_does_not_resolve_is_a_matter_of_the_environment() -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    error = await refusal(WebClient(resolve=nowhere, transport=Wire().transport), "http://example.com/")
    assert (error.code, str(error)) == (ErrorCode.ENVIRONMENT, "example.com cannot be found")


# Redirects


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "//127.0.0.1/",
        "http:\\\\127.0.0.1\\",
        "\\\\127.0.0.1\\",
        "http://[::1]/",
        "file:///etc/passwd",
        "http://[",
    ],
)
async def test_a_redirect_to_a_place_that_is_not_public_is_refused(location: str) -> None:
    wire = Wire(example_com=to(location))
    error = await refusal(a_client(wire), "http://example.com/")
    assert (error.code, len(wire.sent)) == (ErrorCode.REFUSED, 1)


async def test_the_sixth_redirect_is_one_too_many() -> None:
    wire = Wire(example_com=to("/on"))
    error = await refusal(a_client(wire), "http://example.com/")
    assert (error.code, len(wire.sent)) == (ErrorCode.FAILED, 6)


@pytest.mark.parametrize(
    ("location", "kept"),
    [
        ("https://example.com/b", True),
        ("https://example.com:443/b", True),
        ("https://other.com/", False),
        ("http://example.com/b", False),
        ("https://example.com:8443/", False),
    ],
)
async def test_credentials_go_along_on_the_same_origin_only(location: str, kept: bool) -> None:
    wire = Wire(example_com=to(location))
    headers = {"Authorization": "Bearer secret", "X-Api-Key": "secret", "Accept": "text/html"}
    with suppress(WebError):  # with redirects on example.com it loops until the limit
        await a_client(wire).get("https://example.com/a", headers=headers)
    second = wire.sent[1].headers
    assert ("authorization" in second, "x-api-key" in second, second["accept"]) == (kept, kept, "text/html")


@pytest.mark.parametrize(
    ("status", "method", "body"), [(303, "GET", b""), (302, "GET", b""), (307, "POST", b'{"a": 1}')]
)
async def test_a_redirected_post_keeps_its_body_only_where_the_status_says_so(
    status: int, method: str, body: bytes
) -> None:
    wire = Wire(example_com=to("/b", status))
    with pytest.raises(WebError, match="redirects more than"):
        await a_client(wire).post_json("http://example.com/a", {"a": 1})
    assert (wire.sent[1].method, wire.sent[1].content) == (method, body)


async def test_what_was_posted_is_not_handed_to_another_host() -> None:
    wire = Wire(example_com=to("http://other.com/", 307))
    with pytest.raises(WebError, match="redirects what was posted") as caught:
        await a_client(wire).post_json("http://example.com/", {"secret": 1})
    assert (caught.value.code, len(wire.sent)) == (ErrorCode.REFUSED, 1)


# Exchanges with a real server


async def test_a_query_is_encoded_and_json_is_read() -> None:
    async with WebServer({"/q": Page.json({"city": "Zürich"})}) as server:
        client = WebClient(allow_loopback=True)
        assert await client.get_json(server.url("/q?a=1"), query={"b": "x y&z", "n": 3}) == {"city": "Zürich"}
        assert server.asked[0].query == {"a": "1", "b": "x y&z", "n": "3"}
        assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"
        await client.close()


async def test_a_post_carries_json() -> None:
    async with WebServer({"/p": Page.json([])}) as server:
        client = WebClient(allow_loopback=True)
        assert await client.post_json(server.url("/p"), {"q": "天气"}, headers={"Authorization": "Bearer k"}) == []
        (asked,) = server.asked
        assert (asked.method, json.loads(asked.body), asked.headers["authorization"]) == (
            "POST",
            {"q": "天气"},
            "Bearer k",
        )
        await client.close()


async def test_a_packed_answer_is_unpacked() -> None:
    page = Page(gzip.compress(b'{"a": 1}'), headers={"Content-Encoding": "gzip"})
    async with WebServer({"/": page}) as server:
        client = WebClient(allow_loopback=True)
        assert await client.get_json(server.url("/")) == {"a": 1}
        await client.close()


@pytest.mark.parametrize(
    ("page", "code", "text"),
    [
        (Page(b"x" * 70_000, endless=True), ErrorCode.FAILED, "more than 65536 bytes"),
        (Page(b"x" * 70_000), ErrorCode.FAILED, "more than 65536 bytes"),
        (
            Page(gzip.compress(b"\0" * 10_000_000), headers={"Content-Encoding": "gzip"}),
            ErrorCode.FAILED,
            "more than 65536 bytes",
        ),
        (Page(b"x", headers={"Content-Encoding": "br"}), ErrorCode.FAILED, "not asked for"),
        (Page(b"no gzip", headers={"Content-Encoding": "gzip"}), ErrorCode.TRANSIENT, "damaged"),
        (Page(gzip.compress(b"a" * 99)[:-9], headers={"Content-Encoding": "gzip"}), ErrorCode.TRANSIENT, "damaged"),
        (Page(b"{}", cut=True), ErrorCode.TRANSIENT, "broke"),
        (Page(silent=True), ErrorCode.TRANSIENT, "took too long"),
        (Page(b"not json"), ErrorCode.FAILED, "did not answer in JSON"),
        (Page(b"[" * 40_000), ErrorCode.FAILED, "did not answer in JSON"),
        (Page(b"[" * 60_000), ErrorCode.FAILED, "the JSON response has more than 50000 values"),
        (Page(status=503), ErrorCode.TRANSIENT, "status 503"),
        (Page(status=429), ErrorCode.TRANSIENT, "status 429"),
        (Page(status=404), ErrorCode.FAILED, "status 404"),
        (Page(status=302), ErrorCode.FAILED, "status 302"),
    ],
)
async def test_a_bad_answer_ends_in_time_with_its_cause(page: Page, code: ErrorCode, text: str) -> None:
    async with WebServer({"/": page}) as server:
        client = WebClient(WebLimits(timeout_seconds=0.5, body_bytes=65536), allow_loopback=True)
        with pytest.raises(WebError, match=text) as caught:
            await client.get_json(server.url("/"))
        assert caught.value.code is code
        await client.close()


async def _backslash_in_a_redirect() -> WebError:
    return await refusal(a_client(Wire(example_com=to("http:\\\\127.0.0.1\\"))), "http://example.com/")


async def _name_of_another_name() -> WebError:
    """A name with a CNAME resolves to the addresses of its target, which are checked."""
    return await refusal(a_client(Wire(), Names(example_com=[["127.0.0.1"]])), "http://example.com/")


async def _too_much(page: Page) -> WebError:
    async with WebServer({"/": page}) as server:
        client = WebClient(WebLimits(timeout_seconds=5, body_bytes=1_000_000), allow_loopback=True)
        error = await refusal(client, server.url("/"))
        await client.close()
        return error


SCENARIOS: dict[str, Callable[[], Awaitable[WebError]]] = {
    "meta-refresh / Location with backslash": _backslash_in_a_redirect,
    "CNAME to localhost": _name_of_another_name,
    "response 5 GB / endless chunked (cap bytes and time)": lambda: _too_much(Page(b"x" * 70_000, endless=True)),
    "Content-Type: text/html but body binary 50 MB": lambda: _too_much(
        Page(b"\0" * 50_000_000, headers={"Content-Type": "text/html"})
    ),
}


async def test_every_scenario_of_the_attack_set_is_blocked(data: Callable[[str], Path]) -> None:
    rows = [json.loads(line) for line in data("G_faults/ssrf_urls.jsonl").read_text().splitlines()]
    for row in rows:
        if "scenario" in row:
            error = await SCENARIOS[row["scenario"]]()
            assert error.code in (ErrorCode.REFUSED, ErrorCode.FAILED), row["id"]


async def test_the_next_address_is_tried_where_the_first_takes_no_connection() -> None:
    async with WebServer({"/": Page.json("here")}) as server:
        names = Names(example_com=[["127.0.0.2", "127.0.0.1"]])
        client = WebClient(allow_loopback=True, resolve=names)
        assert await client.get_json(f"http://example.com:{server.port}/") == "here"
        await client.close()


async def test_a_server_that_nobody_runs_is_a_transient_failure() -> None:
    async with WebServer({}) as server:
        url = server.url("/")
    client = WebClient(allow_loopback=True)
    assert (await refusal(client, url)).code is ErrorCode.TRANSIENT
    await client.close()


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with WebServer({"/": Page.json(1)}) as server:
        client = WebClient(allow_loopback=True)
        assert await client.get_json(server.url("/")) == 1
        await client.close()


async def test_a_cookie_is_not_sent_back() -> None:
    page = Page(b"1", headers={"Set-Cookie": "who=ann"})
    async with WebServer({"/": page}) as server:
        client = WebClient(allow_loopback=True)
        await client.get_json(server.url("/"))
        await client.get_json(server.url("/"))
        assert "cookie" not in server.asked[1].headers
        await client.close()


# A local server permitted by the operator


async def test_one_server_of_ones_own_may_be_asked_wherever_it_is_and_no_other() -> None:
    names = Names(searxng=[["10.0.0.7"]], other_example=[["10.0.0.8"]])
    wire = Wire()
    client = WebClient(resolve=names, transport=wire.transport, private_origin="http://searxng:8080/any/path")
    await client.get("http://searxng:8080/search?q=x")
    [sent] = wire.sent
    assert (str(sent.url), sent.headers["host"]) == ("http://10.0.0.7:8080/search?q=x", "searxng:8080")
    for url in (
        "http://searxng/search",
        "http://searxng:8081/search",
        "https://searxng:8080/search",
        "http://other.example:8080/",
        "http://10.0.0.7:8080/",
        "http://127.0.0.1:8080/",
        "http://0x7f:8080/",
    ):
        assert (await refusal(client, url)).code is ErrorCode.REFUSED
    assert len(wire.sent) == 1


@pytest.mark.parametrize("location", ["http://searxng:9090/admin", "http://10.0.0.7:8080/", "http://169.254.169.254/"])
async def test_a_server_of_ones_own_leads_to_no_other_place_in_ones_network(location: str) -> None:
    wire = Wire(**{"searxng:8080": to(location)})
    names = Names(searxng=[["10.0.0.7"]])
    client = WebClient(resolve=names, transport=wire.transport, private_origin="http://searxng:8080")
    assert (await refusal(client, "http://searxng:8080/")).code is ErrorCode.REFUSED
    assert len(wire.sent) == 1


async def test_permitted_private_servers_are_asked_on_their_ports_alone_until_the_permission_ends() -> None:
    names = Names(**{"wiki.lan": [["10.0.0.7"]], "grafana": [["10.0.0.8"]]})
    wire = Wire()
    client = WebClient(resolve=names, transport=wire.transport)
    client.allow_private(["wiki.lan", "grafana:3000", "[::1]:8080"])
    allowed = ["http://wiki.lan/a", "https://wiki.lan/", "http://grafana:3000/", "http://[::1]:8080/"]
    for url in allowed:
        await client.get(url)
        assert client.is_private(url)
    for url in (
        "http://wiki.lan:8080/",
        "http://grafana/",
        "http://10.0.0.7/",
        "http://[::1]/",
        "http://localhost:8080/",
    ):
        assert (await refusal(client, url)).code is ErrorCode.REFUSED
    client.allow_private([])
    for url in allowed:
        assert (await refusal(client, url)).code is ErrorCode.REFUSED


@pytest.mark.parametrize(("start", "may"), [("http://example.com/", False), ("http://wiki.lan/", True)])
async def test_only_a_private_server_itself_redirects_to_a_private_server(start: str, may: bool) -> None:
    names = Names(**{"wiki.lan": [["10.0.0.7"]] * 2, "example.com": [["93.184.216.34"]]})
    wire = Wire(**{"example.com": to("https://wiki.lan/delete"), "wiki.lan": to("https://wiki.lan/delete")})
    client = WebClient(WebLimits(redirects=1), resolve=names, transport=wire.transport)
    client.allow_private(["wiki.lan"])
    await refusal(client, start)
    assert any(str(sent.url) == "https://10.0.0.7/delete" for sent in wire.sent) is may


async def test_without_leave_a_name_of_ones_own_network_is_refused() -> None:
    assert (await refusal(a_client(Wire(), Names(searxng=[["10.0.0.7"]])), "http://searxng:8080/")).code is (
        ErrorCode.REFUSED
    )


async def test_an_answer_tells_by_what_it_can_be_asked_for_again() -> None:
    marks = {"ETag": 'W/"7"', "Last-Modified": "Mon, 05 Jan 2026 08:00:00 GMT"}
    async with WebServer({"/a": Page(b"x", headers=marks), "/b": Page(b"x"), "/c": Page(status=304)}) as server:
        client = WebClient(allow_loopback=True)
        answer, bare = await client.get(server.url("/a")), await client.get(server.url("/b"))
        with pytest.raises(WebError) as unchanged:
            await client.get(server.url("/c"))
    assert (answer.etag, answer.last_modified) == ('W/"7"', "Mon, 05 Jan 2026 08:00:00 GMT")
    assert (bare.etag, bare.last_modified) == ("", "")
    assert unchanged.value.status == 304
