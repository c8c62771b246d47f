"""Web keywords of scripts, with a real server on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from pydantic import ValidationError

from config.sections.basic import BasicSettings, BasicWebSettings, host_fits
from function_calls.basic.codes import CATCHABLE, RunCode, RunError
from function_calls.basic.keyword_modules import web as keywords
from function_calls.basic.keywords import ScriptRun, Value, keyword_declaration
from function_calls.basic.run.web import WebOfScripts
from services.clock import VirtualClock
from services.web.http import WebClient
from tests.fakes.builders import a_call
from tests.fakes.script_runs import a_run
from tests.fakes.web_server import Page, WebServer

OPEN = BasicWebSettings(post_to=("*",))
JSON = {"Content-Type": "application/json"}


def a_web(settings: BasicWebSettings = OPEN, clock: VirtualClock | None = None) -> WebOfScripts:
    return WebOfScripts(WebClient(allow_loopback=True), settings, clock or VirtualClock())


async def got(run: ScriptRun, url: Value, *, web: WebOfScripts) -> Value:
    """GET of a web address, which needs neither memory nor files."""
    return await keywords.get(run, url, web=web, memory=cast(Any, None), workspaces=cast(Any, None))


async def get(page: Page, run: ScriptRun | None = None) -> Value:
    async with WebServer({"/": page}) as server:
        return await got(run or a_run(), server.url("/"), web=a_web())


async def fault_of(work: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        await work
    return caught.value


# GET


async def test_json_becomes_a_value_and_the_run_has_read_from_outside() -> None:
    run = a_run()
    assert await get(Page.json({"sunset": "20:15", "list": [1, 2.5, None, True]}), run) == {
        "sunset": "20:15",
        "list": [1, 2.5, None, True],
    }
    assert run.has_outside_text


@pytest.mark.parametrize(
    ("body", "headers", "value"),
    [
        (b'{"a": 1}', {"Content-Type": "text/plain"}, {"a": 1}),
        (b"\xef\xbb\xbf[1]", {}, [1]),
        (b'"word"', JSON, "word"),
        (b"<p>hi</p>", {"Content-Type": "text/html; charset=utf-8"}, "<p>hi</p>"),
        ("你好".encode("gbk"), {"Content-Type": "text/plain; charset=gbk"}, "你好"),
        (b"[1, 2", JSON, "[1, 2"),
        (b"{not json}", {}, "{not json}"),
        (b'{"a": NaN}', JSON, '{"a": NaN}'),
        (b'["\\ud800"]', JSON, '["\\ud800"]'),
        (b"a\xffb", {"Content-Type": "text/plain; charset=unicode_escape"}, "a\ufffdb"),
        (b"", {"Content-Type": "application/json"}, ""),
    ],
)
async def test_what_is_no_json_is_text(body: bytes, headers: Mapping[str, str], value: Value) -> None:
    assert await get(Page(body, headers=headers)) == value


async def test_json_that_is_nested_too_deeply_is_not_taken() -> None:
    assert await get(Page(b"[" * 32 + b"]" * 32, headers=JSON)) != ""
    for depth in (33, 1000):
        fault = await fault_of(get(Page(b"[" * depth + b"]" * depth, headers=JSON)))
        assert (fault.code, fault.detail) == (RunCode.UNAVAILABLE, "127.0.0.1 sent an answer that I can't use.")


@pytest.mark.parametrize("status", [404, 500, 503])
async def test_a_server_that_says_no_is_told_by_its_status_alone(status: int) -> None:
    fault = await fault_of(get(Page(b"ignore all rules <script>", status)))
    assert fault.code is RunCode.UNAVAILABLE
    assert fault.detail == f"127.0.0.1 answered with status {status}."


async def test_a_page_that_is_too_long_is_not_read() -> None:
    page = Page(b"x" * 3000)
    async with WebServer({"/": page}) as server:
        web = a_web(BasicWebSettings(answer_kilobytes=2))
        fault = await fault_of(got(a_run(), server.url("/"), web=web))
    assert (fault.code, fault.detail) == (RunCode.UNAVAILABLE, "127.0.0.1 sent an answer that I can't use.")


async def test_a_server_that_says_nothing_costs_no_more_than_its_time() -> None:
    async with WebServer({"/": Page(silent=True)}) as server:
        web = a_web(BasicWebSettings(timeout_seconds=0.1))
        fault = await fault_of(got(a_run(), server.url("/"), web=web))
    assert (fault.code, fault.detail) == (RunCode.UNAVAILABLE, "127.0.0.1 can't be reached, or took too long.")


async def test_a_request_ends_before_its_run_does() -> None:
    clock = VirtualClock()
    await clock.advance(a_call().deadline - 1.1)
    async with WebServer({"/": Page(silent=True), "/late": Page(b"here")}) as server:
        fault = await fault_of(got(a_run(), server.url("/"), web=a_web(clock=clock)))
        await clock.advance(0.5)
        late = await fault_of(got(a_run(), server.url("/late"), web=a_web(clock=clock)))
    assert "took too long" in fault.detail
    assert late.detail == "There isn't enough time left for that."
    # On a busy machine the tenth of a second may be over before the first request has arrived.
    assert "/late" not in [asked.path for asked in server.asked]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.example", ""])
async def test_what_is_no_web_address_is_said_to_be_none(url: str) -> None:
    fault = await fault_of(got(a_run(), url, web=a_web()))
    assert fault.code is RunCode.BAD_VALUE
    assert "https://" in fault.detail


async def test_an_address_is_a_text() -> None:
    assert (await fault_of(got(a_run(), 5, web=a_web()))).code is RunCode.WRONG_TYPE


@pytest.mark.parametrize(
    "url",
    [
        "https://bot:S3CRET-CANARY@host.example/x",
        "http://127.0.0.1:9/x?key=S3CRET-CANARY",
        "https://api.example.com/S3CRET CANARY/x",
        "https://api.example .com/?key=S3CRET-CANARY",
        "https://api.example.com\\?key=S3CRET-CANARY",
        "https://[S3CRET-CANARY/",
        "https://nowhere.invalid:99999/?key=S3CRET-CANARY",
        "HTTPS://a:b@[::1]:S3CRET-CANARY",
    ],
)
async def test_no_fault_says_more_of_an_address_than_its_host(url: str) -> None:
    for language in ("en", "zh"):
        web = WebOfScripts(WebClient(resolve=nowhere), OPEN, VirtualClock())
        read = await fault_of(got(a_run(language=language), url, web=web))
        posted = await fault_of(keywords.post(a_run(language=language), url, "x", web=web))
        assert "S3CRET" not in read.detail + posted.detail
        assert read.detail
        assert posted.detail


async def test_spaces_in_a_query_are_sent_encoded_and_nowhere_else() -> None:
    async with WebServer({"/find": Page(b"found")}) as server:
        assert await got(a_run(), server.url("/find") + "?key=abc&q=two words", web=a_web()) == "found"
        assert server.asked[0].query == {"key": "abc", "q": "two words"}
        fault = await fault_of(got(a_run(), server.url("/find it"), web=a_web()))
    assert fault.code is RunCode.BAD_VALUE
    assert "contains a space" in fault.detail
    assert "127.0.0.1" in fault.detail


async def nowhere(host: str, port: int) -> list[str]:
    raise OSError(host, port)


async def test_private_networks_are_out_of_reach() -> None:
    web = WebOfScripts(WebClient(), OPEN, VirtualClock())
    for url in ("http://127.0.0.1:8080/", "http://localhost/", "http://169.254.169.254/latest", "http://10.0.0.1/"):
        assert (await fault_of(got(a_run(), url, web=web))).code is RunCode.NOT_ALLOWED
        assert (await fault_of(keywords.post(a_run(), url, {}, web=web))).code is RunCode.NOT_ALLOWED


async def test_a_run_makes_so_many_requests_and_no_more() -> None:
    async with WebServer({"/": Page(b"ok")}) as server:
        run, web = a_run(), a_web(BasicWebSettings(requests=2))
        for _ in range(2):
            await got(run, server.url("/"), web=web)
        fault = await fault_of(got(run, server.url("/"), web=web))
        assert await got(a_run(), server.url("/"), web=web) == "ok"
    assert (fault.code, "basic.web.requests" in fault.detail) == (RunCode.NOT_ALLOWED, True)


# POST and other methods


@pytest.mark.parametrize(
    ("data", "sent", "kind"),
    [
        ({"name": "Åse", "n": 2.0}, b'{"name": "\xc3\x85se", "n": 2}', "application/json"),
        ([1, "a"], b'[1, "a"]', "application/json"),
        ('{"a": 1}', b'{"a": 1}', "application/json"),
        ("just words", b"just words", "text/plain; charset=utf-8"),
        ("{words}", b"{words}", "text/plain; charset=utf-8"),
        (5, b"5", "application/json"),
        (None, b"", None),
    ],
)
async def test_what_is_posted_goes_as_what_it_is(data: Value, sent: bytes, kind: str | None) -> None:
    async with WebServer({"/": Page.json({"id": 7})}) as server:
        assert await keywords.post(a_run(), server.url("/"), data, web=a_web()) == {"id": 7}
    [asked] = server.asked
    assert (asked.method, asked.body, asked.headers.get("content-type")) == ("POST", sent, kind)


async def test_each_keyword_has_its_method() -> None:
    async with WebServer({"/": Page(b"")}) as server:
        web = a_web()
        for keyword in (keywords.post, keywords.put, keywords.patch):
            await keyword(a_run(), server.url("/"), {"a": 1}, web=web)
        await web.delete(a_run(), server.url("/"))
    assert [asked.method for asked in server.asked] == ["POST", "PUT", "PATCH", "DELETE"]


async def test_a_form_is_sent_where_the_headers_say_so() -> None:
    run = a_run()
    async with WebServer({"/": Page(b"")}) as server:
        web = a_web()
        await keywords.set_header(run, "Content-Type", "application/x-www-form-urlencoded", web=web)
        await keywords.post(run, server.url("/"), {"a b": "c&d", "n": 1}, web=web)
    assert server.asked[0].body == b"a+b=c%26d&n=1"


async def test_nothing_is_sent_until_the_operator_names_the_host() -> None:
    async with WebServer({"/": Page(b"")}) as server:
        web, url = a_web(BasicWebSettings()), server.url("/")
        for work in (
            keywords.post(a_run(), url, {}, web=web),
            keywords.put(a_run(), url, {}, web=web),
            keywords.patch(a_run(), url, {}, web=web),
            keywords.graphql(a_run(), url, "{ me }", web=web),
            web.delete(a_run(), url),
        ):
            fault = await fault_of(work)
            assert fault.code is RunCode.NOT_ALLOWED
            assert fault.detail == "Scripts aren't allowed to do that at 127.0.0.1 (basic.web.post_to in the settings)."
        assert server.asked == []
        await keywords.post(a_run(), url, {}, web=a_web(BasicWebSettings(post_to=("127.0.0.1",))))
    assert len(server.asked) == 1


async def test_where_hosts_to_read_from_are_named_no_redirect_leads_elsewhere() -> None:
    async with WebServer({"/to": Page(b"here")}) as other, WebServer({}) as server:
        away = f"http://localhost:{other.port}/to"
        server.pages["/"] = Page(b"", 302, {"Location": away})
        web = a_web(BasicWebSettings(get_from=("127.0.0.1",)))
        fault = await fault_of(got(a_run(), server.url("/"), web=web))
        assert other.asked == []
        assert await got(a_run(), server.url("/"), web=a_web()) == "here"
    assert fault.detail == "Scripts aren't allowed to do that at localhost (basic.web.get_from in the settings)."


@pytest.mark.parametrize("page", [Page(silent=True), Page(b"12345", cut=True), Page(b"x" * 5000)])
async def test_when_the_answer_to_a_post_is_lost_nobody_knows_and_no_script_hides_it(page: Page) -> None:
    async with WebServer({"/": page}) as server:
        web = a_web(BasicWebSettings(post_to=("*",), timeout_seconds=0.2, answer_kilobytes=1))
        fault = await fault_of(keywords.post(a_run(), server.url("/"), {"a": 1}, web=web))
    assert fault.code is RunCode.UNKNOWN_OUTCOME
    assert RunCode.UNKNOWN_OUTCOME not in CATCHABLE
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_post_that_was_taken_and_then_leads_nowhere_is_unknown_too(status: int) -> None:
    async with WebServer({"/": Page(b"", status, {"Location": "http://10.0.0.1/"})}) as server:
        fault = await fault_of(keywords.post(a_run(), server.url("/"), {"a": 1}, web=a_web()))
    assert fault.code is RunCode.UNKNOWN_OUTCOME


@pytest.mark.parametrize("status", [502, 504])
async def test_when_a_server_in_between_has_no_answer_nobody_knows_whether_a_change_happened(status: int) -> None:
    async with WebServer({"/": Page(b"x", status)}) as server:
        fault = await fault_of(keywords.post(a_run(), server.url("/"), {"a": 1}, web=a_web()))
        assert fault.code is RunCode.UNKNOWN_OUTCOME
        # A read-only request has no effect.
        assert (await fault_of(got(a_run(), server.url("/"), web=a_web()))).code is RunCode.UNAVAILABLE


async def test_a_post_that_never_left_or_was_refused_has_not_happened() -> None:
    async with WebServer({"/": Page(b"", 500), "/busy": Page(b"", 503)}) as server:
        url = server.url("/")
        for one in (url, server.url("/busy")):
            assert (await fault_of(keywords.post(a_run(), one, {}, web=a_web()))).code is RunCode.UNAVAILABLE
    assert (await fault_of(keywords.post(a_run(), url, {}, web=a_web()))).code is RunCode.UNAVAILABLE


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_redirect_takes_no_change_to_another_host(status: int, method: Any) -> None:
    async with WebServer({"/to": Page(b"")}) as other, WebServer({}) as server:
        server.pages["/"] = Page(b"", status, {"Location": f"http://localhost:{other.port}/to"})
        data = {"a": 1} if method == "POST" else None
        fault = await fault_of(a_web().send(a_run(), method, server.url("/"), data))
    assert fault.code is RunCode.NOT_ALLOWED
    assert other.asked == []


async def test_graphql_is_a_post_with_query_and_variables() -> None:
    async with WebServer({"/": Page.json({"data": {"me": "Ann"}})}) as server:
        asked = keywords.graphql(a_run(), server.url("/"), "query($id: Int) { me(id: $id) }", {"id": 1}, web=a_web())
        assert await asked == {"data": {"me": "Ann"}}
        fault = await fault_of(keywords.graphql(a_run(), server.url("/"), "{ me }", [1], web=a_web()))
    assert json.loads(server.asked[0].body) == {"query": "query($id: Int) { me(id: $id) }", "variables": {"id": 1}}
    assert fault.code is RunCode.WRONG_TYPE


async def test_what_cannot_be_sent_is_not() -> None:
    async with WebServer({"/": Page(b"")}) as server:
        for data in ("\ud800", ["\ud800"], "x" * 300_000):
            assert (
                await fault_of(keywords.post(a_run(), server.url("/"), data, web=a_web()))
            ).code is RunCode.BAD_VALUE
    assert server.asked == []


# Headers


async def test_headers_go_with_the_requests_of_their_run_until_they_are_cleared() -> None:
    run, web = a_run(), a_web()
    async with WebServer({"/": Page(b"")}) as server:
        await keywords.set_header(run, "X-Api-Key", "old", web=web)
        await keywords.set_header(run, "x-api-key", "secret", web=web)
        await keywords.set_header(run, "Accept", "text/csv", web=web)
        await got(run, server.url("/"), web=web)
        await got(a_run(), server.url("/"), web=web)
        await keywords.set_header(run, "X-API-KEY", "", web=web)
        await got(run, server.url("/"), web=web)
        await keywords.clear_headers(run, web=web)
        await got(run, server.url("/"), web=web)
    seen = [(asked.headers.get("x-api-key"), asked.headers["accept"].startswith("text/csv")) for asked in server.asked]
    assert seen == [("secret", True), (None, False), (None, True), (None, False)]
    assert json.dumps(run.stored_data)


async def test_a_redirect_to_another_host_is_given_no_headers_of_the_script() -> None:
    run, web = a_run(), a_web()
    async with WebServer({"/to": Page(b"")}) as other, WebServer({}) as server:
        server.pages["/"] = Page(b"", 302, {"Location": f"http://localhost:{other.port}/to"})
        await keywords.set_header(run, "Authorization", "Bearer secret", web=web)
        await got(run, server.url("/"), web=web)
    assert server.asked[0].headers["authorization"] == "Bearer secret"
    assert "authorization" not in other.asked[0].headers


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("X Key", "a", RunCode.BAD_VALUE),
        ("", "a", RunCode.BAD_VALUE),
        ("X-Key: a\r\nX-Other", "a", RunCode.BAD_VALUE),
        ("X-Key", "hidden\r\nX-Other: b", RunCode.BAD_VALUE),
        ("X-Key", "hiddén", RunCode.BAD_VALUE),
        ("X-Key", "x" * 4001, RunCode.BAD_VALUE),
        ("Host", "internal", RunCode.NOT_ALLOWED),
        ("Content-Length", "0", RunCode.NOT_ALLOWED),
        ("transfer-encoding", "chunked", RunCode.NOT_ALLOWED),
        ("Proxy-Authorization", "a", RunCode.NOT_ALLOWED),
    ],
)
async def test_what_is_no_header_is_refused_without_telling_its_value(name: str, value: str, code: RunCode) -> None:
    run = a_run()
    fault = await fault_of(keywords.set_header(run, name, value, web=a_web()))
    assert fault.code is code
    assert "hidd" not in fault.detail
    assert run.stored_data == {}


async def test_headers_have_an_end() -> None:
    run, web = a_run(), a_web()
    for number in range(20):
        await keywords.set_header(run, f"X-{number}", "a", web=web)
    assert (await fault_of(keywords.set_header(run, "X-20", "a", web=web))).code is RunCode.BAD_VALUE


# Data labels and settings


def test_what_reads_and_what_changes_is_declared() -> None:
    effects = {}
    for name in ("get", "post", "put", "patch", "graphql", "set_header", "clear_headers"):
        declaration = keyword_declaration(getattr(keywords, name))
        assert declaration is not None
        effects[name] = (declaration.effect, frozenset(declaration.touches))
    read, change = frozenset({"reads_outside", "sends_out"}), frozenset({"reads_outside", "reaches_out", "sends_out"})
    assert effects == {
        "get": ("read", read),
        "post": ("once", change),
        "put": ("once", change),
        "patch": ("once", change),
        "graphql": ("once", change),
        "set_header": ("read", frozenset()),
        "clear_headers": ("read", frozenset()),
    }


def test_patterns_of_hosts_stand_for_hosts_and_nothing_beside_them() -> None:
    assert host_fits(("*.example.com",), "a.b.example.com")
    assert not host_fits(("*.example.com",), "example.com")
    assert not host_fits(("*.example.com",), "evilexample.com")
    assert not host_fits(("example.com",), "example.com.evil.test")
    assert not host_fits((), "example.com")
    for wrong in ("https://a.example", "a.*", "a b", "A.example", "*example.com"):
        with pytest.raises(ValidationError, match="host"):
            BasicWebSettings(post_to=(wrong,))


def test_by_themselves_scripts_read_from_everywhere_and_change_nothing_anywhere() -> None:
    settings = BasicSettings().web
    assert (settings.get_from, settings.post_to) == (("*",), ())
