"""ChatModel: protocol of a language model, with its requests, answers and typed errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
    """Problem of an error with `code` and the HTTP `status`, if there was a response. A provider error without a status
    counts as an outage."""
    if code is not ErrorCode.PROVIDER_ERROR:
        return _OF_CODE.get(code, ModelProblem.ANSWER)
    if status is None or status >= 500:
        return ModelProblem.OUTAGE
    if status < 400:
        # Redirects are not followed, so the configured address is wrong.
        return ModelProblem.MISSING
    return _OF_STATUS.get(status, ModelProblem.REQUEST)


@dataclass(frozen=True, slots=True)
class OfferedFunction:
    """Function as it is offered to a model, with its description, schema and examples."""

    name: str
    """Name for the model: 1 to 64 of [A-Za-z0-9_-]."""
    original: str
    """Name in the registry; may contain dots and any letters."""
    description: str
    parameters: JsonObject
    """JSON Schema (draft 7) of an object."""
    examples: tuple[str, ...] = ()
    """Sentences that mean this function; `{slot}` is a placeholder for that parameter's value."""
    writes: bool = False
    """Whether a run has effects, so that a model that only guesses must ask first."""
    commands: tuple[str, ...] = ()
    """Command words, for a model that names the command instead."""
    system_prompt: str = ""
    """With `{schema}`, a placeholder for a sample: replaces the description for models without function calling.
    Without it: usage instructions for every model."""
    is_built_in: bool = False
    """Whether it is one of the functions of this project, for which the offline model knows more phrases."""
    is_set_up: Callable[[], bool] = field(default=lambda: True, compare=False, repr=False)
    """Whether the services it needs are configured; otherwise members are not pointed to it."""
    encoded: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Cache of encoded bytes per protocol name, shared by many offers."""


class SameFunctions(tuple[OfferedFunction, ...]):
    """Hashable cache key of functions: equal if a model sees the same. OfferedFunction itself is not hashable."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(function.original for function in self))


class Offer:
    """Functions offered in one request, in a stable order, also by offered name (`by_name`). Built once per distinct
    set and shared by requests, so that protocols can cache their encoding in `encoded` by protocol name."""

    __slots__ = ("__weakref__", "by_name", "encoded", "functions", "guidance", "names", "tokens")

    def __init__(self, functions: Sequence[OfferedFunction]) -> None:
        self.functions = tuple(functions)
        self.by_name = {function.name: function for function in self.functions}
        self.names = tuple(function.original for function in self.functions)
        """Names in the registry."""
        self.encoded: dict[str, bytes] = {}
        self.tokens: int | None = None
        """Cache of the estimated size; None until it is needed."""
        self.guidance = "\n\n".join(
            f"### {one.name}\n{one.system_prompt.strip()}"
            for one in self.functions
            if one.system_prompt and "{schema}" not in one.system_prompt
        )
        """Usage instructions: all system prompts without `{schema}`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Call requested by a model, decoded without repairing it."""

    id: str
    name: str
    """The name as the model wrote it, without known wrappers such as `functions.`; not yet looked up."""
    arguments: JsonObject | None
    """Decoded arguments; None if they are unreadable (`fault` gives the reason)."""
    raw: str = ""
    """Undecoded arguments, for the log and for the error returned to the model."""
    fault: ErrorCode | None = None
    uncertain: bool = False
    """The call is a guess, or the answer may be incomplete: the member must confirm a run with effects."""
    written: str = ""
    """The name with its wrapper, if `name` is without one. Not stored: it is resolved before."""


