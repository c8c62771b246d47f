"""The section `operators`: their chat has to be served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import faults_of, places_and_codes, settings_of


def test_the_chat_of_the_operators_is_one_of_those_that_are_served(tmp_path: Path) -> None:
    text = 'chats: {allow: ["irc:libera:#*"]}\noperators: {chat: "irc:libera:#ops"}\n'
    assert settings_of(tmp_path, text).operators.chat == "irc:libera:#ops"
    assert settings_of(tmp_path, "operators: {}\n").operators.chat is None


@pytest.mark.parametrize("chats", ["", "chats: {}\n", 'chats: {allow: ["irc:libera:#family"]}\n'])
def test_one_that_is_not_served_is_a_fault_at_its_place(tmp_path: Path, chats: str) -> None:
    faults = faults_of(tmp_path, f'operators:\n  chat: "irc:libera:#ops"\n{chats}')
    assert places_and_codes(faults) == ["2:9 settings.unknown_chat"]
    assert "chats.allow does not name" in faults[0].message


@pytest.mark.parametrize("chat", ["ops", "irc:libera:*", "7"])
def test_what_names_no_chat_is_a_fault(tmp_path: Path, chat: str) -> None:
    assert "settings.bad_value" in str(faults_of(tmp_path, f'chats: {{allow: ["*"]}}\noperators: {{chat: "{chat}"}}\n'))
