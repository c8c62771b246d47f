"""The chat page in a real browser with a real server and a fake daemon."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Route,
    expect,
)

from bot.platforms.base import Outgoing
from bot.platforms.http.platform import StreamLimits
from function_calls.context import Kind, MessageContext
from function_calls.spec import Choice
from services.refs import ChatRef, Role
from tests.bot.web_world import World, a_world
from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS

LOBBY = ChatRef("web", "main", "lobby")
HIDE = """() => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]


@dataclass
class Tabs:
    """A browser; errors in its pages are in `faults`."""

    browser: Browser
    shared: BrowserContext
    faults: list[str] = field(default_factory=list)

    async def person(self, world: World, name: str, path: str = "/", **options: Any) -> Page:
        """A tab of a new member; with `options`, in a separate browser profile."""
        context = await self.browser.new_context(**options) if options else self.shared
        page = await self.tab(context)
        await page.goto(f"{world.base}{path}{'&' if '?' in path else '?'}as={name}")
        await expect(page.locator("#my-name")).to_have_text(name)
        return page

    async def tab(self, context: BrowserContext) -> Page:
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._heard)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.faults.append(message.text)


@pytest_asyncio.fixture(loop_scope="package")
async def tabs(browser: Browser) -> AsyncIterator[Tabs]:
    opened = Tabs(browser, await browser.new_context())
    yield opened
    assert opened.faults == []


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


