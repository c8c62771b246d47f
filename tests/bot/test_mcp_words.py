"""Functions that use the model of the calling program (sampling), with the official client over HTTP, in the current
and the previous protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitResult,
    ErrorData,
    ImageContent,
    TextContent,
)

from config.texts import Texts
from services.llm.model import ModelMessage
from services.store.turns.ledger import LEDGER
from tests.conftest import REPOSITORY
from tests.fakes.kept import kept
from tests.harness.mcp_programs import ERAS, LEGACY, MODERN, Programs, code, programs, texts
from tests.harness.mcp_servers import until_true

EN = Texts().of("en")
FUNCTIONS = {"sources": {"python": [str(REPOSITORY / "tests" / "harness" / "mcp_words_functions.py")]}}
LENDING = ({"name": "editor", "sampling": True},)
KEEPING = ({"name": "editor"},)
NO_WORDS = [TextContent(type="text", text="  "), ImageContent(type="image", data="", mime_type="image/png")]
_SECONDS = 30


class TheirModel:
    """The client's model: returns `answers` one after the other and records the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[CreateMessageRequestParams] = []

    async def __call__(self, context: Any, params: CreateMessageRequestParams) -> Any:
        self.asked.append(params)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if isinstance(answer, str):
            return CreateMessageResult(role="assistant", content=TextContent(type="text", text=answer), model="theirs")
        return answer

    @property
    def last_words(self) -> list[str]:
        return [getattr(one.messages[-1].content, "text", "") for one in self.asked]


@asynccontextmanager
async def lending(
    model: TheirModel | None, mode: str = MODERN, clients: Any = LENDING, **options: Any
) -> AsyncIterator[tuple[Programs, Client]]:
    """A bot with the functions, and a client that provides `model`."""
    async with (
        asyncio.timeout(_SECONDS),
        programs(clients=clients, settings=FUNCTIONS) as served,
        served.client(mode=mode, sampling_callback=model, **options) as client,
    ):
        yield served, client


def data(result: Any) -> Any:
    """Structured content of a result."""
    return (result.structured_content or {}).get("result", texts(result)[-1])


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_lends_its_model_is_asked_with_what_the_function_passes_alone(mode: str) -> None:
    theirs = TheirModel(" their words ")
    async with lending(theirs, mode) as (served, client):
        result = await client.call_tool("writes", {"text": "dogs"})
        assert served.group.model.requests == []
    assert not result.is_error
    assert data(result) == '[["their words",true]]'
    [asked] = theirs.asked
    assert asked.system_prompt == "Be short."
    assert [(one.role, getattr(one.content, "text", None)) for one in asked.messages] == [
        ("user", "Hello."),
        ("assistant", "Hi."),
        ("user", "dogs 0"),
    ]
    assert (asked.max_tokens, asked.include_context, asked.tools) == (50, "none", None)


@pytest.mark.parametrize("mode", ERAS)
async def test_unless_the_settings_let_it_the_bots_own_model_is_asked(mode: str) -> None:
    theirs = TheirModel("never")
    async with lending(theirs, mode, KEEPING) as (served, client):
        served.group.model.says("own words")
        result = await client.call_tool("writes")
        [asked] = served.group.model.requests
    assert (data(result), theirs.asked) == ('[["own words",false]]', [])
    assert asked.offer is None
    assert asked.messages[-1] == ModelMessage("user", "cats 0")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_without_a_model_to_lend_has_the_bots_own(mode: str) -> None:
    async with lending(None, mode) as (served, client):
        served.group.model.says("own words")
        result = await client.call_tool("writes")
    assert data(result) == '[["own words",false]]'


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("function", ["reads_and_writes", "writes_what_was_read"])
async def test_what_others_wrote_never_goes_to_the_clients_model(mode: str, function: str) -> None:
    theirs = TheirModel("never")
    async with lending(theirs, mode) as (served, client):
        served.group.model.says("own words")
        result = await client.call_tool(function)
    assert not result.is_error
    assert theirs.asked == []
    assert len(served.group.model.requests) == 1


@pytest.mark.parametrize("mode", ERAS)
async def test_a_function_may_ask_again_but_not_for_ever(mode: str) -> None:
    theirs = TheirModel(*[f"words {number}" for number in range(11)])
    async with lending(theirs, mode, input_required_max_rounds=100) as (_, client):
        thrice = await client.call_tool("writes", {"times": 3})
        assert data(thrice) == '[["words 0",true],["words 1",true],["words 2",true]]'
        theirs.answers = ["more"] * 11
        without_end = await client.call_tool("writes", {"times": 11})
    assert (code(without_end), len(theirs.asked)) == ("refused", 13)


@pytest.mark.parametrize("mode", ERAS)
async def test_two_requests_at_once_both_come_back(mode: str) -> None:
    theirs = TheirModel("a", "b")
    async with lending(theirs, mode) as (_, client):
        result = await client.call_tool("writes_two_at_once")
    assert sorted(theirs.last_words) == ["one", "two"]
    assert data(result) in ('["a","b"]', '["b","a"]')


