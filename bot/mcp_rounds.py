"""Calls that are answered in several requests: where a client may not be asked while its request waits, the question is
the result, and the next request brings the answer to the run that waits for it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from mcp_types import CallToolRequestParams, ElicitRequest, InputRequiredResult

from bot.direct_calls import Called
from bot.mcp_callers import McpCaller
from bot.mcp_questions import ANSWER, Context, Waiting, form_of, reply_of
from config.texts import Phrases
from function_calls.answering import Asked, Reply


class CallInRounds:
    """One call, and the user of its client. `context`: of the request that waits for it now, or did last."""

    def __init__(
        self, rounds: Rounds, context: Context, whose: McpCaller, texts: Phrases, asked: CallToolRequestParams
    ):
        self.context = context
        self.whose = whose
        self._rounds = rounds
        self._texts = texts
        self._function, self._arguments = asked.name, asked.arguments
        self._question: asyncio.Future[ElicitRequest] = asyncio.get_running_loop().create_future()
        self._reply: asyncio.Future[Reply] | None = None
        self._token = ""
        self._running: asyncio.Task[Called] | None = None

    def begin(self, call: Coroutine[Any, Any, Called]) -> asyncio.Task[Called]:
        """Let `call` run, whatever becomes of the request that it came with."""
        self._running = asyncio.create_task(call, name="a call in rounds")
        return self._running

    async def answer(self, asked: Asked) -> Reply:
        """As the user of a client."""
        with self._rounds.waiting.one_more(self.whose) as may_wait:
            return await self._answer(asked) if may_wait else Reply("expired")

    async def _answer(self, asked: Asked) -> Reply:
        self._reply = asyncio.get_running_loop().create_future()
        self._token = self._rounds.put(self)
        self._question.set_result(form_of(asked, self.context.protocol_version, self._texts))
        try:
            return await self._reply
        finally:
            self._rounds.forget(self._token)
            if self._question.done():
                self._question = asyncio.get_running_loop().create_future()

    async def next(self) -> InputRequiredResult | None:
        """What the client has to ask its user before it goes on; None when the call has ended. Cancelled, the call ends
        too."""
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
        return InputRequiredResult(input_requests={ANSWER: question.result()}, request_state=self._token)

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
        self.reply(reply_of((params.input_responses or {}).get(ANSWER), whose))

    def reply(self, reply: Reply) -> None:
        """Let the run go on with `reply`."""
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(reply)

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
            call.reply(Reply("expired"))
