"""platforms.web.public_url: URL of the page for other machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import faults_of, settings_of

WEB = "platforms:\n  web:\n    public_url: {}\n"
LISTENING = "platforms:\n  web:\n    host: {}\n    public_url: {}\n"


@pytest.mark.parametrize(
    ("written", "origins"),
    [
        ("https://bot.example.org", ("https://bot.example.org",)),
        ("https://Bot.Example.org:443/", ("https://bot.example.org",)),
        ("http://192.168.1.5:8080", ("http://192.168.1.5:8080",)),
        ("'http://[FE80::0:1]:80'", ("http://[fe80::1]",)),
        ("[https://bot.example.org, http://bot.lan:8080]", ("https://bot.example.org", "http://bot.lan:8080")),
        ('"${PUBLIC_URL:-}"', ()),
        ("[]", ()),
    ],
)
def test_public_urls_become_what_browsers_send_as_origin(
    tmp_path: Path, written: str, origins: tuple[str, ...]
) -> None:
    assert settings_of(tmp_path, WEB.format(written)).platforms.web.public_url == origins


@pytest.mark.parametrize(
    "written",
    [
        "https://bot.example.org/chat",
        "https://bot.example.org?x=1",
        "https://bot.example.org#x",
        "https://ann:secret@bot.example.org",
        "bot.example.org",
        "bot.example.org:8080",
        "ftp://bot.example.org",
        "'https://*.example.org'",
        "'*'",
        "https://bot.example.org:0",
        "https://bot.example.org:70000",
        "'https://bot.example.org:'",
        "'https://'",
        "'http://[::1'",
        "https://bücher.example",
        "https://bot..example.org",
    ],
)
def test_a_value_that_is_no_origin_is_an_error_at_its_line(tmp_path: Path, written: str) -> None:
    [fault] = faults_of(tmp_path, WEB.format(written))
    assert (fault.line, fault.code, fault.severity) == (3, "settings.bad_value", "error")
    assert "platforms.web.public_url" in fault.message
    assert "has to be http(s)://host or http(s)://host:port" in fault.message
    assert "secret" not in fault.message
    [fault] = faults_of(tmp_path, WEB.format(f"\n      - https://bot.example.org\n      - {written}"))
    assert fault.line == 5


@pytest.mark.parametrize("written", ["http://0.0.0.0:8080", "'http://[::]'"])
def test_all_addresses_are_no_address_to_open(tmp_path: Path, written: str) -> None:
    [fault] = faults_of(tmp_path, WEB.format(written))
    assert "has to name the address that people open" in fault.message


@pytest.mark.parametrize("host", ["0.0.0.0", "'::'"])
def test_listening_for_other_machines_without_a_public_url_is_a_warning(tmp_path: Path, host: str) -> None:
    [fault] = faults_of(tmp_path, LISTENING.format(host, "[]"))
    assert (fault.line, fault.code, fault.severity) == (3, "settings.has_no_effect", "warning")
    assert "other machines are refused until platforms.web.public_url names" in fault.message
    assert list(faults_of(tmp_path, LISTENING.format(host, "https://bot.lan"))) == []
