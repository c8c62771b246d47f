"""A turn ends once, with its results, whatever fails, and resumes after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.testing import ScriptedModel, call
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult, Message
from services.clock import SystemClock
from services.llm.model import ModelAnswer, ModelError, ModelRequest
from services.llm.offline.offline import OfflineModel
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.resilient import ResilientModel
from services.refs import ErrorCode
from services.retry import Retry, RetryPolicy
from services.store.port import Query, Row, Store, Write
from services.store.turns.inbox import INBOX
from tests.fakes.full_disk import FullDisk
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import heard, kept, last_reason, reasons
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.picky_store import PickyStore
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

EN = Texts().of("en")
UNKNOWN = EN.say("failures.unknown_outcome", name="/hold")


@pytest.mark.requirement("D4", "D24", "D14")
async def test_a_command_needs_no_model() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec]) as group:
        assert await group.say("Ann", "/note") == ["done"]
        assert group.model.requests == []


@pytest.mark.requirement("D14")
async def test_a_model_that_is_down_leaves_commands_working_and_is_named_in_one_sentence() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec]) as group:
        group.model.says(ModelError(ErrorCode.PROVIDER_ERROR, "connection refused"))
        assert await group.say("Ann", "@Rollcall hello") == [EN.say("model.provider_error")]
        assert await last_reason(group) == ("model_failed", "provider_error")
        assert await group.say("Ann", "/note") == ["done"]


@pytest.mark.requirement("D14")
async def test_without_any_model_commands_work_and_the_rest_says_how_to_connect_one() -> None:
    async with a_group(model=OfflineModel(Texts())) as group:
        assert len(await group.say("Ann", "/id")) == 1
        (answer,) = await group.say("Ann", "@Rollcall tell me a story about pirates")
        assert "OPENAI_API_KEY" in answer


@pytest.mark.parametrize("code", [code for code in ErrorCode if EN.has(f"model.{code.value}")], ids=str)
async def test_every_failure_of_a_model_ends_in_one_clear_sentence(code: ErrorCode) -> None:
    async with a_group() as group:
        group.model.says(ModelError(code, "<html>502 Bad Gateway</html>"))
        assert await group.say("Ann", "@Rollcall hello") == [EN.say(f"model.{code.value}")]
        assert await last_reason(group) == ("model_failed", code.value)


@pytest.mark.requirement("D38", "D44")
@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (FunctionResult(handled=False), ["Just talk."]),
        (FunctionResult(handled=True), []),
        (FunctionResult(handled=False, messages=(Message("Something."),)), ["Something."]),
        (True, []),
        (False, ["Just talk."]),
        (None, []),
        ("", []),
        ("Words.", ["Words."]),
    ],
)
async def test_the_result_decides_whether_something_is_sent_and_whether_it_is_chat(gives: Any, said: list[str]) -> None:
    function = Recorder("try", commands=["try"], gives=gives)
    async with a_group([function.spec]) as group:
        group.model.says("Just talk.")
        assert await group.say("Ann", "/try") == said


async def test_after_an_effect_there_is_no_chat() -> None:
    function = Recorder("try", commands=["try"], gives=False, effect="once")
    async with a_group([function.spec]) as group:
        group.model.says("Just talk.")
        assert await group.say("Ann", "/try") == []
        assert (group.model.requests, await last_reason(group)) == ([], ("silent", "try"))


@pytest.mark.requirement("E38", "E39", "D28")
@over_each_protocol
async def test_what_one_call_writes_the_next_call_of_the_turn_reads_and_no_other_turn() -> None:
    async def count(context: MessageContext, arguments: dict[str, Any], call: Call) -> FunctionResult:
        before = call.state.get("count", 0)
        return FunctionResult(data=before, context_updates={"count": before + 1})

    counter = Recorder("count", {"nth": {"type": "integer"}}, does=count)
    async with a_group([counter.spec]) as group:
        for _ in range(2):
            group.model.says([call("count", nth=1), call("count", nth=2)], call("count", nth=3), "Counted.")
            assert await group.say("Ann", "@Rollcall count") == ["Counted."]
            found = [message.content for message in group.model.requests[-1].messages if message.role == "tool"]
            assert [json.loads(content)["result"] for content in found] == [0, 1, 2]


@pytest.mark.requirement("D54", "D28")
@over_each_protocol
async def test_the_model_is_told_the_time_and_who_said_what_before() -> None:
    async with a_group(settings={"timezone": "Europe/Oslo", "chats": {"allow": ["*"]}}) as group:
        group.model.says("Hello.", "Warm.")
        await group.say("Ann", "It is 25 degrees here.")
        await group.say("Bob", "@Rollcall hello")
        await group.say("Bob", "@Rollcall how warm is it at Ann's?")
        told = "\n".join(message.content for message in group.model.requests[1].messages)
        assert "Monday 2026-01-05 10:00 (Europe/Oslo)" in told
        assert "[2026-01-05 10:00] Ann: It is 25 degrees here." in told
        assert "Bob says:" in told
        assert [one.content for one in group.model.requests[1].messages if one.role == "assistant"] == ["Hello."]


@pytest.mark.requirement("D47", "D48", "D49", "D50", "D28")
@over_each_protocol
async def test_every_run_is_in_the_call_log_and_what_broke_is_in_it_whole(tmp_path: Path) -> None:
    broken = Recorder("broken", CITY, commands=["broken"], gives=ZeroDivisionError("by 0, of all things"))
    climate = Recorder("climate", CITY, gives="cold")
    async with a_group([broken.spec, climate.spec], home=tmp_path) as group:
        (said,) = await group.say("Ann", "/broken Oslo")
        group.model.says(call("climate", city="Oslo"), "Cold.")
        await group.say("Ann", "@Rollcall how cold is it?")
    first, second = [json.loads(line) for line in (tmp_path / "logs/function_calls.jsonl").read_text().splitlines()]
    assert (first["function"], first["path"], first["outcome"]) == ("broken", "command", "failed")
    assert "ZeroDivisionError: by 0, of all things" in first["exception"]
    assert "Traceback" in first["traceback"]
    assert first["failure_id"] in said
    assert "ZeroDivision" not in said
    assert (second["path"], second["request_id"], second["arguments"]) == ("model", "request-1", {"city": "Oslo"})
    assert {"turn", "chat", "member", "round", "duration_ms", "at"} <= second.keys()


class HangingModel(ScriptedModel):
    """Never answers."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        never: asyncio.Future[ModelAnswer] = asyncio.get_running_loop().create_future()
        return await never


