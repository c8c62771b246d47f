"""Function calling for a share of the chats, and settings that change at run time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.live.settings import Reload
from bot.testing import FAMILY, Group, a_group, call
from config.chat_settings import chat_settings
from config.diagnostics import Code, Diagnostic, Diagnostics
from config.loader import SettingsInvalid
from config.sections.models import RolloutSettings
from config.settings import Settings
from services.refs import ChatRef, Role
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason

KEYS = [f"web:main:chat{number}" for number in range(4000)]


@pytest.mark.requirement("D65")
@given(
    key=st.text(min_size=1, max_size=40),
    low=st.floats(min_value=0, max_value=100),
    high=st.floats(min_value=0, max_value=100),
)
def test_a_chat_that_is_in_stays_in_while_the_share_grows(key: str, low: float, high: float) -> None:
    low, high = sorted((low, high))
    assert RolloutSettings(percent=low).includes(key) <= RolloutSettings(percent=high).includes(key)
    assert RolloutSettings(percent=100).includes(key)
    assert not RolloutSettings(percent=0).includes(key)


@pytest.mark.requirement("D65")
@pytest.mark.parametrize("percent", [1, 10, 50, 90])
def test_the_share_is_about_what_was_said(percent: float) -> None:
    share = sum(RolloutSettings(percent=percent).includes(key) for key in KEYS) / len(KEYS) * 100
    assert abs(share - percent) < 3


def test_the_draw_is_the_same_everywhere_and_another_name_draws_others() -> None:
    drawn = [key for key in KEYS[:40] if RolloutSettings(percent=10).includes(key)]
    assert drawn == ["web:main:chat4", "web:main:chat7", "web:main:chat8", "web:main:chat22"]
    assert drawn != [key for key in KEYS[:40] if RolloutSettings(percent=10, name="second").includes(key)]


@pytest.mark.requirement("D30", "D65")
async def test_outside_the_rollout_commands_and_chat_go_on_and_why_names_the_key() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec], settings={"rollout": {"percent": 0}}) as group:
        group.model.says("Just words.")
        assert await group.say("Ann", "@Rollcall write it down") == ["Just words."]
        assert group.model.requests[-1].offer is None
        assert await last_reason(group) == ("functions_off", "rollout.percent")
        assert await group.say("Ann", "/note") == ["done"]


def layer(settings: dict[str, Any], own: dict[str, str]) -> tuple[bool, str]:
    resolved = chat_settings(Settings.model_validate(settings), FAMILY.key, own)
    return resolved.functions_on, resolved.layers["functions_on"]


def test_what_is_said_for_a_chat_counts_more_than_the_rollout_and_the_switch_more_than_all() -> None:
    out = {"rollout": {"percent": 0}}
    chats = {"chats": {"settings": {FAMILY.key: {"functions_on": True}}}}
    assert layer(out, {}) == (False, "rollout.percent")
    assert layer({**out, **chats}, {}) == (True, f"chats.settings.{FAMILY.key}.functions_on")
    assert layer(out, {"functions_on": "on"}) == (True, "chat")
    assert layer({"rollout": {"percent": 100}}, {}) == (True, "default")
    assert layer({**out, **chats, "router": {"enabled": False}}, {"functions_on": "on"}) == (False, "router.enabled")


def reloading(group: Group, *fresh: Settings | None) -> Reload:
    """A reload function with these settings, one per reload; None stands for invalid ones."""
    waiting = iter(fresh)

    def read() -> Settings:
        found = next(waiting)
        if found is None:
            raise SettingsInvalid(Diagnostics([Diagnostic("bot.yaml", 1, 1, Code.SYNTAX, "is no YAML")]))
        return found

    return Reload(group.daemon.live, read)


def settings(group: Group, **sections: Any) -> Settings:
    """The group's settings with these sections."""
    given = {"home": group.daemon.live.now.home, "logging": group.daemon.live.now.logging}
    return Settings.model_validate({"chats": {"allow": ["*"]}, **given, **sections})


@pytest.mark.requirement("D30", "D64", "D66", "D67")
@pytest.mark.parametrize("off", [{"router": {"enabled": False}}, {"rollout": {"percent": 0}}])
async def test_function_calling_is_flipped_by_a_reload_without_a_restart(off: dict[str, Any]) -> None:
    async with a_group([Recorder("note").spec]) as group:
        reload = reloading(group, settings(group, **off), settings(group))
        group.model.says("One.", "Two.", "Three.")
        offered = []
        for flips in (False, True, True):
            assert not flips or await reload.now()
            await group.say("Ann", "@Rollcall hello")
            offered.append(group.model.requests[-1].offer is not None)
        assert offered == [True, False, True]


@pytest.mark.requirement("D67")
async def test_a_flip_holds_within_the_turn_that_runs() -> None:
    flipping: list[Reload] = []

    async def flip(*_: Any) -> str:
        await flipping[0].now()
        return "flipped"

    note, flips = Recorder("note"), Recorder("flip", does=flip, effect="idempotent")
    async with a_group([note.spec, flips.spec]) as group:
        flipping.append(reloading(group, settings(group, router={"enabled": False})))
        group.model.says([call("flip"), call("note")], "Done.")
        await group.say("Ann", "@Rollcall both")
        assert (len(flips.runs), note.runs) == (1, [])


async def test_roles_functions_and_chats_are_those_of_the_file_as_soon_as_it_is_read() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec]) as group:
        assert await group.say("Ann", "/note") == ["done"]
        away = settings(group, functions={"note": {"roles": "admin"}}, members={"test:bot:bob": "admin"})
        reload = reloading(group, away, settings(group, chats={"allow": []}))
        await reload.now()
        assert await group.say("Ann", "/note", role=Role.MEMBER) != ["done"]
        assert await group.say("Bob", "/note") == ["done"]
        await reload.now()
        assert await group.say("Bob", "/note") == []
        assert await last_reason(group) == ("chat_not_allowed", "chats.allow")


async def test_what_a_chat_has_set_for_itself_outlives_a_reload() -> None:
    async with a_group() as group:
        await group.say("Ann", "/settings language zh", role=Role.ADMIN)
        await reloading(group, settings(group)).now()
        assert group.daemon.chats.profile(FAMILY).texts.language == "zh"
        assert group.daemon.chats.profile(ChatRef("test", "bot", "work")).texts.language == "en"


async def test_faulty_settings_change_nothing_and_the_log_says_what_waits_for_the_next_start() -> None:
    async with a_group() as group:
        before = group.daemon.chats.of(FAMILY)
        fresh = settings(group, store={"days_kept": 7}, bots={"default": {"name": "Max"}}, language="zh")
        reload = reloading(group, None, fresh)
        with capture_logs() as logs:
            assert not await reload.now()
            assert group.daemon.chats.of(FAMILY) is before
            assert await reload.now()
        assert [one["event"] for one in logs] == ["settings_invalid", "settings_not_reloaded", "settings_reloaded"]
        assert logs[2]["changed"] == ["language"]
        assert logs[2]["from_the_next_start"] == ["bots.*.aliases", "bots.*.name", "store.days_kept"]
        assert group.daemon.chats.profile(FAMILY).texts.language == "zh"
