"""BASIC scripts: time to compile a thousand of them, to load them from the cache, and the cost of running one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.measuring import Driver, Effort, Figure, Load, Sample, median, rounds, timed
from benchmarks.world import a_profile, a_turn, an_invoker, message, set_up_process
from bot.database.opening import open_store
from bot.registration.basic_scripts import built_in_keyword_modules, compiler_of, spellings_of
from config.sections.basic import BasicSettings, BasicSource
from config.settings import Settings
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.keyword_modules import talk
from function_calls.basic.keywords import Grants
from function_calls.basic.library.compiled_tools import LibraryTool, WorkFolder
from function_calls.basic.library.specs import LoadProgram
from function_calls.basic.machine.program import Program
from function_calls.basic.run.handler import ScriptHandler
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.basic.source import BasicScripts
from function_calls.call import Call, CallRequest
from function_calls.call import Path as Way
from function_calls.context import MessageContext
from function_calls.loading.source import Snapshot, Unwatched
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.schema.definition import build_spec, schema_arguments
from function_calls.spec import FunctionResult, FunctionSpec, Handler, Touch
from services.chats.members import KnownMembers
from services.clock import Clock, SystemClock
from services.refs import Effect, JsonValue
from services.scripts.basic_tools import BasicTools
from services.store.port import Store
from services.times import Times

_SCRIPT = """\
REM Order number {number} of a shop, with what such scripts usually do
PARAM customer_name AS string LIKE "John Doe" DESCRIPTION "Customer's full name"
PARAM order_amount AS number LIKE 99.99 DESCRIPTION "Total order amount"
PARAM shipping_address AS string LIKE "123 Main St" DESCRIPTION "Delivery address"

DESCRIPTION "Process a new customer order of kind {number}"

parts = SPLIT(shipping_address, " ")
house = 0
FOR EACH part IN parts
    IF LEN(part) > 2 AND part <> "St" THEN
        house = house + LEN(part)
    END IF
NEXT part

IF order_amount > 100 THEN
    discount = order_amount * 0.1
ELSEIF order_amount > 50 THEN
    discount = 5
ELSE
    discount = 0
END IF

WITH order
    name = customer_name
    amount = order_amount - discount
    kind = {number}
END WITH

