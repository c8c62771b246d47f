"""Contract of all model protocols, over real HTTP. A new one needs an entry in `tests.fakes.wires`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, get_args

import pytest

from config.sections.models import Protocol
from config.texts import Texts
from function_calls.outcome import OutcomeKind
from services.llm.model import ModelError, ModelMessage, ModelRequest
from services.refs import ErrorCode, ReasonCode
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.wires import WIRES, Answer, Wire
from tests.function_calls.routing import Routing, said

EN = Texts().of("en")
BUSY: Answer = {"status": 503, "body": {"error": {"message": "a stranger's words"}}}
pytestmark = [
    pytest.mark.requirement("D28"),
    pytest.mark.parametrize("wire", WIRES, ids=lambda wire: str(wire.name)),
]


class Talk:
    """A chat whose model is a server of the protocol."""

    def __init__(self, wire: Wire, server: OpenAIServer, routing: Routing) -> None:
        self.wire = wire
        self.server = server
        self.routing = routing

    @property
    def requests(self) -> list[Any]:
        """Request bodies received by the server."""
        return [one.json for one in self.server.requests]

    def told(self, request: int) -> list[Any]:
        """Function results in a request."""
        return [json.loads(content) for content in self.wire.told(self.requests[request])]


@asynccontextmanager
async def talking(wire: Wire, *functions: Recorder, script: list[Answer], **settings: int) -> AsyncIterator[Talk]:
    async with OpenAIServer(script) as server:
        model = wire.model(server.base_url)
        try:
            yield Talk(wire, server, Routing(*functions, model=model, settings=settings))
        finally:
            await model.close()
        assert server.script == [], "the model was asked less often than the script has answers"


def test_every_protocol_of_the_settings_is_here(wire: Wire) -> None:
    assert wire.name in get_args(Protocol)
    # A custom function is not a protocol with a server.
    assert {one.name for one in WIRES} == set(get_args(Protocol)) - {"function"}


@pytest.mark.requirement("C1", "C5")
async def test_words_without_a_call_are_the_answer(wire: Wire) -> None:
    async with talking(wire, Recorder("weather", CITY), script=[wire.says("Hello!")]) as talk:
        outcome = await talk.routing.hears("hi")
    assert (said(outcome), outcome.reason) == (["Hello!"], ReasonCode.CHAT)
    assert "weather" in wire.offered(talk.requests[0])


@pytest.mark.requirement("C1", "D7", "D11")
async def test_a_call_is_run_and_its_result_goes_back(wire: Wire) -> None:
    weather = Recorder("weather", CITY, gives=("ok", {"celsius": 3}))
    script = [wire.calls("I look.", [("weather", {"city": "Oslo"})]), wire.says("It is 3 degrees.")]
    async with talking(wire, weather, script=script) as talk:
        outcome = await talk.routing.hears("cold in oslo?")
        assert (said(outcome), weather.runs) == (["It is 3 degrees."], [{"city": "Oslo"}])
        assert talk.told(1) == [{"ok": True, "result": {"celsius": 3}}]


@pytest.mark.requirement("C4")
async def test_several_calls_of_one_answer_run_in_order(wire: Wire) -> None:
    weather = Recorder("weather", CITY, gives=("ok", "cold"))
    note = Recorder("note.add", {"text": {"type": "string"}, "n": {"type": "integer"}}, effect="once")
    noted = {"text": 'a <b> & "c"\n', "n": 7}
    asked = [("weather", {"city": "Oslo"}), ("note_add", noted), ("weather", {"city": "Rome"})]
    async with talking(wire, weather, note, script=[wire.calls("", asked), wire.says("Noted.")]) as talk:
        assert said(await talk.routing.hears("do three things")) == ["done", "Noted."]
        assert weather.runs == [{"city": "Oslo"}, {"city": "Rome"}]
        assert note.runs == [noted]
        assert len(talk.told(1)) == 3


@pytest.mark.requirement("D29")
async def test_arguments_that_do_not_fit_go_back_once_with_their_names(wire: Wire) -> None:
    roll = Recorder("roll", {"sides": {"type": "integer", "minimum": 2, "required": True}}, gives="4")
    script = [
        wire.calls("", [("roll", {"sides": "many"})]),
        wire.calls("", [("roll", {"sides": 6})]),
        wire.says("A 4."),
    ]
    async with talking(wire, roll, script=script) as talk:
        assert said(await talk.routing.hears("roll a die")) == ["A 4."]
        (fault,) = talk.told(1)
    assert (fault["error"], fault["fields"], roll.runs) == ("bad_arguments", ["sides"], [{"sides": 6}])


@pytest.mark.requirement("C6")
async def test_a_call_that_cannot_be_read_goes_back_and_may_be_put_right(wire: Wire) -> None:
    weather = Recorder("weather", CITY, gives=("ok", 3))
    script = [wire.garbled("weather"), wire.calls("", [("weather", {"city": "Oslo"})]), wire.says("3.")]
    async with talking(wire, weather, script=script) as talk:
        assert said(await talk.routing.hears("weather oslo")) == ["3."]
        assert talk.told(1)[0]["error"] in ("invalid_json", "malformed_by_provider")
    assert weather.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("C6")
async def test_a_second_one_ends_in_plain_words_and_nothing_runs(wire: Wire) -> None:
    weather = Recorder("weather", CITY, effect="once")
    async with talking(wire, weather, script=[wire.garbled("weather")] * 2) as talk:
        outcome = await talk.routing.hears("weather oslo")
    assert (said(outcome), outcome.reason) == ([EN.say("failures.model_confused")], ReasonCode.MODEL_FAILED)
    assert weather.runs == []


async def test_a_function_that_does_not_exist_is_said_to_be_unknown(wire: Wire) -> None:
    weather = Recorder("weather", CITY, gives=("ok", 3))
    script = [wire.calls("", [("get_sky", {"city": "Oslo"})]), wire.says("Sorry.")]
    async with talking(wire, weather, script=script) as talk:
        outcome = await talk.routing.hears("weather oslo")
        assert talk.told(1)[0]["error"] == "unknown_function"
    assert (said(outcome), outcome.error, weather.runs) == (["Sorry."], ErrorCode.UNKNOWN_FUNCTION, [])


@pytest.mark.requirement("D37")
async def test_a_function_that_was_not_offered_is_refused_when_it_is_called_anyway(wire: Wire) -> None:
    ban = Recorder("ban", CITY, roles="admin", effect="once")
    script = [wire.calls("", [("ban", {"city": "Oslo"})]), wire.says("You may not.")]
    async with talking(wire, Recorder("weather", CITY), ban, script=script) as talk:
        assert said(await talk.routing.hears("ban oslo")) == ["You may not."]
        assert (ban.runs, talk.told(1)[0]["error"]) == ([], "refused")
        assert "ban" not in wire.offered(talk.requests[0])


@pytest.mark.requirement("D53")
async def test_a_missing_argument_is_asked_and_the_answer_goes_on_after_a_restart(wire: Wire) -> None:
    weather = Recorder("weather", CITY, gives=("ok", {"celsius": 3}), ask={"city": "Where?"})
    script = [wire.calls("", [("weather", {})]), wire.says("It is 3 degrees.")]
    async with talking(wire, weather, script=script) as talk:
        asked = await talk.routing.hears("how is the weather?")
        assert (said(asked), asked.reason) == (["Where?"], ReasonCode.ASKED)
        assert said(await talk.routing.hears_answer(asked, "Oslo")) == ["It is 3 degrees."]
        assert talk.told(1) == [{"ok": True, "result": {"celsius": 3}}]
    assert weather.runs == [{"city": "Oslo"}]


@pytest.mark.requirement("D52")
async def test_none_leaves_the_message_to_chat_and_a_question_asks_the_person(wire: Wire) -> None:
    question = {"question": "For which town?"}
    script = [
        wire.calls("", [("none", {})]),
        wire.says("I am well."),
        wire.calls("", [("insufficient_arguments", question)]),
    ]
    async with talking(wire, Recorder("weather", CITY), script=script) as talk:
        outcome = await talk.routing.hears("how are you?")
        assert outcome.kind is OutcomeKind.FALLBACK
        chat = await talk.routing.router.run_chat_fallback(a_message("how are you?"), talk.routing.a_turn())
        assert said(chat) == ["I am well."]
        assert "weather" not in wire.offered(talk.requests[1])
        asked = await talk.routing.hears("how is the weather?")
        assert (said(asked), asked.reason) == (["For which town?"], ReasonCode.ASKED)


async def test_the_last_round_allows_no_more_calls_and_its_words_are_the_answer(wire: Wire) -> None:
    weather = Recorder("weather", CITY, gives=("ok", 1))
    script = [wire.calls("", [("weather", {"city": "Oslo"})]), wire.says("That is all I found.")]
    async with talking(wire, weather, script=script, max_rounds=2) as talk:
        assert said(await talk.routing.hears("go on")) == ["That is all I found."]
        assert "no more functions can be called" in json.dumps(talk.requests[1])


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("truncated", ErrorCode.TRUNCATED),
        ("refused", ErrorCode.CONTENT_FILTERED),
        ("busy", ErrorCode.PROVIDER_ERROR),
        ("empty", ErrorCode.EMPTY_RESPONSE),
        ("page", ErrorCode.MALFORMED_BY_PROVIDER),
    ],
)
async def test_an_answer_that_is_none_ends_in_its_sentence_and_nothing_runs(
    wire: Wire, fault: str, code: ErrorCode
) -> None:
    answers = {
        "truncated": wire.truncated,
        "refused": wire.refused,
        "busy": BUSY,
        "empty": wire.says(""),
        "page": {"body": "<html>login</html>"},
    }
    weather = Recorder("weather", CITY, effect="once")
    async with talking(wire, weather, script=[answers[fault]]) as talk:
        outcome = await talk.routing.hears("weather oslo")
    assert said(outcome) == [EN.say(f"model.{code.value}")]
    assert (outcome.reason, outcome.error, weather.runs) == (ReasonCode.MODEL_FAILED, code, [])


async def test_special_tokens_of_a_model_never_reach_the_chat(wire: Wire) -> None:
    leak = wire.says("Sure.<|im_end|><tool_call>weather</tool_call>")
    async with talking(wire, Recorder("weather", CITY), script=[leak]) as talk:
        talk.server.script += [leak] * (wire.name.endswith("_text"))
        outcome = await talk.routing.hears("weather oslo")
    assert "<" not in "".join(said(outcome))


async def test_calls_of_an_answer_where_nothing_is_offered_are_neither_run_nor_shown(wire: Wire) -> None:
    weather = Recorder("weather", CITY, effect="once")
    async with talking(wire, weather, script=[wire.calls("", [("weather", {"city": "Oslo"})])]) as talk:
        chat = await talk.routing.router.run_chat_fallback(a_message("how are you?"), talk.routing.a_turn())
    assert chat.error in (ErrorCode.EMPTY_RESPONSE, ErrorCode.LEAKED_MARKUP)
    assert (said(chat), weather.runs) == ([EN.say(f"model.{chat.error.value}")], [])


async def test_a_failure_that_may_pass_is_told_from_a_lasting_one(wire: Wire) -> None:
    slow_down = {"status": 429, "headers": {"Retry-After": "7"}, "body": {"error": {"type": "rate_limit_error"}}}
    refused = {"status": 401, "body": {"error": {"message": "bad key"}}}
    async with OpenAIServer([slow_down, refused]) as server:
        model = wire.model(server.base_url)
        failures = []
        for _ in range(2):
            with pytest.raises(ModelError) as caught:
                await model.complete(ModelRequest([ModelMessage("user", "hi")], timeout_seconds=20))
            failures.append((caught.value.retryable, caught.value.retry_after_seconds, caught.value.status))
        await model.close()
    assert failures == [(True, 7.0, 429), (False, None, 401)]


async def test_a_probe_says_that_the_model_answers(wire: Wire) -> None:
    async with OpenAIServer([wire.says("OK")]) as server:
        model = wire.model(server.base_url)
        assert "answered in" in await model.probe()
        await model.close()
