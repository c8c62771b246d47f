"""docs/mail.md: its settings are valid and complete, and its mails arrive as described."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.registration.services import WORKSPACES
from bot.testing import FAMILY
from config.loader import check_settings
from config.sections.mail import MailSettings
from config.texts import Texts
from function_calls.basic.keyword_modules import mail
from function_calls.basic.keywords import keyword_declaration
from services.clock import VirtualClock
from services.mail import Letter, Mailer
from services.sandbox.workspace import Workspaces
from tests.bot.basic_group import a_group_with
from tests.docs.documents import Block, Page
from tests.harness.smtp_server import SmtpServer

PAGE = Page("docs/mail.md")


def settings_of(block: Block, folder: Path) -> MailSettings:
    file = folder / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, "MAIL_PASSWORD": "0123456789"})
    assert list(found) == []
    assert settings is not None
    return settings.mail


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    assert settings_of(block, tmp_path).host


def test_every_setting_of_mail_is_explained() -> None:
    assert [key for key in MailSettings.model_fields if f"`{key}`" not in PAGE.text] == []


def test_every_keyword_of_mail_is_shown() -> None:
    names = {
        " ".join(form.split()[:2])
        for function in (mail.send_mail, mail.mail_block)
        if (declaration := keyword_declaration(function)) is not None
        for form in declaration.forms
    }
    [script] = PAGE.of("basic")
    assert names == {"SEND MAIL", "SEND EMAIL", "BEGIN MAIL"}
    assert all(name in script.text for name in names)


async def test_the_script_of_the_page_sends_its_letters(tmp_path: Path) -> None:
    [script] = PAGE.of("basic")
    async with SmtpServer() as server:
        mail_settings = {
            "host": "127.0.0.1",
            "port": server.port,
            "security": "none",
            "sender": "bot@club.example",
            "allowed": ["*@club.example", "treasurer@bank.example"],
        }
        async with a_group_with(tmp_path, spent=script.text, settings={"mail": mail_settings}) as group:
            files = Workspaces(Path(group.daemon.live.now.home) / WORKSPACES)
            files.of(FAMILY).write("lists/members.csv", b"Ann;Bo")
            assert await group.say("Ann", "/spent 12.5 coffee") == [Texts().of("en").say("claims.done", names="spent")]
    subjects = [mail.message["Subject"] for mail in server.delivered]
    assert subjects == ["Spent: coffee", "The list", "coffee is paid"]
    assert server.delivered[2].text == "Dear Ann,\n12.5 went for coffee.\n"
    assert [part.get_filename() for part in server.delivered[1].message.iter_attachments()] == ["members.csv"]


async def test_a_relay_on_this_machine_takes_letters_to_those_of_the_page(tmp_path: Path) -> None:
    relay = settings_of(PAGE.of("yaml")[1], tmp_path)
    async with SmtpServer() as server:
        mailer = Mailer(relay.model_copy(update={"port": server.port}), VirtualClock())
        await mailer.send(Letter(("ann@club.example",), "Hi", "Hello"), "key")
    assert server.delivered[0].message["From"] == "Rollcall <bot@club.example>"
