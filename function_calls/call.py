"""Call: what a handler may know and do during one run. Injected into keyword-only parameters of this type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from services.llm.model import ModelMessage
from services.refs import JsonObject
from services.threads import Threads

if TYPE_CHECKING:
    from function_calls.profile import ChatProfile
    from function_calls.spec import FunctionResult, FunctionSpec, Takeable
    from services.llm.model import OfferedFunction
    from services.refs import Role


ResumedKind = Literal["answered", "cancelled", "expired"]


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a run goes on from that has asked the member something before."""

    state: JsonObject
    """The plain data that the earlier run left."""
    answer: str
    """What the member said; empty where nobody answered."""
    kind: ResumedKind = "answered"
    """`cancelled`: the member said that it should end. `expired`: nobody answered in time; what this run says is not
    shown. A run of either kind asks no more."""
    number: int = 1
    """How many questions the run has asked so far."""


class Doors(Protocol):
    """What a run may reach beyond itself, with the rights of the member whose turn it is."""

    @property
    def threads(self) -> Threads:
        """Where work that blocks belongs."""

    @property
    def asked_at(self) -> datetime | None:
        """When that was asked for which a question held up; None where none did."""

    @property
    def answered(self) -> str:
        """The argument that a question was about and this message gives; empty where it answers none."""

    @property
    def resumed(self) -> Resumed | None:
        """What this run goes on from; None where it begins."""

    @property
    def callers_model(self) -> CallersModel | None:
        """The model of whoever called, where this run may ask it."""

    def count_from(self, at: datetime) -> None:
        """Let `at` be when it was asked for."""

    def functions(self) -> Sequence[FunctionSpec]:
        """The functions that the member may call here, in registration order."""

    def on_request(self) -> Sequence[Takeable]:
        """What the chat may take to hand of which the member may call something here."""

    def is_at_hand(self, spec: FunctionSpec) -> bool:
        """Whether a model is offered `spec` in the chat, as far as that is on request."""

    def find(self, text: str, most: int) -> Sequence[OfferedFunction]:
        """At most so many of those that a model may call here and that fit a text, best first."""

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        number: int,
        *,
        confirmed: bool = False,
        goes_on: Resumed | None = None,
        allowed: str = "",
    ) -> FunctionResult:
        """Run another function, as the nested run of that number."""

    def has_read_outside(self) -> None:
        """Note that the run holds words of others from now on."""

    async def role_now(self) -> Role:
        """What the member is in the chat at this moment."""

    def would_ask(self, spec: FunctionSpec) -> bool:
        """Whether a person would be asked before `spec` runs, for what the turn has read."""

    async def until_kept(self) -> None:
        """Return when the message is durable."""

    async def status(self, text: str) -> None:
        """Tell the chat what is going on."""


class Call:
    """One run of one function."""

    __slots__ = ("_doors", "_nested", "deadline", "key", "profile", "state")

    def __init__(self, key: str, deadline: float, state: dict[str, Any], profile: ChatProfile, doors: Doors) -> None:
        self.key = key
        """The idempotency key: the same when a crashed run is repeated, and no other run has it."""
        self.deadline = deadline
        """On the clock's `monotonic()`; the run is cancelled then."""
        self.state = state
        """Carried through the turn: what one call writes, the next call of the turn reads."""
        self.profile = profile
        """The chat's language, time zone and texts."""
        self._doors = doors
        self._nested = 0

    @property
    def threads(self) -> Threads:
        """Where work that blocks belongs: `await call.threads.run(f, …)`."""
        return self._doors.threads

    @property
    def asked_at(self) -> datetime | None:
        """When that was asked for which a question held up: `in 10 minutes` counts from there, not from the answer or
        the yes. None where nothing held it up."""
        return self._doors.asked_at

    @property
    def answered(self) -> str:
        """The argument that a question was about and this message gives; empty where it answers none."""
        return self._doors.answered

    @property
    def resumed(self) -> Resumed | None:
        """Where this run goes on that has asked the member something with `FunctionResult.ask`: what it left, and the
        answer. None where it begins."""
        return self._doors.resumed

    @property
    def callers_model(self) -> CallersModel | None:
        """The model of whoever called, where this run may ask it. The port `Words` asks it or the bot's own."""
        return self._doors.callers_model

    def count_from(self, at: datetime) -> None:
        """Let `at` be when it was asked for, in further questions too: an answer that says when counts from itself."""
        self._doors.count_from(at)

    def functions(self) -> Sequence[FunctionSpec]:
        """The functions that this member may call here, in registration order."""
        return self._doors.functions()

    def on_request(self) -> Sequence[Takeable]:
        """The functions and groups that the chat may take to hand, or has; those of which this member may call
        something here."""
        return self._doors.on_request()

    def is_at_hand(self, spec: FunctionSpec) -> bool:
        """Whether the chat has `spec` at hand, by its name or by a group's; always so for what is not on request."""
        return self._doors.is_at_hand(spec)

    def find(self, text: str, most: int) -> Sequence[OfferedFunction]:
        """At most so many of those that a model may call here for this member and that fit a text, best first."""
        return self._doors.find(text, most)

    def say(self, key: str, **values: object) -> str:
        """The sentence `key` of `config/texts/` in the chat's language."""
        return self.profile.texts.say(key, **values)

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        confirmed: bool = False,
        goes_on: Resumed | None = None,
        allowed: str = "",
    ) -> FunctionResult:
        """Run another function with the same member's rights. Nested at most 4 deep. `confirmed`: the member was asked
        what the function wants confirmed, and said yes. `goes_on`: it is the run that asked something in its midst,
        which this one passed on as its own question; `allowed` is what that question said of a yes."""
        number = self._nested
        self._nested += 1
        result = await self._doors.invoke(
            name, arguments, number, confirmed=confirmed, goes_on=goes_on, allowed=allowed
        )
        return result.from_nested()

    def has_read_outside(self) -> None:
        """Note that this run holds words of others from now on, before it ends and its result says so: what it then
        calls is judged by it."""
        self._doors.has_read_outside()

    def begin(self) -> None:
        """The handler is about to run, perhaps once more: its nested runs are counted anew, so that each is the same
        run as the last time."""
        self._nested = 0

    async def role_now(self) -> Role:
        """What whoever asks is in the chat at this moment, as the platform tells; a mere member where it does not."""
        return await self._doors.role_now()

    def would_ask(self, spec: FunctionSpec) -> bool:
        """Whether words from outside may have led to a run of `spec` now: a person would be asked before it."""
        return self._doors.would_ask(spec)

    async def until_kept(self) -> None:
        """Return when the message of this run is durable, for filters that count: a quick read may be run for one that
        turns out to be known already. Raises StoreError where it is none."""
        await self._doors.until_kept()

    async def status(self, text: str) -> None:
        """Tell the chat what is going on while this takes long; never kept in history."""
        await self._doors.status(text)


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
