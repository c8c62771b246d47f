"""`rollcall doctor` checks web search and feeds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.bot.cli.running import a_settings_file, command
from tests.fakes.feeds import ATOM_PATH, RSS_PATH, feed_pages
from tests.fakes.searchers import CHAT_PATH, perplexity_answer
from tests.fakes.web_server import Page, WebServer

KEY = "pplx-abcdefghijklmnop"


def lines(out: str, name: str) -> list[str]:
    return [line for line in out.splitlines() if line.split()[1] == name]


async def test_the_doctor_asks_the_search(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async with WebServer({CHAT_PATH: Page.json(perplexity_answer())}) as server:
        search = f"{{kind: perplexity, url: '{server.url('')}', api_key: {KEY}, private_network: true}}"
        settings = a_settings_file(tmp_path, f"search: {search}\n")
        good = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--config", settings)
        server.pages[CHAT_PATH] = Page(status=401)
        bad = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--config", settings)
        skipped = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--no-web", "--config", settings)
    assert good.status == 0
    assert lines(good.out, "search") == ["ok     search     perplexity: answered"]
    [line] = lines(bad.out, "search")
    assert bad.status == 1
    assert line.startswith("ERROR")
    assert "search.unusable" in line
    assert "Check search.api_key" in line
    assert KEY not in bad.out
    assert (skipped.status, lines(skipped.out, "search")) == (0, [])


async def test_the_doctor_names_each_feed_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async with WebServer(feed_pages()) as server:
        feeds = ", ".join(
            f"{{name: {name}, url: '{server.url(path)}'}}" for name, path in (("World", RSS_PATH), ("Tech", ATOM_PATH))
        )
        settings = a_settings_file(tmp_path, f"news: {{feeds: [{feeds}]}}\n")
        printed = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--config", settings)
        assert server.asked == []
    # Feeds on this machine are blocked, which the doctor has to report.
    assert printed.status == 1
    [line] = lines(printed.out, "news")
    assert "news.feed_unusable" in line
    assert "World: 127.0.0.1 is not on the public internet; Tech: 127.0.0.1" in line


async def test_the_doctor_shows_which_private_hosts_may_be_asked_and_which_do_not_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async with WebServer({}) as server:
        hosts = f"127.0.0.1:{server.port}"
        settings = a_settings_file(tmp_path, f"web_access: {{private_hosts: ['{hosts}']}}\n")
        good = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--config", settings)
    bad = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--config", settings)
    assert lines(good.out, "private") == [f"ok     private    functions and scripts may ask {hosts}"]
    [line] = lines(bad.out, "private")
    assert line.startswith("warn")
    assert line.endswith("; 127.0.0.1 cannot be reached")
