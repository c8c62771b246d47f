"""Turn: one message being answered, as routing and invocation see it; and its outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from function_calls.approval_terms import Approved, Became
from function_calls.call import Resumed
from function_calls.context import MessageContext, Sender
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.spec import TAINTING, FunctionResult, FunctionSpec, Message, Question, Touch
from function_calls.words import CallersModel
from services.json_values import JsonObject
from services.llm.model import ModelAnswer
from services.quick_init import quick_init
from services.refs import Effect, ErrorCode, MemberRef, ReasonCode, Role
from services.store.port import Write


class Path(StrEnum):
    """The way by which a run came about."""

    COMMAND = "command"
    MODEL = "model"
    TIMER = "timer"
    API = "api"
    MCP = "mcp"
    CLI = "cli"
    NESTED = "nested"  # a handler called another function


# Looking a member up in its enumeration costs three times a module's name, on the way of every run.
_READ, _ONCE, _NESTED = Effect.READ, Effect.ONCE, Path.NESTED


class Run(NamedTuple):
    """One run of a function, as the ledger and the call log know it."""

    key: str
    spec: FunctionSpec
    arguments: Any
    path: Path
    round_number: int
    request_id: str
    """The model request that asked for it; empty for commands."""


class StoredRun(NamedTuple):
    """What is known of a run from before a restart."""

    function: str
    result: FunctionResult | None
    """None: it was begun, and nobody knows how it ended."""


class Notice(NamedTuple):
    """A sentence that is said once, and not again with every message."""

    text: str
    told: Write
    """What notes that it was said."""
    is_owed: bool = False
    """It is said though a model keeps it to itself: something that it asked for was refused."""


class TurnLog(Protocol):
    """What a turn must remember to survive a crash. The order of these calls is the order of what is durable."""

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        """The model's answer in that round, from before a restart. What the turn had read when it came, it has then
        read again."""

    def stored_run(self, key: str) -> StoredRun | None:
        """The run of that key, from before a restart. What the turn had read when it ended, it has then read again."""

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        """Note an answer, together with `writes`; durable with the next intent, or with the end of the turn."""

    async def until_kept(self) -> None:
        """Return when the message that the turn answers is durable: before that, nothing is done that costs or that
        others notice. Raises StoreError when there is no such message: then the turn is none."""

    async def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        """Note that `run` is about to happen, together with `writes`. Durable on return when the run has an effect.
        Raises Conflict when `writes` cannot be done: then nothing was noted."""

    def result(self, run: Run, result: FunctionResult) -> None:
        """Note how it ended; durable with the next `settle` or the end of the turn."""

    async def settle(self) -> None:
        """Make results of effects durable before anything slow happens."""


class MemoryTurnLog:
    """Remembers nothing beyond the turn: for calls outside a daemon, and for tests."""

    def __init__(self) -> None:
        self.runs: list[tuple[Run, FunctionResult]] = []

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        return None

    def stored_run(self, key: str) -> StoredRun | None:
        return None

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        return None

    async def until_kept(self) -> None:
        return None

    async def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        return None

    def result(self, run: Run, result: FunctionResult) -> None:
        self.runs.append((run, result))

    async def settle(self) -> None:
        return None


class HistoryLine(NamedTuple):
    """One message of the chat's past."""

    sender_name: str
    text: str
    at_ms: int
    from_bot: bool
    reply_to_name: str = ""
    outside: bool = False
    """The bot's own, with words that may be others'."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a turn that asked a question goes on: plain data, so that it survives a restart."""

    path: str
    fingerprint: str
    """Of the spec when it was asked: a function that has changed since is not run on an old answer."""
    state: JsonObject
    transcript: Sequence[JsonObject] = ()
    """The model conversation so far; empty for a command."""
    call_id: str = ""
    """The model's call that the question interrupted."""
    calls: Sequence[JsonObject] = ()
    """The calls of the same answer that have not run."""
    rounds: int = 0
    final: bool = False
    """The model is not asked again after the calls."""
    asked: Sequence[str] = ()
    """Parameters that were asked for already: none is asked twice."""
    uncertain: bool = False
    """The model only guessed that this is meant: a yes is asked for before it runs."""
    taint: Sequence[str] = ()
    """What the turn has read, as `Turn.taint` has it."""
    asked_at: float | None = None
    """When the message came that led here, in seconds since 1970; None where nobody knows."""
    remembered: JsonObject = field(default_factory=dict)
    """What the rounds with the model knew of what they had done; empty for a command."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer."""

    question: Question
    continuation: Continuation
    id: int = 0
    asker: MessageContext | None = None
    """Of one that a handler asked: whose run it is and where, without the words. The handler is told even when no
    answer comes."""
    private: bool = False
    """Nobody else in the chat was shown it."""


