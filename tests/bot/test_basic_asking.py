"""Questions of scripts in a chat: who is asked, how to answer, how to cancel."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.texts import Texts
from function_calls.context import Attachment
from services.refs import ChatRef, MemberRef, Role
from tests.bot.basic_group import a_group_with

EN = Texts().of("en")
PRIVATE = ChatRef("test", "bot", "ann")
ANN = MemberRef("test", "bot", "ann")
ASK = 'TALK "How many?"\nHEAR count AS INTEGER\nTALK "so " + count'
SEND = 'TALK "Your picture?"\nHEAR picture AS IMAGE\nTALK "thanks for " + picture.name'
PICTURE = Attachment("cat.png", "image/png", "https://files.example/cat.png", 10)


async def test_stop_ends_what_a_script_has_asked(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, tally=ASK) as group:
        assert await group.say("Ann", "/tally") == ["How many?"]
        assert await group.say("Ann", "/stop") == [EN.say("stop.asked")]
        assert await group.say("Ann", "4") == []
        assert await group.say("Ann", "/stop") == [EN.say("stop.nothing")]


async def test_nobody_stops_what_somebody_else_was_asked(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, tally=ASK) as group:
        await group.say("Ann", "/tally")
        assert await group.say("Bob", "/stop", role=Role.ADMIN) == [EN.say("stop.nothing")]
        assert await group.say("Ann", "4") == ["so 4"]


async def test_a_question_in_a_group_names_who_is_asked(tmp_path: Path) -> None:
    everywhere = {"chats": {"allow": ["*"]}}
    async with a_group_with(tmp_path, settings=everywhere, tally=f'TALK "Let us see."\n{ASK}') as group:
        await group.say("Ann", "/tally")
        assert [one.mentions for one in group.platform.sent] == [(), (ANN,)]
        await group.say("Ann", "/tally", chat=PRIVATE, is_group=False)
        assert [one.mentions for one in group.platform.sent[2:]] == [(), ()]


async def test_a_file_without_a_word_answers_a_script_that_asks_for_one(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, send=SEND, tally=ASK) as group:
        assert await group.say("Ann", "/send") == ["Your picture?"]
        assert await group.say("Ann", "", attachments=(PICTURE,)) == ["thanks for cat.png"]
        await group.say("Ann", "/tally")
        assert await group.say("Ann", "", attachments=(PICTURE,)) == []
        assert await group.say("Ann", "4") == ["so 4"]


@pytest.mark.requirement("A29")
async def test_who_is_no_admin_hears_who_lets_a_script_run_by_the_clock(tmp_path: Path) -> None:
    plan = 'SET SCHEDULE "every day at 9am"\nSET SCHEDULE "every day at 9am"\nTALK "Ann cleans."'
    async with a_group_with(tmp_path, plan=plan) as group:
        told = EN.say("basic.schedule.admins")
        assert await group.say("Bob", "/plan") == [told, "Ann cleans."]
        assert await group.say("Ann", "/plan", role=Role.ADMIN) == ["Ann cleans."]
        assert await group.say("Bob", "/plan") == ["Ann cleans."]
