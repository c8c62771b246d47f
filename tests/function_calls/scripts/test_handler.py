"""A single run of a script: pauses, time limit and resume state."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from bot.registration.basic_scripts import built_in_keyword_modules
from config.sections.basic import BasicSettings
from config.texts import Texts
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.functions import ARITIES
from function_calls.basic.keyword_modules._rows import MANY, in_thread_if_large
from function_calls.basic.keywords import Asks, Grants, ScriptRun, Value, basic_keyword
from function_calls.basic.machine.program import Program
from function_calls.basic.run.handler import ScriptHandler, script_seconds
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.loading.module_loading import Services
from function_calls.spec import FunctionResult, InputQuestion, Message, Resumed, ToolError
from services.clock import Clock, VirtualClock
from tests.fakes.builders import a_call, a_message
from tests.function_calls.scripts.keyword_modules import a_module

EN = Texts().of("en")


@basic_keyword("SAY {text}")
async def say(run: ScriptRun, text: Value) -> None:
    """Say."""
    run.say(Message(str(text)))


@basic_keyword("ASK {into:variable}", "ASK")
async def ask(run: ScriptRun) -> Value | Asks:
    """Ask until there is an answer of more than one letter."""
    run.stored_data["asked"] = run.stored_data.get("asked", 0) + 1
    return run.answer if run.answer is not None and len(run.answer) > 1 else Asks("?")


@basic_keyword("PEEK")
async def peek(run: ScriptRun) -> Value:
    """Give what other keywords keep, and read words of others."""
    run.has_outside_text = True
    return run.stored_data.get("asked", 0)


@basic_keyword("BREAK_DOWN {how}")
async def break_down(run: ScriptRun, how: Value) -> None:
    """Fail in a way of its own."""
    raise ToolError("Not today.") if how == "kindly" else RuntimeError("secret")


def a_table(*functions: Any) -> KeywordTable:
    services: Services = {Clock: VirtualClock()}
    return KeywordTable([a_module("words", *functions)], services)


class Script:
    """A script and its number of pauses."""

    def __init__(self, text: str, *, table: KeywordTable | None = None, **settings: Any) -> None:
        self.pauses = 0
        known = a_table(say, ask, peek, break_down, burn_here, burn_beside, watch)
        result = BasicCompiler(known.forms, ARITIES).compile_text(
            f'DESCRIPTION "Tries"\n{text}'.encode(), "try.bas", name="try_it"
        )
        assert result.errors == ()
        [tool] = result.tools
        self.program = tool.program
        self.handler = ScriptHandler(
            tool.definition,
            self._load,
            table or known,
            BasicSettings(**settings),
            Grants(),
            clock=VirtualClock(),
            chance=Random(1),
            pause=self._pause,
        )

    async def run(self, resumed: Resumed | None = None, arguments: Mapping[str, Any] | None = None) -> FunctionResult:
        """A run, from the start or from a question."""
        return await self.handler.handle(a_message(), arguments or {}, a_call(resumed=resumed))

    async def answer(self, asked: FunctionResult, text: str) -> FunctionResult:
        """The run that resumes `asked`, after a round trip through the store."""
        assert isinstance(asked.question, InputQuestion)
        state = json.loads(json.dumps(asked.question.resume))
        return await self.run(Resumed(state, text))

    async def _load(self) -> Program:
        return self.program

    async def _pause(self) -> None:
        self.pauses += 1


async def test_a_short_run_never_pauses_and_a_long_one_does_so_often() -> None:
    short = Script('SAY "x"')
    assert (await short.run()).reply == "x"
    assert short.pauses == 0
    long = Script('FOR i = 1 TO 30000\nx = i * 2\nNEXT\nSAY "x"', cpu_seconds=60)
    assert (await long.run()).reply == "x"
    # About 200,000 steps of less than a microsecond each, in slices of two milliseconds.
    assert long.pauses > 5


async def test_time_is_counted_over_questions() -> None:
    script = Script("WHILE TRUE\nFOR i = 1 TO 3000\nx = i\nNEXT\nASK y\nWEND", cpu_seconds=0.05, steps=100_000_000)
    result = await script.run()
    for _ in range(2000):
        if result.question is None:
            break
        result = await script.answer(result, "on")
    assert result.error is not None
    assert result.error.text == EN.say(
        "basic.stopped.time", name="try it", line=result.error.text.split()[-1].rstrip(".")
    )


def burn(seconds: float) -> None:
    """Use the processor for that time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@basic_keyword("BURN")
