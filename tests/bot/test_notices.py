"""Unanswered messages are counted, and the operator is notified once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from bot.intake.gate import GateDecision
from bot.intake.notices import Notices
from bot.testing import FAMILY, a_group
from services.refs import ChatRef, ReasonCode

WORK = ChatRef("test", "bot", "work")


async def test_the_first_drop_of_a_chat_for_a_reason_is_a_warning_that_names_the_setting() -> None:
    settings = {"chats": {"allow": [FAMILY.key]}}
    async with a_group(settings=settings) as group:
        with capture_logs() as logs:
            for _ in range(3):
                await group.say("Ann", "@Rollcall hello", chat=WORK)
                await group.say("Ann", "@Rollcall hello", is_bot=True)
        warned = [(one["chat"], one["reason"], one.get("because")) for one in logs if one["log_level"] == "warning"]
        assert warned == [(WORK.key, "chat_not_allowed", "chats.allow"), (FAMILY.key, "from_bot", None)]


async def test_what_is_usual_in_a_group_is_no_warning() -> None:
    async with a_group() as group:
        with capture_logs() as logs:
            await group.say("Ann", "hello everybody")
            await group.say("Ann", " ")
        assert [one for one in logs if one["log_level"] == "warning"] == []


@pytest.mark.requirement("D63")
async def test_drops_are_counted_by_their_reason() -> None:
    async with a_group() as group:
        await group.say("Ann", "hello everybody")
        await group.say("Ann", "hello again")
        await group.say("Bot", "hello", is_bot=True)
        page = group.daemon.metrics.render().decode()
        assert 'rollcall_messages_dropped_total{reason="not_addressed"} 2.0' in page
        assert 'rollcall_messages_dropped_total{reason="from_bot"} 1.0' in page


async def test_however_many_chats_there_are_the_warnings_end() -> None:
    async with a_group(settings={"chats": {"allow": ["nothing:*"]}}) as group:
        daemon = group.daemon
        notices = Notices(daemon.store, daemon.delivery, daemon.chats, group.clock, daemon.ids, 1)
        dropped = GateDecision(ReasonCode.CHAT_NOT_ALLOWED, "chats.allow")
        context = group.message("Ann", "hello")
        with capture_logs() as logs:
            for number in range(10_100):
                chat = WORK._replace(native=f"c{number}")
                notices.note(replace(context, chat=chat), dropped)
        warned = [one["event"] for one in logs if one["log_level"] == "warning"]
        assert warned == ["message_not_answered"] * 10_000 + ["further_drops_are_only_counted"]
