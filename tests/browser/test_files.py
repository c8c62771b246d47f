"""Files on the chat page in a real browser: chosen, dropped, shown and played."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, expect

from bot.platforms.base import Outgoing
from function_calls.context import Attachment
from tests.bot.web_world import a_world
from tests.browser.conftest import CHROMIUM
from tests.browser.test_chat_page import LOBBY, Tabs, accepts, row
from tests.fakes.files import png, wav

PICTURE: FilePayload = {"name": "dot.png", "mimeType": "image/png", "buffer": png(40, 30)}
VOICE: FilePayload = {"name": "voice.wav", "mimeType": "audio/wav", "buffer": wav(0.5)}
DROP = """([target, name, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0)), transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type }));
  for (const kind of ["dragover", "drop"])
    document.querySelector(target).dispatchEvent(
      new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true })
    );
}"""
DURATION = """(sound) => new Promise((done) => {
  if (sound.duration) done(sound.duration);
  else sound.onloadedmetadata = () => done(sound.duration);
})"""
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]


@pytest_asyncio.fixture(loop_scope="package")
async def tabs(browser: Browser) -> AsyncIterator[Tabs]:
    opened = Tabs(browser, await browser.new_context())
    yield opened
    assert opened.faults == []


async def test_a_picture_and_a_voice_file_are_sent_and_shown_to_others(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=1_000_000) as world:
        ann, ben = await tabs.person(world, "Ann"), await tabs.person(world, "Ben")
        await ann.set_input_files("#files", [PICTURE, VOICE])
        await expect(ann.locator("#picked img")).to_be_visible()
        await expect(ann.locator("#picked li")).to_have_count(2)
        await ann.fill("#text", "what is this?")
        await ann.click("#send")
        shown = row(ben, "what is this?")
        await expect(shown.locator("img")).to_be_visible()
        assert await shown.locator("img").evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 40
        assert await shown.locator("audio").evaluate(DURATION) == pytest.approx(0.5, abs=0.05)
        await expect(ann.locator("#picked li")).to_have_count(0)
        (context,) = await accepts(world, 1)
        assert [one.name for one in context.attachments] == ["dot.png", "voice.wav"]
        assert await world.web.read_file(context.attachments[0], 10_000) == png(40, 30)


async def test_a_dropped_picture_can_be_removed_or_sent_without_a_text(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=1_000_000) as world:
        ann = await tabs.person(world, "Ann")
        data: list[Any] = ["main", "dot.png", "image/png", base64.b64encode(png(40, 30)).decode()]
        await expect(ann.locator("#send")).to_be_disabled()
        await ann.evaluate(DROP, data)
        await ann.get_by_label("Remove dot.png").click()
        await expect(ann.locator("#picked li")).to_have_count(0)
        await expect(ann.locator("#send")).to_be_disabled()
        await ann.evaluate(DROP, data)
        await expect(ann.locator("#picked img")).to_be_visible()
        await ann.click("#send")
        (context,) = await accepts(world, 1)
        assert (context.text, len(context.attachments)) == ("", 1)


async def test_a_file_that_is_too_large_is_not_taken(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path, upload_bytes=100) as world:
        ann = await tabs.person(world, "Ann")
        await ann.set_input_files("#files", [VOICE])
        await expect(ann.locator("#status")).to_contain_text("at most 0.0001 MB")
        await expect(ann.locator("#picked li")).to_have_count(0)


async def test_there_is_no_file_button_without_a_model_for_files(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        await expect(ann.locator("#attach")).to_be_hidden()


async def test_a_picture_of_the_bot_is_shown(tabs: Tabs, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        ann = await tabs.person(world, "Ann")
        url = f"data:image/png;base64,{base64.b64encode(png(40, 30)).decode()}"
        await world.web.send(Outgoing(LOBBY, "k1", "Drawn.", attachments=(Attachment("d.png", "image/png", url),)))
        image = row(ann, "Drawn.").locator("img")
        await expect(image).to_be_visible()
        assert await image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 40
