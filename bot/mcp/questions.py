"""Questions of functions to MCP clients: elicitation, sampling, and calls that take several requests."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import InitVar, dataclass
from typing import Any, Literal

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
    Result,
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
from services.llm.model import ModelMessage, NoTextReason, TextRequest, WrittenText
from services.refs import JsonObject, MemberRef

ANSWER = "answer"
"""The field of the form, and the key of the request in protocols with request keys."""
_OTHER = "other"
_PRIMITIVES = {"boolean", "integer", "number"}
_COPIED_KEYS = ("title", "description", "minimum", "maximum")
_FORMATS = {"date", "date-time", "email", "uri"}
_FIRST_WITH_TITLES = "2025-11-25"
_NOBODY = object()
"""Used as the answer when none will come."""
_log = structlog.get_logger("mcp")

Context = ServerRequestContext[Any, Any]
ServerRequest = ElicitRequest | CreateMessageRequest


MOST_WAITING = 64
_MOST_OF_ONE = 16


class WaitingCalls:
    """Counts the calls that wait for an answer, with a limit per program so that none blocks the others."""

    def __init__(self) -> None:
        self._of: Counter[MemberRef] = Counter()

    def __len__(self) -> int:
        return self._of.total()

    @contextmanager
    def one_more(self, caller: McpCaller) -> Iterator[bool]:
        """Context manager that counts one waiting call; yields False, without counting, if the limit in total or of the
        member is reached."""
        member = caller.caller.member
        if len(self) >= MOST_WAITING or self._of[member] >= _MOST_OF_ONE:
            _log.warning("too_many_questions_wait", member=member.key, waiting=len(self))
            yield False
            return
        self._of[member] += 1
        try:
            yield True
        finally:
            self._of[member] -= 1
            self._of += Counter()  # forgets members with a count of zero


def can_be_asked(context: Context) -> bool:
    """Whether the client supports forms for its user. A client that declares no mode supports forms."""
    capabilities = context.session.client_capabilities
    declared = capabilities.elicitation if capabilities is not None else None
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return comes_in_rounds(context) or context.session.can_send_request


def comes_in_rounds(context: Context) -> bool:
    """Whether a question is the result of a request, and its answer comes with the next request."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def form_of(asked: Asked, version: str, texts: Phrases) -> ElicitRequest:
    """The form for `asked`. If answers other than its choices are permitted, it has a field for them."""
    question = asked.question
    # A caller's approval is always for this call only.
    choices = question.choices[:2] if isinstance(question, ApprovalQuestion) else question.choices
    properties: JsonObject = {ANSWER: _field(asked, choices, version, texts)}
    is_free = bool(choices) and not is_decision(question) and "enum" not in asked.parameter
    if is_free:
        properties[_OTHER] = {"type": "string", "title": texts.say("mcp.other_answer")}
    schema = {"type": "object", "properties": properties}
    if not is_free:
        schema["required"] = [ANSWER]
    return ElicitRequest(params=ElicitRequestFormParams(message=asked.text, requested_schema=schema))


def reply_of(result: object, caller: McpCaller) -> Reply:
    """The user's reply in the form. An invalid reply counts as an empty answer."""
    role = caller.now.role
    if not isinstance(result, ElicitResult):
        return Reply("answered", "", role)
    if result.action != "accept":
        return Reply("cancelled", "", role)
    content = result.content or {}
    return Reply("answered", _text(content.get(_OTHER)).strip() or _text(content.get(ANSWER)), role)


def _field(asked: Asked, choices: tuple[Choice, ...], version: str, texts: Phrases) -> JsonObject:
    parameter = asked.parameter
    named: JsonObject = {key: parameter[key] for key in _COPIED_KEYS[:2] if isinstance(parameter.get(key), str)}
    question = asked.question
    title = question.field if isinstance(question, ArgumentQuestion) else texts.say("mcp.answer")
    named.setdefault("title", title)
    # A chat shows only the first of many values as choices; a form has all of them.
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
        bounds = {key: parameter[key] for key in _COPIED_KEYS[2:] if kind != "boolean" and key in parameter}
        return {"type": kind, **named, **bounds}
    form = {"format": parameter["format"]} if parameter.get("format") in _FORMATS else {}
    return {"type": "string", **named, **form}


