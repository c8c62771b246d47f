"""Muting the bot: parsed durations, limits and examples."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from config.texts import Texts
from function_calls.handlers.chat import mute as module
from function_calls.handlers.chat.mute import mute, unmute
from function_calls.loading.python_functions import specs_of
from function_calls.ports import Mutes
from services.clock import Clock, VirtualClock
from services.refs import ChatRef, ErrorCode, MemberRef
from services.times import Times
from tests.fakes.builders import FAMILY, a_call, a_message

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
EN = Texts().of("en")


class Silence:
    """Records mutes."""

    def __init__(self) -> None:
        self.until: dict[ChatRef, datetime] = {}

    async def mute(self, chat: ChatRef, until: datetime, by: MemberRef) -> None:
        self.until[chat] = until

    async def unmute(self, chat: ChatRef, by: MemberRef) -> bool:
        return self.until.pop(chat, None) is not None


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (None, "10:00"),
        ("  ", "10:00"),
        ("an hour", "10:00"),
        ("for 30 minutes", "09:30"),
        ("until 18:00", "17:00"),
        ("until tomorrow 7am", "06:00"),
        ("半小时", "09:30"),
    ],
)
async def test_a_mute_lasts_as_long_as_it_was_said_in_the_zone_of_the_chat(words: str | None, end: str) -> None:
    silence, call = Silence(), a_call("en", timezone="Europe/Oslo")
    result = await mute(a_message(), words, mutes=silence, times=Times(), clock=VirtualClock(NINE), call=call)
    assert result.ok
    assert f"{silence.until[FAMILY]:%H:%M}" == end


@pytest.mark.parametrize("words", ["a lot", "8 days", "every monday", "yesterday", "for 0 minutes"])
async def test_what_is_no_time_of_the_next_week_is_refused(words: str) -> None:
    silence = Silence()
    result = await mute(a_message(), words, mutes=silence, times=Times(), clock=VirtualClock(NINE), call=a_call("en"))
    assert result.error is not None
    assert result.error.code is ErrorCode.BAD_ARGUMENTS
    assert silence.until == {}


async def test_a_mute_is_ended_once() -> None:
    silence = Silence()
    silence.until[FAMILY] = NINE
    assert (await unmute(a_message(), mutes=silence, call=a_call("en"))).reply == EN.say("quiet.unmuted")
    assert (await unmute(a_message(), mutes=silence, call=a_call("en"))).reply == EN.say("quiet.was_not_muted")


def test_both_languages_have_examples() -> None:
    for spec in specs_of(module, {Mutes: Silence(), Times: Times(), Clock: VirtualClock()}):
        chinese = [one for one in spec.prompt.examples if not one.isascii()]
        assert len(spec.prompt.examples) - len(chinese) >= 5, spec.name
        assert len(chinese) >= 2, spec.name
        assert any(not word.isascii() for word in spec.command.words), spec.name
