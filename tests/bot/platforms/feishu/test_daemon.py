"""The daemon on Feishu, in a process of its own, across a crash."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.platforms.contract import Shown
from services.refs import Role
from tests.fakes.feishu_server import ANN, APP_ID, APP_SECRET, BEN, GROUP, PRIVATE, FakeFeishu
from tests.harness.forked_processes import ForkedProcess, a_forked_process

_SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
models: []
chats: {{allow: ["feishu:main:{group}", "feishu:main:{private}"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0, page: false}}
  feishu:
    - app_id: {app_id}
      app_secret: {app_secret}
      domain: {url}
"""


@asynccontextmanager
async def a_daemon(home: Path, feishu: FakeFeishu) -> AsyncIterator[ForkedProcess]:
    """`rollcall run`, as soon as it is connected."""
    file, before = home / "bot.yaml", feishu.connections
    places = {"home": home, "group": GROUP, "private": PRIVATE, "url": feishu.url}
    file.write_text(_SETTINGS.format(app_id=APP_ID, app_secret=APP_SECRET, **places))
    async with a_forked_process("bot", "run", "--config", str(file), "--no-console") as process:
        await feishu.until(lambda: feishu.connections > before)
        yield process


async def test_the_daemon_serves_a_group_on_feishu_across_a_crash(tmp_path: Path) -> None:
    async with FakeFeishu().running() as feishu:
        await feishu.promote(BEN, Role.ADMIN)
        async with a_daemon(tmp_path, feishu) as process:
            await feishu.say(ANN, "just talking")
            await feishu.say(ANN, "/calc 6*7", mention=True)
            await feishu.says("6*7 = 42")
            await feishu.say(ANN, "/settings language zh", mention=True)
            await feishu.says("Only admins")
            await feishu.say(BEN, "/settings timezone Europe/Oslo", mention=True)
            await feishu.says("Europe/Oslo")
            await feishu.say(ANN, "/poll Lunch? | Pizza | Soup", mention=True)
            poll = await feishu.says("Lunch?")

            def poll_now() -> Shown:
                return next(one for one in feishu.visible(GROUP) if one.native_id == poll.native_id)

            await feishu.acknowledged(await feishu.press(BEN, poll.native_id, poll.buttons[0]))
            await feishu.until(lambda: "Pizza: 1 (100%)" in poll_now().text)
            await feishu.say(ANN, "calc 2+3", chat=PRIVATE)
            await feishu.says("2+3 = 5", PRIVATE)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        for number in range(5):
            await feishu.say(ANN, f"/calc {number}+100", mention=True)
        await feishu.say(ANN, "calc 2+4", chat=PRIVATE)
        async with a_daemon(tmp_path, feishu):
            await feishu.says("4+100 = 104")
            await feishu.says("2+4 = 6", PRIVATE)
            answers = [one.text for one in await feishu.shown() if "+100 = " in one.text]
            assert answers == [f"{number}+100 = {number + 100}" for number in range(5)]
            await feishu.press(ANN, poll.native_id, poll.buttons[1])
            await feishu.until(lambda: "Soup: 1 (50%)" in poll_now().text)
            other = await feishu.add_bot(ANN)
            await feishu.says(other, other)
            await feishu.until(lambda: not feishu.chats[other]["has_bot"])
