"""A routed turn with a model in this process: the cost of routing without a network and without a store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from pydantic import BaseModel, SecretStr

from benchmarks.functions import functions
from benchmarks.measuring import Driver, Effort, Figure, Load, Sample, median, ratio, rounds, timed
from benchmarks.stub import answer_to, expected, question
from benchmarks.world import a_profile, a_turn, an_invoker, message
from config.settings import RouterSettings
from function_calls.context import MessageContext
from function_calls.encodings import openai_tool
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.turn import FixedHistory, HistoryLine
from services.clock import SystemClock
from services.llm.model import ChatModel, ModelAnswer, ModelRequest
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.reading.openai import read_body
from services.llm.resilient import ResilientModel
from services.retry import Retry

MODEL = "gpt-5-mini"
SYSTEM = "You are a helpful assistant."
_HEADERS: Mapping[str, str] = MappingProxyType({"x-request-id": "req_stub"})
_TAIL = 600
"""Bytes at the end of a request that contain the question and its city."""
_MEMBERS = ("Ann", "Bo", "Cem", "Dag")
_HISTORY = [
    HistoryLine(_MEMBERS[number % 4], f"Something that was said a while ago, number {number}", 1_767_600_000_000, False)
    for number in range(30)
]


def openai_chat(url: str = "http://127.0.0.1:9/v1") -> OpenAIChat:
    """The chat completions protocol of the daemon."""
    return OpenAIChat(ModelProfile("stub", MODEL, url, SecretStr("sk-stub")), SystemClock())


class InProcess:
    """A model that serializes requests and parses answers, without a connection."""

    name = "in process"

    def __init__(self) -> None:
        self._chat = openai_chat()
        self.request_bytes: list[int] = []
        """Sizes of the first requests."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        body = self._chat.encode(request)
        if len(self.request_bytes) < 10:
            self.request_bytes.append(len(body))
        return read_body(200, _HEADERS, answer_to(body[-_TAIL:]))

    async def probe(self) -> str:
        return self.name

    async def close(self) -> None:
        return None


async def floor(load: Load) -> Sample:
    """Floor, written by hand: a prepared request body, a parsed answer and validated arguments."""
    specs = functions(load.functions)
    tools = orjson.dumps([openai_tool(spec) for spec in specs])
    head = b'{"model":"%b","tools":%b,"messages":[{"role":"system","content":%b},{"role":"user","content":'
    prefix = head % (MODEL.encode(), tools, orjson.dumps(SYSTEM))

    class Weather(BaseModel):
        city: str
        unit: str = "celsius"
        days: int = 1

    async def weather(arguments: Weather) -> str:
        return f"weather in {arguments.city}: sunny"

    async def post(body: bytes) -> dict[str, Any]:
        message: dict[str, Any] = orjson.loads(answer_to(body[-_TAIL:]))["choices"][0]["message"]
        return message

    async def once(number: int) -> None:
        body = prefix + orjson.dumps(question(number)) + b"}"
        asked = await post(body + b"]}")
        (call,) = asked["tool_calls"]
        arguments = Weather.__pydantic_validator__.validate_json(call["function"]["arguments"])
        content = orjson.dumps(await weather(arguments))
        body += b"," + orjson.dumps(asked)
        body += b',{"role":"tool","tool_call_id":"%b","content":%b}' % (call["id"].encode(), content)
        assert (await post(body + b"]}"))["content"] == expected(number)

    return await timed(load.count, int, once, batches=21)


async def bare(load: Load) -> Sample:
    """Dispatch with all checks, without filters, call log and history."""
    return await _routed(load, InProcess(), None, [])


async def everything(load: Load) -> Sample:
    """Dispatch with two filters, the call log, retries and thirty lines of history."""
    clock = SystemClock()
    model = ResilientModel(InProcess(), Retry(clock), clock, 60.0)
    with tempfile.TemporaryDirectory() as folder:
        return await _routed(load, model, Path(folder), _HISTORY)


async def first_request(load: Load) -> Sample:
    """Size of the request for a greeting, in bytes."""
    model = InProcess()
    router = _router(model, an_invoker())
    turn = a_turn(0, BotFunctions(functions(load.functions)), a_profile())
    await router.dispatch(message("hi", 0), turn)
    return {"bytes": model.request_bytes[0]}


def _router(model: ChatModel, invoker: Invoker) -> FunctionCallRouter:
    return FunctionCallRouter(invoker, FunctionCallLLM(model, invoker, RouterSettings(), SystemClock()))


async def _routed(load: Load, model: ChatModel, folder: Path | None, history: list[HistoryLine]) -> Sample:
    invoker, profile = an_invoker(folder), a_profile()
    router = _router(model, invoker)
    registered, past = BotFunctions(functions(load.functions)), FixedHistory(history)

    def prepare(number: int) -> tuple[int, MessageContext]:
        return number, message(question(number), number)

    async def once(prepared: tuple[int, MessageContext]) -> None:
        number, context = prepared
        outcome = await router.dispatch(context, a_turn(number, registered, profile, past))
        assert outcome.messages[0].text.endswith(": sunny")

    return await timed(load.count, prepare, once, batches=21)


DRIVERS: dict[str, Driver] = {
    "floor": floor,
    "bare": bare,
    "everything": everything,
    "first_request": first_request,
}


def routed_figures(effort: Effort) -> list[Figure]:
    """Cost of a routed turn compared with the floor."""
    load = Load(count=effort.count(500))
    samples = rounds(
        {
            "floor": ("routed.floor", load),
            "bare": ("routed.bare", load),
            "everything": ("routed.everything", load),
        },
        effort,
    )
    floor_us = median(samples["floor"])
    what = "a routed turn, model in the process, 20 functions, no storage"
    full = "with two filters, the call log, retries and 30 lines of history"
    return [
        Figure("routed_turn", f"{what}, bare", "ratio", ratio(samples["bare"], samples["floor"]), 10.0, floor_us),
        Figure(
            "routed_turn", f"{what}, {full}", "ratio", ratio(samples["everything"], samples["floor"]), 30.0, floor_us
        ),
    ]


def first_request_figures(effort: Effort) -> list[Figure]:
    """Size of the first request for a greeting."""
    samples = rounds({"hi": ("routed.first_request", Load(functions=50))}, replace(effort, rounds=1))
    what = "the first request for `hi` with 50 functions registered"
    return [Figure("first_request", what, "bytes", median(samples["hi"], "bytes"), 4000.0)]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {
    "routed_turn": routed_figures,
    "first_request": first_request_figures,
}
