"""axe reports no problems on the chat page: desktop and phone, light and dark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from bot.platforms.base import Outgoing
from function_calls.spec import Choice
from services.refs import ChatRef
from tests.bot.web_world import World, a_world
from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS
from tests.harness.node_programs import INSTALLED

AXE = INSTALLED / "axe-core" / "axe.min.js"
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LOBBY = ChatRef("web", "main", "lobby")
pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.skipif(
        not AXE.exists(), reason="there is no axe-core: `npm ci --ignore-scripts` in tests/node installs it"
    ),
    pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"]),
]


@pytest_asyncio.fixture(loop_scope="package")
async def page(browser: Browser, screen: dict[str, Any]) -> Page:
    context = await browser.new_context(**screen, reduced_motion="reduce")
    opened = await context.new_page()
    opened.set_default_timeout(PATIENCE_SECONDS * 1000)
    return opened


@pytest_asyncio.fixture(loop_scope="package")
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as running:
        yield running


async def findings(page: Page) -> list[str]:
    """Rules violated according to axe in light or dark, each with its impact and the first element."""
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    violations: list[str] = []
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        report = await page.evaluate("axe.run({ resultTypes: ['violations'] })")
        violations += [
            f"{scheme}: {found['impact']} {found['id']}: {len(found['nodes'])} times, "
            f"first {found['nodes'][0]['html'][:150]}"
            for found in report["violations"]
        ]
    return violations


async def test_the_join_screen_is_accessible(page: Page, world: World) -> None:
    await page.goto(world.base)
    await expect(page.locator("#name")).to_be_visible()
    assert await findings(page) == []


async def test_a_conversation_with_buttons_quotes_and_suggestions_is_accessible(page: Page, world: World) -> None:
    await page.goto(f"{world.base}/?as=Ann")
    await page.fill("#text", "@Rollcall good `morning`, see https://example.org")
    await page.press("#text", "Enter")
    await expect(page.locator(".row:not(.mine) .bubble").first).to_be_visible()
    options = (Choice("pizza", "/vote 1 1"), Choice("sushi", "/vote 1 2"))
    await world.web.send(Outgoing(LOBBY, "poll", "Poll 1: Where do we eat?\n1. pizza\n2. sushi", choices=options))
    await world.web.send(
        Outgoing(LOBBY, "sure", "Shall it run `rm -- x`?", choices=(Choice("Allow", "yes"), Choice("No", "no")))
    )
    plan = "### Plan\n\n1. Tent\n   - poles\n\n| Who | What |\n|---|--:|\n| Ann | *tea* |\n\n> [dry](https://a.test)\n\n```\nx\n```"
    await world.web.send(Outgoing(LOBBY, "plan", plan, markdown=True))
    await page.get_by_role("button", name="sushi", exact=True).click()
    await page.get_by_role("button", name="No", exact=True).click()
    await expect(page.locator(".row.pressed .meta .reply")).to_have_count(2)
    await page.fill("#text", "/w")
    await page.press("#text", "e")
    assert await findings(page) == []
    await page.fill("#text", "Tell @Rollcall")
    await page.locator(".row .meta .reply").first.click(force=True)
    assert await findings(page) == []
    if await page.locator("#open-side").is_visible():
        await page.click("#open-side")
        assert await findings(page) == []


async def test_a_private_chat_is_accessible(page: Page, world: World) -> None:
    await page.goto(f"{world.base}/?as=Ann")
    await expect(page.locator("#my-name")).to_have_text("Ann")
    if await page.locator("#open-side").is_visible():
        await page.click("#open-side")
    await page.locator("#rooms button", has_text="You and Rollcall").click()
    assert await findings(page) == []
    await page.fill("#text", "tell me a secret")
    await page.press("#text", "Enter")
    await expect(page.locator(".row.private")).to_be_visible()
    assert await findings(page) == []
