"""History that does not fit is summarized by the model, for the same chat only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.testing import Group, a_group
from function_calls.context import Kind
from services.llm.model import ModelAnswer, ModelError, ModelRequest, Usage
from services.refs import ChatRef, ErrorCode
from services.store.chats.summaries import SUMMARIES
from services.store.port import Query, Row, Store
from services.store.turns.budgets import BUDGETS
from tests.fakes.kept import heard, kept

SMALL = {
    "chats": {"allow": ["*"]},
    "router": {"history_messages": 4},
    "memory": {"summarise_after_tokens": 20, "summary_tokens": 50},
}
WORK = ChatRef("test", "bot", "work")


class Talker:
    """A model that answers `Ok.`, and summarizes each part as one word."""

    name = "talker"

    def __init__(self, *failures: ModelError, usage: Usage | None = None) -> None:
        self.asked: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self._failures = list(failures)
        self._usage = usage or Usage()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if not request.messages[0].content.startswith("Put in short"):
            self.asked.append(request)
            return ModelAnswer(text="Ok.", finish="stop", usage=self._usage)
        self.summaries.append(request)
        if self._failures:
            raise self._failures.pop(0)
        return ModelAnswer(text=f"Summary {len(self.summaries)}.", finish="stop", usage=self._usage)

    async def probe(self) -> str:
        return "talker"

    async def close(self) -> None:
        return None

    def told(self, number: int = -1) -> str:
        """All messages of a request."""
        return "\n".join(message.content for message in self.asked[number].messages)


async def talk(group: Group, count: int, word: str = "word", **facts: Any) -> None:
    for number in range(count):
        await group.hear("Ann", f"{word} number {number} is about many things, all of them long", **facts)


async def test_lines_that_no_longer_fit_are_summarized_after_the_turn_for_the_next_one() -> None:
    model = Talker()
    async with a_group(settings=SMALL, model=model) as group:
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello")
        assert "[What was said before is not shown.]" in model.told()
        (request,) = model.summaries
        assert (request.offer, request.tool_choice) == (None, "none")
        assert "Ann: word number 0" in request.messages[1].content
        assert "word number 9" not in request.messages[1].content
        await group.say("Ann", "@Rollcall hello again")
        assert "Summary 1." in model.told()
        assert "is not shown" not in model.told()
        assert model.asked[0].messages[0] == model.asked[1].messages[0]


async def test_a_summary_goes_on_from_the_one_before_and_no_line_is_in_two() -> None:
    model = Talker()
    async with a_group(settings=SMALL, model=model) as group:
        for part in range(3):
            await talk(group, 8, f"part{part}")
            await group.say("Ann", "@Rollcall hello")
        assert len(model.summaries) == 3
        texts = [request.messages[1].content for request in model.summaries]
        assert "Summary 1." in texts[1]
        assert "Summary 2." in texts[2]
        for number in range(8):
            assert sum(text.count(f"part0 number {number} ") for text in texts) == 1


async def test_a_summary_survives_a_restart(tmp_path: Path) -> None:
    async with a_group(settings=SMALL, model=Talker(), home=tmp_path) as group:
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello")
    model = Talker()
    async with a_group(settings=SMALL, model=model, home=tmp_path) as group:
        await group.say("Ann", "@Rollcall hello")
        assert "Summary 1." in model.told()


async def test_a_conversation_that_just_fits_says_of_nothing_that_it_is_left_out() -> None:
    model = Talker()
    async with a_group(settings=SMALL, model=model) as group:
        await talk(group, 4)
        await group.say("Ann", "@Rollcall hello")
        assert "is not shown" not in model.told()
        assert "number 0" in model.told()


async def used(group: Group) -> list[tuple[str, str, int]]:
    rows = await kept(group, BUDGETS.c.holder, BUDGETS.c.kind, BUDGETS.c.used)
    return [row for row in rows if not row[0].startswith(("told ", "usage "))]


async def test_a_summary_is_paid_for_by_the_chat_and_by_no_member() -> None:
    model = Talker(ModelError(ErrorCode.PROVIDER_ERROR, "down"))
    shares = {"chat": {"requests": 9}, "member": {"requests": 9}}
    async with a_group(settings={**SMALL, "budgets": shares}, model=model) as group:
        await talk(group, 10)
        for by_chat, by_member in ((1, 1), (3, 2)):
            await group.say("Bob", "@Rollcall hello")
            assert await used(group) == [
                ("chat test:bot:family", "requests", by_chat),
                ("member test:bot:bob", "requests", by_member),
            ]
        assert len(model.summaries) == 2


async def test_a_chat_that_has_used_up_its_share_gets_no_summary() -> None:
    model = Talker()
    async with a_group(settings={**SMALL, "budgets": {"chat": {"requests": 1}}}, model=model) as group:
        await talk(group, 10)
        assert await group.say("Ann", "@Rollcall hello") == ["Ok."]
        assert model.summaries == []


async def test_the_tokens_of_a_summary_are_settled_by_what_the_provider_counted() -> None:
    model = Talker(usage=Usage(30, 10))
    async with a_group(settings={**SMALL, "budgets": {"chat": {"tokens": 100_000}}}, model=model) as group:
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello")
        assert await used(group) == [("chat test:bot:family", "tokens", 80)]


@pytest.mark.parametrize("kind", [Kind.DELETE, Kind.EDIT])
async def test_what_is_taken_back_lives_on_in_no_summary(kind: Kind) -> None:
    model = Talker()
    async with a_group(settings=SMALL, model=model) as group:
        await group.hear("Ann", "my password is hunter2, do not tell anybody", id="x1")
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello")
        await group.say("Ann", "something else", id="x1", kind=kind)
        await group.say("Ann", "@Rollcall hello")
        assert "Summary" not in model.told()
        assert "hunter2" not in model.summaries[-1].messages[1].content
        await group.say("Ann", "@Rollcall hello")
        assert "Summary 2." in model.told()


async def test_what_is_taken_back_after_the_history_has_forgotten_it_lives_on_in_no_summary() -> None:
    model = Talker()
    async with a_group(settings={**SMALL, "store": {"history_per_chat": 10}}, model=model) as group:
        await group.hear("Ann", "my password is hunter2, do not tell anybody", id="x1")
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello")
        await talk(group, 250)
        await group.settle()
        assert not any("hunter2" in text for _, text in await heard(group))
        assert await kept(group, SUMMARIES.c.text) == [("Summary 1.",)]
        await group.say("Ann", "", id="x1", kind=Kind.DELETE)
        assert await kept(group, SUMMARIES.c.text) == []


async def test_an_edit_of_a_shown_line_leaves_the_summary_alone() -> None:
    model = Talker()
    async with a_group(settings=SMALL, model=model) as group:
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello", id="late")
        await group.say("Ann", "@Rollcall hullo", id="late", kind=Kind.EDIT)
        await group.say("Ann", "@Rollcall hello")
        assert "Summary 1." in model.told()


async def test_a_summary_that_fails_is_tried_again_after_the_next_turn() -> None:
    model = Talker(ModelError(ErrorCode.PROVIDER_ERROR, "down"))
    async with a_group(settings=SMALL, model=model) as group:
        await talk(group, 10)
        assert await group.say("Ann", "@Rollcall hello") == ["Ok."]
        await group.say("Ann", "@Rollcall hello")
        await group.say("Ann", "@Rollcall hello")
        assert "Summary 2." in model.told()


@pytest.mark.parametrize(
    "changes", [{"memory": {"summarise_after_tokens": 0}}, {"memory": {}}, {"router": {"history_messages": 0}}]
)
async def test_where_little_was_said_or_none_is_wanted_the_model_is_not_asked(changes: dict[str, Any]) -> None:
    model = Talker()
    async with a_group(settings=SMALL | changes, model=model) as group:
        await talk(group, 10)
        await group.say("Ann", "@Rollcall hello")
        assert model.summaries == []


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(["family", "work"]), st.booleans()), min_size=12, max_size=40))
async def test_nothing_of_one_chat_is_in_requests_for_another(order: list[tuple[str, bool]]) -> None:
    model = Talker()
    chats = {"family": ChatRef("test", "bot", "family"), "work": WORK}
    async with a_group(settings=SMALL, model=model) as group:
        for number, (name, asks) in enumerate(order):
            text = f"canary-{name} {number} and a few more words to fill the line"
            await group.say("Ann", f"@Rollcall {text}" if asks else text, chat=chats[name])
    for request in [*model.asked, *model.summaries]:
        told = "\n".join(message.content for message in request.messages)
        assert ("canary-family" in told) + ("canary-work" in told) <= 1


class Counting:
    """A store that counts reads of the lines to be summarized."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, query: Query) -> list[Row]:
        self.looks += query.statement.name == "history.between"
        return await self._store.read(query)


async def test_what_is_still_little_is_not_looked_through_after_every_turn() -> None:
    counting: list[Counting] = []

    def around(store: Store) -> Store:
        counting.append(Counting(store))
        return counting[0]  # type: ignore[return-value]

    settings = {**SMALL, "memory": {"summarise_after_tokens": 1000}}
    async with a_group(model=Talker(), settings=settings, around_store=around) as group:
        for _ in range(30):
            await group.say("Ann", "@Rollcall a word")
        assert 0 < counting[0].looks <= 3
