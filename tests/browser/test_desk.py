"""The desk in a browser: every page in each role without problems for axe, on desktop and phone, and
what changes without a reload. ROLLCALL_SCREENSHOTS names a folder for screenshots."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from bot.web.desk.accounts import Account, DeskRole
from bot.web.desk.desk import SECTIONS
from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS
from tests.browser.test_accessibility import AXE, DESKTOP, PHONE, findings
from tests.harness.desk import PASSWORD, DeskWorld, a_desk

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.skipif(
        not AXE.exists(), reason="there is no axe-core: `npm ci --ignore-scripts` in tests/node installs it"
    ),
]
SETTINGS = 'chats: {allow: ["test:bot:*"]}\nlanguage: en # of the texts\n'
_WIDER = """() => document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
    [...document.querySelectorAll("main *")].filter(each => each.getBoundingClientRect().right > innerWidth)
        .map(each => each.outerHTML.slice(0, 80))"""
SCRIPT = 'PARAM who AS string LIKE "Ann" DESCRIPTION "Whom"\nDESCRIPTION "Greet"\nTALK "Hello"\n'


@pytest_asyncio.fixture(loop_scope="package")
async def world(tmp_path: Path) -> AsyncIterator[DeskWorld]:
    file, script = tmp_path / "bot.yaml", tmp_path / "greet.bas"
    file.write_text(SETTINGS, encoding="utf-8")
    script.write_text(SCRIPT, encoding="utf-8")
    async with a_desk(settings={"sources": {"basic": [str(script)]}}, settings_file=file, home=tmp_path) as world:
        await world.group.say("Ann", "/roll 2d6")
        await world.group.say("Bob", "see you later")
        await world.group.say("Ann", "/remind in 2 hours water the plants")
        await world.group.say("Ann", "/remember the club room is upstairs")
        await world.group.daemon.store.commit([])
        for log in world.group.daemon.logs:
            log.flush()
        yield world


async def logged_in(browser: Browser, world: DeskWorld, role: DeskRole, screen: dict[str, Any] = DESKTOP) -> Page:
    """A page after the log-in; a problem of a script, or a policy that it violates, fails the test."""
    await world.accounts.put(Account(role.value, role), PASSWORD, "test")
    context = await browser.new_context(**screen, reduced_motion="reduce")
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.problems = problems  # type: ignore[attr-defined] # read at the end
    await page.goto(f"{world.address}/desk/login")
    await page.get_by_label("Name").fill(role.value)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    return page


async def picture(page: Page, name: str) -> None:
    """A screenshot, if a folder for them is named."""
    if folder := os.environ.get("ROLLCALL_SCREENSHOTS"):
        await page.emulate_media(color_scheme="light", reduced_motion="reduce")
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("role", DeskRole)
async def test_every_page_of_each_role_has_no_findings(
    browser: Browser, world: DeskWorld, role: DeskRole, screen: dict[str, Any]
) -> None:
    page = await logged_in(browser, world, role, screen)
    kind = "phone" if screen is PHONE else "desktop"
    paths = [section.name for section in SECTIONS if role.includes(section.role)]
    if role.includes(DeskRole.OPERATOR):
        await page.goto(f"{world.address}/desk/chats")
        await page.locator("table a").first.click()
        await page.locator("a.badge.good").first.click()
        await expect(page.get_by_role("heading", name="One message and its turn")).to_be_visible()
        paths += [page.url.partition("/desk/")[2], "sources/script?id=0/greet.bas"]
    if role.includes(DeskRole.OWNER):
        paths.append("settings/file")
    for path in paths:
        await page.goto(f"{world.address}/desk/{path}")
        if role is DeskRole.OWNER:
            # Pages of the other roles have the same elements, or fewer.
            assert await findings(page) == [], path
        assert await page.evaluate(_WIDER) == [], f"{path} is wider than the screen"
        name = "turn" if path.startswith("turns") else path.partition("?")[0].replace("/", "-")
        await picture(page, f"desk-{role.value}-{kind}-{name}")
    assert page.problems == []  # type: ignore[attr-defined]


async def test_settings_are_checked_while_somebody_types(browser: Browser, world: DeskWorld) -> None:
    page = await logged_in(browser, world, DeskRole.OWNER)
    await page.goto(f"{world.address}/desk/settings/file")
    await page.get_by_label("Content").fill(SETTINGS.replace("language", "langauge"))
    await expect(page.locator("#checked")).to_contain_text("bot.yaml:2:1")
    await page.get_by_label("Content").fill(SETTINGS.replace("en #", "zh #"))
    await expect(page.locator("#checked .plus").last).to_contain_text("language: zh # of the texts")
    await picture(page, "desk-settings-checked")
    await page.get_by_role("button", name="Save and apply").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    assert page.problems == []  # type: ignore[attr-defined]


async def test_a_script_is_checked_while_somebody_types(browser: Browser, world: DeskWorld) -> None:
    page = await logged_in(browser, world, DeskRole.OWNER)
    await page.goto(f"{world.address}/desk/sources")
    await page.get_by_role("link", name="greet.bas").click()
    await page.get_by_label("Content").fill(SCRIPT + "IF 1 THEN\n")
    await expect(page.locator("#checked")).to_contain_text("greet.bas:4")


async def test_a_script_is_tried_with_the_parameters_of_the_text(browser: Browser, world: DeskWorld) -> None:
    page = await logged_in(browser, world, DeskRole.OWNER)
    await page.goto(f"{world.address}/desk/sources/script?id=0/greet.bas")
    await page.get_by_label("who").fill("Bo")
    await page.get_by_label("Content").fill(
        f'PARAM greeting AS string DESCRIPTION "Words"\n{SCRIPT}TALK greeting + who'
    )
    await page.get_by_label("greeting").fill("Good day, ")
    await page.get_by_label("greeting").press("Enter")
    await expect(page.locator("#tried")).to_contain_text("Good day, Bo")
    assert await findings(page) == []
    await picture(page, "desk-script-tried")
    assert page.problems == []  # type: ignore[attr-defined]


async def test_new_log_lines_appear_without_a_reload(browser: Browser, world: DeskWorld, tmp_path: Path) -> None:
    page = await logged_in(browser, world, DeskRole.OPERATOR)
    await page.goto(f"{world.address}/desk/logs")
    with (tmp_path / "logs" / "rollcall.jsonl").open("a") as log:
        log.write('{"event":"something_new","level":"info","timestamp":"2026-05-01T10:00:00Z"}\n')
    await expect(page.get_by_text("something_new")).to_be_visible()
    await page.context.clear_cookies()
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()
