"""Secrets of messages, runs, notes, timers and logs are on no page of the desk, and configured ones in no backup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from bot.web.desk.desk import SECTIONS
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from tests.harness.desk import a_desk
from tests.services.test_redaction import core

CONFIGURED = "a-key-that-the-operator-chose"


@tool_function(effect="read", commands=("echo",), description="Repeat a text")
async def echo(context: MessageContext, text: str) -> FunctionResult:
    return FunctionResult.say(text, data={"text": text})


async def test_no_page_shows_a_secret_of_a_message_a_run_a_note_or_the_log(
    tmp_path: Path, data: Callable[[str], Path]
) -> None:
    rows = data("G_faults/secrets_redaction.jsonl").read_text(encoding="utf-8").splitlines()
    secrets = sorted({json.loads(row)["secret"] for row in rows})
    file = tmp_path / "bot.yaml"
    file.write_text(f"chats: {{allow: ['*']}}\nsearch: {{api_key: {CONFIGURED}}}\n", encoding="utf-8")
    settings = {"search": {"kind": "perplexity", "api_key": CONFIGURED}}
    async with a_desk([echo], settings, settings_file=file, home=tmp_path) as world, world.person() as owner:
        for secret in [*secrets, CONFIGURED]:
            await world.group.say("Ann", f"/echo {secret}")
            await world.group.say("Ann", f"/remember our code is {secret}")
            await world.group.say("Ann", f"/remind in 2 hours say {secret}")
        await world.group.daemon.store.commit([])
        for log in world.group.daemon.logs:
            log.flush()
        pages = [await owner.get(f"/desk/{section.name}") for section in SECTIONS]
        chat = re.search(r'href="(/desk/chats/[^"]+)"', pages[1].text)
        assert chat is not None
        first = await owner.get(chat[1])
        pages += [
            first,
            await owner.get("/desk/settings/file"),
            await owner.get("/desk/logs?file=function_calls.jsonl"),
        ]
        turns = re.findall(r'href="(/desk/turns/\d+)"', first.text)
        assert len(turns) >= 20
        pages += [await owner.get(turn) for turn in turns]
        assert [page.url.path for page in pages if page.status_code != 200] == []
        leaks = [
            (page.url.path, secret)
            for page in pages
            for secret in secrets
            if secret in page.text or core(secret) in page.text
        ]
        assert leaks == []
        assert first.text.count("***") >= len(secrets)
        assert [page.url.path for page in pages if CONFIGURED in page.text] == []


async def test_configured_secrets_are_in_no_backup(tmp_path: Path) -> None:
    settings = {"search": {"kind": "perplexity", "api_key": CONFIGURED}}
    async with a_desk(settings=settings, home=tmp_path) as world, world.person() as owner:
        await world.group.say("Ann", "/roll 1d1")
        assert (await owner.post("/desk/backups")).status_code == 303
        files = [file for file in (tmp_path / "backups").rglob("*") if file.is_file()]
        assert files
        assert [file for file in files if CONFIGURED.encode() in file.read_bytes()] == []
