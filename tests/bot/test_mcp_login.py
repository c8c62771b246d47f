"""OAuth logins at MCP servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from bot.testing import Group, a_group
from config.sections.mcp import McpServerSettings
from services.clock import SystemClock
from services.mcp.login import Browser
from services.mcp.opening import Opening
from services.mcp.problems import ServerError
from services.mcp.stored_logins import BrowserAnswers, StoredLogin
from tests.conftest import REPOSITORY
from tests.harness.mcp_oauth import guarded
from tests.harness.mcp_programs import programs
from tests.harness.mcp_servers import Script, a_tool, faults, function, servers, until

ADVICE = "it needs a login: `rollcall mcp login one`"


def entry(url: str, **login: Any) -> dict[str, Any]:
    return {"name": "one", "url": url, "roles": "member", "login": login, "tools": {"echo": {"commands": ["echo"]}}}


async def log_in(home: Path, url: str) -> StoredLogin:
    """Log in with a browser that confirms everything."""
    settings = McpServerSettings.model_validate(entry(url))
    found = [""]

    async def show(page: str) -> None:
        async with httpx2.AsyncClient(trust_env=False) as client:
            found[:] = [urlsplit((await client.get(page)).headers["location"]).query]

    async def answer() -> str:
        return found[0]

    browser = Browser("http://127.0.0.1:8080/login/mcp", show, answer)
    connection = await Opening(settings, SystemClock(), None, home)(browser)  # type: ignore[arg-type]
    await connection.close()
    return StoredLogin(home, settings)


@asynccontextmanager
async def logged_in(home: Path, url: str, **more: Any) -> AsyncIterator[Group]:
    async with a_group(settings=servers(entry(url), **more), home=home) as group:
        await until(group, lambda: function(group, "mcp__one__echo"))
        yield group


async def test_a_server_that_needs_a_login_says_how_and_blocks_no_other(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("x"), name="two")
    async with (
        guarded() as (url, guard),
        a_group(settings=servers(entry(url), script.settings()), home=tmp_path / "home") as group,
    ):
        await until(group, lambda: function(group, "mcp__two__x") and ADVICE in faults(group))
    assert guard.grants == []


async def test_the_login_is_stored_for_the_owner_alone_and_used_until_it_is_refreshed(tmp_path: Path) -> None:
    async with guarded() as (url, guard):
        stored = await log_in(tmp_path, url)
        assert [path.stat().st_mode & 0o777 for path in (tmp_path / "mcp-logins").iterdir()] == [0o600]
        assert stored.has_tokens
        stored.write(expires_at=1.0)
        async with logged_in(tmp_path, url) as group:
            assert await group.say("Ann", "/echo") == ["{}"]
    assert guard.grants == ["authorization_code", "refresh_token"]
    assert stored.read()["tokens"]["access_token"] == "token-2"


async def test_a_withdrawn_token_is_refreshed_within_the_call(tmp_path: Path) -> None:
    async with guarded() as (url, guard):
        await log_in(tmp_path, url)
        async with logged_in(tmp_path, url) as group:
            guard.issued += 1
            assert await group.say("Ann", "/echo") == ["{}"]
    assert guard.grants == ["authorization_code", "refresh_token"]


async def test_a_login_that_has_ended_is_reported_and_no_secret_is_logged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with guarded() as (url, guard):
        await log_in(tmp_path, url)
        async with logged_in(tmp_path, url) as group:
            guard.issued += 1
            guard.refuses_refresh = True
            assert await group.say("Ann", "/echo") == ["I can't reach one right now. Please try again later."]
            await until(group, lambda: ADVICE in faults(group))
    logs = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "logs").iterdir())
    printed = capfd.readouterr()
    assert not [one for one in ("refresh-1", "token-1", "secret words") if one in logs + printed.out + printed.err]


async def test_a_stored_login_is_not_used_for_another_address(tmp_path: Path) -> None:
    async with guarded() as (url, _), guarded() as (other, guard):
        await log_in(tmp_path, url)
        assert not StoredLogin(tmp_path, McpServerSettings.model_validate(entry(other))).has_tokens
        async with a_group(settings=servers(entry(other)), home=tmp_path) as group:
            await until(group, lambda: ADVICE in faults(group))
    assert guard.grants == []


async def test_client_credentials_need_no_person_and_go_to_the_issuer_alone(tmp_path: Path) -> None:
    async with guarded() as (url, guard):
        issuer = url.removesuffix("/mcp")
        secret = {"grant": "client_credentials", "client_id": "bot", "client_secret": "s3cret"}
        async with a_group(settings=servers(entry(url, **secret, issuer=issuer)), home=tmp_path / "one") as group:
            await until(group, lambda: function(group, "mcp__one__echo"))
        assert guard.grants == ["client_credentials"]
        elsewhere = McpServerSettings.model_validate(entry(url, **secret, issuer="https://login.example.org"))
        with pytest.raises(ServerError):
            await Opening(elsewhere, SystemClock(), None, tmp_path / "two")()  # type: ignore[arg-type]
    assert guard.grants == ["client_credentials"]


def test_the_answer_of_a_browser_is_kept_only_while_a_login_waits_for_it(tmp_path: Path) -> None:
    answers = BrowserAnswers(tmp_path)
    assert not answers.put("code=1&state=abc")
    with answers.expected("abc"):
        assert answers.take("abc") == ""
        assert answers.put("code=1&state=abc")
        assert not answers.put("code=1&state=other")
        assert answers.take("abc") == "code=1&state=abc"
    assert not answers.put("code=1&state=abc")


async def test_the_web_server_passes_the_browser_on_to_a_login_that_waits() -> None:
    settings = {"mcp": {"servers": [entry("https://wiki.example.org/mcp")]}}
    async with programs(settings=settings) as served, served.http() as browser:
        answers = BrowserAnswers(Path(served.settings.home))
        stray = await browser.get("/login/mcp?code=c0de&state=abc")
        with answers.expected("abc"):
            other = await browser.get("/login/mcp?code=c0de&state=another")
            nothing = await browser.get("/login/mcp")
            posted = await browser.post("/login/mcp?code=c0de&state=abc")
            assert answers.take("abc") == ""
            done = await browser.get("/login/mcp?code=c0de&state=abc")
            assert answers.take("abc") == "code=c0de&state=abc"
    assert [one.status_code for one in (stray, other, nothing, posted, done)] == [404, 404, 404, 405, 200]
    assert stray.text == "No login waits for this page: start it again with `rollcall mcp login`."
    assert done.text == "You can close this page: `rollcall mcp login` continues."
    assert done.headers["content-type"].startswith("text/plain")


async def test_the_web_server_has_no_page_for_logins_unless_a_server_has_one() -> None:
    async with programs() as served, served.http() as browser:
        answers = BrowserAnswers(Path(served.settings.home))
        with answers.expected("abc"):
            assert (await browser.get("/login/mcp?code=c0de&state=abc")).status_code == 404
            assert answers.take("abc") == ""


async def test_the_command_logs_in_with_a_pasted_address_and_doctor_knows(tmp_path: Path) -> None:
    async with guarded() as (url, _):
        file = tmp_path / "bot.yaml"
        file.write_text(json.dumps({"home": str(tmp_path / "home"), **servers(entry(url))}), encoding="utf-8")

        async def rollcall(*arguments: str) -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", *arguments, "--config", str(file)),
                cwd=REPOSITORY,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )

        before, _ = await (await rollcall("doctor", "--no-model", "--no-web", "--no-networks")).communicate()
        assert f"ERROR  mcp        mcp.servers.one:1:1 mcp.login_needed {ADVICE}" in before.decode(), before.decode()
        login = await rollcall("mcp", "login", "one")
        assert login.stdin is not None
        assert login.stdout is not None
        page = ""
        while "/authorize?" not in page:
            line = await login.stdout.readline()
            assert line, page
            page = line.decode()
        async with httpx2.AsyncClient(trust_env=False) as client:
            back = (await client.get(page.strip())).headers["location"]
        login.stdin.write(f"{back}\n".encode())
        printed, _ = await login.communicate()
        assert "Logged in to one." in printed.decode(), printed.decode()
        after, _ = await (await rollcall("doctor", "--no-model", "--no-web", "--no-networks")).communicate()
    assert "ok     mcp        one: logged in" in after.decode()