@pytest.mark.parametrize("mode", ERAS)
async def test_words_and_a_question_in_one_call_each_reach_whom_they_are_for(mode: str) -> None:
    theirs, forms = TheirModel("Tea or coffee?"), []

    async def user(context: Any, params: Any) -> ElicitResult:
        forms.append(params.message)
        return ElicitResult(action="accept", content={"answer": "tea"})

    async with lending(theirs, mode, elicitation_callback=user) as (served, client):
        result = await client.call_tool("writes_and_asks")
        codes = [row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code)]
    assert (texts(result), forms, codes) == (["answered tea"], ["Tea or coffee?"], ["asked", "ok"])


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("content", NO_WORDS)
async def test_what_is_no_text_is_no_answer(mode: str, content: Any) -> None:
    theirs = TheirModel(CreateMessageResult(role="assistant", content=content, model="theirs"))
    async with lending(theirs, mode) as (served, client):
        result = await client.call_tool("writes")
        assert served.group.model.requests == []
    assert (code(result), len(theirs.asked)) == ("transient", 1)


@pytest.mark.parametrize(("error", "why", "key"), [(-1, "cancelled", "declined"), (-32603, "transient", "down")])
async def test_a_client_that_declines_or_cannot_sample_gets_an_error_and_the_bots_model_is_not_used(
    error: int, why: str, key: str
) -> None:
    theirs = TheirModel(ErrorData(code=error, message="their own words about it"))
    async with lending(theirs, LEGACY) as (served, client):
        result = await client.call_tool("writes")
        assert served.group.model.requests == []
    assert texts(result) == [f"{EN.say(f'words.{key}')}\n[{why}]"]


async def test_as_the_protocol_is_now_who_does_not_want_it_does_not_come_back_and_the_run_ends_in_time() -> None:
    theirs = TheirModel(ErrorData(code=-1, message="no"))
    async with lending(theirs) as (served, client):
        with pytest.raises(MCPError):
            await client.call_tool("writes")
        await served.group.clock.advance(21)
        await until_true(lambda: not served.web.programs.server._running)  # type: ignore[union-attr]
        codes = [row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code)]
    assert codes == ["transient"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_model_that_takes_too_long_is_given_up_within_the_time_of_the_run(mode: str) -> None:
    never = asyncio.Event()

    async def writes() -> str:
        await never.wait()
        return "too late"

    theirs = TheirModel(writes)
    async with lending(theirs, mode) as (served, client):
        calling = asyncio.create_task(client.call_tool("writes"))
        await until_true(lambda: theirs.asked)
        await served.group.clock.advance(21)
        await until_true(lambda: not served.web.programs.server._running)  # type: ignore[union-attr]
        never.set()
        result = await calling
        codes = [row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code)]
    assert code(result) == ("transient" if mode == LEGACY else "expired")
    assert codes == ["transient"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_bot_that_stops_waits_for_no_model_of_others(mode: str) -> None:
    async def writes() -> str:
        await asyncio.Event().wait()
        return "never"

    theirs = TheirModel(writes)
    async with lending(theirs, mode) as (served, client):
        calling = asyncio.create_task(client.call_tool("writes"))
        await until_true(lambda: theirs.asked)
        await served.web.stop()
        codes = [row[1] for row in await kept(served.group, LEDGER.c.key, LEDGER.c.code)]
        calling.cancel()
    assert codes == ["transient"]


async def test_words_answer_once_and_only_their_own_call() -> None:
    theirs = TheirModel()
    async with lending(theirs) as (_, client):
        asked = await client.session.call_tool("writes", allow_input_required=True)
        words = CreateMessageResult(role="assistant", content=TextContent(type="text", text="w"), model="theirs")
        sent = {"input_responses": {"words": words}, "request_state": asked.request_state}
        other = await client.session.call_tool("reads", allow_input_required=True, **sent)
        right = await client.session.call_tool("writes", allow_input_required=True, **sent)
        again = await client.session.call_tool("writes", allow_input_required=True, **sent)
    assert list(asked.input_requests) == ["words"]
    assert (code(other), code(again)) == ("expired", "expired")
    assert data(right) == '[["w",true]]'


async def test_an_answer_of_the_wrong_kind_or_under_another_name_is_none() -> None:
    form = ElicitResult(action="accept", content={"answer": "a"})
    words = CreateMessageResult(role="assistant", content=TextContent(type="text", text="w"), model="theirs")
    async with lending(TheirModel()) as (_, client):
        results = []
        for responses in ({"words": form}, {"answer": words}):
            asked = await client.session.call_tool("writes", allow_input_required=True)
            results.append(
                await client.session.call_tool(
                    "writes",
                    allow_input_required=True,
                    input_responses=responses,
                    request_state=asked.request_state,
                )
            )
    assert [code(one) for one in results] == ["transient"] * 2


@pytest.mark.parametrize("mode", ERAS)
async def test_more_than_a_model_is_given_is_told_so(mode: str) -> None:
    theirs = TheirModel("never")
    async with lending(theirs, mode) as (_, client):
        result = await client.call_tool("writes", {"text": "x" * 24_000})
    assert (code(result), theirs.asked) == ("bad_arguments", [])


async def test_in_a_chat_the_bots_own_model_is_asked() -> None:
    async with lending(TheirModel()) as (served, _):
        served.group.model.says("own words")
        called = await served.group.daemon.direct_calls.call(
            served.web.programs._programs[0].caller.caller,
            "writes",
            {},  # type: ignore[union-attr]
        )
    assert called.result.data == [["own words", False]]
