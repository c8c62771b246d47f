"""The recording of the README: two members and the bot on the chat page, without a language model. With a folder in
ROLLCALL_SCREENSHOTS the recording is written there as chat.gif."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import CHROMIUM, a_running_daemon
from tests.browser.test_group_conversation import a_person, bubble, say

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]
SIZE: ViewportSize = {"width": 900, "height": 720}
TYPED_AT_ONCE = 6
"""Characters between two pictures of a message that is typed."""
MOST_BYTES = 500_000


@dataclass
class Recording:
    """Pictures of a page with the time that each is shown, in milliseconds."""

    page: Page
    pictures: list[Image.Image] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    async def show(self, milliseconds: int) -> None:
        self.pictures.append(Image.open(io.BytesIO(await self.page.screenshot())).convert("RGB"))
        self.times.append(milliseconds)

    async def type(self, text: str, *answers: str) -> None:
        """Type and send a message, and wait for the answers."""
        for end in range(TYPED_AT_ONCE, len(text) + TYPED_AT_ONCE, TYPED_AT_ONCE):
            await self.page.fill("#text", text[:end])
            await self.show(120)
        await self.page.press("#text", "Enter")
        for answer in answers:
            await expect(bubble(self.page, answer).last).to_be_visible()
        await self.show(1800)

    def write(self, file: Path) -> None:
        """Write an animated picture with one palette for all pictures."""
        palette = self.pictures[-1].quantize(64, dither=Image.Dither.NONE)
        first, *others = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in self.pictures)
        first.save(file, save_all=True, append_images=others, duration=self.times, loop=0, optimize=True)


async def test_a_group_calculates_remembers_and_votes(browser: Browser, tmp_path: Path) -> None:
    async with a_running_daemon(tmp_path) as printed:
        address = printed["Chat page"]
        ann, ben = await a_person(browser, address, "Ann"), await a_person(browser, address, "Ben")
        await ann.set_viewport_size(SIZE)
        recording = Recording(ann)
        await recording.show(800)
        await recording.type("/calc 15% of 80", "15% of 80 = 12")
        await recording.type("@Rollcall remind me in 20 minutes to take the pizza out", "take the pizza out")
        await say(ben, "where do we eat on Friday?")
        await expect(bubble(ann, "where do we eat on Friday?")).to_be_visible()
        await recording.show(1200)
        await recording.type("/poll Friday? Thai, Pizza, Tapas", "Friday?")
        for number, member in enumerate((ben, ann), start=1):
            await member.get_by_role("button", name="Thai", exact=True).click()
            await expect(bubble(ann, f"Thai: {number} (100%)")).to_be_visible()
            await ann.mouse.wheel(0, 10_000)
            await recording.show(1500 * number)
    file = Path(os.environ.get("ROLLCALL_SCREENSHOTS", tmp_path)) / "chat.gif"
    recording.write(file)
    assert file.stat().st_size <= MOST_BYTES
