"""Settings of the programs that may call functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.checks.functions_check import check_functions
from config.chat_settings import chat_settings
from config.loader import check_settings
from tests.config.files import settings_of

TOKEN = "a-token-of-some-length"


def found_in(folder: Path, text: str) -> list[str]:
    """Messages of all diagnostics of a file with these settings."""
    file = folder / "bot.yaml"
    file.write_text(f"config_version: 1\n{text}", encoding="utf-8")
    return [str(one) for one in check_settings(file, {})[1]]


def serving(*clients: str) -> str:
    return f"mcp: {{serve: {{enabled: true, clients: [{', '.join(clients)}]}}}}\n"


def client(**more: str) -> str:
    entry = {"name": "editor", "token": TOKEN, **more}
    return "{" + ", ".join(f"{key}: {value}" for key, value in entry.items()) + "}"


def test_nothing_is_served_unless_somebody_says_so(tmp_path: Path) -> None:
    serve = settings_of(tmp_path, "config_version: 1").mcp.serve
    assert (serve.enabled, serve.path, serve.clients) == (False, "/mcp", ())


def test_a_program_has_least_rights_and_a_chat_of_its_own_unless_somebody_says_so(tmp_path: Path) -> None:
    [one] = settings_of(tmp_path, f"config_version: 1\n{serving(client())}").mcp.serve.clients
    assert (one.role, one.chat_key, one.functions) == ("member", "mcp:main:editor", ())
    assert TOKEN not in repr(one)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (serving(client(token="short")), "at least 16 characters"),
        (serving(client(token='"a token with spaces"')), "without spaces"),
        (serving(client(token='"секретный-токен-тут"')), "ASCII"),
        (serving(client(name='"a b"')), "letters, digits"),
        (serving(client(role="king")), "role"),
        (serving(client(chat="nowhere")), "platform:account:chat"),
        (serving(client(chat='"web:main:a"', bot="default")), "does not go with chat"),
        (serving(client(bot="nobody")), "not in bots"),
        (serving(client(), client(token="another-token-of-length")), "is already the name of an entry above"),
        (serving(client(), client(name="other")), "the same token"),
        (serving(), "at least one client"),
        ("mcp: {serve: {path: mcp}}\n", "such as /mcp"),
        ("mcp: {serve: {path: /api/mcp}}\n", "something else"),
        ("mcp: {serve: {nonsense: 1}}\n", "nonsense"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, told: str) -> None:
    [finding] = found_in(tmp_path, text)
    assert told in finding
    assert TOKEN not in finding


def test_a_room_that_is_not_served_is_a_warning(tmp_path: Path) -> None:
    text = serving(client(chat="'web:main:a'"))
    [finding] = found_in(tmp_path, text)
    assert "chats.allow does not name 'web:main:a'" in finding
    assert found_in(tmp_path, f"{text}chats: {{allow: ['web:*']}}\n") == []


async def test_functions_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    text = serving(client(functions="[calculate, todo, nothing]"))
    found = await check_functions(settings_of(tmp_path, f"config_version: 1\nhome: {tmp_path}\n{text}"))
    errors = [str(one) for one in found if one.severity == "error"]
    assert len(errors) == 1
    assert "mcp.serve.clients[0].functions: there is no function 'nothing'" in errors[0]


def test_the_bot_of_a_program_has_its_chat_unless_the_chat_says_otherwise(tmp_path: Path) -> None:
    text = f"config_version: 1\nbots: {{support: {{}}, other: {{}}}}\n{serving(client(bot='support'))}"
    mine = chat_settings(settings_of(tmp_path, text), "mcp:main:editor", {})
    assert (mine.bot, mine.layers["bot"]) == ("support", "mcp.serve.clients[0].bot")
    said = f"{text}chats: {{settings: {{'mcp:*': {{bot: other}}}}}}\n"
    assert chat_settings(settings_of(tmp_path, said), "mcp:main:editor", {}).bot == "other"
    assert chat_settings(settings_of(tmp_path, text), "mcp:main:somebody", {}).bot == "default"
