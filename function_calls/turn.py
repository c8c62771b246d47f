"""Turn: the processing of one message, as its input, its memory and its output; and the log of its runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import orjson

from function_calls.call import Path
from function_calls.context import MessageContext, Sender
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.spec import (
    TAINTING,
    ApprovalOutcome,
    ApprovalQuestion,
    ApprovalTerms,
    Approved,
    FunctionResult,
    FunctionSpec,
    Message,
    Question,
    Resumed,
    Touch,
)
from services.llm.model import CallersModel, Image, ModelAnswer
from services.refs import Effect, JsonObject, MemberRef, Role
from services.store.chats.memory import Note
from services.store.port import Write

FOUND_URLS = "found_urls"
"""Metadata key of results of the configured search: the web addresses that it found, which a model may open."""
PUBLIC = "public"
"""Metadata key of results: whether they contain public data only. Missing: if the function sends its arguments out."""
SOURCES = "sources"
"""Metadata key of results from documents: the place by file name. A model's answer has to name one of the files."""
_MOST_TEXT = 50_000


class Run(NamedTuple):
    """A run of a function, as recorded in the ledger and the call log."""

    key: str
    spec: FunctionSpec
    arguments: Any
    path: Path
    round_number: int
    request_id: str
    """Id of the model request that contained the call; empty for commands."""


class StoredRun(NamedTuple):
    """Record of a run from before a restart."""

    function: str
    result: FunctionResult | None
    """None: the run started, and its outcome is unknown."""
    effect: Effect = Effect.READ


class TurnLog(Protocol):
    """Durable records of a turn, for recovery after a crash. Records become durable in the order of these calls."""

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        """The model's answer in that round, from before a restart. The data labels of the turn at that time are
        restored."""

    def stored_run(self, key: str) -> StoredRun | None:
        """The run of that key, from before a restart. The data labels of the turn at its end are restored."""

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        """Record an answer together with `writes`; durable with the next intent, or with the end of the turn."""

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> Awaitable[None] | None:
        """Record that `run` is about to start, together with `writes`. The record of an effect is durable when the
        returned awaitable completes; None means there is nothing to await. Raises Conflict, here or when awaited, if
        `writes` cannot be applied; nothing is recorded then."""

    def result(self, run: Run, result: FunctionResult) -> None:
        """Record the result; durable with the next `settle` or the end of the turn."""

    async def settle(self) -> None:
        """Make the results of effects durable before a slow operation."""


class NoTurnLog:
    """Records nothing; for calls outside a daemon, and for tests."""

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        return None

    def stored_run(self, key: str) -> StoredRun | None:
        return None

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        return None

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        return None

    def result(self, run: Run, result: FunctionResult) -> None:
        return None

    async def settle(self) -> None:
        return None


class Notice(NamedTuple):
    """A text that is sent once instead of with every message."""

    text: str
    sent_record: Write
    """Write that records the text as sent."""
    is_required: bool = False
    """Sent even if the model's reply leaves it out, because a call of the model was refused."""


class HistoryLine(NamedTuple):
    """A message in the chat's history."""

    sender_name: str
    text: str
    at_ms: int
    from_bot: bool
    reply_to_name: str = ""
    outside: bool = False
    """A message of the bot that may contain outside text."""
    sender: str = ""
    """Key of the sending member; empty for the bot."""


class ChatHistory(Protocol):
    """Chat history before the message."""

    async def lines(self) -> Sequence[HistoryLine]:
        """The latest lines that a model may be shown, oldest first."""

    async def recall(self) -> str:
        """Summary of the messages before these lines, or empty."""


