"""docs/mail.md: its settings are good and complete, and its letters arrive as it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.loader import check_settings
from config.mail import MailSettings
from function_calls.basic.keywords import keyword_declaration
from function_calls.script_keywords import mail
from services.clock import VirtualClock
from services.mail import Mailer
from services.mail_letters import Letter
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


async def test_a_relay_on_this_machine_takes_letters_to_those_of_the_page(tmp_path: Path) -> None:
    relay = settings_of(PAGE.of("yaml")[1], tmp_path)
    async with SmtpServer() as server:
        mailer = Mailer(relay.model_copy(update={"port": server.port}), VirtualClock())
        await mailer.send(Letter(("ann@club.example",), "Hi", "Hello"), "key")
    assert server.delivered[0].message["From"] == "Rollcall <bot@club.example>"