async def test_a_turn_that_takes_too_long_is_ended_with_a_sentence() -> None:
    model = HangingModel()
    async with a_group(model=model) as group:
        await group.hear("Ann", "@Rollcall hello")
        await until(lambda: bool(model.requests))
        await group.clock.advance(126)
        group.deadlines.expire()
        await group.settle()
        assert [one.text for one in group.platform.sent] == [EN.say("model.timeout")]
        assert await last_reason(group) == ("model_failed", "router.turn_timeout_seconds")


@pytest.mark.requirement("E6")
async def test_a_function_that_takes_too_long_is_ended_and_an_unknown_outcome_is_said() -> None:
    for effect, said in (("read", EN.say("failures.timeout", name="/hold")), ("once", UNKNOWN)):
        held = Held(effect=effect)
        async with a_group([held.spec]) as group:
            await group.hear("Ann", "/hold it")
            await held.has_begun("it")
            await group.clock.advance(31)
            group.deadlines.expire()
            await group.settle()
            assert [one.text for one in group.platform.sent] == [said]


async def test_what_runs_once_is_told_as_unknown_after_a_crash_and_not_run_again(tmp_path: Path) -> None:
    held = Held(effect="once")
    async with a_group([held.spec], home=tmp_path) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.crash()
    for said in ([UNKNOWN], []):
        async with a_group([held.spec], home=tmp_path) as group:
            await group.settle()
            assert [one.text for one in group.platform.sent] == said
    assert held.begun == ["it"]


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_stored_answer_of_the_model_is_used_again_after_a_crash(tmp_path: Path) -> None:
    held = Held(effect="idempotent")
    pay = Recorder("pay", effect="once", gives="paid")
    async with a_group([held.spec, pay.spec], home=tmp_path) as group:
        group.model.says([call("pay"), call("hold", text="it")])
        await group.hear("Ann", "@Rollcall pay and wait")
        await held.has_begun("it")
        await group.crash()
    held.let_go()
    async with a_group([held.spec, pay.spec], home=tmp_path) as group:
        group.model.says("All done.")
        await until(lambda: len(group.platform.sent) == 3)
        assert [one.text for one in group.platform.sent] == ["paid", "done: it", "All done."]
        assert len(group.model.requests) == 1
        assert len(pay.runs) == 1
        assert held.begun == ["it", "it"]


