"""Ten thousand random calls in twenty chats: nothing that was told in one chat is shown in another."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from bot.testing import ACCOUNT, PLATFORM, Group, a_group, call
from services.llm.model import ModelAnswer, ModelRequest
from services.refs import ChatRef, Role
from tests.fakes.timers import pass_time

CALLS = 10_000
GROUPS = [ChatRef(PLATFORM, ACCOUNT, f"group{number}") for number in range(15)]
MEMBERS = ["Ann", "Ben", "Cleo", "Dan", "Eve"]
PRIVATE = {who: ChatRef(PLATFORM, ACCOUNT, f"with-{who.lower()}") for who in MEMBERS}
"""Every member is in every group and has a private chat."""
CANARY = re.compile(r"canary([a-z0-9-]+?)x\d+")
COMMANDS = [
    "/remember {canary}",
    "/memory",
    "/memory forget {canary}",
    "/todo add {canary}",
    "/todo",
    "/todo done 1",
    "/todo remove 1",
    "/remind in 2 days {canary}",
    "/reminders",
    "/reminder delete 1",
    "/poll {canary}? | yes {canary} | no",
    "/vote 1",
    "/results",
    "/poll close",
    "/summary",
    "/history {canary}",
    "/members",
    "/usage",
    "/why",
    "/help {canary}",
    "/calc {canary}",
    "/pick {canary}, tea",
    "/think {canary}",
    "/settings",
    "/link",
    "/notes",
    "/clearmessages",
    "yes",
    "{canary}",
    "I think {canary}",
    "@Rollcall what do you know about {canary}?",
    "@Rollcall note that {canary}",
    "@Rollcall anything else?",
]


class Parrot:
    """ChatModel that repeats every canary that it has seen in its request, or calls a function with one of them."""

    name = "parrot"

    def __init__(self) -> None:
        self.seen: list[str] = []
        """Canaries of all requests since the last reset."""
        self._random = Random(2)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        found = [one.group() for message in request.messages for one in CANARY.finditer(message.content)]
        self.seen += found
        text = " ".join(dict.fromkeys(found[-20:])) or "Nothing."
        offered = {one.name for one in request.offer.functions} if request.offer else set()
        is_first = all(message.role != "tool" for message in request.messages)
        if is_first and "remember" in offered and found and self._random.random() < 0.5:
            called = self._random.choice(
                [call("remember", fact=found[-1]), call("memory"), call("todo_list", show="all")]
            )
            return ModelAnswer(calls=(called,), finish="tool_calls")
        return ModelAnswer(text=text, finish="stop")

    async def probe(self) -> str:
        return "parrot"

    async def close(self) -> None:
        return None


def owners(texts: list[str]) -> set[str]:
    """Chats from which the canaries of these texts are."""
    return {one for text in texts for one in CANARY.findall(text)}


async def run_calls(group: Group, model: Parrot) -> Counter[str]:
    """Make the calls; returns how often a canary was shown, by chat. Raises AssertionError for one in a wrong chat."""
    random, shown = Random(3), Counter[str]()
    for number in range(CALLS):
        who = random.choice(MEMBERS)
        chat = random.choice([*GROUPS, PRIVATE[who]])
        text = random.choice(COMMANDS).format(canary=f"canary{chat.native}x{number}")
        model.seen.clear()
        before = len(group.platform.sent)
        await group.say(who, text, chat=chat, is_group=chat in GROUPS, role=Role.OWNER)
        if number % 500 == 0:
            await pass_time(group, 5 * 3600, step=3600)
        for sent in group.platform.sent[before:]:
            assert owners([sent.text, *(one.value for one in sent.choices)]) <= {sent.chat.native}, (text, sent)
            shown[sent.chat.native] += bool(owners([sent.text]))
        assert owners(model.seen) <= {chat.native}, (text, chat)
    return shown


async def test_nothing_told_in_one_chat_shows_in_another() -> None:
    model = Parrot()
    async with a_group(model=model) as group:
        shown = await run_calls(group, model)
    assert set(shown) == {chat.native for chat in [*GROUPS, *PRIVATE.values()]}
    assert sum(shown.values()) > CALLS / 10