TALK "Processing order for " + customer_name + ": " + FORMAT(order.amount, "0.00")
RETURN order.amount
"""
_LINES = _SCRIPT.count("\n")
_BATCHES = 11
_ARGUMENTS = {"customer_name": "Ann", "order_amount": 120, "shipping_address": "123 Main St"}


class _Runs:
    """Script runs; no script of this benchmark is called."""

    def effect_of(self, keywords: Iterable[str]) -> Effect:
        return Effect.READ

    def touches_of(self, keywords: Iterable[str]) -> frozenset[Touch]:
        return frozenset()

    def seconds_of(self, keywords: Iterable[str]) -> float:
        return 30.0

    def heard(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        raise ValueError(text)

    def handler(self, tool: LibraryTool, load: LoadProgram, source: BasicSource) -> Handler:
        async def handle(context: MessageContext, arguments: object, call: Call) -> FunctionResult:
            return FunctionResult()

        return handle


def _compiler() -> BasicCompiler:
    return compiler_of(BasicSettings(), spellings_of(built_in_keyword_modules()))


@asynccontextmanager
async def _scripts(load: Load) -> AsyncIterator[Callable[[], BasicScripts]]:
    """A factory of script sources with `load.functions` scripts. Each new source behaves like one after a restart."""
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        home = Path(folder)
        set_up_process(home / "logs")
        drive = home / "drive"
        drive.mkdir()
        for number in range(load.functions):
            (drive / f"order{number}.bas").write_text(_SCRIPT.format(number=number), encoding="utf-8")
        clock = SystemClock()
        store = await open_store(Settings.model_validate({"home": str(home / "var")}), clock)

        def source() -> BasicScripts:
            return BasicScripts(
                "benchmark",
                [BasicSource(path=drive)],
                compiler=_compiler(),
                runs=_Runs(),
                kept=BasicTools(store),
                work=WorkFolder(home / "work"),
                bots=["default"],
                changes=Unwatched(),
                clock=clock,
            )

        try:
            yield source
        finally:
            await store.close()


async def _published(source: BasicScripts, load: Load) -> tuple[float, float]:
    """Seconds until all functions are published, and until the source has written everything."""
    there: list[float] = []
    began = time.perf_counter()

    def publish(snapshot: Snapshot) -> None:
        if len(snapshot.specs) == load.functions:
            there.append(time.perf_counter() - began)

    await source.run(publish)
    return there[0], time.perf_counter() - began


async def cold(load: Load) -> Sample:
    """First start: compile all scripts and write the results."""
    async with _scripts(load) as source:
        seconds, written = await _published(source(), load)
        return {"seconds": seconds, "written": written}


async def kept(load: Load) -> Sample:
    """Second start: load the same scripts from the cache."""
    async with _scripts(load) as source:
        await _published(source(), load)
        seconds, _ = await _published(source(), load)
        return {"seconds": seconds}


@asynccontextmanager
async def _store() -> AsyncIterator[Store]:
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        store = await open_store(Settings.model_validate({"home": folder}), SystemClock())
        try:
            yield store
        finally:
            await store.close()


async def call(load: Load) -> Sample:
    """Call a script with all checks; its program is already in memory."""
    async with _store() as store:
        return await _called(load, _script(store))


async def call_of_python(load: Load) -> Sample:
    """Call a Python function with the same arguments and result."""

    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        amount = arguments["order_amount"]
        said = f"Processing order for {arguments['customer_name']}: {amount * 0.9:.2f}"
        return FunctionResult.say(said, data=amount * 0.9)

    async with _store() as store:
        return await _called(load, replace(_script(store), handler=handle))


async def _called(load: Load, spec: FunctionSpec) -> Sample:
    functions, profile, context = BotFunctions([spec]), a_profile(), message("", 0)
    with tempfile.TemporaryDirectory() as folder:
        invoker = an_invoker(Path(folder))

        async def once(number: int) -> None:
            turn = a_turn(number, functions, profile)
            result = await invoker.invoke(CallRequest(context, spec.name, _ARGUMENTS, turn, Way.COMMAND))
            assert result.reply == "Processing order for Ann: 108.00"

        return await timed(load.count, int, once, batches=_BATCHES)


def _script(store: Store) -> FunctionSpec:
    """One script as a function."""
    result = _compiler().compile_text(_SCRIPT.format(number=1), "order.bas", name="order")
    (tool,) = result.tools

    async def program() -> Program:
        return tool.program

    handler = ScriptHandler(
        tool.definition,
        program,
        KeywordTable(
            [talk],
            {KnownMembers: KnownMembers(store), Clock: SystemClock(), Times: Times(), Random: Random(1)},
        ),
        BasicSettings(),
        Grants(),
        clock=SystemClock(),
        chance=Random(1),
    )
    parameters, arguments = schema_arguments("order", tool.definition.schema())
    return build_spec(
        name="order",
        description=tool.definition.description,
        handler=handler.handle,
        arguments=arguments,
        parameters=parameters,
        options={},
    )


DRIVERS: dict[str, Driver] = {"cold": cold, "kept": kept, "call": call, "call_of_python": call_of_python}


def scripts_figures(effort: Effort) -> list[Figure]:
    """Start times and the cost of a call."""
    many, calls = Load(functions=effort.count(1000)), Load(count=effort.count(200))
    samples = rounds(
        {
            "cold": ("basic_scripts.cold", many),
            "kept": ("basic_scripts.kept", many),
            "call": ("basic_scripts.call", calls),
            "python": ("basic_scripts.call_of_python", calls),
        },
        effort,
    )
    count = f"{many.functions:,} scripts of {_LINES} lines"
    beyond = median(samples["call"]) - median(samples["python"])
    python_us, said = median(samples["python"]), "a call of such a script beyond one of a Python function"
    return [
        _seconds(f"{count}, never seen: compiled, and all of them there", median(samples["cold"], "seconds"), 3.0),
        _seconds(f"{count}, never seen: and everything written", median(samples["cold"], "written"), 3.0),
        _seconds(f"{count} at the next start", median(samples["kept"], "seconds"), 0.3),
        Figure("basic_scripts", said, "us", beyond, 300.0, python_us),
    ]


def _seconds(what: str, value: float, limit: float) -> Figure:
    return Figure("basic_scripts", what, "seconds", value, limit)


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {"basic_scripts": scripts_figures}