class LosesPosts:
    """A store whose posts wait for the next commit, as the port permits: a crash loses the last ones."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._posted: list[Write] = []

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        posted, self._posted = self._posted, []
        return (await self._store.commit([*posted, *writes]))[len(posted) :]

    def post(self, writes: Sequence[Write]) -> None:
        self._posted += writes

    async def read(self, query: Query) -> list[Row]:
        return await self._store.read(query)

    async def close(self) -> None:
        await self._store.close()


@pytest.mark.parametrize("reads", [False, True], ids=["alone", "after a read"])
async def test_an_answer_of_the_model_is_durable_before_an_idempotent_effect_runs(tmp_path: Path, reads: bool) -> None:
    held, look = Held(effect="idempotent"), Recorder("look")
    functions = [held.spec, look.spec]
    async with a_group(functions, home=tmp_path, around_store=LosesPosts) as group:
        group.model.says([*([call("look")] if reads else []), call("hold", text="it")])
        await group.hear("Ann", "@Rollcall wait")
        await held.has_begun("it")
        await group.crash()
    held.let_go()
    async with a_group(functions, home=tmp_path) as group:
        # Without the stored answer, the model could now choose something else after the first effect.
        group.model.says("All done.")
        await until(lambda: len(group.platform.sent) == 2)
        assert [one.text for one in group.platform.sent] == ["done: it", "All done."]
    assert held.begun == ["it", "it"]


async def test_a_run_that_may_be_repeated_has_the_same_key_again(tmp_path: Path) -> None:
    keys: list[str] = []
    free = asyncio.Event()

    async def note(context: MessageContext, arguments: dict[str, Any], call: Call) -> str:
        keys.append(call.key)
        await free.wait()
        return "noted"

    function = Recorder("note", commands=["note"], does=note, effect="idempotent")
    for attempt in range(2):
        async with a_group([function.spec], home=tmp_path) as group:
            if attempt == 0:
                await group.hear("Ann", "/note")
            await until(lambda wanted=attempt + 1: len(keys) == wanted)  # type: ignore[misc]
            await group.crash()
    free.set()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["noted"]
    assert (len(keys), len(set(keys))) == (3, 1)


async def test_a_message_is_tried_as_often_as_the_settings_say(tmp_path: Path) -> None:
    held = Held()
    settings = {"limits": {"attempts_per_turn": 2}, "chats": {"allow": ["*"]}}
    for attempt in range(2):
        async with a_group([held.spec], home=tmp_path, settings=settings) as group:
            if attempt == 0:
                await group.hear("Ann", "/hold it")
            await until(lambda wanted=attempt + 1: len(held.begun) == wanted)  # type: ignore[misc]
            await group.crash()
    async with a_group([held.spec], home=tmp_path, settings=settings) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == [EN.say("failures.gave_up")]
        assert await reasons(group) == [("gave_up", "limits.attempts_per_turn")]


async def test_a_full_disk_delays_an_answer_and_changes_nothing_else() -> None:
    disk = FullDisk()
    held = Held()
    async with a_group([held.spec], around_store=disk.under) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        disk.is_full = True
        held.let_go()
        await until(lambda: disk.refused > 0)
        await group.clock.advance(5)
        assert group.platform.sent == []
        disk.is_full = False
        await group.clock.advance(5)
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: it"]


async def test_an_end_that_cannot_be_kept_is_an_apology_and_the_end_of_nothing_else() -> None:
    picky = PickyStore("poison")
    tell = Recorder("tell", commands=["tell"], gives="poison")
    sent = FunctionResult(messages=(Message("It is sent."),), data="poison")
    send = Recorder("send", commands=["send"], effect="once", gives=sent)
    async with a_group([tell.spec, send.spec], around_store=picky.under) as group:
        told = await group.say("Ann", "/tell")
        sent_for = await group.say("Ann", "/send")
        picky.refuses = ""
        assert await group.say("Bo", "/tell") == ["poison"]
        (first, id_), (second, other_id), (third, _) = await reasons(group)
    assert (first, second, third) == ("function_failed", "function_failed", "command")
    assert told == [EN.say("failures.turn", id=id_)]
    assert sent_for == ["It is sent.", EN.say("failures.turn", id=other_id)]
    assert len(send.runs) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 502, "body": "<html><body>Bad Gateway</body></html>"}, "model.provider_error"),
        ({"status": 200, "body": "<html>login</html>"}, "model.malformed_by_provider"),
        ({"status": 200, "body": {"error": {"message": "overloaded"}}}, "model.provider_error"),
        ({"status": 401, "body": {"error": {"message": "bad key sk-123"}}}, "model.provider_error"),
        ({"close_after_bytes": 0}, "model.provider_error"),
    ],
)
async def test_what_a_real_provider_answers_wrongly_ends_in_one_clear_sentence(
    answer: dict[str, Any], said: str
) -> None:
    async with OpenAIServer([answer] * 3) as server:
        profile = ModelProfile("main", "m", server.base_url, SecretStr("k"))
        retry = Retry(SystemClock(), RetryPolicy(attempts=2, first_wait_seconds=0.001))
        model = ResilientModel(OpenAIChat(profile, SystemClock()), retry, SystemClock(), 5.0)
        async with a_group(model=model) as group:
            assert await group.say("Ann", "@Rollcall hello") == [EN.say(said)]
            assert len(await group.say("Ann", "/id")) == 1


async def test_a_real_provider_chooses_a_function() -> None:
    function = {"name": "climate", "arguments": '{"city": "Oslo"}'}
    asks = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    says = {"role": "assistant", "content": "It is cold."}
    answers = [
        {"body": {"id": "r1", "choices": [{"message": asks, "finish_reason": "tool_calls"}]}},
        {"body": {"id": "r2", "choices": [{"message": says, "finish_reason": "stop"}]}},
    ]
    climate = Recorder("climate", CITY, gives="cold")
    async with OpenAIServer(answers) as server:
        model = OpenAIChat(ModelProfile("main", "m", server.base_url, SecretStr("k")), SystemClock())
        async with a_group([climate.spec], model=model) as group:
            assert await group.say("Ann", "@Rollcall how is Oslo?") == ["It is cold."]
            assert climate.runs == [{"city": "Oslo"}]
            assert await heard(group) == [("Ann", "how is Oslo?"), ("Rollcall", "It is cold.")]


async def test_no_turn_of_a_duplicate_is_ever_queued() -> None:
    async with a_group() as group:
        for _ in range(2):
            await group.say("Ann", "/id", id="x1")
        assert await kept(group, INBOX.c.reason) == [("command",)]
