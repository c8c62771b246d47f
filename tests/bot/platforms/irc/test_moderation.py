"""Moderation on real IRC servers: only what the server has confirmed counts as done."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.platforms.base import SendFailed
from function_calls.ports import Measure, ModerationRequest
from services.refs import MemberRef
from tests.bot.platforms.irc.test_real_servers import FAMILY, a_bot, on_every_server
from tests.harness.irc_client import a_person
from tests.harness.irc_servers import an_irc_server


def request(measure: Measure, native: str) -> ModerationRequest:
    return ModerationRequest(FAMILY, measure, MemberRef("irc", "test", native))


@on_every_server
async def test_an_operator_removes_bans_and_invites(kind: str, tmp_path: Path) -> None:
    async with (
        an_irc_server(kind, tmp_path) as server,
        a_person(server.port, "ann", "#family") as ann,
        a_bot(server) as bot,
        a_person(server.port, "ben", "#family") as ben,
    ):
        await ann.sees("#family", "ben")
        with pytest.raises(SendFailed, match="482") as refused:
            await bot.platform.moderate(request(Measure.KICK, "~ben"))
        assert not refused.value.retryable
        assert await bot.platform.role(FAMILY, MemberRef("irc", "test", "~ben")) is not None
        ann.send("MODE #family +o Rollcall")
        await ann.until(lambda one: one.command == "MODE" and "Rollcall" in one.params)
        await bot.platform.moderate(request(Measure.KICK, "~ben"))
        assert await bot.platform.role(FAMILY, MemberRef("irc", "test", "~ben")) is None
        with pytest.raises(SendFailed, match="no such member"):
            await bot.platform.moderate(request(Measure.KICK, "~ben"))
        await bot.platform.moderate(request(Measure.INVITE, "ben"))
        await ben.until(lambda one: one.command == "INVITE")
        await ben.join("#family")
        # The echo comes after the lines that the server has sent before.
        await bot.send("Welcome back.")
        await bot.platform.moderate(request(Measure.BAN, "~ben"))
        assert await bot.platform.role(FAMILY, MemberRef("irc", "test", "~ben")) is None
        ben.send("JOIN #family")
        await ben.until(lambda one: one.command == "474")