def _text(value: object) -> str:
    """A form value as text; empty if it is not a primitive."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


WORDS = "words"
"""The key of the request in protocols with request keys."""
MOST_REQUESTS = 10
"""Limit per call, including nested runs: many clients give up then."""
_LONGEST_ANSWER = 32_768
_DECLINED = -1
"""Error code of clients for a request that the user declined."""


def lends_its_model(context: Context) -> bool:
    """Whether the client supports sampling, and a request can reach it now."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return False
    return comes_in_rounds(context) or context.session.can_send_request


def request_for(request: TextRequest) -> CreateMessageRequest:
    """The sampling request for `request`, without the client's conversation as context."""
    instructions = "\n\n".join(one.content for one in request.messages if one.role == "system")
    return CreateMessageRequest(
        params=CreateMessageRequestParams(
            messages=[_message(one) for one in request.messages if one.role != "system"],
            system_prompt=instructions or None,
            include_context="none",
            max_tokens=request.most_tokens,
        )
    )


def written_of(result: object) -> WrittenText | NoTextReason:
    """The text of the client's model; DOWN if it is empty."""
    if not isinstance(result, CreateMessageResult | CreateMessageResultWithTools):
        return NoTextReason.DOWN
    blocks = result.content if isinstance(result.content, list) else [result.content]
    text = "\n".join(one.text for one in blocks if isinstance(one, TextContent)).strip()
    return WrittenText(text[:_LONGEST_ANSWER], is_callers=True) if text else NoTextReason.DOWN


class StreamQuestions:
    """Asks the client's user and its model during the call, by requests on the call's stream."""

    def __init__(
        self,
        context: Context,
        caller: McpCaller,
        texts: Phrases,
        waiting: WaitingCalls,
        closed: Sequence[asyncio.Event],
    ) -> None:
        """One of `closed` is set when no answer can come any more."""
        self._context = context
        self._caller = caller
        self._texts = texts
        self._waiting = waiting
        self._closed = closed
        self._requests_left = MOST_REQUESTS

    async def answer(self, asked: Asked) -> Reply:
        """Ask the client's user and return the reply; one of kind `expired` if nobody answers."""
        came = await self._ask(form_of(asked, self._context.protocol_version, self._texts), ElicitResult)
        is_answer = came is not _NOBODY and not isinstance(came, MCPError)
        return reply_of(came, self._caller) if is_answer else Reply("expired")

    async def write(self, request: TextRequest) -> WrittenText | NoTextReason:
        """The text from the client's model, or why it is missing: OVER_BUDGET after too many requests, DECLINED by the
        user, DOWN without an answer."""
        if self._requests_left <= 0:
            return NoTextReason.OVER_BUDGET
        self._requests_left -= 1
        came = await self._ask(request_for(request), CreateMessageResult)
        is_declined = isinstance(came, MCPError) and came.code == _DECLINED
        return NoTextReason.DECLINED if is_declined else written_of(came)

    async def _ask(self, request: ServerRequest, result: type[Result]) -> object:
        """The client's response of the type `result`, or its error; None for an invalid one."""
        with self._waiting.one_more(self._caller) as may_wait:
            if not may_wait:
                return _NOBODY
            asking = asyncio.create_task(self._response(request, result), name="a question to a client")
            either: list[asyncio.Task[Any]] = [asking, *(asyncio.create_task(one.wait()) for one in self._closed)]
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                return asking.result() if asking.done() else _NOBODY
            finally:
                for task in either:
                    task.cancel()

    async def _response(self, request: ServerRequest, result: type[Result]) -> object:
        where = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            return await self._context.session.send_request(request, result, metadata=where)
        except ValidationError:
            return None
        except MCPError as error:
            member = self._caller.caller.member.key
            _log.warning("client_not_asked", method=request.method, problem=str(error)[:300], member=member)
            return error


def _message(one: ModelMessage) -> SamplingMessage:
    role: Literal["user", "assistant"] = "assistant" if one.role == "assistant" else "user"
    return SamplingMessage(role=role, content=TextContent(type="text", text=one.content))


