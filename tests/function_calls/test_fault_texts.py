"""Error messages for members: neutral, with an id if there is one, and with names that they know."""

from __future__ import annotations

from typing import Any

import pytest

from bot.testing import a_group
from config.texts import Texts
from function_calls.outcome import TurnOutcome
from services.refs import Role
from tests.fakes.builders import a_member, a_message
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing, said

INNER = "poll_create"
KNOWN = {"en": "/poll", "zh": "/投票"}


def a_poll(**options: Any) -> Recorder:
    return Recorder(INNER, commands=["poll", "投票"], **options)


async def heard(routing: Routing, text: str = "/poll") -> TurnOutcome:
    return await routing.hears(a_message(text, sender=a_member("Ann", Role.MEMBER)))


@pytest.mark.requirement("D49")
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "options",
    [
        {"gives": RuntimeError("secret detail")},
        {"gives": RuntimeError("secret detail"), "effect": "once"},
        {"gives": TimeoutError()},
        {"gives": TimeoutError(), "effect": "once"},
        {"roles": "owner"},
        {"scope": "private"},
        {"offered_to": ["model"]},
        {"parameters": CITY},
    ],
    ids=["exception", "exception in a once", "timeout", "timeout of a once", "role", "scope", "way", "question"],
)
async def test_a_sentence_about_a_function_names_its_command_in_the_language_of_the_chat(
    options: dict[str, Any], language: str
) -> None:
    options = dict(options)
    routing = Routing(a_poll(parameters=options.pop("parameters", None), **options), texts=Texts().of(language))
    (text,) = said(await heard(routing))
    assert KNOWN[language] in text
    assert INNER not in text
    assert "secret" not in text


async def test_a_function_without_a_command_is_named_in_words() -> None:
    routing = Routing(Recorder("poll.close_all", CITY, gives=TimeoutError(), return_direct=True))
    result = await routing.invoke("poll.close_all", raw={"city": "Oslo"})
    assert result.error is not None
    assert "“poll close all”" in result.error.text


async def test_why_names_what_people_typed() -> None:
    async with a_group() as group:
        await group.say("Ann", "/todo")
        (reason,) = await group.say("Ann", "/why")
        assert "/todo" in reason
        assert "todo_list" not in reason
