"""Clients of others work against the fake server of the Bot API."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.fakes.telegram_server import BOT, GROUP, TOKEN, USERS, FakeTelegram, Rejected, keyboard
from tests.harness.foreign import python_of

_FOREIGN = Path(__file__).resolve().parents[3] / "foreign"


@pytest.mark.parametrize(
    ("environment", "program"),
    [("python_telegram_bot", "telegram_ptb.py"), ("aiogram", "telegram_aiogram.py")],
)
async def test_a_client_of_others_works_with_the_fake(environment: str, program: str) -> None:
    python = python_of(environment)
    async with FakeTelegram() as server:
        server.say("ann", "@rollcall_bot hello")
        topic = server.message(GROUP, USERS["ann"], forum_topic_created={"name": "Tea", "icon_color": 1})
        server.say("ann", "About tea", thread=topic["message_id"])
        file = server.say_file("ann", "", "a.png", b"content")
        server.edit(GROUP, server.message(GROUP, USERS["ann"], text="first")["message_id"], "edited")
        server.react("ann", GROUP, file["message_id"], "👍")
        server.change_member(USERS["carl"], "member")
        server.add_chat(-500, "group", "Work")
        server.change_member(BOT, "member", -500)
        server.moved[-500] = -1001000000500

        def press(message: dict[str, object]) -> None:
            if keyboard(message):
                server.press("ann", GROUP, int(str(message["message_id"])), "Yes")

        server.on_sent = press
        server.fails_texts = {
            "fails": [Rejected(429, "Too Many Requests: retry after 7", retry_after=7), Rejected(403, "Forbidden: x")]
        }
        arguments = (server.url, TOKEN, str(GROUP), str(USERS["ann"]["id"]))
        running = await asyncio.create_subprocess_exec(python, _FOREIGN / program, *arguments, stdout=PIPE, stderr=PIPE)
        _, errors = await running.communicate()
        assert running.returncode == 0, errors.decode()[-3000:]
        assert len(server.answered) == 1
        assert [one.get("text") or one.get("caption") for one in server.sent()] == ["Changed", "A photo"]
        assert [one["text"] for one in server.sent(thread=topic["message_id"])] == ["In the topic"]
