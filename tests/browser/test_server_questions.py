"""Questions of a published MCP server to one of two people in Chromium."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS, a_running_daemon
from tests.browser.test_group_conversation import a_person, bubble, say
from tests.harness.node_programs import INSTALLED, installed

SCREENSHOTS = os.environ.get("ROLLCALL_SCREENSHOTS", "")
ANSWERS = {"String": "Ann Lee", "Boolean": "yes", "Integer": "7", "Untitled Single Select Enum": "Ross"}
"""Answers by the title of the field; all other fields are skipped."""
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]


async def listed(page: Page, address: str, command: str) -> None:
    """Wait until the page offers `command`: the server's tools are listed in the background."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while command not in await (await page.request.get(f"{address}/api/v1/commands")).text():
            await page.wait_for_timeout(100)


@pytest.mark.requirement("B9")
async def test_only_the_member_who_called_a_tool_answers_its_servers_questions(
    browser: Browser, tmp_path: Path
) -> None:
    program = [str(INSTALLED / ".bin" / "node"), str(installed("mcp-server-everything"))]
    tools = {"trigger-elicitation-request": {"commands": ["survey"]}}
    entry = {"name": "everything", "command": program, "roles": "member", "effect": "read", "tools": tools}
    file = tmp_path / "bot.yaml"
    file.write_text(json.dumps({"chats": {"allow": ["web:*"]}, "mcp": {"servers": [entry]}}), encoding="utf-8")
    async with a_running_daemon(tmp_path / "home", "--port", "0", "--config", str(file)) as printed:
        address = printed["Chat page"]
        ann = await a_person(browser, address, "Ann")
        ben = await a_person(browser, address, "Ben")
        await listed(ann, address, "survey")
        await say(ann, "/survey")
        last = ann.locator(".row:not(.mine) .bubble").last
        await expect(last).to_contain_text("everything asks: Please provide inputs")
        await say(ben, "Ben Bo")
        await expect(bubble(ann, "Ben Bo")).to_be_visible()
        if SCREENSHOTS:
            Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
            await ann.screenshot(path=f"{SCREENSHOTS}/server-question.png")
        rows = ann.locator(".row:not(.mine) .bubble").filter(has_not_text="Ben Bo")
        for number in range(20):
            await expect(rows).to_have_count(number + 1)
            text = await rows.last.inner_text()
            if "User inputs" in text:
                break
            title = next((one for one in ANSWERS if re.search(rf"\b{one}:", text)), "")
            await say(ann, ANSWERS.get(title, "skip"))
        told = await rows.last.inner_text()
        if SCREENSHOTS:
            await ann.screenshot(path=f"{SCREENSHOTS}/server-answers.png")
    assert "Ann Lee" in told
    assert "Ben Bo" not in told
    assert re.search(r'"integer": 7\b', told)
    assert "Ross" in told
