"""Keywords for messages, questions and pauses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from config.texts import Texts
from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules.calls import wait
from function_calls.basic.keyword_modules.talk import (
    cancel,
    hear,
    input_line,
    log_line,
    print_line,
    talk,
    talk_block,
    talk_to,
)
from function_calls.basic.keywords import Asks
from function_calls.basic.run.session import EndOfRun
from function_calls.context import Attachment
from services.chats.members import KnownMembers
from services.clock import VirtualClock
from services.refs import MemberRef
from services.times import Times
from tests.fakes.builders import FAMILY, a_call, a_message
from tests.fakes.script_runs import Heard, a_run

EN = Texts().of("en")
BOB = MemberRef("test", "bot", "bob")


class History:
    """A store with the members of the chat."""

    def __init__(self, *names: str) -> None:
        self._names = names

    async def read(self, query: Any) -> list[dict[str, Any]]:
        return [
            {"from_bot": 0, "sender": f"test:bot:{name.lower()}", "sender_name": name, "at_ms": 0}
            for name in self._names
        ]


def members(*names: str) -> KnownMembers:
    return KnownMembers(History(*names))  # type: ignore[arg-type]  # reads are all that is asked of it


async def test_what_a_script_says_is_a_text_whatever_it_was() -> None:
    heard = Heard()
    run = a_run(heard=heard)
    for value in ("Hello", 3.0, True, [1, "a"], None, "  "):
        await talk(run, value)
    await talk_block(run, "two\nlines")
    assert heard.texts == ["Hello", "3", "true", '[1, "a"]', "two\nlines"]


async def test_print_joins_at_commas_with_spaces_and_at_semicolons_without() -> None:
    heard = Heard()
    run = a_run(heard=heard)
    await print_line(run, ["a", 1], ["b"], [2.5, "c"])
    await print_line(run)
    assert heard.texts == ["a 1b2.5 c"]


async def test_lines_of_the_log_are_not_said() -> None:
    heard = Heard()
    await log_line(a_run(heard=heard), ["a", 1])
    assert heard.texts == []


async def test_cancel_ends_the_run_with_a_last_word() -> None:
    heard = Heard()
    with pytest.raises(EndOfRun):
        await cancel(a_run(heard=heard), "Bye")
    assert heard.texts == ["Bye"]


@pytest.mark.parametrize("name", ["Bob", "@bob", "bob b", BOB.key])
async def test_talk_to_a_member_is_for_them_alone(name: str) -> None:
    heard = Heard()
    known = members("Ann", "Bob B" if " " in name else "Bob")
    await talk_to(a_run(heard=heard), name, "psst", members=known)
    assert [message.text for message in heard.messages] == ["psst"]
    to = heard.messages[0].to
    assert isinstance(to, MemberRef)
    assert to.native.startswith("bob")


@pytest.mark.parametrize("name", ["here", FAMILY.key, ""])
async def test_talk_to_this_chat_is_for_all(name: str) -> None:
    heard = Heard()
    await talk_to(a_run(heard=heard), name, "hi", members=members())
    assert heard.messages[0].to is None


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("test:bot:work", RunCode.NOT_ALLOWED, EN.say("basic.talk.other_chat", to="test:bot:work")),
        ("whatsapp:1:555", RunCode.NOT_ALLOWED, EN.say("basic.talk.other_chat", to="whatsapp:1:555")),
        ("Zed", RunCode.NO_SUCH_THING, EN.say("basic.talk.nobody", to="Zed")),
        ("Bob", RunCode.NO_SUCH_THING, EN.say("basic.talk.several", to="Bob", names="Bob A, Bob B")),
    ],
)
async def test_other_chats_and_strangers_are_refused_in_words(name: str, code: RunCode, words: str) -> None:
    heard = Heard()
    with pytest.raises(RunError) as fault:
        await talk_to(a_run(heard=heard), name, "hi", members=members("Bob A", "Bob B"))
    assert (fault.value.code, fault.value.detail) == (code, words)
    assert heard.messages == []


async def hearing(answer: str | None, asked: int = 0, **wanted: Any) -> Any:
    run = a_run(answer=answer, asked=asked)
    return await hear(run, clock=VirtualClock(), times=Times(), **wanted)


async def test_hear_asks_with_what_was_said_last_and_gives_the_answer() -> None:
    assert await hearing(None) == Asks("")
    assert await hearing("anything", asked=1) == "anything"
    assert await hearing("ann@example.org", asked=1, kind="EMAIL") == "ann@example.org"
    assert await hearing("0.5", asked=1, kind="FLOAT") == 0.5


@pytest.mark.parametrize("kind", ["EMAIL", "MAIL"])
async def test_an_answer_that_does_not_fit_is_asked_for_three_times_more(kind: str) -> None:
    for asked in (1, 2, 3):
        again = await hearing("nope", asked=asked, kind=kind)
        assert again == Asks(EN.say("basic.hear.email"))
    with pytest.raises(RunError) as fault:
        await hearing("nope", asked=4, kind=kind)
    assert (fault.value.code, fault.value.detail) == (RunCode.BAD_VALUE, EN.say("basic.hear.gave_up"))


@pytest.mark.parametrize("choices", [["Small", "Large"], [["Small", "Large", "Small", None]]])
async def test_choices_are_offered_and_chosen(choices: list[Any]) -> None:
    asks = await hearing(None, choices=choices)
    assert [(one.label, one.value) for one in asks.choices] == [("Small", "Small"), ("Large", "Large")]
    assert await hearing("large", asked=1, choices=choices) == "Large"
    again = await hearing("huge", asked=1, choices=choices)
    assert (again.text, again.choices) == (EN.say("basic.hear.choice", choices="Small, Large"), asks.choices)


async def test_yes_and_no_are_offered() -> None:
    asks = await hearing(None, kind="YESNO")
    assert [one.value for one in asks.choices] == ["yes", "no"]
    assert await hearing("no", asked=1, kind="YESNO") is False


@pytest.mark.parametrize("choices", [[None], [], [[]], [[str(number) for number in range(201)]]])
async def test_choices_that_are_none_are_the_authors_fault(choices: list[Any]) -> None:
    with pytest.raises(RunError) as fault:
        await hearing(None, choices=choices)
    assert (fault.value.code, fault.value.detail) == (RunCode.BAD_VALUE, EN.say("basic.hear.no_choices"))


async def test_input_asks_its_words_and_gives_a_number_where_it_is_one() -> None:
    assert await input_line(a_run(), "How many?") == Asks("How many?")
    assert await input_line(a_run(answer="12", asked=1), "How many?") == 12
    assert await input_line(a_run(answer="many", asked=1)) == "many"


async def test_wait_goes_on_after_so_many_seconds() -> None:
    clock = VirtualClock()
    waiting = asyncio.create_task(wait(a_run(), 5, clock=clock))
    await clock.settle()
    await clock.advance(4.9)
    assert not waiting.done()
    await clock.advance(0.2)
    assert waiting.done()
    await waiting


@pytest.mark.parametrize(
    ("seconds", "words"), [(301, "0 to 300 seconds"), (-1, "0 to 300 seconds"), (40, "29 seconds"), ("x", "x")]
)
async def test_a_wait_that_is_too_long_is_refused(seconds: Any, words: str) -> None:
    with pytest.raises(RunError) as fault:
        await wait(a_run(), seconds, clock=VirtualClock())
    assert words in fault.value.detail or fault.value.code is RunCode.WRONG_TYPE


async def test_a_file_comes_with_the_answer() -> None:
    photo = Attachment("cat.png", "image/png", "https://example.org/cat.png", 7)
    context = replace(a_message("here"), attachments=(photo,))
    run = a_run(context, answer="here", asked=1, call=a_call())
    value = await hear(run, "IMAGE", clock=VirtualClock(), times=Times())
    assert value == {"name": "cat.png", "type": "image/png", "url": "https://example.org/cat.png", "size": 7}
