"""Turn: one message being answered, and its log of runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from function_calls.call import CallersModel, Resumed
from function_calls.context import MessageContext, Sender
from function_calls.profile import ChatProfile
from function_calls.questions.questions import OpenQuestion
from function_calls.registry import BotFunctions
from function_calls.spec import TAINTING, Approved, Became, FunctionResult, FunctionSpec, Message, Touch
from services.llm.model import ModelAnswer
from services.refs import Effect, MemberRef, Role
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
    effect: Effect = Effect.READ


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

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> Awaitable[None] | None:
        """Note that `run` is about to happen, together with `writes`. It happens when what is returned has come to its
        end: a run with an effect is durable then. None: there is nothing to wait for. Raises Conflict, on the way or
        then, when `writes` cannot be done: then nothing was noted."""

    def result(self, run: Run, result: FunctionResult) -> None:
        """Note how it ended; durable with the next `settle` or the end of the turn."""

    async def settle(self) -> None:
        """Make results of effects durable before anything slow happens."""


class NoTurnLog:
    """Remembers nothing: for calls outside a daemon, and for tests."""

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        return None

    def stored_run(self, key: str) -> StoredRun | None:
        return None

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        return None

    async def until_kept(self) -> None:
        return None

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        return None

    def result(self, run: Run, result: FunctionResult) -> None:
        return None

    async def settle(self) -> None:
        return None


# Looking a member up in its enumeration costs three times a module's name, on the way of every run.
_READ, _ONCE, _NESTED = Effect.READ, Effect.ONCE, Path.NESTED


class Notice(NamedTuple):
    """A sentence that is said once, and not again with every message."""

    text: str
    told: Write
    """What notes that it was said."""
    is_owed: bool = False
    """It is said though a model keeps it to itself: something that it asked for was refused."""


class HistoryLine(NamedTuple):
    """One message of the chat's past."""

    sender_name: str
    text: str
    at_ms: int
    from_bot: bool
    reply_to_name: str = ""
    outside: bool = False
    """The bot's own, with words that may be others'."""


class Past(Protocol):
    """What was said in the chat before the message."""

    async def lines(self) -> Sequence[HistoryLine]:
        """The latest lines that a model may be shown, oldest first."""

    async def recall(self) -> str:
        """The summary of what was said before them; empty where there is none."""


class KnownPast:
    """These lines, and nothing before them."""

    def __init__(self, lines: Sequence[HistoryLine] = ()) -> None:
        self._lines = lines

    async def lines(self) -> Sequence[HistoryLine]:
        return self._lines

    async def recall(self) -> str:
        return ""


class AskedApproval(Protocol):
    """The question for an approval that a message answers, as the chat keeps it."""

    async def claim(self, allows: bool) -> bool:
        """Take it, with whether the answer is a yes, durably: it is answered by this turn and no other. False: another
        one was faster, or it no longer waits."""

    async def claimed(self) -> bool:
        """Whether an earlier attempt of this turn took it: then its answer was found good, and stays so."""

    async def became(self) -> Became:
        """What has become of it."""

    def others_wait(self) -> bool:
        """Whether other questions for an approval wait in the chat."""


class NoApproval:
    """None was asked for."""

    async def claim(self, allows: bool) -> bool:
        return False

    async def claimed(self) -> bool:
        return False

    async def became(self) -> Became:
        return Became()

    def others_wait(self) -> bool:
        return False


async def _no_status(text: str) -> None:
    return None


_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NO_LOG, _NO_PAST, _NO_APPROVAL = NoTurnLog(), KnownPast(), NoApproval()


