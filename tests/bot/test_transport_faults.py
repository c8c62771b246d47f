"""Transport faults of a provider: in each case a member gets an answer or an error message in time, and the daemon's
memory does not grow. A real client and a real server on this machine, in a whole daemon."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.testing import a_group
from config.sections.models import FailoverSettings
from config.texts import Texts
from services.clock import Clock, Deadlines, SystemClock
from services.llm.failover import Failover
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.resilient import ResilientModel
from services.retry import Retry
from tests.fakes.faulty_server import RESET, Answer, FaultyServer
from tests.services.llm.wire import a_body, a_delta, a_stream

EN = Texts().of("en")
ROWS = "G_faults/llm_transport_faults.jsonl"
MOST_BYTES = 32 * 1024 * 1024
SILENCE_SECONDS = 0.3
MODEL_SECONDS = 4.0
MOST_SECONDS = 10.0
"""Smallest time limit of the rows in the corpus."""
JSON = "application/json"
GOOD = a_body("Hello.")
BUSY = {"error": {"message": "slow down", "type": "rate_limit"}}


def raw(*pieces: bytes, wait_seconds: float = 0.0) -> Answer:
    """These bytes, with a delay before each piece except the first."""

    async def answer() -> AsyncIterator[bytes]:
        for number, piece in enumerate(pieces):
            if number and wait_seconds:
                await asyncio.sleep(wait_seconds)
            yield piece

    return answer


def head(status: int = 200, kind: str = JSON, **headers: Any) -> bytes:
    """Status line and headers, including `content_length` if given."""
    lines = [f"HTTP/1.1 {status} Faulty", f"content-type: {kind}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(body: Any = GOOD, status: int = 200, kind: str = JSON, **headers: Any) -> Answer:
    """A complete response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return raw(head(status, kind, **{"content_length": len(data), **headers}) + data)


def events(data: bytes, kind: str = "text/event-stream") -> Answer:
    return raw(head(kind=kind) + data)


def silent(*pieces: bytes) -> Answer:
    """These bytes, then nothing, while the connection stays open."""

    async def answer() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
        await asyncio.Event().wait()

    return answer


def endless(start: bytes, piece: bytes, wait_seconds: float = 0.0) -> Answer:
    """`start`, then `piece` endlessly."""

    async def answer() -> AsyncIterator[bytes]:
        yield start
        while True:
            await asyncio.sleep(wait_seconds)
            yield piece

    return answer


@dataclass(frozen=True)
class Fault:
    """The server's behaviour, and the message to the member."""

    answers: tuple[Answer, ...]
    said: str
    """A text, or the key of one of the bot's texts."""
    requests: int


GARBLED, DOWN, EMPTY = "model.malformed_by_provider", "model.provider_error", "model.empty_response"
NOTHING_DONE = "claims.nothing_done"
GZIPPED = gzip.compress(json.dumps(GOOD).encode())
BOMB = gzip.compress(b" " * 300_000_000, 9)
SCHEMA_REFUSED = {"error": {"message": "Invalid schema for function 'weather'", "type": "invalid_request_error"}}


def with_usage(tokens: float) -> dict[str, Any]:
    return {**GOOD, "usage": {"prompt_tokens": tokens, "completion_tokens": tokens}}


