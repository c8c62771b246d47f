"""Shadow model: a second model repeats the first decision without visible effects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.registration.models import model_of, shadow_of, states_of
from bot.testing import Group, ScriptedModel, a_group, call
from config.sections.models import ShadowSettings
from config.settings import Settings
from config.texts import Texts
from function_calls.filters.round import Round
from function_calls.rounds.shadow import Shadow
from services.clock import Deadlines, SystemClock
from services.llm.model import ModelAnswer, ModelError, ModelRequest
from services.llm.offline.offline import OfflineModel
from services.refs import ChatRef, ErrorCode
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.config.files import faults_of
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing

WORK = ChatRef("test", "bot", "work")


class HeldModel(ScriptedModel):
    """Answers after its release, and signals that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.asked.set()
        await self.let_go.wait()
        return await super().complete(request)


def shadow_of_the(group: Group) -> Shadow:
    shadow = group.daemon.shadow
    assert shadow is not None
    return shadow


async def says(group: Group, text: str, **facts: Any) -> list[str]:
    """The bot's answers, after the shadow has decided as well."""
    answer = await group.say("Ann", f"@Rollcall {text}", **facts)
    await shadow_of_the(group).idle()
    return answer


def lines(home: Path) -> list[dict[str, Any]]:
    """The log, written when the daemon stops."""
    text = (home / "logs" / "shadow_decisions.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@asynccontextmanager
async def a_shadowed_group(
    home: Path, shadow: ScriptedModel, functions: Sequence[Recorder] = (), **limits: int
) -> AsyncIterator[Group]:
    settings = {"router": {"shadow": limits}}
    specs = [function.spec for function in functions]
    async with a_group(specs, settings=settings, shadow=shadow, home=home) as group:
        yield group


@pytest.mark.requirement("D62")
async def test_the_shadow_decides_on_the_same_request_and_neither_runs_nor_says_anything(tmp_path: Path) -> None:
    shadow = ScriptedModel()
    note, lock = Recorder("note", CITY), Recorder("lock", effect="once")
    async with a_shadowed_group(tmp_path, shadow, [note, lock]) as group:
        group.model.says(call("note", city="Oslo"), "Noted.")
        shadow.says(call("lock"))
        assert await says(group, "write down Oslo") == ["Noted."]
        assert (len(note.runs), lock.runs, len(shadow.requests)) == (1, [], 1)
        first, seen = group.model.requests[0], shadow.requests[0]
        assert seen.offer is first.offer
        assert [message.role for message in seen.messages] == ["system", "user"]
        assert seen.timeout_seconds == 60
        assert len(group.platform.sent) == 1
    (line,) = lines(tmp_path)
    assert (line["agrees"], line["differing_arguments"], line["chat"]) == (False, [], "test:bot:family")
    assert line["acted"]["calls"] == [{"name": "note", "arguments": {"city": "Oslo"}}]
    assert line["shadow"]["calls"] == [{"name": "lock", "arguments": {}}]


@pytest.mark.requirement("D62")
async def test_the_turn_does_not_wait_for_the_shadow_which_is_asked_after_the_reply_was_sent(tmp_path: Path) -> None:
    shadow = HeldModel()
    async with a_shadowed_group(tmp_path, shadow, parallel=1) as group:
        group.model.says("One.", "Two.")
        assert await group.say("Ann", "@Rollcall hello") == ["One."]
        await shadow.asked.wait()
        assert [one.text for one in group.platform.sent] == ["One."]
        assert await group.say("Ann", "@Rollcall again") == ["Two."]
        shadow.says("A.", "B.")
        shadow.let_go.set()
        await shadow_of_the(group).idle()
    assert [line["agrees"] for line in lines(tmp_path)] == [True, True]


async def test_nothing_is_asked_while_the_reply_is_still_on_its_way(tmp_path: Path) -> None:
    shadow, leave = ScriptedModel(), asyncio.Event()

    async with a_shadowed_group(tmp_path, shadow) as group:
        send, reached = group.platform.send, asyncio.Event()

        async def slow(outgoing: Any) -> Any:
            reached.set()
            await leave.wait()
            return await send(outgoing)

        group.platform.send = slow  # type: ignore[method-assign]
        group.model.says("One.")
        shadow.says("A.")
        await group.hear("Ann", "@Rollcall hello")
        await reached.wait()
        await group.daemon.engine.idle()
        await group.clock.settle()
        assert shadow.requests == []
        leave.set()
        await group.settle()
        await shadow_of_the(group).idle()
        assert len(shadow.requests) == 1


@pytest.mark.parametrize("failure", [ModelError(ErrorCode.TIMEOUT, "slow"), None])
async def test_a_shadow_that_fails_is_invisible(tmp_path: Path, failure: ModelError | None) -> None:
    class Broken(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelAnswer:
            self.requests.append(request)
            if len(self.requests) > 1:
                return ModelAnswer(text="Well.")
            if failure is not None:
                raise failure
            raise RuntimeError("a fault of the program")

    shadow = Broken()
    async with a_shadowed_group(tmp_path, shadow) as group:
        group.model.says("One.", "Two.")
        assert await says(group, "hello") == ["One."]
        assert await says(group, "hello") == ["Two."]
    seen = [(line["shadow"]["error"], line["agrees"]) for line in lines(tmp_path)]
    assert seen == [*([("timeout", False)] if failure else []), (None, True)]


async def test_what_waits_is_asked_after_a_fault_too(tmp_path: Path) -> None:
    class Breaking(HeldModel):
        async def complete(self, request: ModelRequest) -> ModelAnswer:
            answer = await super().complete(request)
            if len(self.requests) == 1:
                raise RuntimeError("a fault of the program")
            return answer

    shadow = Breaking()
    shadow.says("A.", "B.")
    async with a_shadowed_group(tmp_path, shadow, parallel=1) as group:
        group.model.says("One.", "Two.")
        await group.say("Ann", "@Rollcall hello")
        await shadow.asked.wait()
        await group.say("Ann", "@Rollcall again")
        shadow.let_go.set()
        while len(shadow.requests) < 2:
            await group.clock.settle()
        await shadow_of_the(group).idle()
    assert len(lines(tmp_path)) == 1


async def test_turns_that_never_end_do_not_pile_up() -> None:
    async def ask(round_: Round) -> ModelAnswer:
        return ModelAnswer(text="Hello.")

    async def delivered(chat: ChatRef) -> None:
        return None

    routing, shadow_model = Routing(), ScriptedModel()
    shadow = Shadow(shadow_model, ShadowSettings(), routing.clock, lambda comparison: None, delivered)
    turns = [routing.a_turn() for _ in range(1001)]
    for turn in turns:
        await shadow.around(Round(a_message("hi"), turn, 0, ModelRequest(messages=[])), ask)
    shadow.turn_ended(turns[0].input.id, WORK)
    await shadow.idle()
    assert shadow_model.requests == []
    shadow.turn_ended(turns[-1].input.id, WORK)
    await shadow.idle()
    assert len(shadow_model.requests) == 1


async def test_what_is_over_the_budget_is_counted_and_not_asked(tmp_path: Path) -> None:
    shadow = ScriptedModel()
    async with a_shadowed_group(tmp_path, shadow, max_per_hour=2) as group:
        group.model.says(*["Hello."] * 4)
        shadow.says(*["Hello."] * 3)
        for _ in range(3):
            await says(group, "hello")
        assert (len(shadow.requests), shadow_of_the(group).dropped) == (2, {"max_per_hour": 1})
        assert 'rollcall_shadow_dropped_total{reason="max_per_hour"} 1.0' in group.daemon.metrics.render().decode()
        await group.clock.advance(3601)
        await says(group, "hello")
        assert len(shadow.requests) == 3


async def test_what_finds_no_room_in_the_queue_is_counted_and_not_asked(tmp_path: Path) -> None:
    shadow = HeldModel()
    async with a_shadowed_group(tmp_path, shadow, parallel=1, queue=1) as group:
        group.model.says(*["Hello."] * 3)
        await group.say("Ann", "@Rollcall hello")
        await shadow.asked.wait()
        await group.say("Ann", "@Rollcall hello")
        await group.say("Ann", "@Rollcall hello")
        assert shadow_of_the(group).dropped == {"queue": 1}


async def test_commands_and_later_rounds_ask_no_shadow(tmp_path: Path) -> None:
    shadow, note = ScriptedModel(), Recorder("note", commands=["note"])
    async with a_shadowed_group(tmp_path, shadow, [note]) as group:
        await group.say("Ann", "/note")
        group.model.says(call("note"), call("note"), "Done.")
        shadow.says(call("note"))
        await says(group, "twice")
        assert (len(shadow.requests), len(group.model.requests)) == (1, 3)


async def test_secrets_and_sensitive_arguments_stay_out_of_the_log(tmp_path: Path) -> None:
    shadow = ScriptedModel()
    pay = Recorder("pay", {"pin": {"type": "string"}, "note": {"type": "string"}}, sensitive=["pin"])
    async with a_shadowed_group(tmp_path, shadow, [pay]) as group:
        group.model.says(call("pay", pin="4711", note="sk-abcdefghijklmnop"), "Paid.")
        shadow.says(call("pay", pin="4712", note="sk-abcdefghijklmnop"))
        await says(group, "pay")
    (line,) = lines(tmp_path)
    assert line["differing_arguments"] == ["pay.pin"]
    assert line["acted"]["calls"] == [{"name": "pay", "arguments": {"pin": "***", "note": "***"}}]


def a_bot_with_a_shadow(home: Path) -> None:
    """It agrees on a text and a call, and then differs: another function, another argument, and a failure."""

    async def scenario() -> None:
        shadow = ScriptedModel()
        functions = [Recorder("note", CITY), Recorder("list")]
        async with a_shadowed_group(home, shadow, functions) as group:
            group.model.says("Hi.", call("note", city="Oslo"), "Ok.", call("note", city="Oslo"), "Ok.")
            group.model.says(call("note", city="Oslo"), "Ok.", call("list"), "Ok.")
            group.model.says(ModelError(ErrorCode.PROVIDER_ERROR, "down"))
            shadow.says("Hello.", call("note", city="Oslo"), call("list"), call("note", city="Rome"))
            shadow.says(ModelError(ErrorCode.TIMEOUT, "slow"), "Well.")
            for _ in range(6):
                await says(group, "do it")

    asyncio.run(scenario())


@pytest.mark.requirement("D62")
def test_statistics_compare_the_shadow_with_the_model_that_acted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_bot_with_a_shadow(tmp_path)
    settings = a_settings_file(tmp_path)
    since_ever = ("--hours", "500000", "--config", settings)
    found = command(capsys, "stats", "--shadow", "--json", *since_ever).json
    assert (found["decisions"], found["agree"], found["agree_share"]) == (5, 2, 0.4)
    assert found["acted_errors"] == {"provider_error": 1}
    assert found["functions"] == {
        "note": {"decisions": 3, "agree": 1, "instead": {"list": 1}, "arguments": {"note.city": 1}, "errors": {}},
        "(words)": {"decisions": 1, "agree": 1, "instead": {}, "arguments": {}, "errors": {}},
        "list": {"decisions": 1, "agree": 0, "instead": {}, "arguments": {}, "errors": {"timeout": 1}},
    }
    table = command(capsys, "stats", "--shadow", *since_ever)
    assert table.status == 0
    assert table.out.splitlines()[0] == "2 of 5 decisions agree (40.0%)"
    assert "note                             3       1    33.3%  list 1 | note.city 1 | -" in table.out
    recent = command(capsys, "stats", "--shadow", "--hours", "0.5", "--config", settings)
    assert "no decisions of the shadow model" in recent.out


def test_the_shadow_of_the_settings_answers_no_chat() -> None:
    models = [{"name": name, "model": name, "api_key": "k-1234567"} for name in ("second", "main")]
    settings = Settings.model_validate({"models": models, "router": {"shadow": {"model": "second"}}})
    clock = SystemClock()
    shadow = shadow_of(settings, clock)
    answering = states_of(model_of(settings, Texts(), clock, Deadlines(clock)))
    assert ([one.name for one in answering], shadow and shadow.name) == (["main"], "second")
    alone = Settings.model_validate({"models": models[:1], "router": {"shadow": {"model": "second"}}})
    assert isinstance(model_of(alone, Texts(), clock, Deadlines(clock)), OfflineModel)
    assert shadow_of(Settings.model_validate({"models": models}), clock) is None


def test_a_shadow_that_is_no_model_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    text = "models: [{name: main, model: m}]\nrouter: {shadow: {model: mian}}\n"
    [fault] = faults_of(tmp_path, text)
    assert "router.shadow.model names 'mian', which is not in models; did you mean 'main'?" in str(fault)


def test_a_shadow_that_is_the_only_model_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    text = "models: [{name: main, model: m}]\nrouter: {shadow: {model: main}}\n"
    [fault] = faults_of(tmp_path, text)
    assert "names the only model; a shadow model does not answer chats, so add" in str(fault)
