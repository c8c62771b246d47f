"""docs/start.md, followed by somebody with a browser: chat, set-up, and a function that a running bot loads."""

from __future__ import annotations

import asyncio
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS
from tests.docs.documents import Page as Document
from tests.docs.terminal import Terminal, check, matches, steps_of
from tests.harness.forked_processes import forked_command

PAGE = Document("docs/start.md")
_WITHOUT_QUOTE = """bubble => [...bubble.childNodes].filter(each => each.className !== "quote")
    .map(each => each.textContent).join("")"""
PASSWORD = "correct horse battery"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]


@asynccontextmanager
async def started(terminal: Terminal, *options: str) -> AsyncIterator[Process]:
    """`./run` with these options, on a free port."""
    process = await asyncio.create_subprocess_exec(
        *(*forked_command("bot"), "run", "--no-console", "--port", "0", *options),
        cwd=terminal.house,
        env=terminal.environment(),
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() == 0


async def printed(process: Process, label: str) -> str:
    """The lines of the process up to the one with `label`."""
    assert process.stdout is not None
    lines = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while f"{label}:" not in lines:
            line = await process.stdout.readline()
            assert line, lines
            lines += line.decode()
    return lines


async def chat_page(browser: Browser, greeting: str) -> Page:
    page = await browser.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    await page.goto(re.findall(r"Chat page:\s+(\S+)", greeting)[0])
    await page.fill("#text", "Ann")
    await page.press("#text", "Enter")
    await expect(page.locator("#my-name")).to_have_text("Ann")
    return page


async def follow(page: Page, heading: str) -> None:
    """Write the messages of the last conversation below `heading`, and compare the answers."""
    talk = PAGE.of("text", heading)[-1].text
    exchanges = re.findall(r"^You: (.*)\nBot: (.*)\n", talk, re.MULTILINE)
    assert exchanges
    for number, (said, answer) in enumerate(exchanges, start=1):
        await page.fill("#text", said)
        await page.press("#text", "Enter")
        bubbles = page.locator(".row:not(.mine) .bubble")
        await expect(bubbles).to_have_count(number)
        text = await bubbles.last.evaluate(_WITHOUT_QUOTE)
        assert matches(answer, text.strip()), f"{said}: {text}"


async def test_the_bot_answers_on_its_chat_page_as_shown(browser: Browser, tmp_path: Path) -> None:
    async with started(Terminal(tmp_path)) as process:
        page = await chat_page(browser, await printed(process, "Model"))
        await follow(page, "An answering bot")


async def test_set_up_in_the_browser_writes_the_file_shown_and_the_bot_loads_a_function(
    browser: Browser, tmp_path: Path
) -> None:
    terminal = Terminal(tmp_path)
    file = terminal.home / "my-bot" / "bot.yaml"
    [step] = steps_of(PAGE.of("console", "Your settings"))
    assert step.command == "./run --config ~/my-bot/bot.yaml"
    async with started(terminal, "--set-up", "--config", str(file)) as process:
        announced = await printed(process, "Set-up")
        check(step, announced, 0)
        page = await browser.new_page()
        await page.goto(re.findall(r"http\S+", announced)[0])
        await page.get_by_label("Name").first.fill("Ada")
        await page.get_by_label("Time zone").fill("Europe/Oslo")
        await page.locator("[name=owner]").fill("Ann")
        await page.locator("[name=password]").fill(PASSWORD)
        await page.locator("button.primary").click()
        await expect(page.get_by_role("heading")).to_be_visible()
        greeting = await printed(process, "Model")
        [settings], [function] = PAGE.of("yaml"), PAGE.of("python")
        assert file.read_text(encoding="utf-8") == settings.text
        folder = file.parent / "functions"
        folder.mkdir()
        (folder / "shares.py").write_text(function.text, encoding="utf-8")
        with file.open("a", encoding="utf-8") as settings_file:
            settings_file.write(PAGE.of("text", "Your function")[0].text)
        await asyncio.to_thread(terminal.follow, PAGE.of("console", "Your function"))
        await follow(await chat_page(browser, greeting), "Your function")
