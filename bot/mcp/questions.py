"""Questions of functions to MCP clients: elicitation, sampling, and calls that take several requests."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, TypeVar

import structlog
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from bot.direct_calls import Called
from bot.mcp.callers import McpCaller
from config.texts import Phrases
from function_calls.questions.callers import Asked, Reply
from function_calls.questions.resume import is_decision
from function_calls.spec import ApprovalQuestion, ArgumentQuestion, Choice
from services.llm.model import ModelMessage, Unwritten, WordsWanted, Written
from services.refs import JsonObject, MemberRef

ANSWER = "answer"
"""The field of the form, and the key of the request where requests have one."""
_OTHER = "other"
_PRIMITIVES = {"boolean", "integer", "number"}
_KEPT = ("title", "description", "minimum", "maximum")
_FORMATS = {"date", "date-time", "email", "uri"}
_FIRST_WITH_TITLES = "2025-11-25"
_log = structlog.get_logger("mcp")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


MOST_WAITING = 64
_MOST_OF_ONE = 16


class Waiting:
    """How many calls wait for answers, of whom: no program keeps all others from asking."""

    def __init__(self) -> None:
        self._of: Counter[MemberRef] = Counter()

    def __len__(self) -> int:
        return self._of.total()

    @contextmanager
    def one_more(self, whose: McpCaller) -> Iterator[bool]:
        """One call waits meanwhile; false where it may not."""
        member = whose.caller.member
        if len(self) >= MOST_WAITING or self._of[member] >= _MOST_OF_ONE:
            _log.warning("too_many_questions_wait", member=member.key, waiting=len(self))
            yield False
            return
        self._of[member] += 1
        try:
            yield True
        finally:
            self._of[member] -= 1
            self._of += Counter()  # forgets who has none


def can_be_asked(context: Context) -> bool:
    """Whether the client says that it puts forms to its user. One that names no mode means forms."""
    capabilities = context.session.client_capabilities
    declared = capabilities.elicitation if capabilities is not None else None
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return comes_in_rounds(context) or context.session.can_send_request


def comes_in_rounds(context: Context) -> bool:
    """Whether a question is given as the result of a request, and its answer with the next one."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def form_of(asked: Asked, version: str, texts: Phrases) -> ElicitRequest:
    """The form for `asked`. Where something else than its choices may be said, there is a field for it."""
    question = asked.question
    # Whatever waits for the yes of whoever called is allowed for this one time.
    choices = question.choices[:2] if isinstance(question, ApprovalQuestion) else question.choices
    properties: JsonObject = {ANSWER: _field(asked, choices, version, texts)}
    is_free = bool(choices) and not is_decision(question) and "enum" not in asked.parameter
    if is_free:
        properties[_OTHER] = {"type": "string", "title": texts.say("mcp.other_answer")}
    schema = {"type": "object", "properties": properties}
    if not is_free:
        schema["required"] = [ANSWER]
    return ElicitRequest(params=ElicitRequestFormParams(message=asked.text, requested_schema=schema))


def reply_of(result: object, whose: McpCaller) -> Reply:
    """What the user made of the form. What is no answer is an empty one."""
    role = whose.now.role
    if not isinstance(result, ElicitResult):
        return Reply("answered", "", role)
    if result.action != "accept":
        return Reply("cancelled", "", role)
    content = result.content or {}
    return Reply("answered", _text(content.get(_OTHER)).strip() or _text(content.get(ANSWER)), role)


async def unless_gone(asking: Coroutine[Any, Any, T], gone: Sequence[asyncio.Event]) -> T | None:
    """What `asking` gives; None where one of `gone` is set first."""
    task = asyncio.create_task(asking, name="a question to a client")
    either: list[asyncio.Task[Any]] = [task, *(asyncio.create_task(one.wait()) for one in gone)]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for one in either:
            one.cancel()


class OverTheStream:
    """The user of a client that is asked while its call waits: by a request on the stream of the call."""

    def __init__(
        self, context: Context, whose: McpCaller, texts: Phrases, waiting: Waiting, gone: Sequence[asyncio.Event]
    ) -> None:
        """One of `gone` is set when no answer can come any more."""
        self._context = context
        self._whose = whose
        self._texts = texts
        self._waiting = waiting
        self._gone = gone

    async def answer(self, asked: Asked) -> Reply:
        with self._waiting.one_more(self._whose) as may_wait:
            return await self._answer(asked) if may_wait else Reply("expired")

    async def _answer(self, asked: Asked) -> Reply:
        form = form_of(asked, self._context.protocol_version, self._texts)
        return await unless_gone(self._ask(form), self._gone) or Reply("expired")

    async def _ask(self, form: ElicitRequest) -> Reply:
        where = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            result = await self._context.session.send_request(form, ElicitResult, metadata=where)
        except ValidationError:
            return reply_of(None, self._whose)
        except MCPError as error:
            _log.warning("question_not_put", problem=str(error)[:300], member=self._whose.caller.member.key)
            return Reply("expired")
        return reply_of(result, self._whose)


