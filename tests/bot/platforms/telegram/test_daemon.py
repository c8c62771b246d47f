"""The daemon on Telegram, in a process of its own, across a crash."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.telegram_server import BOT, GROUP, TOKEN, USERS, FakeTelegram, Json, keyboard
from tests.harness.forked_processes import ForkedProcess, a_forked_process
from tests.harness.real_daemon import a_real_daemon

_SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
models: []
chats: {{allow: ["telegram:main:{group}", "telegram:main:1001"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0, page: false}}
  telegram:
    - token: "{token}"
      api_url: "{url}"
"""


@asynccontextmanager
async def a_daemon(home: Path, server: FakeTelegram) -> AsyncIterator[ForkedProcess]:
    """`rollcall run`, as soon as it polls."""
    file = home / "bot.yaml"
    file.write_text(_SETTINGS.format(home=home, group=GROUP, token=TOKEN, url=server.url))
    server.polling.clear()
    async with a_forked_process("bot", "run", "--config", str(file), "--no-console") as process:
        async with asyncio.timeout(60):
            await server.polling.wait()
        yield process


async def says(server: FakeTelegram, words: str, chat: int = GROUP) -> Json:
    """The bot's message with `words`, as soon as it is there."""
    return await found(lambda: next((one for one in server.sent(chat) if words in one.get("text", "")), None))


async def found(look: Callable[[], Json | None]) -> Json:
    """The result of `look` as soon as it is not None; the daemon is another process and provides no event."""
    async with asyncio.timeout(30):
        while (result := look()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return result


async def test_the_daemon_serves_a_group_on_telegram_across_a_crash(tmp_path: Path) -> None:
    async with FakeTelegram() as server:
        server.members[GROUP][USERS["ben"]["id"]] = "administrator"
        async with a_daemon(tmp_path, server) as process:
            server.say("ann", "just talking")
            server.say("ann", "/calc@other_bot 8-5")
            server.say("ann", "/calc@rollcall_bot 6*7")
            await says(server, "6*7 = 42")
            server.say("ann", "/settings@rollcall_bot language zh")
            await says(server, "Only admins")
            server.say("ben", "/settings@rollcall_bot timezone Europe/Oslo")
            await says(server, "Europe/Oslo")
            server.say("ann", "/poll@rollcall_bot Lunch? | Pizza | Soup")
            poll = await says(server, "Lunch?")
            label = keyboard(poll)[0][0]["text"]
            server.press("ben", GROUP, poll["message_id"], label)
            await found(lambda: {} if server.answered else None)
            server.say("ann", "calc 2+3", USERS["ann"]["id"])
            await says(server, "2+3 = 5", USERS["ann"]["id"])
            await found(lambda: {} if server.called("setMyCommands") else None)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        for number in range(10):
            server.say("ann", f"/calc@rollcall_bot {number}+100")
        server.add_chat(-500, "group", "Work")
        server.change_member(BOT, "member", -500)
        async with a_daemon(tmp_path, server):
            await says(server, "9+100 = 109")
            assert "telegram:main:-500" in (await says(server, "chats.allow", -500))["text"]
            await found(lambda: {} if server.called("leaveChat") else None)
        shown = [one["text"] for one in server.sent()]
        assert [text for text in shown if "+100" in text] == [f"{n}+100 = {n + 100}" for n in range(10)]
        assert not any("8-5" in text for text in shown)


async def test_accounts_on_telegram_and_on_the_http_platform_are_linked(tmp_path: Path) -> None:
    ann = USERS["ann"]["id"]
    async with FakeTelegram() as server:
        telegram = f'  telegram: [{{token: "{TOKEN}", api_url: "{server.url}"}}]\n'
        async with a_real_daemon(tmp_path, "http://127.0.0.1:9", telegram) as daemon:
            async with asyncio.timeout(60):
                await server.polling.wait()
            server.say("ann", "/timezone Kathmandu", ann)
            await says(server, "Asia/Kathmandu", ann)
            await daemon.say("dm-ann", "m1", "/link")
            [offer] = await daemon.said("dm-ann", 1)
            code = re.findall(r"/link (\S+)", offer)[0]
            server.say("ann", f"/link {code}", ann)
            await says(server, "I've asked Ann (http:main:ann)", ann)
            assert f"Ann Lee (telegram:main:{ann})" in (await daemon.said("dm-ann", 2))[1]
            await daemon.say("dm-ann", "m2", f"/link accept {code}")
            assert "http:main:ann" in (await says(server, "is now linked", ann))["text"]
            await daemon.say("dm-ann", "m3", "/timezone")
            assert "Asia/Kathmandu" in (await daemon.said("dm-ann", 4))[3]
