"""An hour of a family and of a class on the chat page, without a language model and with a scripted one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser, FilePayload, Page, expect
from ruamel.yaml import YAML

from tests.browser.conftest import CHROMIUM, a_running_daemon
from tests.browser.test_group_conversation import a_person, completion, say
from tests.fakes.files import png, wav
from tests.fakes.openai_server import OpenAIServer

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]
FILES: Mapping[str, FilePayload] = {
    "picture": {"name": "photo.png", "mimeType": "image/png", "buffer": png(320, 200)},
    "voice": {"name": "voice.wav", "mimeType": "audio/wav", "buffer": wav(2.0)},
}
MODELS = """\
chats: {{allow: ["web:*"]}}
models: [{{name: main, model: m, base_url: "{url}", api_key: test-key, sees: true}}]
media: {{hearing: [{{name: ears, model: h, base_url: "{url}", api_key: test-key}}]}}
platforms: {{web: {{port: 0, rooms: [{{id: family, title: Family}}]}}}}
"""
HOURS = Path(__file__).parent / "hours"
SCREENSHOTS = os.environ.get("ROLLCALL_SCREENSHOTS", "")
"""Folder for a screenshot and the transcript of each hour; empty for none."""


def scripted(answer: str | Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a model server: a text, `heard` in a voice message, or the call of one function."""
    if isinstance(answer, str):
        return completion(answer)
    if "heard" in answer:
        return {"status": 200, "body": {"text": answer["heard"]}}
    [(name, arguments)] = answer.items()
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return completion(None, [{"id": "call_1", "type": "function", "function": function}])


async def play(hour: Mapping[str, Any], kind: str, pages: Mapping[str, Page], model: OpenAIServer) -> list[str]:
    """Play the steps of `kind`; returns the transcript. Every member sees every message."""
    transcript, rows = [], await next(iter(pages.values())).locator(".row").count()
    for step in hour["steps"]:
        who = next(name for name in step if name in pages)
        if step.get("only", kind) != kind:
            continue
        model.script += [scripted(one) for one in step.get("model", ())] if kind == "model" else []
        if "file" in step:
            await pages[who].set_input_files("#files", FILES[step["file"]])
        await say(pages[who], step[who])
        transcript.append(f"{who}: {step[who]}" + (f" [{step['file']}]" if "file" in step else ""))
        answers = step.get("bot", ())
        answers = [answers] if isinstance(answers, str) else answers
        for page in pages.values():
            await expect(page.locator(".row")).to_have_count(rows + 1 + len(answers))
        for number, answer in enumerate(answers, rows + 1):
            shown = pages[who].locator(".row .bubble").nth(number)
            await expect(shown).to_contain_text(re.compile(answer))
            transcript.append(f"Rollcall: {await shown.inner_text()}")
        rows += 1 + len(answers)
        assert model.script == [], step
    return transcript


@pytest.mark.parametrize("kind", ["offline", "model"])
@pytest.mark.parametrize("name", ["family", "class"])
async def test_an_hour_of_a_group(name: str, kind: str, browser: Browser, tmp_path: Path) -> None:
    hour = YAML(typ="safe").load(HOURS / f"{name}.yaml")
    async with OpenAIServer([]) as model:
        options: list[str] = []
        if kind == "model":
            (tmp_path / "bot.yaml").write_text(MODELS.format(url=model.base_url), encoding="utf-8")
            options = ["--config", str(tmp_path / "bot.yaml")]
        async with a_running_daemon(tmp_path, *options, OPENAI_API_KEY="", OPENAI_BASE_URL="") as printed:
            owner = f"&{printed['Owner link'].partition('?')[2]}"
            pages = {
                who: await a_person(browser, printed["Chat page"], who, owner if who == hour["members"][0] else "")
                for who in hour["members"]
            }
            first = pages[hour["members"][0]]
            await say(first, f"/settings language {hour['language']}")
            for page in pages.values():
                await expect(page.locator(".row")).to_have_count(2)
            transcript = await play(hour, kind, pages, model)
            if SCREENSHOTS:
                await first.set_viewport_size({"width": 900, "height": 2800})
                await first.screenshot(path=f"{SCREENSHOTS}/{name}-{kind}.png")
                Path(SCREENSHOTS, f"{name}-{kind}.txt").write_text("\n".join(transcript), encoding="utf-8")
