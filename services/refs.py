"""Identities, closed vocabularies and JSON types that all layers use."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple, Self


class _Parts(NamedTuple):
    platform: str
    account: str
    native: str
    key: str
    """`platform:account:native`; only `native` may hold colons. Asked for some twenty times for each message."""


class _Ref(_Parts):
    __slots__ = ()

    def __new__(cls, platform: str, account: str, native: str, key: str = "") -> Self:
        """`key` is there for what copies a tuple by its fields, and is made anew."""
        return tuple.__new__(cls, (platform, account, native, f"{platform}:{account}:{native}"))

    @classmethod
    def _make(cls, iterable: Iterable[str]) -> Self:  # type: ignore[override]  # the base says it of a tuple
        return cls(*iterable)

    @classmethod
    def parse(cls, key: str) -> Self:
        """What `key` names. Raises ValueError when it has fewer than three parts."""
        platform, account, native = key.split(":", 2)
        return cls(platform, account, native)


class ChatRef(_Ref):
    """A chat, on one network, as one account of the bot sees it."""

    __slots__ = ()


class MemberRef(_Ref):
    """A person or a bot on one network: the stable id that the platform vouches for, never a display name."""

    __slots__ = ()


class Role(StrEnum):
    """What a member is in a chat, weakest first."""

    MEMBER = "member"
    MODERATOR = "moderator"
    ADMIN = "admin"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """0 for a member up to 3 for an owner."""
        return _RANKS[self]

    @classmethod
    def at_least(cls, least: Role) -> frozenset[Role]:
        """Every role that may do what `least` may."""
        return frozenset(role for role in cls if role.rank >= least.rank)

    def capped(self, most: Role) -> Role:
        """This role, but never more than `most`."""
        return self if self.rank <= most.rank else most


_RANKS = {Role.MEMBER: 0, Role.MODERATOR: 1, Role.ADMIN: 2, Role.OWNER: 3}


class Effect(StrEnum):
    """What running a function does to the world; decides what may be repeated after a crash."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class ErrorCode(StrEnum):
    """Why a call or a model's answer could not be used. Closed: operators and tests rely on the names."""

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


class ModelProblem(StrEnum):
    """What is wrong when a language model gives no usable answer: decides who is asked next, and whether somebody has
    to do something about it."""

    OUTAGE = "outage"  # it cannot be reached, is too slow, or fails by itself
    BUSY = "busy"  # it asks to be left alone for a while
    KEY = "key"  # it refuses the key
    QUOTA = "quota"  # there is no credit left
    MISSING = "missing"  # there is no such model or address
    REQUEST = "request"  # it refuses this request, not others
    TOO_LONG = "too_long"  # the request is longer than it can read
    ANSWER = "answer"  # it answered, and the answer cannot be used
    FILTERED = "filtered"  # it declined to answer


class ReasonCode(StrEnum):
    """How a message ended. Every message has one; `/why` and `rollcall why` explain it from `texts/*.yaml`."""

    # answered
    COMMAND = "command"  # a direct command ran
    FUNCTION = "function"  # the model chose a function
    CHAT = "chat"  # answered in plain words
    ANSWERED_QUESTION = "answered_question"  # it answered an open question
    ASKED = "asked"  # the bot asked back
    TIMER = "timer"  # the time of something that somebody asked for had come
    EXPIRED = "expired"  # nobody answered what a function had asked
    SILENT = "silent"  # handled, and nothing is to be said
    # not for the bot
    NOT_ADDRESSED = "not_addressed"
    OWN_MESSAGE = "own_message"
    FROM_BOT = "from_bot"
    LIKE_A_BOT = "like_a_bot"  # its sender answers the bot as fast as another bot, again and again
    CHAT_NOT_ALLOWED = "chat_not_allowed"
    CHAT_OFF = "chat_off"
    BACKFILLED = "backfilled"
    EMPTY = "empty"
    NOT_A_MESSAGE = "not_a_message"  # joins, leaves, reactions: recorded only
    EDIT_TAKEN = "edit_taken"  # an edit replaced the text of a message that still waits
    EDIT_TOO_LATE = "edit_too_late"  # an edit after the answer: history only
    DELETED = "deleted"
    # refused or failed, and said so
    QUESTION_CLOSED = "question_closed"  # it answers what is decided or over
    UNKNOWN_COMMAND = "unknown_command"
    FILTERED = "filtered"  # a filter stopped it before it was routed
    USAGE = "usage"
    REFUSED = "refused"
    FUNCTIONS_OFF = "functions_off"
    QUEUE_FULL = "queue_full"
    REPLY_DROPPED = "reply_dropped"  # answered, but too much waited to be sent
    STOPPED = "stopped"
    MODEL_FAILED = "model_failed"
    MODEL_DOWN = "model_down"  # no model can be asked, and the chat knows
    OVER_BUDGET = "over_budget"  # a share of the day is used up
    FUNCTION_FAILED = "function_failed"
    UNKNOWN_OUTCOME = "unknown_outcome"
    GAVE_UP = "gave_up"  # the same message failed the process again and again
    WAITING = "waiting"  # not ended yet


JsonValue = Any
JsonObject = dict[str, Any]
