"""Transport over standard input and output: one message per line.

The SDK's transport reads in threads that cannot be cancelled, so it would survive SIGTERM until the next line; and it
ends with its input while the last calls are still running.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from bot.mcp.server import McpServer

LONGEST_LINE = 4 * 1024 * 1024
_CHUNK = 65_536
_LAST_ANSWERS_SECONDS = 10.0
_LAST_WRITES_SECONDS = 2.0
_NEVER_ANSWERED = "subscriptions/listen"


class TooLong:
    """A line that was skipped because it is too long."""


@dataclass(frozen=True, slots=True)
class Pipe:
    """Descriptors of the pipe, duplicated for exclusive use."""

    incoming: int
    outgoing: int

    @classmethod
    def of_this_process(cls) -> Pipe:
        """Take over standard input and output: functions then print to standard error and read an empty input."""
        sys.stdout.flush()
        pipe = cls(os.dup(0), os.dup(1))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no standard error
            os.dup2(nothing, 1)
        os.close(nothing)
        return pipe


async def serve(server: McpServer, pipe: Pipe) -> None:
    """Serve until the client closes its input and has all responses, or stops reading. Cancellation ends calls."""
    conversation = _Conversation(pipe)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversation.receive, server)
            tasks.start_soon(conversation.send, tasks.cancel_scope)
            await server.server.run(conversation.to_server, conversation.from_server, server.options)
            conversation.stop_receiving()
            tasks.cancel_scope.deadline = anyio.current_time() + _LAST_WRITES_SECONDS
    finally:
        conversation.close()


class _Conversation:
    def __init__(self, pipe: Pipe) -> None:
        self._arriving, self.to_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.from_server, self._leaving = anyio.create_memory_object_stream[SessionMessage](0)
        self._lines = _Lines(pipe.incoming)
        self._writer = _Writer(pipe.outgoing)
        self._receiving = anyio.CancelScope()
        self._unanswered: set[str] = set()
        self._all_answered = asyncio.Event()

    async def receive(self, server: McpServer) -> None:
        """Pass on every line. At the end of the input, wait for pending responses, without further input."""
        with self._receiving:
            async with self._arriving:
                while (line := await self._lines.next()) is not None:
                    await self._take(line)
                server.hang_up()
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    while self._unanswered:
                        self._all_answered.clear()
                        await self._all_answered.wait()

    def stop_receiving(self) -> None:
        self._receiving.cancel()

    async def send(self, all_of_it: anyio.CancelScope) -> None:
        """Write every message; cancel everything when the client has closed the pipe."""
        async with self._leaving:
            async for item in self._leaving:
                message = item.message
                try:
                    await self._write(message)
                except OSError:
                    all_of_it.cancel()
                    return
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    self._is_answered(message.id)

    def close(self) -> None:
        for stream in (self._arriving, self.to_server, self.from_server, self._leaving):
            stream.close()

    async def _take(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            await self._refuse(PARSE_ERROR, f"a message is longer than {LONGEST_LINE} bytes", None)
            return
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await self._refuse(*_fault_of(line))
            return
        self._note(message)
        await self._arriving.send(SessionMessage(message))

    def _note(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest) and message.method != _NEVER_ANSWERED:
            self._unanswered.add(str(message.id))
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no response.
            self._is_answered((message.params or {}).get("requestId"))

    def _is_answered(self, request_id: object) -> None:
        self._unanswered.discard(str(request_id))
        if not self._unanswered:
            self._all_answered.set()

    async def _refuse(self, code: int, text: str, request_id: str | int | None) -> None:
        error = ErrorData(code=code, message=text)
        with suppress(OSError):
            await self._write(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))

    async def _write(self, message: JSONRPCMessage) -> None:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        await self._writer.write(text.encode() + b"\n")


def _fault_of(line: bytes) -> tuple[int, str, str | int | None]:
    """The JSON-RPC error code and text for an invalid line, and the id of its request, or None without a valid id."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return PARSE_ERROR, "this is no JSON", None
    request_id = value.get("id") if isinstance(value, dict) else None
    known = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    return INVALID_REQUEST, "this is no message of JSON-RPC 2.0", request_id if known else None


class _Lines:
    """Reads lines in a daemon thread, so that process exit does not wait for it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | TooLong | None] = asyncio.Queue(1)
        threading.Thread(target=self._read, name="mcp input", daemon=True).start()

    async def next(self) -> bytes | TooLong | None:
        """The next line without its line end; None at the end of the input."""
        return await self._queue.get()

    def _read(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            with suppress(OSError):  # the client is gone, which counts as the end of the input
                self._read_all()
            self._hand_over(None)

    def _read_all(self) -> None:
        with open(self._descriptor, "rb", closefd=False) as lines:
            while line := lines.readline(LONGEST_LINE + 1):
                if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
                    self._hand_over(line.removesuffix(b"\n"))
                    continue
                self._hand_over(TooLong())
                while (rest := lines.readline(_CHUNK)) and not rest.endswith(b"\n"):
                    pass

    def _hand_over(self, line: bytes | TooLong | None) -> None:
        asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()


class _Writer:
    """Writes in a daemon thread, so that process exit does not wait for it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="mcp output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        """Return when everything is written. Raises OSError if the client has closed the pipe."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((data, done))
        await done

    def _write(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            while True:
                data, done = self._queue.get()
                rest, problem = memoryview(data), None
                try:
                    while rest:
                        rest = rest[os.write(self._descriptor, rest) :]
                except OSError as error:
                    problem = error
                self._loop.call_soon_threadsafe(_finish, done, problem)


def _finish(done: asyncio.Future[None], problem: OSError | None) -> None:
    if not done.done():
        done.set_exception(problem) if problem is not None else done.set_result(None)