class Image(NamedTuple):
    """Picture for models that see."""

    media_type: str
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`."""
    data: str
    """Content in base64."""


UNSEEN = "\n(Pictures are attached, which you cannot see.)"
"""Added to the text of a message whose pictures are not sent."""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """Message of a conversation with a model, independent of its protocol."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Calls of an assistant message."""
    call_id: str = ""
    """For a tool message: the call that it answers."""
    opaque: JsonObject | None = None
    """Fields of an assistant message that the provider requires back verbatim."""
    by: str = ""
    """Configured name of the model that `opaque` belongs to; it is not sent to others."""
    images: tuple[Image, ...] = ()
    """Pictures of a user message. They are never stored."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one request, reported by the provider."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    """Prompt tokens served from the provider's cache."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Answer of a model: text, calls or both. Never empty: an empty answer is a ModelError."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    model: str = ""
    request_id: str = ""
    usage: Usage = Usage()
    opaque: JsonObject | None = None
    final: bool = False
    """No further round follows the calls: the functions' messages are the answer."""
    by: str = ""
    """Configured name of the model that answered."""

    @property
    def has_provider_effects(self) -> bool:
        """Whether the provider itself ran tools for this answer, other than web searches and page loads."""
        types = (str(one.get("type")) for one in (self.opaque or {}).get("anthropic", {}).get("content", ()))
        return any(name.endswith("_tool_result") and not name.startswith("web_") for name in types)

    def attributed_to(self, name: str) -> ModelAnswer:
        """Copy with `by` set to `name`."""
        return replace(self, by=name)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Request to a model: conversation, offered functions, and limits."""

    messages: Sequence[ModelMessage]
    offer: Offer | None = None
    everything: Offer | None = None
    """All callable functions if `offer` is a subset, for models without a cost per function."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the offered name of one function."""
    timeout_seconds: float = 60.0
    """For the whole request, retries included."""
    language: str = "en"
    """The chat's language, for models that produce texts locally."""
    models: tuple[str, ...] | None = None
    """Configured names of the models that may answer, in order; None: all."""
    thinks: bool = False
    """The model should reason longer than usual, if that is configured for it."""

    def within(self, seconds: float, messages: Sequence[ModelMessage]) -> ModelRequest:
        """Copy with `messages` and a timeout of `seconds`."""
        return replace(self, messages=messages, timeout_seconds=seconds)


class ModelError(Exception):
    """A request without a usable answer. `code` is from a closed set; `retryable`: the same request may succeed later.
    The message is only for the log."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
        status: int | None = None,
        request_id: str = "",
        problem: ModelProblem | None = None,
    ) -> None:
        """`problem` defaults to the problem derived from `code` and `status`."""
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.status = status
        self.request_id = request_id
        self.problem = problem or problem_of(code, status)


class ChatModel(Protocol):
    """A language model. Shared by all chats, so it has no conversation state."""

    name: str
    """Name in the settings, for logs."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answer a request. Raises ModelError, and no other exception that a provider can cause."""

    async def probe(self) -> str:
        """One line confirming that the model is reachable, for `rollcall doctor`. Raises ModelError otherwise."""

    async def close(self) -> None:
        """Close the connections; the model cannot be used afterwards."""


_CALL_FIELDS = ("id", "name", "arguments", "raw", "fault", "uncertain")
_MESSAGE_FIELDS = ("role", "content", "calls", "call_id", "opaque", "by")
_ANSWER_FIELDS = ("text", "calls", "finish", "model", "request_id", "usage", "opaque", "final", "by")


def answer_to_json(answer: ModelAnswer) -> JsonObject:
    """Serialize all of `answer` as JSON data, for reuse after a restart."""
    usage = [answer.usage.prompt, answer.usage.completion, answer.usage.cached]
    calls = [call_to_json(call) for call in answer.calls]
    return {**_fields_of(answer, _ANSWER_FIELDS), "calls": calls, "usage": usage}


def answer_from_json(data: JsonObject) -> ModelAnswer:
    """Deserialize an answer from `answer_to_json`. Raises KeyError for missing calls or usage."""
    calls = tuple(call_from_json(call) for call in data["calls"])
    return ModelAnswer(**{**data, "calls": calls, "usage": Usage(*data["usage"])})


def call_to_json(call: ToolCall) -> JsonObject:
    """Serialize all fields of `call` as JSON data."""
    return _fields_of(call, _CALL_FIELDS)


def call_from_json(data: JsonObject) -> ToolCall:
    """Deserialize a call from `call_to_json`. Raises KeyError for a missing fault, and ValueError for an unknown
    one."""
    fault = data["fault"]
    return ToolCall(**{**data, "fault": ErrorCode(fault) if fault else None})


def message_to_json(message: ModelMessage) -> JsonObject:
    """Serialize all fields of `message` except its pictures as JSON data."""
    return {**_fields_of(message, _MESSAGE_FIELDS), "calls": [call_to_json(call) for call in message.calls]}


def message_from_json(data: JsonObject) -> ModelMessage:
    """Deserialize a message from `message_to_json`. Raises KeyError for missing calls."""
    return ModelMessage(**{**data, "calls": tuple(call_from_json(call) for call in data["calls"])})


def _fields_of(value: ModelAnswer | ToolCall | ModelMessage, names: Sequence[str]) -> JsonObject:
    return {name: getattr(value, name) for name in names}


MOST_TOKENS = 1000
MOST_CHARS = 24_000
"""Limit on the total length of a request's messages."""


class NoTextReason(Enum):
    """Reason why a CallersModel or the bot's model wrote no text."""

    NO_MODEL = "no_model"
    DOWN = "down"
    OVER_BUDGET = "over_budget"
    DECLINED = "declined"
    """The caller refused to have its model used."""
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class TextRequest:
    """Request for text; the model gets no other context."""

    messages: Sequence[ModelMessage]
    """With roles `system`, `user` and `assistant`."""
    timeout_seconds: float = 60.0
    """Upper limit; the rest of the run's time applies if it is shorter."""
    most_tokens: int = MOST_TOKENS
    """Token limit for the caller's model. The bot's model uses its settings."""


class WrittenText(NamedTuple):
    """Text written by a model for a TextRequest."""

    text: str
    is_callers: bool
    """Whether it comes from the caller's model, and is no more trustworthy than the caller."""


class CallersModel(Protocol):
    """Language model of the caller, such as an MCP client."""

    async def write(self, request: TextRequest) -> WrittenText | NoTextReason:
        """Write a text, or give the reason why not. May wait indefinitely; can be cancelled."""
