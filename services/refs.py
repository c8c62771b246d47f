"""Identities, closed vocabularies and JSON types that all layers use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Self


class _Parts(NamedTuple):
    platform: str
    account: str
    native: str
    key: str
    """`platform:account:native`; only `native` may contain colons. Stored, because it is read often."""


class _Ref(_Parts):
    __slots__ = ()

    def __new__(cls, platform: str, account: str, native: str, key: str = "") -> Self:
        """`key` is accepted for functions that copy a tuple by its fields, and ignored."""
        return tuple.__new__(cls, (platform, account, native, f"{platform}:{account}:{native}"))

    @classmethod
    def _make(cls, iterable: Iterable[str]) -> Self:  # type: ignore[override]  # the base class returns a plain tuple
        return cls(*iterable)

    @classmethod
    def parse(cls, key: str) -> Self:
        """Parse a key `platform:account:native`. Raises ValueError if it has fewer than three parts."""
        platform, account, native = key.split(":", 2)
        return cls(platform, account, native)


class ChatRef(_Ref):
    """A chat on one network, as seen by one account of the bot."""

    __slots__ = ()


class MemberRef(_Ref):
    """A person or bot on one network, by the stable id that the platform guarantees, never a display name."""

    __slots__ = ()


class Role(StrEnum):
    """Role of a member in a chat, weakest first."""

    MEMBER = "member"
    MODERATOR = "moderator"
    ADMIN = "admin"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """0 for a member to 3 for an owner."""
        return _RANKS[self]

    @classmethod
    def at_least(cls, least: Role) -> frozenset[Role]:
        """All roles with at least the rights of `least`."""
        return frozenset(role for role in cls if role.rank >= least.rank)

    def capped(self, most: Role) -> Role:
        """This role, or `most` if that has fewer rights."""
        return self if self.rank <= most.rank else most


_RANKS = {Role.MEMBER: 0, Role.MODERATOR: 1, Role.ADMIN: 2, Role.OWNER: 3}


class Effect(StrEnum):
    """Effect of a function on the world; determines what may be repeated after a crash."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class ErrorCode(StrEnum):
    """Reason why a call or a model's answer failed. A closed list: operators and tests rely on the names."""

    BAD_ARGUMENTS = "bad_arguments"
    MISSING_ARGUMENTS = "missing_arguments"
    REFUSED = "refused"
    NOT_FOUND = "not_found"
    TRANSIENT = "transient"
    ENVIRONMENT = "environment"
    TIMEOUT = "timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    FAILED = "failed"
    CANCELLED = "cancelled"
    # of a model's answer
    INVALID_JSON = "invalid_json"
    NOT_AN_OBJECT = "not_an_object"
    TRUNCATED = "truncated"
    UNKNOWN_FUNCTION = "unknown_function"
    SCHEMA_MISMATCH = "schema_mismatch"
    MALFORMED_BY_PROVIDER = "malformed_by_provider"
    CONTENT_FILTERED = "content_filtered"
    EMPTY_RESPONSE = "empty_response"
    PROVIDER_ERROR = "provider_error"
    STREAM_INCOMPLETE = "stream_incomplete"
    LEAKED_MARKUP = "leaked_markup"
    TOO_MANY_CALLS = "too_many_calls"


class RequestProblem(Exception):
    """A request that cannot be fulfilled. A handler that raises it fails with this code and text."""

    def __init__(
        self, key: str, code: ErrorCode = ErrorCode.REFUSED, *, fields: Sequence[str] = (), **values: object
    ) -> None:
        """`key` and `values` of the text for members, and the arguments that it is about."""
        super().__init__(key)
        self.key = key
        self.code = code
        self.fields = fields
        self.values = values


class ModelProblem(StrEnum):
    """Reason why a language model gives no usable answer; determines which model is asked next and whether the operator
    has to act."""

    OUTAGE = "outage"  # unreachable, too slow, or an internal error
    BUSY = "busy"  # rate limited
    KEY = "key"  # the key was rejected
    QUOTA = "quota"  # no credit left
    MISSING = "missing"  # unknown model or address
    REQUEST = "request"  # only this request was rejected
    TOO_LONG = "too_long"  # the request exceeds the context length
    ANSWER = "answer"  # the answer cannot be used
    FILTERED = "filtered"  # the model declined to answer


class ReasonCode(StrEnum):
    """How a message was handled. Every message has one; `/why` and `rollcall why` explain it with `texts/*.yaml`."""

    # answered
    COMMAND = "command"  # a direct command ran
    FUNCTION = "function"  # the model chose a function
    CHAT = "chat"  # the model answered in text
    ANSWERED_QUESTION = "answered_question"  # the message answered an open question
    ASKED = "asked"  # the bot asked a question
    TIMER = "timer"  # a timer was due
    EXPIRED = "expired"  # a function's question expired unanswered
    SILENT = "silent"  # handled without a reply
    CHIMED_IN = "chimed_in"  # the bot joined in without being addressed
    GATHERED = "gathered"  # answered together with the sender's message before it
    COLLECTED = "collected"  # what a timer says is sent after the quiet hours
    # not for the bot
    NOT_CHIMED_IN = "not_chimed_in"  # the bot could have joined in, and did not
    MUTED = "muted"  # the chat has muted the bot
    NOT_ADDRESSED = "not_addressed"
    OWN_MESSAGE = "own_message"
    FROM_BOT = "from_bot"
    LIKE_A_BOT = "like_a_bot"  # the sender repeatedly answers the bot as fast as another bot
    CHAT_NOT_ALLOWED = "chat_not_allowed"
    CHAT_OFF = "chat_off"
    BACKFILLED = "backfilled"
    EMPTY = "empty"
    NOT_A_MESSAGE = "not_a_message"  # joins, leaves, reactions: recorded only
    EDIT_TAKEN = "edit_taken"  # an edit replaced the text of a message that was still waiting
    EDIT_TOO_LATE = "edit_too_late"  # an edit after the answer: history only
    DELETED = "deleted"
    # rejected or failed, with a reply
    QUESTION_CLOSED = "question_closed"  # answers a question that is closed
    UNKNOWN_COMMAND = "unknown_command"
    FILTERED = "filtered"  # stopped by a filter before routing
    USAGE = "usage"
    REFUSED = "refused"
    FUNCTIONS_OFF = "functions_off"
    QUEUE_FULL = "queue_full"
    REPLY_DROPPED = "reply_dropped"  # answered, but the outbox was full
    STOPPED = "stopped"
    MODEL_FAILED = "model_failed"
    MODEL_DOWN = "model_down"  # no model is available, and the chat was notified
    OVER_BUDGET = "over_budget"  # a daily budget is used up
    FUNCTION_FAILED = "function_failed"
    UNKNOWN_OUTCOME = "unknown_outcome"
    GAVE_UP = "gave_up"  # the message repeatedly crashed the process
    WAITING = "waiting"  # not ended yet


JsonValue = Any
JsonObject = dict[str, Any]
