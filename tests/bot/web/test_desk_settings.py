"""Settings and functions on the desk: effective values, checked changes of the file, and what is never shown."""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bot.web.desk.accounts import DeskRole
from config.loader import load_settings
from services.store.turns import audit
from tests.harness.desk import DeskWorld, Person, a_desk

SECRET = "sk-0123456789abcdef"
FILE = f"""\
# Our bot
chats:
  allow: ["*"] # everybody may use it
language: en
models:
  - name: main
    base_url: http://127.0.0.1:9/v1
    model: stub
    api_key: {SECRET} # from the provider
platforms:
  web: {{port: 0}}
"""


async def form_of(owner: Person, path: str = "/desk/settings/file") -> tuple[str, str]:
    """Text and version in the form."""
    page = await owner.get(path)
    version = re.search(r'name="version" value="(\w+)"', page.text)
    text = re.search(r"<textarea[^>]*>(.*?)</textarea>", page.text, re.DOTALL)
    assert version is not None
    assert text is not None
    return _plain(text[1]), version[1]


def _plain(html: str) -> str:
    for escaped, char in (("&#34;", '"'), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        html = html.replace(escaped, char)
    return html


def desk_on(file: Path) -> AbstractAsyncContextManager[DeskWorld]:
    """A desk whose settings come from `file`."""
    file.write_text(FILE, encoding="utf-8")
    file.chmod(0o600)
    return a_desk(
        settings={
            "models": [{"name": "main", "base_url": "http://127.0.0.1:9/v1", "model": "stub", "api_key": SECRET}]
        },
        settings_file=file,
    )


async def test_effective_settings_name_the_line_that_they_come_from_and_no_secret(tmp_path: Path) -> None:
    async with desk_on(tmp_path / "bot.yaml") as world, world.person(DeskRole.VIEWER) as viewer:
        page = await viewer.get("/desk/settings?words=language")
        assert "<td>bot.yaml:4</td>" in page.text
        everything = await viewer.get("/desk/settings")
        assert "limits." in everything.text
        assert SECRET not in everything.text


async def test_a_change_is_checked_shown_as_a_diff_and_keeps_comments_secrets_and_permissions(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with desk_on(file) as world, world.person() as owner:
        text, version = await form_of(owner)
        assert SECRET not in text
        assert "<secret 1>" in text
        changed = text.replace("language: en", "language: zh")
        checked = await owner.post("/desk/settings/check", {"text": changed, "version": version})
        assert "+language: zh" in checked.text
        assert SECRET not in checked.text
        saved = await owner.post("/desk/settings/file", {"text": changed, "version": version})
        assert saved.status_code == 303
        assert file.read_text(encoding="utf-8") == FILE.replace("language: en", "language: zh")
        assert file.stat().st_mode & 0o777 == 0o600
        rows = await world.group.daemon.store.read(audit.last(3))
        assert any(row["action"] == "settings" and "language" in row["detail"] for row in rows)


async def test_invalid_settings_are_explained_with_their_line_and_not_written(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with desk_on(file) as world, world.person() as owner:
        text, version = await form_of(owner)
        sent = {"text": text.replace("language: en", "langauge: en"), "version": version}
        answer = await owner.post("/desk/settings/file", sent)
        assert answer.status_code == 422
        assert "bot.yaml:4:1" in answer.text
        assert "language" in answer.text
        assert file.read_text(encoding="utf-8") == FILE


async def test_a_file_that_somebody_else_changed_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with desk_on(file) as world, world.person() as owner:
        text, version = await form_of(owner)
        file.write_text(FILE + "timezone: Europe/Paris\n", encoding="utf-8")
        answer = await owner.post("/desk/settings/file", {"text": text, "version": version})
        assert answer.status_code == 409
        assert "Europe/Paris" in file.read_text(encoding="utf-8")


async def test_a_function_is_turned_off_in_one_chat_by_a_change_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with desk_on(file) as world, world.person() as owner:
        chat = world.group.chat.key
        shown = await owner.post("/desk/functions/roll_dice", {"chat": chat, "on": "0"})
        assert shown.status_code == 200
        assert "+" in shown.text
        text = re.search(r"<textarea[^>]*>(.*?)</textarea>", shown.text, re.DOTALL)
        version = re.search(r'name="version" value="(\w+)"', shown.text)
        assert text is not None
        assert version is not None
        sent = {"text": _plain(text[1]), "version": version[1]}
        assert (await owner.post("/desk/settings/file", sent)).status_code == 303
        written = file.read_text(encoding="utf-8")
        assert "# everybody may use it" in written
        assert SECRET in written
        assert load_settings(file, {}).chats.settings[chat].functions["roll_dice"].enabled is False


async def test_the_list_of_functions_shows_runs_and_errors() -> None:
    async with a_desk() as world, world.person(DeskRole.VIEWER) as viewer:
        await world.group.say("Ann", "/roll 1d1")
        await world.group.daemon.store.commit([])
        page = await viewer.get("/desk/functions")
        row = next(part for part in page.text.split("<tr>") if "<b>roll_dice</b>" in part)
        assert '<td class="number">1</td><td class="number">100 %</td>' in row
        assert "Turn off" not in page.text


async def test_without_a_file_there_is_nothing_to_change() -> None:
    async with a_desk() as world, world.person() as owner:
        assert (await owner.get("/desk/settings")).status_code == 200
        assert (await owner.get("/desk/settings/file")).status_code == 409


async def test_a_plan_shows_which_messages_would_end_differently(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    async with desk_on(file) as world, world.person() as owner:
        await world.group.say("Ann", "/roll 1d1")
        await world.group.say("Ann", "/calc 2*3")
        await world.group.daemon.store.commit([])
        text, _ = await form_of(owner)
        changed = text + "functions: {roll_dice: {enabled: false}}\n"
        page = await owner.post("/desk/settings/plan", {"text": changed})
        assert page.status_code == 200, page.text
        assert "1 would end differently" in page.text
        assert "refused now" in page.text
        assert "functions.roll_dice" in page.text
        assert "enabled: false" not in file.read_text(encoding="utf-8")
        wrong = await owner.post("/desk/settings/plan", {"text": text + "no_such_key: 1\n"})
        assert wrong.status_code == 422