@dataclass(eq=False, repr=False)
class MultiRequestCall:
    """One call over several requests, with the user and the model of its client. `context`: the latest request."""

    rounds: MultiRequestCalls
    context: Context
    caller: McpCaller
    texts: Phrases
    asked: InitVar[CallToolRequestParams]

    def __post_init__(self, asked: CallToolRequestParams) -> None:
        self._function, self._arguments = asked.name, asked.arguments
        self._question: asyncio.Future[InputRequest] = asyncio.get_running_loop().create_future()
        self._came: asyncio.Future[object] | None = None
        self._asking = asyncio.Lock()
        self._requests_left = MOST_REQUESTS
        self._token, self._key = "", ""
        self._running: asyncio.Task[Called] | None = None

    def begin(self, call: Coroutine[Any, Any, Called]) -> asyncio.Task[Called]:
        """Start `call` in a task that is independent of its request."""
        self._running = asyncio.create_task(call, name="a call in rounds")
        return self._running

    async def answer(self, asked: Asked) -> Reply:
        """Ask the client's user and return the reply; one of kind `expired` if nobody answers."""
        came = await self._ask(ANSWER, form_of(asked, self.context.protocol_version, self.texts))
        return Reply("expired") if came is _NOBODY else reply_of(came, self.caller)

    async def write(self, request: TextRequest) -> WrittenText | NoTextReason:
        """Ask the client's model. Returns OVER_BUDGET after too many requests. A client that declines does not return
        with an answer."""
        if self._requests_left <= 0:
            return NoTextReason.OVER_BUDGET
        self._requests_left -= 1
        return written_of(await self._ask(WORDS, request_for(request)))

    async def _ask(self, key: str, request: InputRequest) -> object:
        """The client's response; one request at a time."""
        with self.rounds.waiting.one_more(self.caller) as may_wait:
            if not may_wait:
                return _NOBODY
            async with self._asking:
                self._came = asyncio.get_running_loop().create_future()
                self._token, self._key = self.rounds.put(self), key
                self._question.set_result(request)
                try:
                    return await self._came
                finally:
                    self.rounds.forget(self._token)
                    if self._question.done():
                        self._question = asyncio.get_running_loop().create_future()

    async def next(self) -> InputRequiredResult | None:
        """The request that the client has to answer before the call continues; None when the call has ended.
        Cancellation ends the call too."""
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
        return InputRequiredResult(input_requests={self._key: question.result()}, request_state=self._token)

    @property
    def called(self) -> Called | None:
        """The result of the call; None if it was cancelled. Raises the exception of the call."""
        assert self._running is not None
        with suppress(asyncio.CancelledError):
            return self._running.result()
        return None

    def resume(self, context: Context, caller: McpCaller, params: CallToolRequestParams) -> None:
        """Resume the call with the answer in another request."""
        self.context, self.caller = context, caller
        self._question = asyncio.get_running_loop().create_future()
        self._take((params.input_responses or {}).get(self._key))

    def expire(self) -> None:
        """End the wait without an answer."""
        self._take(_NOBODY)

    def _take(self, came: object) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_result(came)

    def is_of(self, caller: McpCaller, params: CallToolRequestParams) -> bool:
        """Whether a request repeats this call, by the same program."""
        same = caller.caller.member == self.caller.caller.member and caller.caller.chat == self.caller.caller.chat
        return same and (params.name, params.arguments or {}) == (self._function, self._arguments or {})


def is_intact(token: str) -> bool:
    """Whether `token` has the form of the secret of a call, perhaps one that has ended."""
    secret, _, checksum = token.rpartition(".")
    return checksum == _checksum(secret)


def _checksum(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()[:8]


class MultiRequestCalls:
    """The calls of all clients that wait for answers, by single-use secrets."""

    def __init__(self, waiting: WaitingCalls) -> None:
        self.waiting = waiting
        self._waiting: dict[str, MultiRequestCall] = {}

    def put(self, call: MultiRequestCall) -> str:
        """Register a waiting call; returns its secret, which contains its checksum."""
        secret = secrets.token_urlsafe(32)
        token = f"{secret}.{_checksum(secret)}"
        self._waiting[token] = call
        return token

    def take(self, token: str, caller: McpCaller, params: CallToolRequestParams) -> MultiRequestCall | None:
        """The call that waits for the answer with `token`; None if it is unknown or belongs to another caller."""
        call = self._waiting.get(token)
        if call is None or not call.is_of(caller, params):
            return None
        self.forget(token)
        return call

    def forget(self, token: str) -> None:
        """Remove the call with that secret."""
        self._waiting.pop(token, None)

    def expire(self) -> None:
        """End the wait of all calls."""
        for call in list(self._waiting.values()):
            call.expire()