async def _no_status(text: str) -> None:
    return None


async def _no_summary() -> str:
    return ""


async def _not_waiting() -> bool:
    return False


async def _not_to_be_had(allows: bool) -> bool:
    return False


async def _nothing_became() -> Became:
    return Became()


def _no_others() -> bool:
    return False


async def _no_history() -> Sequence[HistoryLine]:
    return ()


@dataclass(slots=True)
class Turn:
    """One message being answered. Lives as long as the turn and is given to nobody but routing and invocation."""

    id: str
    functions: BotFunctions
    """The snapshot that holds from start to end."""
    profile: Callable[[], ChatProfile]
    """The chat's settings as they are now: asked again at each call."""
    deadline: float
    """On the clock's `monotonic()`."""
    log: TurnLog = field(default_factory=MemoryTurnLog)
    addressed: bool = True
    can_ask: bool = False
    """Whoever called waits on the line and can be asked, on a way where usually nobody is."""
    callers_model: CallersModel | None = None
    """The language model of whoever called, where it may be asked for words."""
    answering: tuple[OpenQuestion, str] | None = None
    """The question that this message answers, and the answer as it was understood."""
    resumed: bool = False
    """Routing has gone on from that question."""
    asked_at: datetime | None = None
    """When that was asked for which this turn is about: of an answer, the message that led to the question."""
    answered: str = ""
    """The argument that the message gives to the run that a question held up, while that runs."""
    resuming: dict[str, Resumed] = field(default_factory=dict)
    """What runs go on from that have asked the member something before, by the keys of these runs."""
    ending: frozenset[str] = frozenset()
    """The keys of those that may not go on and only come to their end."""
    history: Callable[[], Awaitable[Sequence[HistoryLine]]] = _no_history
    recall: Callable[[], Awaitable[str]] = _no_summary
    """The summary of what was said before `history`; empty where there is none."""
    status: Callable[[str], Awaitable[None]] = _no_status
    live_role: Callable[[MemberRef], Awaitable[Role | None]] | None = None
    """What a member is in the chat at this moment. None: there is nobody to ask, and the message's word counts."""
    taint: frozenset[Touch] = frozenset()
    """What this turn has read so far beyond the asker's own words and things."""
    claim: Callable[[bool], Awaitable[bool]] = _not_to_be_had
    """Take the question for an approval that this message answers, with whether it is a yes, durably: it is answered by
    this turn and no other. False: another one was faster, or it no longer waits."""
    claimed: Callable[[], Awaitable[bool]] = _not_waiting
    """Whether an earlier attempt of this turn took it: then its answer was found good, and stays so."""
    became: Callable[[], Awaitable[Became]] = _nothing_became
    """What has become of that question."""
    others_wait: Callable[[], bool] = _no_others
    """Whether other questions for an approval wait in the chat."""
    approved: Approved | None = None
    """The yes that the next run may use up."""
    granted: str = ""
    """The code of what the chat has allowed for always in this turn, as /grants shows it."""
    asker: MessageContext | None = None
    """Set where a turn goes on for another member than the one who wrote: whose turn it is."""
    begins: bool = False
    """Whether it is the first one of its chat, in which the bot's beginning runs."""
    state: dict[str, Any] = field(default_factory=dict)
    effects: int = 0
    """Runs with an effect that were begun: after one there is no chat fallback."""
    said: list[Message] = field(default_factory=list)
    """What effects have said to the chat so far: it is sent however the turn ends."""
    notices: list[Notice] = field(default_factory=list)
    """What came up in the turn. What of it is said when the turn ends is noted as told in the same unit."""
    unfinished: dict[str, str] = field(default_factory=dict)
    """The functions with effect `once` that are running, by the keys of their runs."""
    nested: dict[str, StoredRun] = field(default_factory=dict)
    """The nested runs that have ended. A result that holds when the outer function is tried again stands there too."""
    reads: bool = False
    """A function that reads what taints was begun, whether it has ended or not."""
    outside: frozenset[str] = frozenset()
    """The keys of the runs that read what taints."""
    runs: int = 0
    untold: frozenset[MemberRef] = frozenset()
    """The members whose role nobody told when it was last asked for."""

    @property
    def asked_at_seconds(self) -> float | None:
        """`asked_at` as a Continuation keeps it."""
        return None if self.asked_at is None else self.asked_at.timestamp()

    def whose(self, context: MessageContext) -> MessageContext:
        """The message whose sender's turn this is: of an approval the one that asked for it, else `context`, which is
        being answered."""
        terms = self.answering[0].question.terms if self.answering is not None else None
        return context if terms is None else terms.asker

    async def role_now(self, sender: Sender) -> Role:
        """The sender's role at this moment. Who gets no answer has no privilege, and stands in `untold`: that is no
        word that they are a mere member."""
        if self.live_role is None:
            return sender.role
        role = await self.live_role(sender.ref)
        if role is None:
            self.untold |= {sender.ref}
            return Role.MEMBER
        self.untold -= {sender.ref}
        return role

    def next_key(self) -> str:
        """The key of the next run that no other run asks for: the same on every attempt of this turn."""
        key = f"{self.id}:{self.runs}"
        self.runs += 1
        return key

    @property
    def in_flight(self) -> str:
        """The function with effect `once` that began last of those that are running: when the turn ends now, nobody
        knows how it ended."""
        return next(reversed(self.unfinished.values()), "")

    def begin(self, run: Run) -> None:
        """Note that `run` is under way."""
        if run.spec.touches and not run.spec.touches.isdisjoint(TAINTING):
            self.reads = True
        effect = run.spec.effect
        if effect is _READ:
            return
        self.effects += 1
        if effect is _ONCE:
            self.unfinished[run.key] = run.spec.name

    def end(self, run: Run, result: FunctionResult) -> None:
        """Note how `run` ended. What a nested effect gave is given again when the outer function is repeated."""
        if self.unfinished:
            for one in [key for key in self.unfinished if key == run.key or key.startswith(f"{run.key}.")]:
                del self.unfinished[one]
        if run.path is _NESTED:
            effect = run.spec.effect
            holds = effect is Effect.ONCE or (effect is Effect.IDEMPOTENT and result.ok)
            self.nested[run.key] = StoredRun(run.spec.name, result if holds else None)
        if run.spec.touches:
            self.has_read(run.key, run.spec)
        if result.context_updates:
            self.state.update(result.context_updates)

    def has_read(self, key: str, spec: FunctionSpec) -> None:
        """Note what the run of `key`, of `spec`, brought into the turn."""
        if not spec.touches.isdisjoint(TAINTING):
            self.taint |= spec.touches & TAINTING
            self.outside |= {key}

    def holds_words_of_others(self, key: str) -> None:
        """Note that the result of the run of `key` says that it does, whatever its function declares."""
        self.taint |= {Touch.READS_OUTSIDE}
        self.outside |= {key}

    def is_from_outside(self, run: Run) -> bool:
        """Whether `run`, or one within it, has read what taints."""
        if not run.spec.touches.isdisjoint(TAINTING):
            return True
        return bool(self.outside) and any(key.startswith(f"{run.key}.") for key in self.outside)

    def abandoned_by(self, key: str) -> str:
        """The function with effect `once` that the run of `key` began and did not wait for, or empty."""
        if not self.unfinished:
            return ""
        return next((name for one, name in self.unfinished.items() if one.startswith(f"{key}.")), "")


class OutcomeKind(StrEnum):
    """What is left to do after `dispatch`."""

    SENT = "sent"  # there are messages to send
    SILENT = "silent"  # handled, and nothing is to be said
    FALLBACK = "fallback"  # not handled: answer as chat


@quick_init
@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The end of a turn. True when it was handled."""

    kind: OutcomeKind
    reason: ReasonCode
    messages: tuple[Message, ...] = ()
    question: OpenQuestion | None = None
    error: ErrorCode | None = None
    detail: str = ""
    """A function's name, a settings key or a short id, for `/why`."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.kind is not OutcomeKind.FALLBACK


def sent(
    reason: ReasonCode, messages: Sequence[Message], detail: str = "", error: ErrorCode | None = None
) -> TurnOutcome:
    """Messages to send; without any, handled in silence."""
    if not messages:
        return TurnOutcome(OutcomeKind.SILENT, reason, detail=detail, error=error)
    return TurnOutcome(OutcomeKind.SENT, reason, tuple(messages), detail=detail, error=error)


Dispatch = Callable[[MessageContext, Turn], Awaitable[TurnOutcome]]