async def accepts(world: World, count: int) -> list[MessageContext]:
    """Messages that the daemon has accepted, after there are `count`: the page shows its member's messages earlier."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(world.daemon.received) < count:  # noqa: ASYNC110 - the page has its own time
            await asyncio.sleep(0.01)
    return world.daemon.received


def row(page: Page, text: str) -> Locator:
    return page.locator(".row", has=page.locator(".bubble", has_text=text))


async def test_two_tabs_of_one_browser_talk_as_two_people(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        ben = await tabs.person(world, "Ben")
        await say(ann, "Good morning")
        await expect(row(ben, "Good morning").locator(".from button")).to_have_text("Ann")
        await say(ben, "Morning, Ann")
        await expect(row(ann, "Morning, Ann").locator(".from button")).to_have_text("Ben")
        await expect(row(ben, "Morning, Ann")).to_have_class("row mine")
        first, second = world.daemon.received
        assert first.sender.ref != second.sender.ref
        await expect(ann.locator("#people")).to_contain_text("Ben")


async def test_the_bot_answers_a_mention_and_a_reply_to_it(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
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


async def test_buttons_of_a_question_that_is_closed_go_dead(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        choices = (Choice("Allow", "yes"), Choice("Again", "/again"))
        await world.web.send(Outgoing(LOBBY, "one", "Shall it run `rm -- x`?", choices=choices))
        await expect(ann.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
        await expect(ann.locator("code", has_text="rm -- x")).to_be_visible()
        await world.web.send(Outgoing(LOBBY, "two", "Shall it?", choices=choices[:1], closes=("bot:one",)))
        await expect(ann.get_by_role("button", name="Allow", exact=True).nth(0)).to_be_disabled()
        await expect(ann.get_by_role("button", name="Allow", exact=True).nth(1)).to_be_enabled()
        await expect(ann.get_by_role("button", name="Again", exact=True)).to_be_enabled()
        await ann.reload()
        await expect(ann.get_by_role("button", name="Allow", exact=True).nth(0)).to_be_disabled()


async def test_a_message_of_the_bot_changes_in_place_and_can_be_deleted(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        buttons = (Choice("Pizza", "/vote 1", stays=True), Choice("Undo", "/poll close 1", stays=True))
        sent = await world.web.send(Outgoing(LOBBY, "one", "Pizza: 0", choices=buttons))
        await world.web.send(Outgoing(LOBBY, "two", "Something else."))
        await expect(ann.get_by_role("button", name="Undo", exact=True)).to_be_visible()
        await world.web.edit(
            sent.native_id, Outgoing(LOBBY, "three", "Pizza: **1**", choices=buttons[:1], markdown=True)
        )
        for _ in range(2):
            await expect(ann.locator(".row strong", has_text="1")).to_be_visible()
            await expect(ann.locator(".row .bubble")).to_have_text(["Pizza: 1", "Something else."])
            await expect(ann.get_by_role("button", name="Undo", exact=True)).to_have_count(0)
            await expect(ann.get_by_role("button", name="Pizza", exact=True)).to_be_enabled()
            await ann.reload()
        await world.web.delete(LOBBY, sent.native_id)
        for _ in range(2):
            await expect(ann.locator(".row .bubble")).to_have_text(["Something else."])
            await ann.reload()


async def test_a_suggestion_stays_when_another_was_chosen_and_choices_of_a_question_go(
    tabs: Tabs, tmp_path: Path
) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        suggested = (Choice("Hours", "when are you open", stays=True), Choice("Place", "where are you", stays=True))
        await world.web.send(Outgoing(LOBBY, "one", "Ask me.", choices=suggested))
        await world.web.send(Outgoing(LOBBY, "two", "Which?", choices=(Choice("Red", "red"), Choice("White", "white"))))
        await ann.get_by_role("button", name="Hours", exact=True).click()
        await ann.get_by_role("button", name="Red", exact=True).click()
        await expect(ann.get_by_role("button", name="White", exact=True)).to_be_disabled()
        await expect(ann.get_by_role("button", name="Place", exact=True)).to_be_enabled()
        await expect(ann.get_by_role("button", name="Hours", exact=True)).to_be_enabled()


async def test_a_choice_is_a_button_and_pressing_it_is_a_message(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        ben = await tabs.person(world, "Ben")
        await say(ann, "Rollcall, help me choose")
        await ben.get_by_role("button", name="Coffee", exact=True).click()
        await expect(row(ann, "Ben chose coffee.")).to_be_visible()
        await expect(ben.get_by_role("button", name="Coffee", exact=True)).to_be_disabled()
        await expect(ann.get_by_role("button", name="Coffee", exact=True)).to_be_enabled()
        assert world.daemon.received[1].kind is Kind.CHOICE
        await ben.reload()
        await expect(ben.get_by_role("button", name="Coffee", exact=True)).to_be_disabled()


async def test_what_the_bot_says_in_private_reaches_one_person(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        ben = await tabs.person(world, "Ben")
        await say(ann, "tell me a secret")
        await expect(row(ann, "Only for you.")).to_contain_text("only you see this")
        await say(ann, "@Rollcall thanks")
        await expect(row(ben, "You said: thanks")).to_be_visible()
        await expect(row(ben, "Only for you.")).to_have_count(0)


async def test_nothing_is_lost_or_doubled_while_the_server_restarts(tabs: Tabs, tmp_path: Path) -> None:
    seen: set[str] = set()
    async with a_world(tmp_path, seen=seen) as world:
        port = int(world.base.rpartition(":")[2])
        ann = await tabs.person(world, "Ann")
        ben = await tabs.person(world, "Ben")
        await say(ann, "before")
        await expect(row(ben, "before")).to_be_visible()
    await say(ann, "first while it is down")
    await say(ann, "second while it is down")
    await expect(row(ann, "second while it is down").locator(".waiting")).to_have_text("waiting for the server")
    await expect(ann.locator("#connection")).to_contain_text("No connection")
    async with a_world(tmp_path, seen=seen, port=port) as world:
        await world.web.send(Outgoing(LOBBY, "missed", "The bot is back."))
        for page in (ann, ben):
            await expect(row(page, "first while it is down")).to_have_count(1)
            await expect(row(page, "second while it is down")).to_have_count(1)
            await expect(row(page, "The bot is back.")).to_have_count(1)
        await expect(ann.locator(".waiting")).to_have_count(0)
        await expect(ann.locator("#connection")).to_have_text("")
        assert [context.text for context in world.daemon.received] == [
            "first while it is down",
            "second while it is down",
        ]


async def test_a_waiting_message_outlives_a_reload_and_an_answer_that_got_lost(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
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


async def test_what_people_write_is_text_and_never_markup(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        await say(ann, "<img src=x onerror=alert(1)> see https://example.org/a. or javascript:alert(1) and `x < y`")
        bubble = row(ann, "<img src=x").locator(".bubble")
        await expect(bubble.locator("img")).to_have_count(0)
        await expect(bubble.locator("a")).to_have_count(1)
        await expect(bubble.locator("a")).to_have_attribute("href", "https://example.org/a")
        await expect(bubble.locator("code")).to_have_text("x < y")


HOSTILE = (
    "<img src=x onerror=alert(1)> <script>alert(1)</script>",
    "# <b onclick=alert(1)>head</b>",
    "- <iframe src=//evil.test></iframe>",
    "| <u>a</u> | b |\n|---|---|\n| <img src=x onerror=alert(1)> | [x](javascript:alert(1)) |",
    "[press](javascript:alert(1)) [data](data:text/html,<script>alert(1)</script>) [scheme](//evil.test)",
    "[case](JaVaScRiPt:alert(1)) [tab](java\tscript:alert(1)) <javascript:alert(1)>",
    '[quote](https://a.test/"onmouseover="alert(1)) [broken](https://[::x) **[bold](https://b.test)**',
    "![picture](https://evil.test/?secret=1)",
    "```html\n<script>alert(1)</script>\n```",
    "> > <svg onload=alert(1)> `<i>`",
    "Only [bank.test](https://evil.test/login), <https://c.test>, https://d.test/a_b_.",
)


async def test_formatted_text_makes_no_element_of_its_own_and_links_lead_to_the_web_alone(
    tabs: Tabs, tmp_path: Path
) -> None:
    async with a_world(tmp_path) as world:
        for number, text in enumerate(HOSTILE):
            await world.web.send(Outgoing(LOBBY, f"k{number}", text, markdown=True))
        ann = await tabs.person(world, "Ann")
        await expect(ann.locator(".rich")).to_have_count(len(HOSTILE))
        shown = ann.locator(".rich")
        made = shown.locator("img, script, iframe, svg, b, u, i, [onclick], [onerror], [onload], [onmouseover]")
        await expect(made).to_have_count(0)
        hrefs = await shown.locator("a").evaluate_all("all => all.map((each) => [each.href, each.rel, each.target])")
        assert sorted(href for href, _, _ in hrefs) == [
            "https://a.test/",
            "https://b.test/",
            "https://c.test/",
            "https://d.test/a_b_",
            "https://evil.test/?secret=1",
            "https://evil.test/login",
        ]
        assert {(rel, target) for _, rel, target in hrefs} == {("noopener noreferrer nofollow", "_blank")}
        await expect(shown.nth(0)).to_have_text(HOSTILE[0])
        await expect(shown.last).to_contain_text("bank.test (evil.test)")


async def test_formatted_text_of_any_shape_is_shown_at_once(tabs: Tabs, tmp_path: Path) -> None:
    stairs = "\n".join(" " * depth + "- x" for depth in range(120))
    wide = "|" * 4000 + "\n" + "|-" * 2000 + "|\n" + "|\n" * 900
    shapes = [
        "> " * 4000,
        "*a " * 2600,
        "**a **" * 1300,
        "[" * 8000,
        "_" * 8000,
        "`" * 8000,
        "a_" * 4000,
        "![x](" * 1600,
    ]
    shapes += [stairs, wide, "|a|b|\n|-|-|\n" + "|a|b|\n" * 1500, f"- x\n{' ' * 7000}\ny", "- x\n" + "\n" * 7000 + "y"]
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        for number, text in enumerate(shapes):
            await world.web.send(Outgoing(LOBBY, f"k{number}", f"{text}\n\nend {number}", markdown=True))
            await expect(row(ann, f"end {number}")).to_have_count(1)


async def test_plain_text_of_the_bot_and_of_people_keeps_its_marks(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        await say(ann, "2**3**4 is 2*3*4 **big**")
        await world.web.send(Outgoing(LOBBY, "k", "# 1: **buy** milk"))
        await expect(row(ann, "# 1: **buy** milk")).to_have_count(1)
        await expect(row(ann, "2**3**4 is 2*3*4 **big**")).to_have_count(1)


async def test_a_status_shows_that_the_bot_is_at_work(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        await world.web.typing(LOBBY, "looking up the weather")
        await expect(ann.locator("#status")).to_have_text("Rollcall: looking up the weather")
        await world.web.typing(LOBBY, "")
        await expect(ann.locator("#status")).to_have_text("")


async def test_names_and_commands_are_completed_by_keyboard(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
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


async def test_the_owner_link_works_once(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        path = world.owner_link.url("")
        ann = await tabs.person(world, "Ann", path)
        await expect(ann.locator("#my-role")).to_have_text("owner")
        assert "owner=" not in ann.url
        ben = await tabs.person(world, "Ben", path)
        await expect(ben.locator("#status")).to_contain_text("used already")
        await say(ann, "hello")
        await accepts(world, 1)
        await say(ben, "hello to you")
        await expect(row(ann, "hello to you")).to_be_visible()
        assert [context.sender.role for context in world.daemon.received] == [Role.OWNER, Role.MEMBER]


async def test_a_first_visitor_gives_a_name_and_keeps_it(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        context = await tabs.browser.new_context()
        page = await tabs.tab(context)
        await page.goto(world.base)
        await page.fill("#name", "rollcall")
        await page.press("#name", "Enter")
        await expect(page.locator("#name-problem")).to_contain_text("the bot's name")
        await page.fill("#name", "Cleo")
        await page.press("#name", "Enter")
        await expect(page.locator("#hello")).to_be_hidden()
        await expect(page.locator("#room-title")).to_have_text("# Lobby")
        await say(page, "/help")
        await expect(row(page, "/help")).to_be_visible()
        await page.close()
        again = await tabs.tab(context)
        await again.goto(world.base)
        await expect(again.locator("#my-name")).to_have_text("Cleo")
        await expect(row(again, "/help")).to_have_class("row mine")


async def test_two_people_of_one_name_are_told_apart_and_mentioned_apart(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        first, second = [await tabs.person(world, "Ann", viewport={"width": 1000, "height": 700}) for _ in range(2)]
        ben = await tabs.person(world, "Ben")
        await say(first, "I am Ann")
        await expect(row(ben, "I am Ann").locator(".from button")).to_have_text("Ann")
        await say(second, "me too")
        await expect(row(ben, "me too").locator(".from button")).to_have_text("Ann (2)")
        await expect(second.locator("#my-name")).to_have_text("Ann (2)")
        await second.reload()
        await say(second, "still me")
        await expect(row(ben, "still me")).to_be_visible()
        await expect(second.locator("#my-name")).to_have_text("Ann (2)")
        await expect(ben.locator("#people button", has_text="Ann (2)").locator(".avatar")).to_have_text("A2")
        await ben.locator("#people button", has_text="Ann (2)").click()
        await say(ben, await ben.locator("#text").input_value() + "hello")
        await expect(row(second, "hello").locator(".at")).to_have_text("@Ann (2)")
        await expect(row(second, "hello")).to_have_class(re.compile("named"))
        await expect(row(first, "hello")).not_to_have_class(re.compile("named"))


async def test_a_member_cannot_rename_to_look_like_the_bot(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        await say(ann, "hello")
        for name, problem in (("R\u043ellcall", "looks like it"), ("\u3164", "can be seen")):
            await ann.click("#rename")
            await expect(ann.locator("#name-form .primary")).to_have_text("Rename")
            await ann.fill("#name", name)
            await ann.press("#name", "Enter")
            await expect(ann.locator("#name-problem")).to_contain_text(problem)
            await ann.keyboard.press("Escape")
        await ann.click("#rename")
        await ann.fill("#name", "Anna")
        await ann.press("#name", "Enter")
        await expect(ann.locator("#my-name")).to_have_text("Anna")
        await say(ann, "hello again")
        before, after = await accepts(world, 2)
        assert after.sender.name == "Anna"
        assert after.sender.ref == before.sender.ref


async def test_rooms_are_apart_and_a_new_one_is_a_name_away(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
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
        lobby, club, private = await accepts(world, 3)
        assert [(one.chat.native, one.is_group) for one in (lobby, club)] == [("lobby", True), ("book-club", True)]
        assert not private.is_group


async def test_reading_back_is_not_interrupted_by_new_messages(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        for number in range(60):
            await world.web.send(Outgoing(LOBBY, f"k{number}", f"line {number}"))
        ann = await tabs.person(world, "Ann")
        await expect(row(ann, "line 59")).to_be_in_viewport()
        await ann.evaluate("document.getElementById('scroller').scrollTop = 0")
        await world.web.send(Outgoing(LOBBY, "new", "something new"))
        await expect(ann.locator("#pill")).to_have_text("↓ 1 new message")
        await expect(row(ann, "something new")).not_to_be_in_viewport()
        await ann.click("#pill")
        await expect(row(ann, "something new")).to_be_in_viewport()
        await expect(ann.locator("#pill")).to_be_hidden()


async def test_the_page_speaks_chinese_to_a_chinese_browser(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        page = await tabs.person(world, "小明", locale="zh-CN")
        await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        await expect(page.locator("#send")).to_have_attribute("aria-label", "发送")
        await say(page, "小助手，今天天气怎么样")
        await expect(row(page, "You said: 今天天气怎么样")).to_be_visible()


async def test_nothing_on_a_phone_is_wider_than_its_screen(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        phone = await tabs.person(world, "Ann", viewport={"width": 390, "height": 844}, has_touch=True)
        await say(phone, "@Rollcall " + "verylongword" * 40)
        await expect(row(phone, "You said")).to_be_visible()
        assert await phone.evaluate("document.documentElement.scrollWidth") == 390
        await phone.click("#open-side")
        await phone.locator("#rooms button", has_text="Kitchen").click()
        await expect(phone.locator("#room-title")).to_have_text("# Kitchen")


async def test_a_tab_that_nobody_looks_at_frees_its_connection_and_still_hears(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        page = await tabs.tab(tabs.shared)
        await page.clock.install()
        await page.goto(f"{world.base}/?as=Ann")
        await say(page, "hello")
        await expect(row(page, "hello")).to_be_visible()
        await page.evaluate(HIDE)
        await page.clock.fast_forward(31_000)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while world.web.feed.listening:  # noqa: ASYNC110 - the server notices in its own time
                await asyncio.sleep(0.01)
        await world.web.send(Outgoing(LOBBY, "k", "said meanwhile"))
        await page.clock.fast_forward(11_000)
        await expect(row(page, "said meanwhile")).to_be_visible()
        await page.evaluate(HIDE.replace("true", "false"))
        await world.web.send(Outgoing(LOBBY, "k2", "said after that"))
        await expect(row(page, "said after that")).to_be_visible()


@pytest.mark.parametrize(("added", "left"), [("", ""), (" there", "hello there")], ids=["finished", "continued"])
async def test_a_message_that_is_finished_before_the_page_has_joined_is_sent_when_it_has(
    tabs: Tabs, tmp_path: Path, added: str, left: str
) -> None:
    async with a_world(tmp_path) as world:
        page = await tabs.tab(tabs.shared)
        is_described = asyncio.Event()

        async def describe_later(route: Route) -> None:
            await is_described.wait()
            await route.continue_()

        await page.route("**/api/v1/page", describe_later)
        await page.goto(f"{world.base}/?as=Ann")
        await say(page, "hello")
        await expect(page.locator("#text")).to_have_value("hello")
        await page.locator("#text").press_sequentially(added)
        is_described.set()
        await expect(page.locator("#my-name")).to_have_text("Ann")
        await expect(page.locator("#text")).to_have_value(left)
        if left:
            await page.press("#text", "Enter")
        await expect(row(page, left or "hello")).to_be_visible()
        assert [context.text for context in await accepts(world, 1)] == [left or "hello"]


async def test_a_tab_over_the_limit_of_streams_takes_none_from_the_others_and_still_hears(
    tabs: Tabs, tmp_path: Path
) -> None:
    limits = StreamLimits(streams_per_member=1, poll_seconds=0.05)
    async with a_world(tmp_path, limits=limits) as world:
        first = await tabs.tab(tabs.shared)
        await first.clock.install()
        await first.goto(f"{world.base}/?as=Ann")
        await say(first, "hello")
        await expect(row(first, "hello")).to_be_visible()
        second = await tabs.person(world, "Ann")
        await expect(row(second, "hello")).to_be_visible()
        await first.clock.fast_forward(5_000)
        await world.web.send(Outgoing(LOBBY, "k", "said meanwhile"))
        await expect(row(second, "said meanwhile")).to_be_visible()
        await expect(row(first, "said meanwhile")).not_to_be_visible()
        await first.clock.fast_forward(6_000)
        await expect(row(first, "said meanwhile")).to_be_visible()
        assert world.web.feed.listening == 1


async def test_a_page_whose_token_is_void_joins_again_and_sends_what_waited(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        port = int(world.base.rpartition(":")[2])
        ann = await tabs.person(world, "Ann")
        await say(ann, "before")
        await expect(row(ann, "before")).to_be_visible()
        before = (await accepts(world, 1))[0].sender.ref
    await say(ann, "waiting")
    (tmp_path / "keys" / "page_members.key").unlink()
    async with a_world(tmp_path, port=port) as world:
        await expect(ann.locator(".waiting")).to_have_count(0)
        await say(ann, "@Rollcall still there?")
        await expect(row(ann, "You said: still there?")).to_be_visible(timeout=20_000)
        assert [context.text for context in world.daemon.received] == ["waiting", "still there?"]
        assert world.daemon.received[0].sender.ref != before
