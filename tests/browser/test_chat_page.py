"""The chat page in a real browser, against a real server, with a daemon of a few lines."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, async_playwright, expect

from bot.platforms.base import Outgoing
from function_calls.context import Kind
from services.refs import ChatRef, Role
from tests.bot.web_world import World, a_world

CHROMIUM = shutil.which("chromium-headless-shell")
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOBBY = ChatRef("web", "main", "lobby")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed")


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield started
        await started.close()


async def person(browser: Browser, world: World, name: str, path: str = "/", **options: object) -> Page:
    """A tab of its own person; any script error or refused resource fails the test."""
    context = browser.contexts[0] if browser.contexts and not options else await browser.new_context(**options)  # type: ignore[arg-type]
    page = await context.new_page()
    page.set_default_timeout(8000)
    page.on("pageerror", lambda error: pytest.fail(f"script error on the page: {error}"))
    mark = "&" if "?" in path else "?"
    await page.goto(f"{world.base}{path}{mark}as={name}")
    await expect(page.locator("#my-name")).to_have_text(name)
    return page


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


def row(page: Page, text: str) -> Locator:
    return page.locator(".row", has=page.locator(".bubble", has_text=text))


async def test_two_tabs_of_one_browser_talk_as_two_people(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        ben = await person(browser, world, "Ben")
        await say(ann, "Good morning")
        await expect(row(ben, "Good morning").locator(".from button")).to_have_text("Ann")
        await say(ben, "Morning, Ann")
        await expect(row(ann, "Morning, Ann").locator(".from button")).to_have_text("Ben")
        await expect(row(ben, "Morning, Ann")).to_have_class("row mine")
        first, second = world.daemon.received
        assert first.sender.ref != second.sender.ref
        await expect(ann.locator("#people")).to_contain_text("Ben")


async def test_the_bot_answers_a_mention_and_a_reply_to_it(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        await say(ann, "@Rollcall what's the weather in Oslo")
        answer = row(ann, "You said: what's the weather in Oslo")
        await expect(answer.locator(".quote")).to_contain_text("@Rollcall what's the weather in Oslo")
        await answer.hover()
        await answer.locator(".reply").click()
        await expect(ann.locator("#replying")).to_contain_text("Rollcall")
        await say(ann, "and tomorrow?")
        await expect(row(ann, "You said: and tomorrow?")).to_be_visible()
        quoted = world.daemon.received[1].reply_to
        assert quoted is not None
        assert (quoted.from_bot, quoted.text) == (True, "You said: what's the weather in Oslo")


async def test_a_choice_is_a_button_and_pressing_it_is_a_message(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        ben = await person(browser, world, "Ben")
        await say(ann, "Rollcall, help me choose")
        await ben.get_by_role("button", name="Coffee", exact=True).click()
        await expect(row(ann, "Ben chose coffee.")).to_be_visible()
        await expect(ben.get_by_role("button", name="Coffee", exact=True)).to_be_disabled()
        await expect(ann.get_by_role("button", name="Coffee", exact=True)).to_be_enabled()
        assert world.daemon.received[1].kind is Kind.CHOICE
        await ben.reload()
        await expect(ben.get_by_role("button", name="Coffee", exact=True)).to_be_disabled()


async def test_what_the_bot_says_in_private_reaches_one_person(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        ben = await person(browser, world, "Ben")
        await say(ann, "tell me a secret")
        await expect(row(ann, "Only for you.")).to_contain_text("only you see this")
        await say(ann, "@Rollcall thanks")
        await expect(row(ben, "You said: thanks")).to_be_visible()
        await expect(row(ben, "Only for you.")).to_have_count(0)


async def test_nothing_is_lost_or_doubled_while_the_server_restarts(browser: Browser, tmp_path: Path) -> None:
    seen: set[str] = set()
    async with a_world(tmp_path, seen=seen) as world:
        port = int(world.base.rpartition(":")[2])
        ann = await person(browser, world, "Ann")
        ben = await person(browser, world, "Ben")
        await say(ann, "before")
        await expect(row(ben, "before")).to_be_visible()
    await say(ann, "first while it is down")
    await say(ann, "second while it is down")
    await expect(row(ann, "second while it is down").locator(".waiting")).to_have_text("waiting for the server")
    await expect(ann.locator("#connection")).to_contain_text("No connection")
    async with a_world(tmp_path, seen=seen, port=port) as world:
        await world.web.send(Outgoing(LOBBY, "missed", "The bot is back."))
        for page in (ann, ben):
            await expect(row(page, "first while it is down")).to_have_count(1, timeout=20_000)
            await expect(row(page, "second while it is down")).to_have_count(1, timeout=20_000)
            await expect(row(page, "The bot is back.")).to_have_count(1, timeout=20_000)
        await expect(ann.locator(".waiting")).to_have_count(0)
        await expect(ann.locator("#connection")).to_have_text("")
        assert [context.text for context in world.daemon.received] == [
            "first while it is down",
            "second while it is down",
        ]


async def test_a_waiting_message_outlives_a_reload_and_an_answer_that_got_lost(
    browser: Browser, tmp_path: Path
) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        await ann.route("**/messages", lambda route: route.abort())
        await say(ann, "wait for me")
        await expect(row(ann, "wait for me").locator(".waiting")).to_be_visible()
        await ann.unroute("**/messages")

        async def lose_the_answer(route: Route) -> None:
            await route.fetch()
            await route.abort()

        await ann.route("**/messages", lose_the_answer, times=1)
        await ann.reload()
        await expect(row(ann, "wait for me")).to_have_count(1)
        await expect(ann.locator(".waiting")).to_have_count(0)
        assert [context.text for context in world.daemon.received] == ["wait for me"]


async def test_what_people_write_is_text_and_never_markup(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        await say(ann, "<img src=x onerror=alert(1)> see https://example.org/a. or javascript:alert(1) and `x < y`")
        bubble = row(ann, "<img src=x").locator(".bubble")
        await expect(bubble.locator("img")).to_have_count(0)
        await expect(bubble.locator("a")).to_have_count(1)
        await expect(bubble.locator("a")).to_have_attribute("href", "https://example.org/a")
        await expect(bubble.locator("code")).to_have_text("x < y")


async def test_a_status_shows_that_the_bot_is_at_work(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        await world.web.typing(LOBBY, "looking up the weather")
        await expect(ann.locator("#status")).to_have_text("Rollcall: looking up the weather")
        await world.web.typing(LOBBY, "")
        await expect(ann.locator("#status")).to_have_text("")


async def test_names_and_commands_are_completed_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        await ann.locator("#text").press_sequentially("@Ro")
        await ann.keyboard.press("Enter")
        await expect(ann.locator("#text")).to_have_value("@Rollcall ")
        await ann.fill("#text", "")
        await ann.locator("#text").press_sequentially("/w")
        await expect(ann.get_by_role("option")).to_contain_text("The weather in a city")
        await ann.keyboard.press("Tab")
        await ann.keyboard.type("Oslo")
        await ann.keyboard.press("Enter")
        await expect(row(ann, "/weather Oslo")).to_be_visible()


async def test_the_owner_link_works_once(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        path = world.owner_link.url("")
        ann = await person(browser, world, "Ann", path)
        await expect(ann.locator("#my-role")).to_have_text("owner")
        assert "owner=" not in ann.url
        ben = await person(browser, world, "Ben", path)
        await expect(ben.locator("#status")).to_contain_text("used already")
        await say(ann, "hello")
        await say(ben, "hello to you")
        await expect(row(ann, "hello to you")).to_be_visible()
        assert [context.sender.role for context in world.daemon.received] == [Role.OWNER, Role.MEMBER]


async def test_a_first_visitor_gives_a_name_and_keeps_it(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(world.base)
        await page.fill("#name", "rollcall")
        await page.press("#name", "Enter")
        await expect(page.locator("#name-problem")).to_contain_text("the bot's name")
        await page.fill("#name", "Cleo")
        await page.press("#name", "Enter")
        await expect(page.locator("#hello")).to_be_hidden()
        await say(page, "/help")
        await expect(row(page, "/help")).to_be_visible()
        await page.close()
        again = await context.new_page()
        await again.goto(world.base)
        await expect(again.locator("#my-name")).to_have_text("Cleo")
        await expect(row(again, "/help")).to_have_class("row mine")


async def test_rooms_are_apart_and_a_new_one_is_a_name_away(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await person(browser, world, "Ann")
        await say(ann, "in the lobby")
        await expect(row(ann, "in the lobby")).to_be_visible()
        await ann.fill("#room-name", "Book club")
        await ann.press("#room-name", "Enter")
        await expect(ann.locator("#room-title")).to_have_text("# book-club")
        await expect(row(ann, "in the lobby")).to_have_count(0)
        await say(ann, "in the club")
        await ann.locator("#rooms button", has_text="You and Rollcall").click()
        await say(ann, "between us")
        await expect(row(ann, "between us")).to_be_visible()
        assert [(context.chat.native, context.is_group) for context in world.daemon.received][:2] == [
            ("lobby", True),
            ("book-club", True),
        ]
        assert not world.daemon.received[2].is_group


async def test_reading_back_is_not_interrupted_by_new_messages(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        for number in range(60):
            await world.web.send(Outgoing(LOBBY, f"k{number}", f"line {number}"))
        ann = await person(browser, world, "Ann")
        await expect(row(ann, "line 59")).to_be_in_viewport()
        await ann.evaluate("document.getElementById('scroller').scrollTop = 0")
        await world.web.send(Outgoing(LOBBY, "new", "something new"))
        await expect(ann.locator("#pill")).to_have_text("↓ 1 new message")
        await expect(row(ann, "something new")).not_to_be_in_viewport()
        await ann.click("#pill")
        await expect(row(ann, "something new")).to_be_in_viewport()
        await expect(ann.locator("#pill")).to_be_hidden()


async def test_the_page_speaks_chinese_to_a_chinese_browser(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        page = await person(browser, world, "小明", locale="zh-CN")
        await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        await expect(page.locator("#send")).to_have_attribute("aria-label", "发送")
        await say(page, "小助手，今天天气怎么样")
        await expect(row(page, "You said: 今天天气怎么样")).to_be_visible()


async def test_nothing_on_a_phone_is_wider_than_its_screen(browser: Browser, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        phone = await person(browser, world, "Ann", viewport={"width": 390, "height": 844}, has_touch=True)
        await say(phone, "@Rollcall " + "verylongword" * 40)
        await expect(row(phone, "You said")).to_be_visible()
        assert await phone.evaluate("document.documentElement.scrollWidth") == 390
        await phone.click("#open-side")
        await phone.locator("#rooms button", has_text="Kitchen").click()
        await expect(phone.locator("#room-title")).to_have_text("# Kitchen")
