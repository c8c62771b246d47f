"""IRC settings: valid ones work, and mistakes are found at start."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.live.settings import secrets_of
from config.loader import check_settings

HEAD = """\
chats: {allow: ["irc:*"]}
platforms:
  irc:
    - account: libera
      host: irc.test
"""


def faults(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "bot.yaml"
    file.write_text(text, encoding="utf-8")
    _, found = check_settings(file, {})
    return [f"{one.line} {one.code} {one.message}" for one in found]


def test_a_network_needs_a_name_and_a_server(tmp_path: Path) -> None:
    assert faults(tmp_path, HEAD) == []
    assert len(faults(tmp_path, "platforms: {irc: [{}]}")) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nick: 9lives", "has to be a nick"),
        ('nick: "a b"', "has to be a nick"),
        ('alternatives: ["x y"]', "has to be a nick"),
        ("channels: [{name: family}]", "has to be a channel such as #family"),
        ('channels: [{name: "#a,#b"}]', "has to be a channel such as #family"),
        ('channels: [{name: "#a", key: "a b"}]', "must not hold spaces"),
        ('password: "a\\r\\nQUIT"', "must not hold line ends"),
        ('realname: "a\\nb"', "must not hold line ends"),
        ('username: "a@b"', "has to be one word"),
        ("sasl: {mechanism: plain, account: a}", "are needed for the mechanism plain"),
        ("sasl: {mechanism: scram-sha-256, password: p}", "are needed for the mechanism scram-sha-256"),
        ("sasl: {mechanism: external}", "needs tls and client_certificate"),
        ("reconnect: {first_delay_seconds: 10, longest_delay_seconds: 5}", "at least first_delay_seconds"),
        ("port: 0", "greater than or equal to 1"),
        ("flod: {}", "did you mean 'flood'?"),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_place(tmp_path: Path, line: str, words: str) -> None:
    [fault] = faults(tmp_path, f"{HEAD}      {line}\n")
    assert fault.startswith("6 settings.")
    assert words in fault


def test_two_networks_of_one_name_are_refused(tmp_path: Path) -> None:
    [fault] = faults(tmp_path, f"{HEAD}    - account: libera\n      host: other.test\n")
    assert fault.startswith("6 settings.duplicate_name platforms.irc[1].account")


def test_a_role_for_a_nick_is_refused(tmp_path: Path) -> None:
    [fault] = faults(tmp_path, f'{HEAD}members:\n  "irc:libera:ann": admin\n  "irc:libera:~bob": admin\n')
    assert fault.startswith("8 settings.bad_value members.irc:libera:~bob")
    assert "a nick is no identity" in fault


@pytest.mark.parametrize(
    ("host", "line", "warned"),
    [
        ("irc.test", "tls: false", True),
        ("irc.test", "tls_verify: false", True),
        ("irc.test", "tls: true", False),
        ("127.0.0.1", "tls: false", False),
        ("localhost", "tls: false", False),
    ],
)
def test_a_password_that_others_could_read_is_warned_of(tmp_path: Path, host: str, line: str, warned: bool) -> None:
    text = f"{HEAD.replace('irc.test', host)}      password: a-secret-word\n      {line}\n"
    found = faults(tmp_path, text)
    assert len(found) == warned
    assert all("secret_in_clear" in fault and "a-secret-word" not in fault for fault in found)


def test_a_channel_that_is_joined_and_not_served_is_warned_of(tmp_path: Path) -> None:
    text = HEAD.replace('"irc:*"', '"irc:libera:#family"') + '      channels: [{name: "#Family"}, {name: "#ops"}]\n'
    [fault] = faults(tmp_path, text)
    assert "has_no_effect platforms.irc[0].channels[1].name is joined but not served" in fault


def test_no_secret_gets_into_a_log(tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    secrets = "      password: server-word\n      sasl: {mechanism: plain, account: a, password: sasl-word}\n"
    file.write_text(f'{HEAD}{secrets}      channels: [{{name: "#a", key: key-word}}]\n', encoding="utf-8")
    settings, _ = check_settings(file, {})
    assert settings is not None
    assert {"server-word", "sasl-word", "key-word"} <= set(secrets_of(settings))
    assert "-word" not in repr(settings)
