"""Reason codes of messages: each can occur and has an explanation in both languages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.testing import FAMILY, Group, a_group, call
from bot.turns.turn_log import StoredExplanations
from config.settings import Settings
from config.texts import Texts
from config.wording import _names_known_at
from function_calls.context import Kind, Quoted, TimerCall
from function_calls.profile import reason_text
from function_calls.schema.commands import spoken_name
from function_calls.spec import FunctionResult, FunctionSpec
from services.llm.model import ModelAnswer, ModelError
from services.refs import ChatRef, ErrorCode, ReasonCode, Role
from services.store.turns.inbox import INBOX
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import kept, last_reason, reasons

QUIET = ChatRef("test", "bot", "quiet")
PLAIN = ChatRef("test", "bot", "plain")
LIVELY = ChatRef("test", "bot", "lively")
ELSE = ChatRef("else", "bot", "x")
SETTINGS = {
    "chats": {
        "allow": ["test:*"],
        "settings": {
            QUIET.key: {"enabled": False},
            PLAIN.key: {"functions_on": False},
            LIVELY.key: {"chime_in": "judge"},
        },
    },
    "limits": {"queue_per_chat": 1, "attempts_per_turn": 1},
    "filters": {"turn": [{"blacklist": {"words": ["casino"]}}]},
    "budgets": {"member": {"units": 1}, "functions": {"dear": 2}},
}
LATER = {ReasonCode.OWN_MESSAGE: "for networks that deliver the bot's own messages to it"}
"""Reasons that do not occur yet."""


def functions(held: Held) -> list[FunctionSpec]:
    """A function for each kind of result."""
    return [
        held.spec,
        Recorder("note", commands=["note"], gives="noted").spec,
        Recorder("hush", commands=["hush"], gives=None, effect="idempotent").spec,
        Recorder("rain", CITY, commands=["rain"], ask={"city": "Where?"}).spec,
        Recorder("dear", commands=["dear"]).spec,
        Recorder("lock", commands=["lock"], roles="admin").spec,
        Recorder("broken", commands=["broken"], gives=ZeroDivisionError("oh")).spec,
        Recorder("pay", commands=["pay"], gives=ConnectionResetError("gone"), effect="once").spec,
    ]


def says(text: str, **facts: object) -> Callable[[Group, Held], Awaitable[None]]:
    """A message that ends without further steps."""

    async def say(group: Group, held: Held) -> None:
        await group.say("Ann", text, id="x1", **facts)

    return say


async def by_the_model(group: Group, held: Held) -> None:
    group.model.says(call("note"), "It is noted.")
    await group.say("Ann", "@Rollcall please write it down", id="x1")


async def in_words(group: Group, held: Held) -> None:
    group.model.says("Hello.")
    await group.say("Ann", "@Rollcall hello", id="x1")


async def in_words_without_functions(group: Group, held: Held) -> None:
    group.model.says("Hello.")
    await group.say("Ann", "@Rollcall hello", id="x1", chat=PLAIN)


async def without_a_model(group: Group, held: Held, native_id: str = "x1") -> None:
    group.model.says(*[ModelError(ErrorCode.PROVIDER_ERROR, "down")] * 2)
    await group.say("Ann", "@Rollcall hello", id=native_id)


async def without_a_model_again(group: Group, held: Held) -> None:
    await without_a_model(group, held, "x0")
    await group.say("Ann", "@Rollcall hello?", id="x1")


async def an_answer(group: Group, held: Held) -> None:
    await group.say("Ann", "/rain")
    await group.say("Ann", "Oslo", id="x1")


async def behind_another(group: Group, held: Held) -> None:
    await group.hear("Bob", "/hold first")
    await held.has_begun("first")


async def changed(group: Group, held: Held) -> None:
    await behind_another(group, held)
    await group.hear("Ann", "/hold old", id="x1")
    await group.hear("Ann", "/hold new", id="x1", kind=Kind.EDIT)


async def changed_late(group: Group, held: Held) -> None:
    await group.say("Ann", "/note", id="x1")
    await group.hear("Ann", "/note it", id="x1", kind=Kind.EDIT)


async def taken_back(group: Group, held: Held) -> None:
    await behind_another(group, held)
    await group.hear("Ann", "/hold it", id="x1")
    await group.hear("Ann", "", id="x1", kind=Kind.DELETE)


async def one_too_many(group: Group, held: Held) -> None:
    await behind_another(group, held)
    await group.hear("Ann", "/hold second")
    await group.hear("Ann", "/hold third", id="x1")


async def stopped(group: Group, held: Held) -> None:
    await group.hear("Ann", "/hold it", id="x1")
    await held.has_begun("it")
    await group.say("Ann", "/stop")


async def while_muted(group: Group, held: Held) -> None:
    await group.say("Ann", "/mute", role=Role.MODERATOR)
    await group.say("Ann", "@Rollcall hello", id="x1")


async def unasked(group: Group, held: Held, *, speaks: bool = True) -> None:
    group.model.says(call("speak", now=speaks), "I know.")
    await group.say("Ann", "who knows", id="x1", chat=LIVELY)


async def unasked_and_silent(group: Group, held: Held) -> None:
    await unasked(group, held, speaks=False)


async def unfinished(group: Group, held: Held) -> None:
    await group.hear("Ann", "/hold it", id="x1")
    await held.has_begun("it")


async def at_its_time(group: Group, held: Held) -> None:
    due = TimerCall("note", {}, timer_id=1, occurrence_id=2, due_at=group.clock.now(), title="tea")
    context = group.message("Ann", "tea", id="x1", kind=Kind.TIMER, timer=due)
    await group.daemon.intake.fire(context, lambda verdict, turn_id: [], lambda: None)
    await group.settle()


CASES: dict[ReasonCode, tuple[Callable[[Group, Held], Awaitable[None]], str]] = {
    ReasonCode.COMMAND: (says("/note"), "note"),
    ReasonCode.FUNCTION: (by_the_model, "note"),
    ReasonCode.CHAT: (in_words, ""),
    ReasonCode.ANSWERED_QUESTION: (an_answer, "rain"),
    ReasonCode.ASKED: (says("/rain"), "rain"),
    ReasonCode.TIMER: (at_its_time, "note"),
    ReasonCode.SILENT: (says("/hush"), "hush"),
    ReasonCode.NOT_ADDRESSED: (says("hello"), ""),
    ReasonCode.FROM_BOT: (says("/note", is_bot=True), ""),
    ReasonCode.CHAT_NOT_ALLOWED: (says("/note", chat=ELSE), "chats.allow"),
    ReasonCode.CHAT_OFF: (says("/note", chat=QUIET), f"chats.settings.{QUIET.key}.enabled"),
    ReasonCode.BACKFILLED: (says("/note", backfilled=True), ""),
    ReasonCode.EMPTY: (says(" "), ""),
    ReasonCode.NOT_A_MESSAGE: (says("", kind=Kind.JOIN), "join"),
    ReasonCode.EDIT_TAKEN: (changed, ""),
    ReasonCode.EDIT_TOO_LATE: (changed_late, ""),
    ReasonCode.DELETED: (taken_back, ""),
    ReasonCode.QUESTION_CLOSED: (says("approve #1a2b3"), ""),
    ReasonCode.UNKNOWN_COMMAND: (says("/nosuch"), "nosuch"),
    ReasonCode.FILTERED: (says("@Rollcall the casino"), r"filters\.turn\[0\]\.blacklist"),
    ReasonCode.USAGE: (says("/why often"), "why"),
    ReasonCode.REFUSED: (says("/lock"), r"functions\.lock\.roles"),
    ReasonCode.FUNCTIONS_OFF: (in_words_without_functions, f"chats.settings.{PLAIN.key}.functions_on"),
    ReasonCode.QUEUE_FULL: (one_too_many, "limits.queue_per_chat"),
    ReasonCode.STOPPED: (stopped, ""),
    ReasonCode.MUTED: (while_muted, "/unmute"),
    ReasonCode.CHIMED_IN: (unasked, f"chats.settings.{LIVELY.key}.chime_in"),
    ReasonCode.NOT_CHIMED_IN: (unasked_and_silent, f"chats.settings.{LIVELY.key}.chime_in"),
    ReasonCode.MODEL_FAILED: (without_a_model, "provider_error"),
    ReasonCode.MODEL_DOWN: (without_a_model_again, "outage"),
    ReasonCode.OVER_BUDGET: (says("/dear"), "budgets.member.units"),
    ReasonCode.FUNCTION_FAILED: (says("/broken"), r"[0-9a-f]{8}"),
    ReasonCode.UNKNOWN_OUTCOME: (says("/pay"), r"[0-9a-f]{8}|pay"),
    ReasonCode.WAITING: (unfinished, ""),
}


def test_no_reason_is_forgotten_here() -> None:
    # The last ones are tested elsewhere, because one message is not enough for them.
    apart = {
        *(ReasonCode.GAVE_UP, ReasonCode.EXPIRED, ReasonCode.LIKE_A_BOT, ReasonCode.REPLY_DROPPED),
        *(ReasonCode.GATHERED, ReasonCode.COLLECTED),
    }
    assert {*CASES, *LATER, *apart} == set(ReasonCode)


@pytest.mark.parametrize("reason", CASES, ids=str)
async def test_every_reason_comes_about(reason: ReasonCode) -> None:
    happens, detail = CASES[reason]
    held = Held()
    async with a_group(functions(held), settings=SETTINGS) as group:
        await happens(group, held)
        found = await reasons(group)
        assert [code for code, found_detail in found if re.fullmatch(detail, found_detail)].count(reason.value) >= 1
        held.let_go()
        await group.settle()


async def test_a_message_that_ended_the_process_too_often_is_given_up(tmp_path: Path) -> None:
    held = Held()
    async with a_group([held.spec], home=tmp_path, settings=SETTINGS) as group:
        await unfinished(group, held)
        await group.crash()
    async with a_group([held.spec], home=tmp_path, settings=SETTINGS) as group:
        await group.settle()
        assert await last_reason(group) == (ReasonCode.GAVE_UP.value, "limits.attempts_per_turn")
        assert [one.text for one in group.platform.sent] == [Texts().of("en").say("failures.gave_up")]


ENDED_BY_THEN = {ReasonCode.WAITING: ReasonCode.GAVE_UP}
"""Reason after a restart."""
BY_SETTINGS = {
    ReasonCode.CHIMED_IN,
    ReasonCode.NOT_CHIMED_IN,
    ReasonCode.CHAT_NOT_ALLOWED,
    ReasonCode.CHAT_OFF,
    ReasonCode.FUNCTIONS_OFF,
    ReasonCode.QUEUE_FULL,
    ReasonCode.REFUSED,
    ReasonCode.FILTERED,
    ReasonCode.OVER_BUDGET,
    ReasonCode.GAVE_UP,
}
"""Reasons that depend on a setting, which the explanation names."""


def names_a_setting(text: str) -> bool:
    """Whether `text` contains the key of a setting."""
    for found in re.findall(r"[a-z_]+(?:\.[\w:]+|\[\d+\])+", text):
        steps = [int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", found)]
        if steps[-1] in _names_known_at(steps[:-1], Settings):
            return True
    return False


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reason", CASES, ids=str)
async def test_every_reason_is_found_by_the_id_of_the_message_after_a_restart(
    tmp_path: Path, reason: ReasonCode, language: str
) -> None:
    held, settings = Held(), {**SETTINGS, "language": language}
    async with a_group(functions(held), settings=settings, home=tmp_path) as group:
        await CASES[reason][0](group, held)
        await group.crash()
    expected = ENDED_BY_THEN.get(reason, reason)
    held.let_go()
    async with a_group(functions(held), settings=settings, home=tmp_path) as group:
        await group.settle()
        chat = next(
            ChatRef.parse(row[0]) for row in await kept(group, INBOX.c.chat, INBOX.c.native_id) if row[1] == "x1"
        )
        found = await StoredExplanations(group.daemon.store).of(chat, "x1")
        explained = [one for one in found if one.reason is expected]
        assert explained
        texts = Texts().of(language)
        words = reason_text(texts, expected, explained[-1].detail)
        assert names_a_setting(words) == (expected in BY_SETTINGS)
        if chat not in (QUIET, ELSE):
            (said,) = await group.say("Bob", "/why x1", chat=chat)
            known_as = {spec.name: spoken_name(spec, language) for spec in group.daemon.registry.specs}
            detail = known_as.get(explained[-1].detail, explained[-1].detail)
            assert reason_text(texts, expected, detail) in said


async def test_the_last_two_hundred_messages_are_explained_by_their_place() -> None:
    async with a_group() as group:
        await group.say("Ann", "/nosuch", id="x1")
        for number in range(199):
            await group.hear("Ann", f"chatter {number}")
        assert "“/nosuch”" in (await group.say("Bob", "/why back=200"))[0]
        assert "“chatter 198”" in (await group.say("Bob", "/why back=2"))[0]


async def test_why_in_reply_to_the_bot_explains_what_it_answered_and_of_other_chats_nothing() -> None:
    async def elsewhere(*_: object) -> FunctionResult:
        return FunctionResult.say("told", to=PLAIN)

    tell = Recorder("tell", commands=["tell"], does=elsewhere)
    async with a_group([Recorder("note", commands=["note"]).spec, tell.spec]) as group:
        await group.say("Ann", "/note", id="x1")
        await group.say("Ann", "/tell")
        here, there = (f"sent-{one.key}" for one in group.platform.sent)
        (answer,) = await group.say("Bob", "/why", reply_to=Quoted(here, "Rollcall", "done", from_bot=True))
        assert "“/note” — it was a command, and “/note” answered it." in answer
        quoted = Quoted(there, "Rollcall", "told", from_bot=True)
        assert await group.say("Bob", "/why", chat=PLAIN, reply_to=quoted) == [Texts().of("en").say("why.nothing")]


GUARDED: list[tuple[dict[str, Any], str, str, list[str]]] = [
    ({"roles": "admin"}, "refused", "functions.act.roles", ["", "I am sorry."]),
    ({"scope": "private"}, "refused", "functions.act.scope", ["", "I am sorry."]),
    # If the model explains a failure, the message counts as answered.
    ({"gives": ZeroDivisionError("oh")}, "function_failed", r"[0-9a-f]{8}", [""]),
    ({"gives": ("error", "no")}, "function_failed", "act|failed", [""]),
]


@pytest.mark.parametrize(("options", "reason", "detail", "answers"), GUARDED)
async def test_a_call_of_the_model_that_did_not_happen_is_explained_like_a_command(
    options: dict[str, Any], reason: str, detail: str, answers: list[str]
) -> None:
    async with a_group([Recorder("act", commands=["act"], **options).spec]) as group:
        await group.say("Ann", "/act")
        for answer in answers:
            group.model.says(call("act"), ModelAnswer(text=answer))
            await group.say("Ann", "@Rollcall do it")
        ended = await reasons(group)
        assert len(ended) == len(answers) + 1
        assert [(code, bool(re.fullmatch(detail, said))) for code, said in ended] == [(reason, True)] * len(ended)


async def test_a_refusal_names_the_layer_that_decided() -> None:
    key = f"chats.settings.{FAMILY.key}"
    guarded = {"functions": {"act": {"roles": "owner"}, "shout": {"require_at": True}}}
    settings = {"chats": {"allow": ["*"], "settings": {FAMILY.key: guarded}}}
    async with a_group([Recorder("act", commands=["act"]).spec], settings=settings) as group:
        await group.say("Ann", "/act")
        assert await last_reason(group) == ("refused", f"{key}.functions.act.roles")


async def test_a_function_that_took_too_long_names_its_time() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.clock.advance(40)
        group.deadlines.expire()
        await group.settle()
        assert await last_reason(group) == ("function_failed", "functions.hold.timeout_seconds")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reason", list(ReasonCode), ids=str)
def test_every_reason_is_put_in_words(reason: ReasonCode, language: str) -> None:
    words = Texts().of(language).say(f"reasons.{reason.value}", detail="limits.queue_per_chat")
    assert len(words) > 5
    assert "{" not in words
    assert re.search("[\u4e00-\u9fff]", words) is not None or language == "en"


async def test_why_explains_the_last_message_but_not_itself() -> None:
    async with a_group() as group:
        await group.say("Ann", "hello everybody")
        assert await group.say("Bob", "/why") == [
            "09:00 Ann: “hello everybody” — it was not addressed to me (mention me, reply to me, or use a command)."
        ]


async def test_why_explains_several_messages_newest_first() -> None:
    async with a_group() as group:
        await group.say("Ann", "hello")
        await group.say("Bob", "/nosuch")
        (answer,) = await group.say("Bob", "/why 2")
        assert [line[6:9] for line in answer.splitlines()] == ["Bob", "Ann"]


async def test_why_explains_the_message_that_it_replies_to() -> None:
    async with a_group() as group:
        await group.say("Ann", "hello", id="x1")
        await group.say("Bob", "/nosuch")
        (answer,) = await group.say("Bob", "/why", reply_to=Quoted("x1", "Ann", "hello"))
        assert answer.startswith("09:00 Ann: “hello” — it was not addressed")


async def test_why_speaks_the_language_and_the_time_of_the_chat() -> None:
    chinese = {"allow": ["*"], "settings": {FAMILY.key: {"language": "zh", "timezone": "Asia/Shanghai"}}}
    async with a_group(settings={"chats": chinese}) as group:
        await group.say("Ann", "大家好")
        (answer,) = await group.say("Bob", "/why")
        assert answer.startswith("17:00 Ann")
        assert Texts().of("zh").say("reasons.not_addressed") in answer


async def test_why_in_an_empty_chat_says_so() -> None:
    async with a_group() as group:
        assert await group.say("Ann", "/why") == [Texts().of("en").say("why.nothing")]


async def test_why_tells_nothing_of_another_chat() -> None:
    async with a_group() as group:
        await group.say("Ann", "a secret of ours", id="x1", chat=ChatRef("test", "bot", "work"))
        quoted = Quoted("x1", "Ann", "")
        assert await group.say("Bob", "/why", reply_to=quoted) == [Texts().of("en").say("why.nothing")]


async def test_an_explanation_shows_the_beginning_of_a_long_message() -> None:
    async with a_group() as group:
        await group.say("Ann", "long " * 100, id="x1")
        (found,) = await StoredExplanations(group.daemon.store).of(group.chat, "x1")
        assert (len(found.text), found.text[-1]) == (61, "…")
        assert await StoredExplanations(group.daemon.store).of(group.chat, "x2") == []


async def test_id_shows_what_settings_need() -> None:
    async with a_group(settings={"chats": {"allow": ["*"]}, "members": {"test:bot:ann": "admin"}}) as group:
        (answer,) = await group.say("Ann", "/id")
        assert "test:bot:family" in answer
        assert "test:bot:ann (admin)" in answer
