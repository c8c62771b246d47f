"""Functions about the chat itself: why, id and stop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from config.texts import Texts
from function_calls.call import Path
from function_calls.checks.permissions import callable_here
from function_calls.context import Quoted
from function_calls.handlers.chat import chat_control
from function_calls.loading.python_functions import specs_of
from function_calls.outcome import OutcomeKind
from function_calls.ports import ChatActions, Explanation, Explanations
from services.refs import ChatRef, MemberRef, ReasonCode, Role
from tests.fakes.builders import FAMILY, a_member, a_message
from tests.function_calls.routing import Routing, said

AT = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
IGNORED = Explanation("hello there", "Bo", AT, ReasonCode.NOT_ADDRESSED, "", "ab12")
RAN = Explanation("/weather", "Cy", AT, ReasonCode.COMMAND, "weather", "cd34")


class Told:
    """Explains two messages and records the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[ChatRef, str, int]] = []

    async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
        self.asked.append((chat, before_native_id, count))
        return [IGNORED, RAN][:count] if chat == FAMILY else []

    async def back(self, chat: ChatRef, before_native_id: str, number: int) -> Explanation | None:
        self.asked.append((chat, before_native_id, -number))
        return RAN if chat == FAMILY and number == 150 else None

    async def of(self, chat: ChatRef, native_id: str, alone: MemberRef | None = None) -> Sequence[Explanation]:
        return [RAN] if (chat, native_id) == (FAMILY, "m7") else []


class Stopping:
    """Stops Ann's requests, and for moderators all requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[ChatRef, MemberRef, Role]] = []

    async def stop(self, chat: ChatRef, by: MemberRef, role: Role) -> bool:
        self.asked.append((chat, by, role))
        return by.native == "ann" or role.rank > 0

    async def withdraw_question(self, chat: ChatRef, member: MemberRef) -> bool:
        return member.native == "cid"


def a_chat(explanations: Told | None = None, actions: Stopping | None = None, **profile: Any) -> Routing:
    """A chat with the functions of chat_control."""
    services: dict[type, object] = {Explanations: explanations or Told(), ChatActions: actions or Stopping()}
    return Routing(*specs_of(chat_control, services), **profile)


@pytest.mark.requirement("D56")
async def test_why_explains_the_last_message_before_it() -> None:
    told = Told()
    outcome = await a_chat(told).hears(a_message("/why", native_id="m9"))
    assert said(outcome) == [
        "09:30 Bo: “hello there” — it was not addressed to me (mention me, reply to me, or use a command)."
    ]
    assert told.asked == [(FAMILY, "m9", 1)]


async def test_why_explains_several_messages() -> None:
    (text,) = said(await a_chat().hears("/why 2"))
    assert [line.split()[1] for line in text.splitlines()] == ["Bo:", "Cy:"]
    assert text.endswith("it was a command, and “weather” answered it.")


@pytest.mark.parametrize(
    ("quoted", "text"), [("m7", "/weather"), ("m8", "There are no messages here that I can explain.")]
)
async def test_why_in_reply_to_a_message_explains_that_one(quoted: str, text: str) -> None:
    told = Told()
    outcome = await a_chat(told).hears(a_message("/why", reply_to=Quoted(quoted)))
    assert text in said(outcome)[0]
    assert told.asked == []


@pytest.mark.parametrize("line", ["/why 0", "/why 11", "/why count=all"])
async def test_why_wants_a_count_from_1_to_10(line: str) -> None:
    outcome = await a_chat().hears(line)
    assert (outcome.reason, "from 1 to 10" in said(outcome)[0]) == (ReasonCode.USAGE, True)


async def test_why_explains_the_message_of_an_id() -> None:
    chat = a_chat()
    for line in ("/why m7", "/why id=m7"):
        assert "“/weather”" in said(await chat.hears(line))[0]
    outcome = await chat.hears("/why m8")
    assert (outcome.reason, "“m8”" in said(outcome)[0]) == (ReasonCode.USAGE, True)


async def test_why_explains_the_message_that_is_so_many_back() -> None:
    told = Told()
    assert "“/weather”" in said(await a_chat(told).hears(a_message("/why back=150", native_id="m9")))[0]
    assert told.asked == [(FAMILY, "m9", -150)]
    assert said(await a_chat().hears("/why back=151")) == ["There are no messages here that I can explain."]
    assert (await a_chat().hears("/why back=201")).reason is ReasonCode.USAGE


async def test_why_of_another_chat_knows_nothing_of_this_one() -> None:
    elsewhere = a_message("/why", chat=ChatRef("test", "bot", "other"))
    assert said(await a_chat().hears(elsewhere)) == ["There are no messages here that I can explain."]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reason", list(ReasonCode))
async def test_every_reason_can_be_explained_in_every_language(reason: ReasonCode, language: str) -> None:
    class Knows(Told):
        async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
            return [Explanation("hi", "Bo", AT, reason, "x.y", "ab12")]

    (text,) = said(await a_chat(Knows(), texts=Texts().of(language)).hears("/why"))
    assert "hi" in text
    assert "{" not in text


@pytest.mark.requirement("D56")
async def test_id_shows_what_the_settings_need() -> None:
    outcome = await a_chat().hears(a_message("/id", a_member("Olga", Role.OWNER)))
    assert said(outcome) == ["This chat: test:bot:family\nYou: test:bot:olga (owner)\nBot: default"]


@pytest.mark.requirement("D56")
async def test_stop_ends_ones_own_answer_in_silence_and_says_when_there_is_none() -> None:
    actions = Stopping()
    routing = a_chat(actions=actions)
    stopped = await routing.hears(a_message("/stop", a_member("Ann")))
    assert (stopped.reason, stopped.kind, said(stopped)) == (ReasonCode.COMMAND, OutcomeKind.SILENT, [])
    assert said(await routing.hears(a_message("/stop", a_member("Bo")))) == [
        "I'm not working on anything of yours right now."
    ]
    await routing.hears(a_message("/停", a_member("Mo", Role.MODERATOR)))
    assert [(by.native, role) for _, by, role in actions.asked] == [
        ("ann", Role.MEMBER),
        ("bo", Role.MEMBER),
        ("mo", Role.MODERATOR),
    ]


async def test_the_model_is_offered_neither_stop_nor_ids() -> None:
    routing = a_chat()
    offered = [spec.name for spec in callable_here(a_message(), routing.a_turn(), Path.MODEL)]
    assert offered == ["why"]
