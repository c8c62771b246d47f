"""The conversation on a terminal."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence

from bot.platforms.base import Accepted, Outgoing
from bot.platforms.console import Console
from function_calls.context import MessageContext
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Write


class Heard:
    """Messages delivered to the daemon."""

    def __init__(self) -> None:
        self.contexts: list[MessageContext] = []

    async def deliver(self, context: MessageContext, also: Sequence[Write] = ()) -> Accepted:
        self.contexts.append(context)
        return Accepted.NEW


def a_console(typed: str) -> tuple[Console, io.StringIO]:
    shown = io.StringIO()
    return Console("Ann", VirtualClock(), read_from=io.StringIO(typed), write_to=shown), shown


async def test_each_line_is_a_private_message_of_the_owner() -> None:
    console, _ = a_console("hello\n\n   \n/help me\n")
    heard = Heard()
    async with asyncio.timeout(5):
        await console.run(heard.deliver)
    assert [context.text for context in heard.contexts] == ["hello", "/help me"]
    first, second = heard.contexts
    assert (first.is_group, first.sender.name, first.sender.role) == (False, "Ann", Role.OWNER)
    assert first.key != second.key


async def test_two_sessions_never_have_the_same_ids() -> None:
    keys = set()
    for _ in range(2):
        console, _ = a_console("hello\n")
        heard = Heard()
        await console.run(heard.deliver)
        keys.add(heard.contexts[0].key)
    assert len(keys) == 2


async def test_answers_and_what_goes_on_are_shown() -> None:
    console, shown = a_console("")
    chat = ChatRef("console", "main", "terminal")
    await console.send(Outgoing(chat, "k", "Hello, Ann."))
    await console.typing(chat, "looking it up")
    await console.typing(chat, "…")
    await console.typing(chat, "")
    assert "Hello, Ann.\n" in shown.getvalue()
    assert "(looking it up)" in shown.getvalue()
    assert "…" not in shown.getvalue()


async def test_an_answer_in_markdown_is_shown_as_plain_text_and_other_text_as_it_is() -> None:
    console, shown = a_console("")
    chat = ChatRef("console", "main", "terminal")
    answer = "## Plan\n\nBring **warm** `x*y` clothes:\n- *hats*\n- see [this](https://a.test)\n```\n# code\n```"
    await console.send(Outgoing(chat, "k", answer, markdown=True))
    await console.send(Outgoing(chat, "l", "2 **is** text"))
    assert shown.getvalue().replace("\r", "").split("› ") == [
        "Plan\n\nBring warm x*y clothes:\n- hats\n- see this (https://a.test)\n# code\n",
        "2 **is** text\n",
        "",
    ]


async def test_whoever_sits_there_owns_the_daemon_and_nobody_else_does() -> None:
    console, _ = a_console("")
    chat = ChatRef("console", "main", "terminal")
    assert await console.role(chat, MemberRef("console", "main", "operator")) is Role.OWNER
    assert await console.role(chat, MemberRef("console", "main", "stranger")) is None


async def test_a_terminal_that_says_nothing_does_not_keep_the_daemon() -> None:
    read, write = os.pipe()
    with os.fdopen(read) as quiet, os.fdopen(write, "w"):
        console = Console("Ann", VirtualClock(), read_from=quiet, write_to=io.StringIO())
        running = asyncio.create_task(console.run(Heard().deliver))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=5)
        assert running.cancelled()
        os.close(os.dup(write))
