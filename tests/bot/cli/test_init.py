"""`rollcall init`: asks in a terminal or takes options, checks accounts, and writes settings that serve."""

from __future__ import annotations

import asyncio
import os
import pty
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.loader import check_settings
from config.sections.networks import adapter_paths
from tests.bot.cli.running import PYTHON, an_environment
from tests.conftest import REPOSITORY
from tests.docs.test_writing_a_platform_page import installed
from tests.fakes.acme_chat import an_acme_server

Exchange = tuple[str, str]
"""A prompt, and what is typed then."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit status, and what the terminal showed."""

    status: int | None
    shown: str


async def typed(folder: Path, *arguments: str, answers: Sequence[Exchange] = ()) -> Ended:
    """Run `rollcall init` with the network acme installed, and type `answers` at their prompts, if there are any."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(PYTHON, "-m", "bot", "init", *arguments),
        env=an_environment(PYTHONPATH=os.pathsep.join((str(folder / "site"), str(REPOSITORY))), NOWHERE="127.0.0.1:1"),
        stdin=theirs if answers else asyncio.subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
    )
    os.close(theirs)
    shown, after, left = "", 0, list(answers)
    try:
        async with asyncio.timeout(60):
            while chunk := await asyncio.to_thread(_read, ours):
                shown += chunk
                while left and left[0][0] in shown[after:]:
                    prompt, answer = left.pop(0)
                    after = shown.index(prompt, after) + len(prompt)
                    os.write(ours, f"{answer}\n".encode())
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
    assert not left, (left, shown)
    return Ended(process.returncode, shown)


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 4096).decode()
    except OSError:  # the other side is closed
        return ""


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site")))
    adapter_paths.cache_clear()


async def test_a_bot_is_set_up_by_answering_questions(tmp_path: Path) -> None:
    async with an_acme_server() as server:
        answers = [
            ("Name of the bot", "Butler"),
            ("Language (", "fr"),
            ("Language (", "zh"),
            ("Network (", "acne"),
            ("Network (", "acme"),
            ("url: ", "http://127.0.0.1:1"),
            ("url [http://127.0.0.1:1]: ", server.url),
            ("Chats (", "family work"),
            ("Network (", ""),
        ]
        ended = await typed(tmp_path, answers=answers)
        assert "That does not work" in ended.shown
        assert "There is no network 'acne'" in ended.shown
        assert f"{server.url} answers with status 404" in ended.shown
    assert ended.status == 0, ended.shown
    file = tmp_path / "bot.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    settings, found = check_settings(file, {})
    assert settings is not None, found
    assert settings.bots["default"].name == "Butler"
    assert settings.language == "zh"
    assert settings.chats.allow == ("acme:main:family", "acme:main:work")
    assert [name for name, _ in settings.platforms.networks] == ["acme"]
    assert "# URL of the server" in file.read_text()


async def test_options_replace_questions_and_a_wrong_account_writes_nothing(tmp_path: Path) -> None:
    async with an_acme_server() as server:
        refused = await typed(tmp_path, "bot.yaml", "--network", "acme", "--set", "url=http://${NOWHERE}")
        assert refused.status == 1
        assert "acme: http://127.0.0.1:1 does not answer" in refused.shown
        unknown = await typed(tmp_path, "bot.yaml", "--network", "acme", "--set", "uri=x")
        assert "acme has no setting 'uri'; it has account, url" in unknown.shown
        assert not (tmp_path / "bot.yaml").exists()
        made = await typed(tmp_path, "--network", "acme", "--set", f"url={server.url}", "--allow", "*")
        assert made.status == 0, made.shown
        asked = [
            ("Name of the bot", ""),
            ("Language (", ""),
            ("url: ", "http://127.0.0.1:1"),
            ("url [http://127.0.0.1:1]: ", server.url),
            ("Chats (", ""),
        ]
        corrected = await typed(tmp_path, "asked.yaml", "--network", "acme", "--set", "account=work", answers=asked)
        assert corrected.status == 0, corrected.shown
        again = await typed(tmp_path, "--network", "acme", "--set", f"url={server.url}")
        assert "bot.yaml exists; name another file, or add --force to replace it" in again.shown
        digits = ("--network", "acme", "--set", f"url={server.url}", "--set", "account=4711", "--name", "2026")
        made = await typed(tmp_path, "digits.yaml", *digits)
        assert made.status == 0, made.shown
    settings, found = check_settings(tmp_path / "bot.yaml", {})
    assert settings is not None, found
    assert settings.chats.allow == ("acme:main:*",)
    settings, found = check_settings(tmp_path / "digits.yaml", {})
    assert settings is not None, found
    assert (settings.bots["default"].name, settings.platforms.networks[0][1].account) == ("2026", "4711")