class FixedHistory:
    """History of fixed lines, without a summary."""

    def __init__(self, lines: Sequence[HistoryLine] = ()) -> None:
        self._lines = lines

    async def lines(self) -> Sequence[HistoryLine]:
        return self._lines

    async def recall(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Continuation:
    """Saved state of a turn that asked a question: plain data, so that it survives a restart."""

    path: str
    fingerprint: str
    """`FunctionSpec.fingerprint` when the question was asked; a function that has changed since is not run."""
    state: JsonObject
    transcript: Sequence[JsonObject] = ()
    """The model conversation so far; empty for a command."""
    call_id: str = ""
    """The model's call that the question interrupted."""
    calls: Sequence[JsonObject] = ()
    """Calls of the same model answer that have not run yet."""
    rounds: int = 0
    final: bool = False
    """The model is not asked again after the calls."""
    asked: Sequence[str] = ()
    """Parameters that were asked for already; none is asked for twice."""
    uncertain: bool = False
    """The model only guessed the function, so it needs a confirmation before it runs."""
    taint: Sequence[str] = ()
    """`TurnMemory.taint` of the turn."""
    asked_at: float | None = None
    """Time of the request in seconds since 1970; None if unknown."""
    remembered: JsonObject = field(default_factory=dict)
    """Progress of the model rounds; empty for a command."""
    words: Sequence[str] = ()
    """`TurnMemory.words` of the turn."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer."""

    question: Question
    continuation: Continuation
    id: int = 0
    asker: MessageContext | None = None
    """The request without its text, if a run waits for the answer: that run is notified when no answer comes."""
    private: bool = False
    """Only the asker was shown the question."""

    @property
    def terms(self) -> ApprovalTerms | None:
        """Terms of an approval question; None for the other kinds, which are addressed to a single member."""
        return self.question.terms if isinstance(self.question, ApprovalQuestion) else None


class AskedApproval(Protocol):
    """Stored state of the approval question that the message answers."""

    async def claim(self, allows: bool) -> bool:
        """Durably record that this turn answers the question. False: another turn was faster, or it is closed."""

    async def claimed(self) -> bool:
        """Whether an earlier attempt of this turn claimed it; the answer was accepted then and stays accepted."""

    async def how_closed(self) -> ApprovalOutcome:
        """How it was closed."""

    def others_wait(self) -> bool:
        """Whether other approval questions are open in the chat."""


class NoApproval:
    """Null object for turns that answer no approval question."""

    async def claim(self, allows: bool) -> bool:
        return False

    async def claimed(self) -> bool:
        return False

    async def how_closed(self) -> ApprovalOutcome:
        return ApprovalOutcome()

    def others_wait(self) -> bool:
        return False


class Attached(NamedTuple):
    """Files of a message and of the message that it quotes, as a model is given them."""

    images: tuple[Image, ...] = ()
    lines: tuple[str, ...] = ()
    """One for each file: its placeholder, and why it is not shown if it is not."""
    documents: tuple[tuple[str, str], ...] = ()
    """Names and texts of documents, which are foreign data."""
    problems: tuple[str, ...] = ()
    """Sentences for the chat on files that were refused."""
    is_outside: bool = False
    """Whether anything comes from others than the asker, or from a document."""


def _always(value: Any) -> Callable[..., Awaitable[Any]]:
    """Null object for a port with one operation, which returns `value`."""

    async def answer(*_: object) -> Any:
        return value

    return answer


_NO_LOG, _NO_PAST, _NO_APPROVAL = NoTurnLog(), FixedHistory(), NoApproval()
_NOTHING, _NO_NOTES, _NO_FILES = _always(None), _always(()), _always(Attached())


@dataclass(frozen=True, slots=True)
class TurnInput:
    """Facts and services provided to a turn at its start."""

    id: str
    functions: BotFunctions
    """Snapshot of the bot's functions; unchanged by a reload during the turn."""
    profile: Callable[[], ChatProfile]
    """Returns the chat's current settings, which may change during the turn."""
    log: TurnLog = _NO_LOG
    history: ChatHistory = _NO_PAST
    status: Callable[[str], Awaitable[None]] = _NOTHING
    """Shows a progress text in the chat."""
    addressed: bool = True
    """Whether the message is addressed to the bot."""
    answering: tuple[OpenQuestion, str] | None = None
    """The question that the message answers, and the text of the answer."""
    approval: AskedApproval = _NO_APPROVAL
    """The stored state of that question, if it asks for an approval."""
    live_role: Callable[[MemberRef], Awaitable[Role | None]] | None = None
    """Looks up a member's current role. None: the role in the message is used."""
    can_ask: bool = False
    """The caller can be asked although the path (API, MCP, CLI, timer) usually has nobody to ask."""
    callers_model: CallersModel | None = None
    """The caller's language model, if functions may use it."""
    own_zone: Callable[[], Awaitable[str | None]] = _NOTHING
    """Returns the IANA name of the time zone that the asker has set; None if they have set none."""
    recall: Callable[[Sequence[str], str], Awaitable[Sequence[Note]]] = _NO_NOTES
    """Returns the notes on the members with these keys (the asker's first) and on the chat that may be shown here,
    those that fit the text best first."""
    attached: Callable[[], Awaitable[Attached]] = _NO_FILES
    """Reads the files of the message for a model."""
    network: str = ""
    """Sentence for models about the texts that the network can show, or empty."""
    leave_queue: Callable[[], bool] | None = None
    """Lets the next turn of the chat begin while this one continues. False: too many do. None: it waits in no queue."""


@dataclass(slots=True)
class TurnMemory:
    """State of a turn while it runs: its runs, the labels of data read so far, and the question it continues from."""

    state: dict[str, Any] = field(default_factory=dict)
    """Values that one call writes and later calls of the turn read (`FunctionResult.context_updates`)."""
    taint: frozenset[Touch] = frozenset()
    """Labels of the data read so far beyond the asker's own words and things."""
    reads: bool = False
    """A function with a label in `TAINTING` has started, whether or not it has ended."""
    outside: frozenset[str] = frozenset()
    """Keys of the runs whose results contain outside text."""
    words: tuple[str, ...] = ()
    """Texts of the asker that belong to this request: the message, and the messages and answers before it if the turn
    continues from a question. Oldest first."""
    vouched: frozenset[str] = frozenset()
    """Names of the functions with calls that the asker's words stand for."""
    found_urls: frozenset[str] = frozenset()
    """Web addresses in the results of the configured search in this turn."""
    sources: dict[str, str] = field(default_factory=dict)
    """Places of the documents that were read in this turn, by file name."""
    private_texts: tuple[str, ...] = ()
    """Results in this turn that are not public, as text."""
    effects: int = 0
    """Number of started runs with an effect; if any, there is no chat fallback."""
    runs: int = 0
    """Number of run keys that have been issued."""
    nested: dict[str, StoredRun] = field(default_factory=dict)
    """Nested runs that have ended, by key. Results that stay valid when the outer function is retried are included."""
    unfinished: Mapping[str, str] = field(default_factory=dict)
    """Functions by run key: running `once` effects, and cancelled effects whose thread is still running."""
    still_running: frozenset[str] = frozenset()
    """Names of the functions whose thread is still running after the cancellation."""
    running: FunctionSpec | None = None
    """The function that started last, if it is running and not nested; shown as the status of a long turn."""
    place: tuple[int, int] = (1, 1)
    """Number of the running call in the model's answer, and the number of calls in it."""
    asked_at: datetime | None = None
    """Time of the request. For an answer, it is the time of the message that led to the question."""
    answered: str = ""
    """The argument that the message supplies to the run that a question had interrupted; empty outside that run."""
    resumed: bool = False
    """The turn continues from an answered question."""
    resuming: Mapping[str, Resumed] = field(default_factory=dict)
    """Saved state of runs that continue after a question, by run key."""
    ending: frozenset[str] = frozenset()
    """Keys of the runs that may only clean up and end."""
    approved: Approved | None = None
    """Approval that the next runs may consume."""
    rejected: frozenset[str] = frozenset()
    """Digests of runs that a member has rejected in this turn; they are not asked for again."""
    asker: MessageContext | None = None
    """The message whose sender the turn acts for, if that is not the sender of the answered message."""
    unknown_roles: frozenset[MemberRef] = frozenset()
    """Members whose role the platform did not report at the last request."""

    @property
    def asked_at_seconds(self) -> float | None:
        """`asked_at` in seconds since 1970, as a Continuation stores it."""
        return None if self.asked_at is None else self.asked_at.timestamp()

    @property
    def in_flight(self) -> str:
        """Name of the unfinished function that started last, or empty. If the turn ends now, its outcome is unknown."""
        return next(reversed(tuple(self.unfinished.values())), "")

    def resume(self, key: str, resumed: Resumed) -> None:
        """Set the state from which the run of `key` continues."""
        self.resuming = {**self.resuming, key: resumed}

    def begin(self, run: Run) -> None:
        """Record the start of `run`."""
        spec = run.spec
        if run.path is not Path.NESTED:
            self.running = spec
        if not spec.execution.touches.isdisjoint(TAINTING):
            self.reads = True
        if spec.execution.effect is Effect.READ:
            return
        self.effects += 1
        if spec.execution.effect is Effect.ONCE:
            self.unfinished = {**self.unfinished, run.key: spec.name}

    def leave_running(self, run: Run) -> None:
        """Record that `run` was cancelled while its thread, and so its effect, continues."""
        self.unfinished = {**self.unfinished, run.key: run.spec.name}
        self.still_running |= {run.spec.name}

    def end(self, run: Run, result: FunctionResult) -> None:
        """Record the result of `run`. Nested effects return it again when the outer function is retried."""
        spec = run.spec
        if self.unfinished:
            self.unfinished = {
                key: name
                for key, name in self.unfinished.items()
                if key != run.key and not key.startswith(f"{run.key}.")
            }
        if run.path is not Path.NESTED:
            self.running = None
        else:
            holds = spec.execution.effect is Effect.ONCE or (spec.execution.effect is Effect.IDEMPOTENT and result.ok)
            self.nested[run.key] = StoredRun(spec.name, result if holds else None)
        if spec.execution.touches:
            self.note_read(run.key, spec)
        self.state.update(result.context_updates)

    def note_read(self, key: str, spec: FunctionSpec) -> None:
        """Add the labels of the data that the run of `key`, of `spec`, has read."""
        if not spec.execution.touches.isdisjoint(TAINTING):
            self.taint |= spec.execution.touches & TAINTING
            self.outside |= {key}

    def mark_outside(self, key: str) -> None:
        """Record that the result of the run of `key` contains outside text, whatever its function declares."""
        self.taint |= {Touch.READS_OUTSIDE}
        self.outside |= {key}

    def is_from_outside(self, run: Run) -> bool:
        """Whether `run`, or a run nested in it, has read data with a label in `TAINTING`."""
        if not run.spec.execution.touches.isdisjoint(TAINTING):
            return True
        return bool(self.outside) and any(key.startswith(f"{run.key}.") for key in self.outside)

    def note_texts(self, run: Run, result: FunctionResult) -> None:
        """Note what `result` may contain that other services must not learn, and the addresses that a search found."""
        if run.path is not Path.MODEL or result.error is not None:
            return
        self.found_urls |= frozenset(result.metadata.get(FOUND_URLS, ()))
        self.sources = {**self.sources, **result.metadata.get(SOURCES, {})}
        if not result.metadata.get(PUBLIC, Touch.SENDS_OUT in run.spec.execution.touches):
            text = orjson.dumps((result.data, result.reply), default=str).decode()
            self.private_texts += (text[:_MOST_TEXT],)

    def abandoned_by(self, key: str) -> str:
        """Name of the unfinished function that the run of `key` started and did not await, or empty."""
        if not self.unfinished:
            return ""
        return next((name for nested, name in self.unfinished.items() if nested.startswith(f"{key}.")), "")


@dataclass(slots=True)
class TurnOutput:
    """Results of a turn for its end, in addition to the outcome of routing."""

    said: list[Message] = field(default_factory=list)
    """Messages of effects for the chat; sent however the turn ends."""
    notices: tuple[Notice, ...] = ()
    """One-time notices. Those that are sent at the end are recorded as sent in the same unit."""
    granted: str = ""
    """Code of the reusable approval that the chat has given in this turn, as /grants shows it."""
    ran_start_function: bool = False
    """The chat's start function has run in this turn."""


class Turn:
    """Processing of one message. Passed to routing and invocation only."""

    __slots__ = ("deadline", "input", "memory", "output")

    def __init__(self, input: TurnInput, deadline: float) -> None:  # noqa: A002 - the counterpart of `output`
        self.input = input
        self.deadline = deadline
        """On the clock's `monotonic()`."""
        self.memory = TurnMemory()
        self.output = TurnOutput()

    def request_of(self, context: MessageContext) -> MessageContext:
        """The message whose sender the turn acts for: for an approval the request, else `context`, the message that is
        being answered."""
        answering = self.input.answering
        terms = answering[0].terms if answering is not None else None
        return context if terms is None else terms.asker

    async def role_now(self, sender: Sender) -> Role:
        """The sender's current role. If the platform does not report it, MEMBER, and the sender is added to
        `memory.unknown_roles`."""
        if self.input.live_role is None:
            return sender.role
        role = await self.input.live_role(sender.ref)
        if role is None:
            self.memory.unknown_roles |= {sender.ref}
            return Role.MEMBER
        self.memory.unknown_roles -= {sender.ref}
        return role

    def leave_queue(self, deadline: float) -> bool:
        """Leave the queue of the chat, with a new `deadline`; False if too many turns of the chat have left it. A turn
        without a queue keeps its deadline."""
        if self.input.leave_queue is None:
            return True
        if not self.input.leave_queue():
            return False
        self.deadline = max(self.deadline, deadline)
        return True

    def next_key(self) -> str:
        """A new run key; the same sequence on every attempt of this turn."""
        key = f"{self.input.id}:{self.memory.runs}"
        self.memory.runs += 1
        return key