def in_pieces(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


OF_THE_ROWS: dict[str, Fault] = {
    "llm-429-ra-huge": Fault((whole(BUSY, 429, Retry_After=86400),), DOWN, 1),
    "llm-429-ra-negative": Fault((whole(BUSY, 429, Retry_After=-5), whole()), "Hello.", 2),
    "llm-429-ra-garbage": Fault((whole(BUSY, 429, Retry_After="soon"), whole()), "Hello.", 2),
    "llm-500": Fault((whole(BUSY, 500), whole()), "Hello.", 2),
    "llm-400-tools": Fault((whole(SCHEMA_REFUSED, 400), whole()), "Hello.", 2),
    "llm-404-model": Fault((whole(BUSY, 404),), DOWN, 1),
    "llm-413": Fault((whole(BUSY, 413), whole()), "Hello.", 2),
    "llm-headers-hang": Fault((silent(head(content_length=100)),), "model.timeout", 3),
    "llm-stream-no-done": Fault((events(a_stream([a_delta("stop", content="Hello.")], done=False)),), "Hello.", 1),
    "llm-sse-bom": Fault((events(b"\xef\xbb\xbf" + a_stream([a_delta("stop", content="Hello.")])),), "Hello.", 1),
    "llm-sse-event-error": Fault((events(b'event: error\ndata: {"message": "overloaded"}\n\n'),), DOWN, 3),
    "llm-invalid-utf8": Fault((whole(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),), GARBLED, 3),
    "llm-latin1-header": Fault(
        (whole(json.dumps(a_body("é"), ensure_ascii=False).encode("latin-1"), kind=f"{JSON}; charset=latin-1"),),
        GARBLED,
        3,
    ),
    "llm-empty-200": Fault((whole(b""),), EMPTY, 3),
    "llm-json-string": Fault((whole(b'"ok"'),), GARBLED, 3),
    "llm-gzip-broken": Fault((whole(GZIPPED[:-20], Content_Encoding="gzip"), whole()), "Hello.", 2),
    "llm-content-length-short": Fault((whole(content_length=10), whole()), "Hello.", 2),
    "llm-body-100MB": Fault((endless(head(), b'{"choices": "' + b"x" * 65_000),), GARBLED, 1),
    "llm-usage-huge": Fault((whole(with_usage(10**12)),), "Hello.", 1),
    "llm-refusal": Fault((whole(a_body(message={"refusal": "I would rather not."})),), "I would rather not.", 1),
    "llm-reply-no-tool-claims": Fault((whole(a_body("I set the reminder.")),) * 2, NOTHING_DONE, 2),
}
ELSEWHERE = {
    # Tests use no DNS; a refused connection is the same for the client.
    "llm-dns-fail": "test_a_server_that_is_not_there_is_an_outage",
    "llm-text-1MB": "test_a_text_of_a_megabyte_is_cut_with_a_word_about_it",
}
MORE: dict[str, Fault] = {
    "a body that never ends": Fault((endless(head(), b" " * 65_536),), GARBLED, 1),
    "a body that drips": Fault((endless(head(content_length=10_000), b"x", 0.05),), "model.timeout", 1),
    "a slow first byte": Fault((silent(),), "model.timeout", 1),
    "headers that never end": Fault((endless(b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"y" * 500 + b"\r\n"),), DOWN, 3),
    "one header of a megabyte": Fault((raw(b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * 1_000_000),), DOWN, 3),
    "an endless status line": Fault((endless(b"HTTP/1.1 200 ", b"y" * 4096),), DOWN, 3),
    "no HTTP at all": Fault((raw(b"SSH-2.0-OpenSSH_9.6\r\n"),), DOWN, 3),
    "a gzip bomb": Fault((whole(BOMB, Content_Encoding="gzip"),), GARBLED, 1),
    "a gzip bomb in an error": Fault((whole(BOMB, 400, Content_Encoding="gzip"),), DOWN, 2),
    "packed as nobody asked for": Fault((whole(GZIPPED, Content_Encoding="br"),), GARBLED, 1),
    "said to be packed and is not": Fault((whole(Content_Encoding="gzip"), whole()), "Hello.", 2),
    "packed": Fault((whole(GZIPPED, Content_Encoding="gzip"),), "Hello.", 1),
    "a reset before the answer": Fault((raw(RESET), whole()), "Hello.", 2),
    "a reset in the body": Fault((raw(head(content_length=900), b'{"choices"', RESET), whole()), "Hello.", 2),
    "an end in the body": Fault((raw(head(content_length=900) + b'{"choices": ['), whole()), "Hello.", 2),
    "a chunk that is none": Fault((raw(head(transfer_encoding="chunked") + b"zz\r\nhello"), whole()), "Hello.", 2),
    "a longer length than body": Fault((whole(content_length=9000), whole()), "Hello.", 2),
    "a page": Fault((whole(b"<html>Please log in</html>", kind="text/html"),), GARBLED, 3),
    "an error within 200": Fault((whole({"error": {"message": "overloaded"}}),), DOWN, 3),
    "a stream that breaks off": Fault(
        (events(a_stream([a_delta(content="Hel")], done=False)),), "model.stream_incomplete", 3
    ),
    "a stream in single bytes": Fault(
        (raw(head(kind="text/event-stream"), *in_pieces(a_stream([a_delta("stop", content="Hello.")]), 1)),),
        "Hello.",
        1,
    ),
    "JSON a hundred thousand deep": Fault((whole(b"[" * 100_000),), GARBLED, 3),
    "a wrong key": Fault((whole(BUSY, 401),), DOWN, 1),
    "a redirect": Fault((whole(BUSY, 302, Location="http://127.0.0.1:9/"),), DOWN, 1),
}


class HastyClock:
    """Real time, in which sleeps end immediately and advance the clock."""

    def __init__(self) -> None:
        self._machine = SystemClock()
        self._skipped = 0.0

    def now(self) -> datetime:
        return self._machine.now() + timedelta(seconds=self._skipped)

    def now_ms(self) -> int:
        return round(self.now().timestamp() * 1000)

    def monotonic(self) -> float:
        return self._machine.monotonic() + self._skipped

    async def sleep(self, seconds: float) -> None:
        self._skipped += max(0.0, seconds)
        await asyncio.sleep(0)


def the_model(base_url: str, clock: Clock) -> Failover:
    """The daemon's model with short timeouts, whose retry delays take no time."""
    profile = ModelProfile("main", "m", base_url, SecretStr("k"), silence_seconds=SILENCE_SECONDS)
    retry = Retry(clock, jitter=lambda low, high: high)
    model = ResilientModel(OpenAIChat(profile, clock), retry, clock, MODEL_SECONDS, patience_seconds=20.0)
    return Failover([model], FailoverSettings(), clock, Deadlines(clock))


@dataclass(frozen=True)
class Outcome:
    """Outcome of a fault."""

    said: list[str]
    requests: int
    seconds: float
    """Measured with the clock, which includes skipped delays."""
    most_bytes: int


async def outcome_of(fault: Fault) -> Outcome:
    """Message to the member and duration, number of requests, and memory of the daemon."""
    clock = HastyClock()
    async with FaultyServer(*fault.answers) as server, a_group(model=the_model(server.base_url, clock)) as group:
        await group.say("Bob", "what a day", id="before")
        tracemalloc.start()
        try:
            began = clock.monotonic()
            said = await group.say("Ann", "@Rollcall hello")
            seconds = clock.monotonic() - began
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]
        return Outcome(said, len(server.requests), seconds, most)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import modules of the first request in advance: this takes a second or more and would count as a delay."""
    importlib.import_module("services.llm.transport")


@pytest.mark.parametrize("name", [*OF_THE_ROWS, *MORE])
async def test_a_fault_of_the_transport_ends_in_an_answer_or_an_honest_sentence(name: str) -> None:
    fault = {**OF_THE_ROWS, **MORE}[name]
    outcome = await outcome_of(fault)
    assert outcome.said == [EN.say(fault.said) if EN.has(fault.said) else fault.said]
    assert outcome.requests == fault.requests
    assert outcome.most_bytes <= MOST_BYTES
    assert outcome.seconds <= MOST_SECONDS


def test_every_row_of_the_corpus_has_its_case(data: Callable[[str], Path]) -> None:
    rows = [json.loads(line) for line in data(ROWS).read_text(encoding="utf-8").splitlines()]
    assert {row["id"] for row in rows} - {*OF_THE_ROWS, *ELSEWHERE} == set()
    assert min(row["max_user_wait_s"] for row in rows) >= MOST_SECONDS


async def test_a_server_that_is_not_there_is_an_outage() -> None:
    async with FaultyServer(whole()) as server:
        gone = server.base_url
    async with a_group(model=the_model(gone, HastyClock())) as group:
        assert await group.say("Ann", "@Rollcall hello") == [EN.say(DOWN)]


async def test_a_text_of_a_megabyte_is_cut_with_a_word_about_it() -> None:
    async with (
        FaultyServer(whole(a_body("words " * 170_000))) as server,
        a_group(model=the_model(server.base_url, HastyClock())) as group,
    ):
        said = await group.say("Ann", "@Rollcall hello")
    assert 1 < len(said) <= 10
    assert said[-1].endswith(EN.say("delivery.cut"))


async def test_what_is_too_long_is_sent_again_without_the_history() -> None:
    fault = OF_THE_ROWS["llm-413"]
    async with (
        FaultyServer(*fault.answers) as server,
        a_group(model=the_model(server.base_url, HastyClock())) as group,
    ):
        await group.say("Bob", "what a day")
        await group.say("Ann", "@Rollcall hello")
        first, second = server.requests
    assert b"what a day" in first
    assert b"what a day" not in second
    assert b"hello" in second


async def test_a_function_that_the_provider_refuses_is_named_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = await outcome_of(OF_THE_ROWS["llm-400-tools"])
    assert outcome.said == ["Hello."]
    [line] = [line for line in capsys.readouterr().out.splitlines() if "provider_refuses_functions" in line]
    assert "functions=['weather']" in line
