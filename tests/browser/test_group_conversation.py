"""The first minutes of new members: the daemon as a process, and two people in Chromium."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS, a_running_daemon
from tests.fakes.openai_server import OpenAIServer

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]


async def a_person(browser: Browser, address: str, name: str, query: str = "") -> Page:
    page = await (await browser.new_context()).new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    await page.goto(f"{address}/?as={name}{query}")
    await expect(page.locator("#my-name")).to_have_text(name)
    return page


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


def bubble(page: Page, text: str) -> Locator:
    return page.locator(".row .bubble", has_text=text)


def completion(content: str | None, calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"status": 200, "body": {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}}


@pytest.mark.requirement("D1", "D24", "D25", "D27", "D38")
async def test_two_people_and_the_bot_talk_by_command_by_function_and_in_plain_words(
    browser: Browser, tmp_path: Path
) -> None:
    rolls = {"id": "call_1", "type": "function", "function": {"name": "roll_dice", "arguments": '{"dice": "2d6"}'}}
    script = [completion(None, [rolls]), completion("You rolled two dice, Ben!"), completion("Nice to meet you both.")]
    async with OpenAIServer(script) as model:
        environment = {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "m"}
        async with a_running_daemon(tmp_path, **environment) as printed:
            address = printed["Chat page"]
            ann = await a_person(browser, address, "Ann")
            ben = await a_person(browser, address, "Ben")
            await say(ann, "Hi Ben, shall we?")
            await expect(bubble(ben, "Hi Ben, shall we?")).to_be_visible()
            await say(ann, "/todo add buy milk")
            for page in (ann, ben):
                await expect(bubble(page, "Added #1 to the list: buy milk")).to_be_visible()
            await say(ben, "@Rollcall roll two dice for me")
            for page in (ann, ben):
                await expect(bubble(page, "You rolled two dice, Ben!")).to_be_visible()
            await say(ann, "Rollcall, this is Ben and I am Ann")
            await expect(bubble(ben, "Nice to meet you both.")).to_be_visible()
        first, _, last = [orjson.loads(request.body) for request in model.requests]
        assert "roll_dice" in [tool["function"]["name"] for tool in first["tools"]]
        told = orjson.dumps(last["messages"]).decode()
        assert "Ben: @Rollcall" not in told
        assert "Hi Ben, shall we?" in told
        assert "You rolled two dice, Ben!" in told


@pytest.mark.requirement("D14", "D53")
async def test_without_a_model_commands_and_the_functions_examples_work_and_a_question_is_asked_back(
    browser: Browser, tmp_path: Path
) -> None:
    async with a_running_daemon(tmp_path, OPENAI_API_KEY="", OPENAI_BASE_URL="") as printed:
        address, link = printed["Chat page"], printed["Owner link"]
        ann = await a_person(browser, address, "Ann", f"&{link.partition('?')[2]}")
        ben = await a_person(browser, address, "Ben")
        await say(ben, "@Rollcall flip a coin")
        await expect(ben.locator(".row:not(.mine) .bubble").last).to_contain_text(re.compile("Heads|Tails", re.I))
        await say(ann, "/todo add")
        await expect(ann.locator(".row:not(.mine) .bubble").last).to_contain_text("?")
        await say(ben, "I am not the one who was asked")
        await say(ann, "feed the cat")
        await expect(bubble(ben, "feed the cat").last).to_contain_text("#1")
        await say(ben, "@Rollcall who wrote Hamlet?")
        await expect(ben.locator(".row:not(.mine) .bubble").last).to_contain_text("OPENAI_API_KEY")
        await expect(ann.locator("body")).to_contain_text("owner")


ANSWER = """\
## Plan for *Saturday*

