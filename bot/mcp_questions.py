"""What a function asks, as a form that a client of the Model Context Protocol shows its user, and what comes of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from bot.mcp_callers import McpCaller
from config.texts import Phrases
from function_calls.answering import Asked, Reply
from function_calls.questions import is_decision
from function_calls.spec import Choice
from services.json_values import JsonObject
from services.refs import MemberRef

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
    choices = question.choices[:2] if question.terms is not None else question.choices
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
    named.setdefault("title", asked.question.field or texts.say("mcp.answer"))
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
