"""docs/platforms/writing-one.md: its adapter, installed from a folder outside of the project, passes the contract and
serves a chat."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.adapter import Host
from bot.platforms.contract import Network, PlatformContract, a_host
from config.loader import check_settings
from config.sections.networks import ENTRY_POINTS, adapter_paths
from tests.bot.cli.running import PYTHON, a_settings_file, an_environment
from tests.conftest import REPOSITORY
from tests.docs.documents import Page
from tests.fakes.acme_chat import an_acme_server

PAGE = Page("docs/platforms/writing-one.md")
LACKS = {"reply_to", "edit", "delete", "react", "enter", "add_bot", "promote", "open_thread", "repeat", "disconnect"}
LONGEST = 60


def installed(folder: Path) -> Path:
    """Install the package of the page in `folder`, and return it."""
    [project] = [tomllib.loads(block.text)["project"] for block in PAGE.of("text")]
    code = PAGE.of("python")[0].text
    (folder / "acme_chat").mkdir(parents=True)
    (folder / "acme_chat" / "platform.py").write_text(code, encoding="utf-8")
    info = folder / f"acme_chat-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    entries = project["entry-points"][ENTRY_POINTS]
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
    )
    return folder


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The installed package."""
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site")))
    adapter_paths.cache_clear()
    yield
    adapter_paths.cache_clear()
    for name in [one for one in sys.modules if one.partition(".")[0] == "acme_chat"]:
        del sys.modules[name]


def test_the_adapter_is_short() -> None:
    lines = [line for line in PAGE.of("python")[0].text.splitlines() if line.strip() and not line.startswith("#")]
    imports = next(number for number, line in enumerate(lines) if line.startswith("class "))
    assert len(lines) - imports <= LONGEST


class TestContract(PlatformContract):
    lacks = frozenset(LACKS)

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        from acme_chat.platform import AcmePlatform, AcmeSettings

        async with an_acme_server() as server, a_host(home) as host:
            opened = [AcmePlatform(AcmeSettings(url=server.url), host)]

            def reopen() -> Any:
                opened.append(AcmePlatform(AcmeSettings(url=server.url), host))
                return opened[-1]

            names = {"group": "family", "ann": "u1", "ben": "u2", "robot": "bot"}
            yield Network(opened[0], server, **names, reopen=reopen), host
            for platform in opened:
                await platform.close()


def test_the_settings_of_the_page_are_read_and_wrong_ones_explained(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    [block] = PAGE.of("yaml")
    file.write_text(block.text)
    settings, found = check_settings(file, {})
    assert settings is not None
    assert [(name, account.account) for name, account in settings.platforms.networks] == [("acme", "main")]
    assert not found.errors
    assert check_settings(file, {})[0] == settings
    file.write_text(block.text.replace("url:", "urll:"))
    settings, found = check_settings(file, {})
    assert settings is None
    assert [str(one).partition("bot.yaml")[2] for one in found.errors] == [
        ":5:7 settings.missing platforms.acme[0].url is missing",
        ":5:7 settings.unknown_key platforms.acme[0].urll is not a setting; did you mean 'url'?",
    ]
    file.write_text(block.text.replace("  acme:", "  acne:"))
    settings, found = check_settings(file, {})
    assert [str(one).partition("bot.yaml")[2] for one in found.errors] == [
        ":4:3 settings.unknown_key platforms.acne is not a setting; did you mean 'acme'?"
    ]


@pytest.mark.parametrize("command", ["doctor", "run"])
async def test_the_installed_adapter_is_used_by_the_commands(tmp_path: Path, command: str) -> None:
    async with an_acme_server() as server:
        [block] = PAGE.of("yaml")
        text = block.text.replace("http://127.0.0.1:7000", server.url)
        file = a_settings_file(tmp_path, text)
        if command == "run":
            file.write_text(file.read_text().replace("platforms:", "platforms:\n  web: {port: 0, page: false}"))
        paths = os.pathsep.join((str(tmp_path / "site"), str(REPOSITORY)))
        options = ["--no-console"] if command == "run" else ["--no-model", "--no-web"]
        process = await asyncio.create_subprocess_exec(
            *(PYTHON, "-m", "bot", command, "--config", str(file), *options),
            env=an_environment(PYTHONPATH=paths),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(60):
            if command == "doctor":
                printed = (await process.communicate())[0].decode()
                assert f"ok     acme       main: {server.url} answers with status 404" in printed
                return
            try:
                await server.asked.wait()
                await server.say("u1", "/roll 2d1")
                assert "2" in await server.next_shown()
            finally:
                process.send_signal(signal.SIGTERM)
                await process.communicate()
        assert process.returncode == 0