Bring **warm** clothes, `2*3*4` pegs and 2*3*4 ropes,
and read [the map](https://example.org/map).

1. Tent
   - poles
   - cover
2. Food

| Who | What |
|-----|-----:|
| Ann | **bread** |
| Ben | tea |

> Weather: dry.

```python
if a < b: print("**")
```
"""


async def test_an_answer_of_a_model_is_formatted_and_what_people_write_is_not(browser: Browser, tmp_path: Path) -> None:
    async with OpenAIServer([completion(ANSWER)]) as model:
        environment = {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "m"}
        async with a_running_daemon(tmp_path, **environment) as printed:
            ann = await a_person(browser, printed["Chat page"], "Ann")
            await say(ann, "@Rollcall is 2**3**4 more than # 1 or *2*? - no")
            answer = ann.locator(".row:not(.mine) .bubble")
            await expect(answer.get_by_role("heading", name="Plan for Saturday")).to_be_visible()
            await expect(answer.locator("h2 em")).to_have_text("Saturday")
            await expect(answer.locator("p").first).to_have_text(
                "Bring warm clothes, 2*3*4 pegs and 2*3*4 ropes,\nand read the map (example.org).", use_inner_text=True
            )
            await expect(answer.locator("p strong")).to_have_text("warm")
            await expect(answer.locator("p code")).to_have_text("2*3*4")
            link = answer.get_by_role("link", name="the map")
            await expect(link).to_have_attribute("href", "https://example.org/map")
            await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
            await expect(answer.locator(":scope > ol > li")).to_have_count(2)
            await expect(answer.locator("ol > li > ul > li")).to_have_text(["poles", "cover"])
            await expect(answer.get_by_role("columnheader")).to_have_text(["Who", "What"])
            await expect(answer.get_by_role("cell")).to_have_text(["Ann", "bread", "Ben", "tea"])
            await expect(answer.locator("td strong")).to_have_text("bread")
            await expect(answer.locator("blockquote")).to_have_text("Weather: dry.")
            await expect(answer.locator("pre code")).to_have_text('if a < b: print("**")')
            mine = ann.locator(".row.mine .bubble")
            await expect(mine).to_have_text("@Rollcall is 2**3**4 more than # 1 or *2*? - no")
            await expect(mine.locator("strong, em, h2, li")).to_have_count(0)


async def test_a_newcomer_finds_commands_and_mistyped_ones_are_answered_with_a_button(
    browser: Browser, tmp_path: Path
) -> None:
    async with a_running_daemon(tmp_path, OPENAI_API_KEY="", OPENAI_BASE_URL="") as printed:
        ann = await a_person(browser, printed["Chat page"], "Ann")
        await ann.locator("#text").press_sequentially("/")
        hints = ann.get_by_role("option")
        await expect(hints.filter(has_text="/calc ")).to_be_visible()
        await expect(hints.filter(has_text=re.compile("begin again|clearmessages"))).to_have_count(0)
        await say(ann, "/xyzzy")
        await say(ann, "/clac 6*7")
        answer = ann.locator(".row:not(.mine)").first
        await expect(answer).to_contain_text("Did you mean /calc 6*7?")
        await answer.get_by_role("button", name="/calc 6*7").click()
        await expect(bubble(ann, "6*7 = 42")).to_be_visible()
        await expect(ann.locator(".row:not(.mine)")).to_have_count(2)


@pytest.mark.parametrize("language", ["en", "zh-CN"])
async def test_the_suggestions_of_a_private_chat_work_without_a_model(
    browser: Browser, tmp_path: Path, language: str
) -> None:
    async with a_running_daemon(tmp_path, OPENAI_API_KEY="", OPENAI_BASE_URL="") as printed:
        page = await (await browser.new_context(locale=language)).new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        count = 3
        for number in range(count):
            await page.goto(f"{printed['Chat page']}/?as=Ann{number}")
            await expect(page.locator("#my-name")).to_have_text(f"Ann{number}")
            await page.locator("#rooms li").last.locator("button").click()
            welcome = page.locator(".welcome")
            await expect(welcome.get_by_role("button")).to_have_count(count)
            assert "@" not in await welcome.inner_text()
            await welcome.get_by_role("button").nth(number).click()
            await expect(page.locator(".row.mine")).to_have_count(1)
            answer = page.locator(".row:not(.mine) .bubble").first
            await expect(answer).not_to_be_empty()
            await expect(answer).not_to_contain_text("OPENAI_API_KEY")


@pytest.mark.requirement("D56")
@pytest.mark.parametrize(
    ("locale", "asked", "heading", "listed", "first", "owner"),
    [
        ("en-US", "/help", "Plan", "/todo: Show this chat's to-do list", "/remind", "owner"),
        ("zh-CN", "/帮助", "安排", "/待办：查看这个聊天的待办清单", "/提醒", "主人"),
    ],
)
async def test_help_on_the_page_has_a_button_for_each_heading_and_completion_describes_commands(
    browser: Browser, tmp_path: Path, locale: str, asked: str, heading: str, listed: str, first: str, owner: str
) -> None:
    settings = tmp_path / "bot.yaml"
    settings.write_text(f"language: {locale[:2]}\nplatforms: {{web: {{port: 0}}}}\nchats: {{allow: ['*']}}\n")
    options = ("--config", str(settings))
    async with a_running_daemon(tmp_path, *options, OPENAI_API_KEY="", OPENAI_BASE_URL="") as printed:
        page = await (await browser.new_context(locale=locale)).new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        await page.goto(f"{printed['Chat page']}/?as=Ann&{printed['Owner link'].partition('?')[2]}")
        await expect(page.locator("#my-role")).to_have_text(owner)
        await expect(page.locator(".welcome p")).to_contain_text(asked)
        await say(page, asked)
        await page.locator(".row:not(.mine) button", has_text=heading).last.click()
        await expect(page.locator(".row:not(.mine) .bubble").last).to_contain_text(listed)
        await page.fill("#text", "/")
        offered = page.locator("#hints li b")
        await expect(offered.first).to_contain_text(first)
        words = await offered.all_text_contents()
        assert not any("again" in word or "search" in word for word in words)


async def test_reminders_use_the_time_zone_of_the_browser(browser: Browser, tmp_path: Path) -> None:
    async with a_running_daemon(tmp_path) as printed:
        page = await (await browser.new_context(timezone_id="Asia/Tokyo")).new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        await page.goto(f"{printed['Chat page']}/?as=Ann")
        await expect(page.locator("#my-name")).to_have_text("Ann")
        await say(page, "/remind me tomorrow at 5pm tea")
        await expect(bubble(page, "at 17:00 (Asia/Tokyo)")).to_be_visible()