class Turn:
    """One message being answered. Lives as long as the turn and is given to nobody but routing and invocation."""

    # What most turns never change stands with the class: every message makes a turn, and most of them are one command.
    addressed: bool = True
    can_ask: bool = False
    """Whoever called waits on the line and can be asked, on a way where usually nobody is."""
    callers_model: CallersModel | None = None
    """The language model of whoever called, where it may be asked for words."""
    answering: tuple[OpenQuestion, str] | None = None
    """The question that this message answers, and the answer as it was understood."""
    approval: AskedApproval = _NO_APPROVAL
    """The same question, where a person's yes was asked for."""
    resumed: bool = False
    """Routing has gone on from that question."""
    asked_at: datetime | None = None
    """When that was asked for which this turn is about: of an answer, the message that led to the question."""
    answered: str = ""
    """The argument that the message gives to the run that a question held up, while that runs."""
    ending: frozenset[str] = frozenset()
    """The keys of the runs that may not go on and only come to their end."""
    live_role: Callable[[MemberRef], Awaitable[Role | None]] | None = None
    """What a member is in the chat at this moment. None: there is nobody to ask, and the message's word counts."""
    taint: frozenset[Touch] = frozenset()
    """What this turn has read so far beyond the asker's own words and things."""
    approved: Approved | None = None
    """The yes that the next run may use up."""
    granted: str = ""
    """The code of what the chat has allowed for always in this turn, as /grants shows it."""
    asker: MessageContext | None = None
    """Set where a turn goes on for another member than the one who wrote: whose turn it is."""
    begins: bool = False
    """Whether it is the first one of its chat, in which the bot's beginning runs."""
    effects: int = 0
    """Runs with an effect that were begun: after one there is no chat fallback."""
    reads: bool = False
    """A function that reads what taints was begun, whether it has ended or not."""
    outside: frozenset[str] = frozenset()
    """The keys of the runs that read what taints."""
    runs: int = 0
    resuming: Mapping[str, Resumed] = _NOTHING
    """What runs go on from that have asked the member something before, by the keys of these runs."""
    notices: tuple[Notice, ...] = ()
    """What came up in the turn. What of it is said when the turn ends is noted as told in the same unit."""
    unfinished: Mapping[str, str] = _NOTHING
    """The functions with effect `once` that are running, and those with an effect whose thread goes on after the run
    was cancelled, by the keys of their runs."""
    still_running: frozenset[str] = frozenset()
    """The names of those whose thread goes on."""
    nested: Mapping[str, StoredRun] = _NOTHING
    """The nested runs that have ended. A result that holds when the outer function is tried again stands there too."""
    untold: frozenset[MemberRef] = frozenset()
    """The members whose role nobody told when it was last asked for."""

    def __init__(
        self,
        id: str,  # noqa: A002  # as it is called in the turn
        functions: BotFunctions,
        profile: Callable[[], ChatProfile],
        deadline: float,
        *,
        log: TurnLog = _NO_LOG,
        past: Past = _NO_PAST,
        status: Callable[[str], Awaitable[None]] = _no_status,
    ) -> None:
        self.id = id
        self.functions = functions
        """The snapshot that holds from start to end."""
        self.profile = profile
        """The chat's settings as they are now: asked again at each call."""
        self.deadline = deadline
        """On the clock's `monotonic()`."""
        self.log = log
        self.past = past
        self.status = status
        """Tells the chat what is going on."""
        self.state: dict[str, Any] = {}
        self.said: list[Message] = []
        """What effects have said to the chat so far: it is sent however the turn ends."""

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
        """The function that began last of those that are unfinished: when the turn ends now, nobody knows how it
        ended."""
        return next(reversed(tuple(self.unfinished.values())), "")

    def resume(self, key: str, resumed: Resumed) -> None:
        """Note what the run of `key` goes on from."""
        self.resuming = {**self.resuming, key: resumed}

    def begin(self, run: Run) -> None:
        """Note that `run` is under way."""
        spec = run.spec
        if spec.touches and not spec.touches.isdisjoint(TAINTING):
            self.reads = True
        effect = spec.effect
        if effect is _READ:
            return
        self.effects += 1
        if effect is _ONCE:
            self.unfinished = {**self.unfinished, run.key: spec.name}

    def leave_running(self, run: Run) -> None:
        """Note that `run` was cancelled while its thread goes on, with its effect."""
        self.unfinished = {**self.unfinished, run.key: run.spec.name}
        self.still_running |= {run.spec.name}

    def end(self, run: Run, result: FunctionResult) -> None:
        """Note how `run` ended. What a nested effect gave is given again when the outer function is repeated."""
        spec = run.spec
        if self.unfinished:
            self.unfinished = {
                key: name
                for key, name in self.unfinished.items()
                if key != run.key and not key.startswith(f"{run.key}.")
            }
        if run.path is _NESTED:
            effect = spec.effect
            holds = effect is Effect.ONCE or (effect is Effect.IDEMPOTENT and result.ok)
            if not isinstance(self.nested, dict):
                self.nested = {}
            self.nested[run.key] = StoredRun(spec.name, result if holds else None)
        if spec.touches:
            self.has_read(run.key, spec)
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
        """The unfinished function that the run of `key` began and did not wait for, or empty."""
        if not self.unfinished:
            return ""
        return next((name for one, name in self.unfinished.items() if one.startswith(f"{key}.")), "")
