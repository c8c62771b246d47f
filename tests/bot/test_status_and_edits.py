"""Status texts in a chat while an answer is pending, and edits in the meantime."""

from __future__ import annotations

import pytest

from bot.testing import Group, a_group, call
from bot.turns.turns import WORKING
from config.texts import Texts
from function_calls.context import Kind
from tests.fakes.held import Held, until
from tests.fakes.kept import heard, last_reason


def statuses(group: Group) -> list[str]:
    return [text for _, text in group.platform.statuses]


@pytest.mark.parametrize("asks", ["/hold it", "@Rollcall hold it"])
async def test_the_status_text_is_shown_before_the_function_runs_and_is_nowhere_kept(asks: str) -> None:
    held = Held(status_text="Looking for it…")
    async with a_group([held.spec]) as group:
        group.model.says(call("hold", text="it"), "Here it is.", "Hello.")
        await group.hear("Ann", asks)
        await held.has_begun("it")
        # On a busy machine the plain status may have been shown first.
        await until(lambda: statuses(group)[-1:] == ["Looking for it…"])
        assert group.platform.sent == []
        held.let_go()
        await group.settle()
        assert statuses(group)[-1] == ""
        await group.say("Bob", "@Rollcall hello")
        assert all("Looking" not in text for _, text in await heard(group))
        assert all("Looking" not in one.text for one in group.platform.sent)
        assert all("Looking" not in message.content for message in group.model.requests[-1].messages)


async def test_a_function_without_a_status_shows_that_the_bot_is_at_work_until_it_has_answered() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold it")
        await until(lambda: statuses(group) == [WORKING])
        held.let_go()
        await group.settle()
        assert statuses(group) == [WORKING, ""]


async def test_an_edit_of_what_waits_is_what_the_model_is_asked_and_only_that() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        group.model.says("Rome it is.")
        await group.hear("Bob", "/hold first")
        await held.has_begun("first")
        await group.hear("Ann", "@Rollcall weather in Oslo?", id="x1")
        await group.hear("Ann", "@Rollcall weather in Rome?", id="x1", kind=Kind.EDIT)
        held.let_go()
        await group.settle()
        (request,) = group.model.requests
        told = "\n".join(message.content for message in request.messages)
        assert "weather in Rome?" in told
        assert "Oslo" not in told
        assert group.platform.sent[-1].text == "Rome it is."


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_an_answer_to_what_was_edited_meanwhile_says_which_text_it_answers(language: str) -> None:
    held = Held()
    async with a_group([held.spec], settings={"language": language, "chats": {"allow": ["*"]}}) as group:
        await group.hear("Ann", "/hold old", id="x1")
        await held.has_begun("old")
        await group.hear("Ann", "/hold new", id="x1", kind=Kind.EDIT)
        assert await last_reason(group) == ("edit_too_late", "")
        held.let_go()
        await group.settle()
        note = Texts().of(language).say("turns.edited_meanwhile")
        assert [one.text for one in group.platform.sent] == [f"done: old\n{note}"]
        assert held.begun == ["old"]
        assert ("Ann", "/hold new") in await heard(group)


async def test_an_edit_that_changes_no_word_and_one_of_another_message_are_not_spoken_of() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "just talk", id="x0")
        await group.hear("Ann", "/hold old", id="x1")
        await held.has_begun("old")
        await group.hear("Ann", "/hold old", id="x1", kind=Kind.EDIT)
        await group.hear("Ann", "other talk", id="x0", kind=Kind.EDIT)
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: old"]