async def burn_here(run: ScriptRun) -> None:
    """Work on the event loop, in two parts."""
    burn(0.02)
    await asyncio.sleep(0)
    burn(0.02)


@basic_keyword("BURN_BESIDE")
async def burn_beside(run: ScriptRun) -> None:
    """Work in a thread."""
    await in_thread_if_large(run, MANY, burn, 0.04)


@basic_keyword("WATCH")
async def watch(run: ScriptRun) -> None:
    """Wait while others work."""
    others = asyncio.ensure_future(asyncio.to_thread(burn, 0.04))
    asyncio.get_running_loop().call_soon(burn, 0.04)
    await others


@pytest.mark.parametrize("statement", ["BURN", "BURN_BESIDE"])
async def test_the_work_of_keywords_counts_as_the_time_of_the_run(statement: str) -> None:
    table = a_table(say, burn_here, burn_beside)
    script = Script(f"FOR i = 1 TO 100\n{statement}\nNEXT", table=table, cpu_seconds=0.2)
    result = await script.run()
    assert result.error is not None
    assert result.error.text.startswith(EN.say("basic.stopped.time", name="try it", line=3))
    done = Script(f'{statement}\n{statement}\nSAY "x"', table=table, cpu_seconds=0.2)
    assert (await done.run()).reply == "x"


async def test_what_others_do_while_a_keyword_waits_is_not_the_time_of_the_run() -> None:
    script = Script('FOR i = 1 TO 4\nWATCH\nNEXT\nSAY "x"', table=a_table(say, watch), cpu_seconds=0.1)
    assert (await script.run()).reply == "x"


async def test_what_keywords_keep_outlives_questions_and_the_run_knows_its_answer() -> None:
    script = Script('ASK x\nSAY x + " " + PEEK')
    asked = await script.run()
    assert not asked.outside
    again = await script.answer(asked, "a")
    assert again.question is not None
    done = await script.answer(again, "Ann")
    assert (done.reply, done.outside) == ("Ann 3", True)


async def test_the_end_of_a_run_that_was_waiting_says_nothing() -> None:
    script = Script('ASK x\nSAY "never"')
    asked = await script.run()
    assert isinstance(asked.question, InputQuestion)
    for kind in ("cancelled", "expired"):
        assert await script.run(Resumed(asked.question.resume, "", kind)) == FunctionResult()  # type: ignore[arg-type]


async def test_a_state_of_another_program_is_told_plainly() -> None:
    asked = await Script('ASK x\nSAY "a"').run()
    result = await Script('ASK x\nSAY "b"').answer(asked, "Ann")
    assert result.error is not None
    assert result.error.text == EN.say("questions.changed", name="try it")


async def test_a_keyword_that_was_taken_away_stops_the_run_in_words() -> None:
    result = await Script('SAY "x"', table=a_table(ask)).run()
    assert result.error is not None
    assert EN.say("basic.no_keyword", keyword="SAY") in result.error.text


async def test_a_keyword_fails_on_purpose_in_its_words_and_by_accident_in_none() -> None:
    result = await Script('BREAK_DOWN "kindly"').run()
    assert result.error is not None
    assert "Not today." in result.error.text
    with pytest.raises(RuntimeError):
        await Script('BREAK_DOWN "badly"').run()


async def test_arguments_without_a_value_are_there_as_nothing() -> None:
    text = 'PARAM who AS string LIKE "Ann" DESCRIPTION "Who" OPTIONAL\nSAY "[" + who + "]"'
    assert (await Script(text).run()).reply == "[]"


def test_a_run_that_waits_may_take_longer() -> None:
    assert script_seconds(["TALK"]) < script_seconds(["TALK", "WAIT"])


def test_every_built_in_keyword_says_what_it_is_for() -> None:
    for module in built_in_keyword_modules():
        for function in vars(module).values():
            if getattr(function, "__rollcall_keyword__", None) is not None:
                assert function.__doc__, f"{module.__name__}.{function.__name__}"