def _field(asked: Asked, choices: tuple[Choice, ...], version: str, texts: Phrases) -> JsonObject:
    parameter = asked.parameter
    named: JsonObject = {key: parameter[key] for key in _KEPT[:2] if isinstance(parameter.get(key), str)}
    question = asked.question
    title = question.field if isinstance(question, ArgumentQuestion) else texts.say("mcp.answer")
    named.setdefault("title", title)
    # Of many values only the first are choices in a chat, and here all of them are.
    values = [str(value) for value in parameter.get("enum", ())] or [choice.value for choice in choices]
    labels = {choice.value: choice.label for choice in choices}
    if values:
        if all(labels.get(value, value) == value for value in values):
            return {"type": "string", **named, "enum": values}
        titles = [labels.get(value, value) for value in values]
        if version < _FIRST_WITH_TITLES:
            return {"type": "string", **named, "enum": values, "enumNames": titles}
        titled = [{"const": value, "title": title} for value, title in zip(values, titles, strict=True)]
        return {"type": "string", **named, "oneOf": titled}
    kind = parameter.get("type")
    if kind in _PRIMITIVES:
        bounds = {key: parameter[key] for key in _KEPT[2:] if kind != "boolean" and key in parameter}
        return {"type": kind, **named, **bounds}
    form = {"format": parameter["format"]} if parameter.get("format") in _FORMATS else {}
    return {"type": "string", **named, **form}


def _text(value: object) -> str:
    """A value of a form as people would write it; empty for what is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


WORDS = "words"
"""The key of the request where requests have one."""
MOST_REQUESTS = 10
"""Of one call, with all that runs within it: many clients give up then."""
_LONGEST_ANSWER = 32_768
_DECLINED = -1
"""By which a client says that its user did not want it."""


def lends_its_model(context: Context) -> bool:
    """Whether the client says that it asks its model for servers."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return False
    return comes_in_rounds(context) or context.session.can_send_request


def request_for(wanted: WordsWanted) -> CreateMessageRequest:
    """The request for `wanted`. Nothing of the client's conversation is to be told beside it."""
    instructions = "\n\n".join(one.content for one in wanted.messages if one.role == "system")
    return CreateMessageRequest(
        params=CreateMessageRequestParams(
            messages=[_message(one) for one in wanted.messages if one.role != "system"],
            system_prompt=instructions or None,
            include_context="none",
            max_tokens=wanted.most_tokens,
        )
    )


def written_of(result: object) -> Written | Unwritten:
    """What the client's model wrote. What is no text is nothing."""
    if not isinstance(result, CreateMessageResult | CreateMessageResultWithTools):
        return Unwritten.DOWN
    blocks = result.content if isinstance(result.content, list) else [result.content]
    text = "\n".join(one.text for one in blocks if isinstance(one, TextContent)).strip()
    return Written(text[:_LONGEST_ANSWER], is_callers=True) if text else Unwritten.DOWN


class ModelOverTheStream:
    """The model of a client that is asked while its call waits: by a request on the stream of the call."""

    def __init__(self, context: Context, whose: McpCaller, waiting: Waiting, gone: Sequence[asyncio.Event]) -> None:
        """One of `gone` is set when no answer can come any more."""
        self._context = context
        self._whose = whose
        self._waiting = waiting
        self._gone = gone
        self._left = MOST_REQUESTS

    async def write(self, wanted: WordsWanted) -> Written | Unwritten:
        """Its words, or why there are none."""
        if self._left <= 0:
            return Unwritten.OVER_BUDGET
        self._left -= 1
        with self._waiting.one_more(self._whose) as may_wait:
            if not may_wait:
                return Unwritten.DOWN
            return await unless_gone(self._ask(wanted), self._gone) or Unwritten.DOWN

    async def _ask(self, wanted: WordsWanted) -> Written | Unwritten:
        where = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            result = await self._context.session.send_request(request_for(wanted), CreateMessageResult, metadata=where)
        except ValidationError:
            return Unwritten.DOWN
        except MCPError as error:
            if error.code == _DECLINED:
                return Unwritten.DECLINED
            _log.warning("model_not_asked", problem=str(error)[:300], member=self._whose.caller.member.key)
            return Unwritten.DOWN
        return written_of(result)


def _message(one: ModelMessage) -> SamplingMessage:
    role: Literal["user", "assistant"] = "assistant" if one.role == "assistant" else "user"
    return SamplingMessage(role=role, content=TextContent(type="text", text=one.content))


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
