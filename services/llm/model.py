"""ChatModel: one question, one answer, and typed errors of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple, Protocol

from services.refs import ErrorCode, JsonObject, ModelProblem

_OF_STATUS = {
    401: ModelProblem.KEY,
    402: ModelProblem.QUOTA,
    403: ModelProblem.KEY,
    404: ModelProblem.MISSING,
    405: ModelProblem.MISSING,
    408: ModelProblem.OUTAGE,
    410: ModelProblem.MISSING,
    413: ModelProblem.TOO_LONG,
    425: ModelProblem.OUTAGE,
    429: ModelProblem.BUSY,
}
_OF_CODE = {
    ErrorCode.TRANSIENT: ModelProblem.OUTAGE,
    ErrorCode.TIMEOUT: ModelProblem.OUTAGE,
    ErrorCode.ENVIRONMENT: ModelProblem.OUTAGE,
    ErrorCode.CONTENT_FILTERED: ModelProblem.FILTERED,
}


def problem_of(code: ErrorCode, status: int | None) -> ModelProblem:
    """The trouble behind an error. A refusal without a status counts as an outage."""
    if code is not ErrorCode.PROVIDER_ERROR:
        return _OF_CODE.get(code, ModelProblem.ANSWER)
    if status is None or status >= 500:
        return ModelProblem.OUTAGE
    if status < 400:
        # A redirect is not followed, so the address in the settings is not the model's.
        return ModelProblem.MISSING
    return _OF_STATUS.get(status, ModelProblem.REQUEST)


@dataclass(frozen=True, slots=True)
class OfferedFunction:
    """One function as a model sees it."""

    name: str
    """What the model calls it: 1 to 64 of [A-Za-z0-9_-]."""
    original: str
    """The name in the registry; may hold dots and any letters."""
    description: str
    parameters: JsonObject
    """JSON Schema (draft 7) of an object."""
    examples: tuple[str, ...] = ()
    """Sentences that mean this function; `{slot}` stands for the value of the parameter of that name."""
    writes: bool = False
    """True when a run changes something, so that a model which merely guesses has to ask first."""
    commands: tuple[str, ...] = ()
    """Direct words for it, for a model that names the command instead."""
    system_prompt: str = ""
    """What a model without function calling is told instead of the description; `{schema}` stands for a sample. Where
    there is no such place in it, it says how to use the function, and every model is told."""
    encoded: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Where a protocol keeps the bytes of this function, under its own name: many offers share them."""


class SameFunctions(tuple[OfferedFunction, ...]):
    """Functions as a key: equal to others of which a model is told the same. By themselves they cannot be hashed."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(function.original for function in self))


class Offer:
    """The functions offered in one request, in a stable order. Built once for each distinct set and shared by
    requests, so that a protocol can keep its encoded bytes in `encoded`, under its own name."""

    __slots__ = ("__weakref__", "by_name", "encoded", "functions", "guidance")

    def __init__(self, functions: Sequence[OfferedFunction]) -> None:
        self.functions = tuple(functions)
        self.by_name = {function.name: function for function in self.functions}
        self.encoded: dict[str, bytes] = {}
        self.guidance = "\n\n".join(
            f"### {one.name}\n{one.system_prompt.strip()}"
            for one in self.functions
            if one.system_prompt and "{schema}" not in one.system_prompt
        )
        """What the functions say of their use to a model that is told how to call them otherwise."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for, as far as it could be read without guessing."""

    id: str
    name: str
    """The name as the model wrote it, less a known wrapper such as `functions.`; not yet looked up."""
    arguments: JsonObject | None
    """The decoded arguments; None when they could not be read (then `fault` says why)."""
    raw: str = ""
    """The arguments as they came, for the log and the error that goes back to the model."""
    fault: ErrorCode | None = None
    uncertain: bool = False
    """The model only guesses that this is meant: the person confirms before it runs."""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One entry of the conversation that a model is shown."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """On an assistant's message: the calls it made."""
    call_id: str = ""
    """On a tool's message: the call it answers."""
    opaque: JsonObject | None = None
    """On an assistant's message: fields that the provider wants back word for word."""
    by: str = ""
    """The model that `opaque` comes from, by its name in the settings: no other one is sent it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the provider counted them."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    """Those of the prompt that the provider had read before."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model said: words, calls, or both. Never empty: an empty answer is a ModelError."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    model: str = ""
    request_id: str = ""
    usage: Usage = Usage()
    opaque: JsonObject | None = None
    final: bool = False
    """The model has nothing to add once the calls have run: the functions' own messages are the answer."""
    by: str = ""
    """The model that gave it, by its name in the settings."""

    def given_by(self, name: str) -> ModelAnswer:
        """The same, from the model of that name."""
        return ModelAnswer(
            self.text, self.calls, self.finish, self.model, self.request_id, self.usage, self.opaque, self.final, name
        )


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model."""

    messages: Sequence[ModelMessage]
    offer: Offer | None = None
    everything: Offer | None = None
    """All that may be called, where `offer` is only a part of it: for a model to which length costs nothing."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the offered name of one function."""
    timeout_seconds: float = 60.0
    """For the whole request, retries included."""
    language: str = "en"
    """The chat's language, for a model that speaks itself instead of a provider."""

    def within(self, seconds: float, messages: Sequence[ModelMessage]) -> ModelRequest:
        """The same with `messages` in place of its own, to be answered in so many seconds."""
        return ModelRequest(messages, self.offer, self.everything, self.tool_choice, seconds, self.language)


