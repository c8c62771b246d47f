from __future__ import annotations

import time
from pathlib import Path

from config.chat_settings import is_allowed
from config.loader import check_settings, load_settings
from config.settings import Settings
from config.terms import Section
from tests.config.files import settings_of

SHIPPED = Path(__file__).parents[2] / "config" / "bot.yaml"
OF_THE_DEMO = {"chats.allow", "platforms.web.rooms"}


def test_the_shipped_file_is_without_fault_in_an_empty_environment() -> None:
    settings, diagnostics = check_settings(SHIPPED, {})
    assert settings is not None
    assert diagnostics == []


def test_the_demo_serves_its_rooms_and_the_console_and_nothing_else() -> None:
    settings = load_settings(SHIPPED, {})
    rooms = [f"web:main:{room.id}" for room in settings.platforms.web.rooms]
    assert rooms
    assert all(is_allowed(settings, room) == "web:*" for room in rooms)
    assert is_allowed(settings, "console:main:you") == "console:*"
    assert is_allowed(settings, "http:main:anything") is None
    assert not settings.platforms.http.enabled
    assert settings.platforms.web.host == "127.0.0.1"


def test_what_another_file_leaves_out_has_the_value_that_is_shown_there(tmp_path: Path) -> None:
    shown, left_out = _leaves(load_settings(SHIPPED, {})), _leaves(settings_of(tmp_path, "config_version: 1"))
    assert {key for key in shown if shown[key] != left_out[key]} == OF_THE_DEMO


def test_every_setting_that_is_not_optional_is_shown() -> None:
    settings = load_settings(SHIPPED, {})
    shown = SHIPPED.read_text(encoding="utf-8")
    hidden = {key for key in _leaves(settings) if f"{key.rpartition('.')[2]}:" not in shown}
    assert hidden == set()


def test_the_shipped_file_is_read_within_60_milliseconds() -> None:
    load_settings(SHIPPED, {})
    assert min(_seconds_to_load() for _ in range(5)) < 0.060


def _seconds_to_load() -> float:
    start = time.process_time()
    load_settings(SHIPPED, {})
    return time.process_time() - start


def _leaves(section: Section | Settings, prefix: str = "") -> dict[str, object]:
    """All values that are not sections, by dotted key."""
    found: dict[str, object] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            found |= _leaves(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
