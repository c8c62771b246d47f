"""Calls that are answered in several requests: where a client may not be asked while its request waits, the question is
the result, and the next request brings the answer to the run that waits for it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from mcp_types import CallToolRequestParams, InputRequest, InputRequiredResult

from bot.direct_calls import Called
from bot.mcp_callers import McpCaller
from bot.mcp_questions import ANSWER, Context, Waiting, form_of, reply_of
from bot.mcp_words import MOST_REQUESTS, WORDS, request_for, written_of
from config.texts import Phrases
from function_calls.answering import Asked, Reply
from function_calls.words import Unwritten, WordsWanted, Written

_NOBODY = object()
"""Comes in the place of an answer where none will."""


class _Put(NamedTuple):
    """What the client is to ask."""

    key: str
    request: InputRequest


class CallInRounds:
    """One call; the user and the model of its client. `context`: of the request that waits for it now, or did last."""

    def __init__(
        self, rounds: Rounds, context: Context, whose: McpCaller, texts: Phrases, asked: CallToolRequestParams
    ):
        self.context = context
        self.whose = whose
        self._rounds = rounds
        self._texts = texts
        self._function, self._arguments = asked.name, asked.arguments
        self._question: asyncio.Future[_Put] = asyncio.get_running_loop().create_future()
        self._came: asyncio.Future[object] | None = None
        self._asking = asyncio.Lock()
        self._left = MOST_REQUESTS
        self._token, self._key = "", ""
        self._running: asyncio.Task[Called] | None = None

    def begin(self, call: Coroutine[Any, Any, Called]) -> asyncio.Task[Called]:
        """Let `call` run, whatever becomes of the request that it came with."""
        self._running = asyncio.create_task(call, name="a call in rounds")
        return self._running

    async def answer(self, asked: Asked) -> Reply:
        """As the user of a client."""
        came = await self._ask(_Put(ANSWER, form_of(asked, self.context.protocol_version, self._texts)))
        return Reply("expired") if came is _NOBODY else reply_of(came, self.whose)

    async def write(self, wanted: WordsWanted) -> Written | Unwritten:
        """As the model of a client. Who did not want it to be asked does not come back with an answer."""
        if self._left <= 0:
            return Unwritten.OVER_BUDGET
        self._left -= 1
        return written_of(await self._ask(_Put(WORDS, request_for(wanted))))

    async def _ask(self, put: _Put) -> object:
        """What comes back from the client, one thing after another."""
        with self._rounds.waiting.one_more(self.whose) as may_wait:
            if not may_wait:
                return _NOBODY
            async with self._asking:
                return await self._asked(put)

    async def _asked(self, put: _Put) -> object:
        self._came = asyncio.get_running_loop().create_future()
        self._token, self._key = self._rounds.put(self), put.key
        self._question.set_result(put)
        try:
            return await self._came
        finally:
            self._rounds.forget(self._token)
            if self._question.done():
                self._question = asyncio.get_running_loop().create_future()

    async def next(self) -> InputRequiredResult | None:
        """What the client has to ask its user or its model before it goes on; None when the call has ended. Cancelled,
        the call ends too."""
        assert self._running is not None
        question = self._question
        either: list[asyncio.Future[Any]] = [self._running, question]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._running.cancel()
            raise
        if self._running.done():
            return None
        put = question.result()
        return InputRequiredResult(input_requests={put.key: put.request}, request_state=self._token)

    @property
    def called(self) -> Called | None:
        """What came of it; None where it was stopped. Raises what it raised."""
        assert self._running is not None
        with suppress(asyncio.CancelledError):
            return self._running.result()
        return None

    def go_on(self, context: Context, whose: McpCaller, params: CallToolRequestParams) -> None:
        """The answer has come with another request."""
        self.context, self.whose = context, whose
        self._question = asyncio.get_running_loop().create_future()
        self._take((params.input_responses or {}).get(self._key))

    def expire(self) -> None:
        """No answer will come."""
        self._take(_NOBODY)

    def _take(self, came: object) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_result(came)

    def is_of(self, whose: McpCaller, params: CallToolRequestParams) -> bool:
        """Whether a request is the same call, of the same program."""
        same = whose.caller.member == self.whose.caller.member and whose.caller.chat == self.whose.caller.chat
        return same and (params.name, params.arguments or {}) == (self._function, self._arguments or {})


class Rounds:
    """The calls of all clients that wait for answers, by secrets that each holds for one answer alone."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting
        self._waiting: dict[str, CallInRounds] = {}

    def put(self, call: CallInRounds) -> str:
        """`call` waits for its answer. Returns the secret that goes with it."""
        token = secrets.token_urlsafe(32)
        self._waiting[token] = call
        return token

    def take(self, token: str, whose: McpCaller, params: CallToolRequestParams) -> CallInRounds | None:
        """The call that waits for the answer which bears `token`; None where there is none, or it is another's."""
        call = self._waiting.get(token)
        if call is None or not call.is_of(whose, params):
            return None
        self.forget(token)
        return call

    def forget(self, token: str) -> None:
        """It waits no more."""
        self._waiting.pop(token, None)

    def expire(self) -> None:
        """Nobody will answer what waits."""
        for call in list(self._waiting.values()):
            call.expire()
