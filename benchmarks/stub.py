"""A provider stub that answers immediately or after a fixed time, for load tests.

    python -m benchmarks.stub [--seconds 1.0]      prints its port

A request without a tool message gets one call of `get_weather` for the city in its text, or of `get_forecast` if it
asks for "the forecast, the weather in" a city; a request with a tool message gets a sentence about that city.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measuring import REPOSITORY, STUB_CORE, pin

CITIES = ("Berlin", "Paris", "Madrid", "Rome", "Vienna", "Oslo", "Lisbon", "Prague")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SLOW_SECONDS = 5.0
"""Delay of the answer to a conversation with the word "slowly"."""
_CITY = re.compile(rb"weather in (\w+)")
_FORECAST = b"the forecast, the "
_USAGE = b'"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020}'
_BEFORE = b'{"id":"chatcmpl-1","object":"chat.completion","created":1767600000,"model":"stub","choices":[{"index":0,'
_CALL = (
    _BEFORE + b'"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":'
    b'{"name":"%b","arguments":"{\\"city\\":\\"%b\\"}"}}],"refusal":null},"logprobs":null,'
    b'"finish_reason":"tool_calls"}],' + _USAGE + b"}"
)
_TEXT = (
    _BEFORE + b'"message":{"role":"assistant","content":"The report is ready: weather in %b: sunny","refusal":null},'
    b'"logprobs":null,"finish_reason":"stop"}],' + _USAGE + b"}"
)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_stub\r\ncontent-length: %d\r\n\r\n"


def question(number: int) -> str:
    """A question for the stub, different for each number up to a high limit."""
    return f"What is the weather in {CITIES[number % len(CITIES)]}{number % 97}?"


def expected(number: int) -> str:
    """The final answer to `question(number)`."""
    return f"The report is ready: weather in {CITIES[number % len(CITIES)]}{number % 97}: sunny"


def answer_to(body: bytes) -> bytes:
    """The prepared completion for a request body."""
    start = body.rfind(b"weather in ")
    city = _CITY.search(body, start)
    name = city[1] if city else b"Nowhere"
    if b'"role":"tool"' in body:
        return _TEXT % name
    return _CALL % (b"get_forecast" if body[:start].endswith(_FORECAST) else b"get_weather", name)


class _Connection(asyncio.Protocol):
    def __init__(self, seconds: float, *, calls: bool) -> None:
        self._seconds = seconds
        self._calls = calls
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._received, 0, end + 2)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < whole:
                return
            body, self._received = self._received[end + 4 : whole], self._received[whole:]
            completion = answer_to(body) if self._calls else _TEXT % b"Oslo"
            response = _HEAD % len(completion) + completion
            seconds = _SLOW_SECONDS if b"slowly" in body else self._seconds
            if seconds:
                asyncio.get_running_loop().call_later(seconds, self._answer, response)
            else:
                self._answer(response)

    def _answer(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)


async def serve(seconds: float, *, calls: bool) -> None:
    """Serve until stdin is closed, with a delay of `seconds` per request; without `calls`, every answer is a text.
    Prints the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(seconds, calls=calls), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The stub ends when the process that started it ends, for any reason.
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def a_stub(seconds: float = 0.0, *options: str) -> Iterator[str]:
    """Base URL of a stub in a separate process on the other core."""
    command = [sys.executable, "-m", "benchmarks.stub", "--seconds", str(seconds), *options]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def main() -> None:
    """Serve with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.0, help="how long every answer takes")
    parser.add_argument("--text", action="store_true", help="answer with texts only, without calls")
    options = parser.parse_args()
    pin(STUB_CORE)
    asyncio.run(serve(options.seconds, calls=not options.text))


if __name__ == "__main__":
    main()