class ModelError(Exception):
    """A request that gave no usable answer. `code` is closed; the message is for the log, never for a chat."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
        status: int | None = None,
        request_id: str = "",
        trouble: ModelProblem | None = None,
    ) -> None:
        """`trouble` is what `code` and `status` say, unless the provider said it more precisely."""
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.status = status
        self.request_id = request_id
        self.trouble = trouble or problem_of(code, status)


class ChatModel(Protocol):
    """One language model. Shared by all chats, so it keeps nothing of a conversation."""

    name: str
    """The name in the settings, for logs."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises ModelError, and nothing else that a provider can cause."""

    async def probe(self) -> str:
        """One short line that says the model can be reached, for `rollcall doctor`. Raises ModelError when not."""

    async def close(self) -> None:
        """Free connections; the model is not used afterwards."""


def answer_to_json(answer: ModelAnswer) -> JsonObject:
    """`answer` as plain data, so that a stored answer can be used again after a restart."""
    return {
        "text": answer.text,
        "calls": [call_to_json(call) for call in answer.calls],
        "finish": answer.finish,
        "model": answer.model,
        "request_id": answer.request_id,
        "usage": [answer.usage.prompt, answer.usage.completion, answer.usage.cached],
        "opaque": answer.opaque,
        "final": answer.final,
        "by": answer.by,
    }


def answer_from_json(data: JsonObject) -> ModelAnswer:
    """The answer that `answer_to_json` wrote."""
    return ModelAnswer(
        text=data["text"],
        calls=tuple(call_from_json(call) for call in data["calls"]),
        finish=data["finish"],
        model=data["model"],
        request_id=data["request_id"],
        usage=Usage(*data["usage"]),
        opaque=data["opaque"],
        final=data["final"],
        by=data.get("by", ""),
    )


def call_to_json(call: ToolCall) -> JsonObject:
    """`call` as plain data."""
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "raw": call.raw,
        "fault": call.fault,
        "uncertain": call.uncertain,
    }


def call_from_json(data: JsonObject) -> ToolCall:
    """The call that `call_to_json` wrote."""
    fault = data["fault"]
    return ToolCall(
        id=data["id"],
        name=data["name"],
        arguments=data["arguments"],
        raw=data["raw"],
        fault=ErrorCode(fault) if fault else None,
        uncertain=data["uncertain"],
    )


def message_to_json(message: ModelMessage) -> JsonObject:
    """`message` as plain data."""
    return {
        "role": message.role,
        "content": message.content,
        "calls": [call_to_json(call) for call in message.calls],
        "call_id": message.call_id,
        "opaque": message.opaque,
        "by": message.by,
    }


def message_from_json(data: JsonObject) -> ModelMessage:
    """The message that `message_to_json` wrote."""
    return ModelMessage(
        role=data["role"],
        content=data["content"],
        calls=tuple(call_from_json(call) for call in data["calls"]),
        call_id=data["call_id"],
        opaque=data["opaque"],
        by=data.get("by", ""),
    )


MOST_TOKENS = 1000
MOST_CHARS = 24_000
"""Of all messages of a request together."""


class Unwritten(Enum):
    """Why there are no words."""

    NO_MODEL = "no_model"
    DOWN = "down"
    OVER_BUDGET = "over_budget"
    DECLINED = "declined"
    """Whoever called did not want their own model to be asked."""
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class WordsWanted:
    """What a model is asked; nothing else goes with it."""

    messages: Sequence[ModelMessage]
    """Of the roles `system`, `user` and `assistant`."""
    timeout_seconds: float = 60.0
    """At most; no more than what is left of the run."""
    most_tokens: int = MOST_TOKENS
    """What the model of whoever called is to write at most. The bot's own keeps to its settings."""


class Written(NamedTuple):
    """A model's words."""

    text: str
    is_callers: bool
    """They come from the model of whoever called, and prove no more than the caller's own word."""


class CallersModel(Protocol):
    """The language model that whoever called has."""

    async def write(self, wanted: WordsWanted) -> Written | Unwritten:
        """Its words, or why there are none. May wait for ever, and may be cancelled."""
