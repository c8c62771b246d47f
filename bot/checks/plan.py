"""Plan of a change: how recorded messages would end under new settings, compared with the current ones.

Both settings run through the real gate, router and checks, because the store does not keep every fact of a message:
assumptions about it are the same on both sides. Nothing is sent, run or stored: models give their recorded answers,
functions their recorded results.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

import orjson

from bot.chats.chats import ServedChat
from bot.checks.recorded import NOT_STORED, UNASKED, Obstacle, Record, read_records
from bot.checks.scratch import scratch_daemon
from bot.daemon import Daemon
from bot.database.opening import reader_of
from bot.intake.gate import GateDecision, judge
from bot.platforms.mentions import mention_parser
from bot.turns.closing import explained
from config.settings import Settings
from function_calls.checks.approvals import Approvals
from function_calls.checks.permissions import Open, Policies, roles_here
from function_calls.checks.vouching import Vouching
from function_calls.context import MessageContext
from function_calls.filters.builtin import blacklist
from function_calls.filters.call import Invocation, Proceed
from function_calls.invocation import Invoker
from function_calls.llm import NO_FUNCTION, FunctionCallLLM
from function_calls.outcome import OutcomeKind, TurnOutcome, cause
from function_calls.questions.argument_questions import INSUFFICIENT
from function_calls.registry import BotFunctions
from function_calls.rounds.shortlist import found_here
from function_calls.router import FunctionCallRouter
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import FixedHistory, HistoryLine, NoTurnLog, Run, Turn, TurnInput
from services.clock import Deadlines, InstantClock
from services.llm.model import ModelAnswer, ModelRequest
from services.redaction import HIDDEN
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, ReasonCode, Role
from services.store.chats import chat_settings, outcomes
from services.store.port import Query, Row
from services.store.reader import OperatorConnection

MOST_MESSAGES = 5000
_PROGRESS_EVERY = 100
_REJECTED = frozenset(
    {ReasonCode.REFUSED, ReasonCode.FILTERED, ReasonCode.USAGE, ReasonCode.OVER_BUDGET, ReasonCode.UNKNOWN_COMMAND}
)
_BESIDE_TURNS = frozenset({ReasonCode.NOT_ADDRESSED, ReasonCode.MUTED})
_NOT_SERVED = frozenset({ReasonCode.CHAT_NOT_ALLOWED, ReasonCode.CHAT_OFF})


class End(StrEnum):
    """How the bot treats a message."""

    ANSWERED = "answered"
    SILENT = "silent"
    REFUSED = "refused"
    """It replies, but a call is refused, needs an approval, or is unknown or invalid."""


class Difference(StrEnum):
    """Difference between the two ends of a message, the most important first."""

    SILENT = "silent_now"
    REFUSED = "refused_now"
    ANSWERED = "answered_now"
    FUNCTION = "other_function"
    ARGUMENTS = "other_arguments"
    DEFINITION = "changed_function"
    REPLY = "other_reply"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that passed all checks. `arguments` are JSON, with sensitive values hidden."""

    function: str
    arguments: str
    fingerprint: str
    """`FunctionSpec.fingerprint`."""


@dataclass(frozen=True, slots=True)
class Planned:
    """End of one message under some settings."""

    end: End
    reason: ReasonCode
    detail: str
    """As in `/why`: the settings key that decides, or a function."""
    calls: tuple[PlannedCall, ...] = ()
    reply: str = ""
    unknown: tuple[str, ...] = ()
    """Functions that the recorded answers call and that do not exist."""
    is_unanswered: bool = False
    """The model is asked, and no answer is recorded."""

    def as_json(self) -> JsonObject:
        """The fields as JSON data, without the fingerprints."""
        return {
            "end": self.end.value,
            "reason": self.reason.value,
            "detail": self.detail,
            "calls": [{"name": call.function, "arguments": orjson.loads(call.arguments)} for call in self.calls],
            "reply": self.reply,
            "unknown_functions": list(self.unknown),
            "model_answer_recorded": not self.is_unanswered,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A message that would end differently. Times are in milliseconds since 1970 UTC."""

    id: int
    chat: str
    sender_name: str
    text: str
    received_ms: int
    difference: Difference
    old: Planned
    new: Planned

    def as_json(self) -> JsonObject:
        return {
            "id": self.id,
            "chat": self.chat,
            "sender": self.sender_name,
            "text": self.text,
            "received_ms": self.received_ms,
            "difference": self.difference.value,
            "old": self.old.as_json(),
            "new": self.new.as_json(),
        }


@dataclass(slots=True)
class Plan:
    """Result of `plan`."""

    compared: int = 0
    changes: list[Change] = field(default_factory=list)
    """In the order of the messages."""
    not_compared: Counter[Obstacle] = field(default_factory=Counter)
    unlike_recorded: int = 0
    """Messages that ended with another reason than the current settings give: settings have changed since, or facts
    that are not stored decided."""
    assumed_roles: int = 0
    """Messages of senders whose role is not in the settings: the lowest that their recorded runs need."""
    filters: int = 0
    """Filters of the new settings that were not run: all but word lists."""
    problems: list[str] = field(default_factory=list)
    """Problems of functions that only the new settings have. An unusable function is missing."""

    @property
    def counts(self) -> Counter[Difference]:
        """Number of messages by difference."""
        return Counter(change.difference for change in self.changes)

    def as_json(self) -> JsonObject:
        """Counts and changes as JSON data."""
        return {
            "compared": self.compared,
            "same": self.compared - len(self.changes),
            "differences": {one.value: self.counts[one] for one in Difference},
            "not_compared": {one.name.lower(): count for one, count in self.not_compared.items()},
            "unlike_recorded": self.unlike_recorded,
            "assumed_roles": self.assumed_roles,
            "filters_not_run": self.filters,
            "problems": self.problems,
            "changes": [change.as_json() for change in self.changes],
        }


Progress = Callable[[int, int], None]
"""Called with the number of messages that are done and the number in all."""


def plan(
    current: Settings,
    new: Settings,
    *,
    count: int = MOST_MESSAGES,
    chat: str = "",
    progress: Progress = lambda done, total: None,
) -> Plan:
    """Compare how the latest `count` recorded messages of `chat` (empty: of all chats) end under both settings. The
    database is that of `current`, which a running daemon may have open. Blocks and runs its own event loop: call it in
    a thread or process. Raises ReaderError, and DefinitionError for filters that cannot be used."""
    with reader_of(current) as database:
        records = read_records(database, chat, count)
        groups = {row["chat"] for row in database.rows(outcomes.groups(chat))}
        return asyncio.run(
            _compared(records, _Facts(groups, names=_names(current)), (current, new), database, progress)
        )


@dataclass(slots=True)
class _Facts:
    """Assumptions about messages that are not stored with them. Found under the current settings, used for both."""

    groups: set[str]
    """Keys of the chats that are groups."""
    roles: dict[tuple[str, str], Role] = field(default_factory=dict)
    """Role by chat and member, if their runs need one above MEMBER."""
    called: set[int] = field(default_factory=set)
    """Ids of unknown commands that mentioned the bot."""
    only_bot: set[str] = field(default_factory=set)
    """Keys of the chats where mistyped commands were answered."""
    names: frozenset[str] = frozenset()
    """Names and aliases of bots: mentions of them are not in the stored texts any more."""

    def learn(self, daemon: Daemon, records: Sequence[Record]) -> None:
        """Derive roles and mentions from the recorded turns."""
        for record in records:
            served, place = daemon.chats.of(record.chat), (record.chat.key, record.row["sender"])
            functions = daemon.registry.of(served.settings.bot)
            for run in record.runs:
                spec = functions.find(run["function"])
                roles = roles_here(spec, served.profile) if spec is not None and run["code"] != "refused" else ()
                if roles and Role.MEMBER not in roles:
                    known, least = self.roles.get(place, Role.MEMBER), min(roles, key=lambda role: role.rank)
                    self.roles[place] = max(known, least, key=lambda role: role.rank)
            if record.reason is ReasonCode.UNKNOWN_COMMAND and record.has_turn:
                # Without a mention, the bot answers only mistyped commands, and only where there are no other bots.
                if functions.one_edit_from(record.row["detail"]):
                    self.only_bot.add(record.chat.key)
                else:
                    self.called.add(record.row["id"])


async def _compared(
    records: Sequence[Record],
    facts: _Facts,
    settings: tuple[Settings, Settings],
    database: OperatorConnection,
    progress: Progress,
) -> Plan:
    ends: list[list[Planned | Obstacle]] = []
    chime_ins: list[dict[ChatRef, str]] = []
    problems: list[list[str]] = []
    total = len(settings) * len(records)
    for number, one in enumerate(settings):
        # The sources of functions have time limits, so the daemon has the system's clock.
        async with scratch_daemon(one) as daemon:
            await _load(daemon, database)
            if not number:
                facts.learn(daemon, records)
            side = _Side(daemon, one, facts, InstantClock(records[0].sent_at) if records else InstantClock())
            ends.append([])
            for done, record in enumerate(records):
                if done % _PROGRESS_EVERY == 0:
                    progress(number * len(records) + done, total)
                ends[number].append(await side.planned(record))
            chime_ins.append({record.chat: daemon.chats.of(record.chat).settings.chime_in for record in records})
            problems.append([str(fault) for fault in daemon.functions.faults])
    progress(total, total)
    new_problems = [fault for fault in problems[1] if fault not in problems[0]]
    found = Plan(filters=_filters_not_run(settings[1]), problems=new_problems)
    changed = {chat for chat, mode in chime_ins[1].items() if mode not in ("off", chime_ins[0][chat])}
    for record, old, new in zip(records, *ends, strict=True):
        if isinstance(new, Planned) and new.reason is ReasonCode.NOT_ADDRESSED and record.chat in changed:
            new = Obstacle.CHIME_IN
        if isinstance(old, Obstacle) and isinstance(new, Planned) and record.has_turn and new.end is End.SILENT:
            # The recorded end, since only the new settings make it certain.
            old = Planned(End.ANSWERED, record.reason, record.row["detail"])
        if isinstance(old, Planned) and isinstance(new, Planned) and old.is_unanswered and new.is_unanswered:
            new = Obstacle.NO_ANSWER
        if isinstance(old, Obstacle) or isinstance(new, Obstacle):
            found.not_compared[old if isinstance(old, Obstacle) else Obstacle(new)] += 1
            continue
        found.compared += 1
        found.unlike_recorded += old.reason is not record.reason
        found.assumed_roles += record.has_turn and record.row["sender"] not in settings[0].members
        difference = difference_of(old, new)
        if difference is not None:
            row = record.row
            facts_ = (row["id"], row["chat"], row["sender_name"], record.text, row["received_ms"])
            found.changes.append(Change(*facts_, difference, old, new))
    return found


def difference_of(old: Planned, new: Planned) -> Difference | None:
    """How `new` differs from `old` for members; None if they see the same."""
    if old.end is not new.end:
        return {End.SILENT: Difference.SILENT, End.REFUSED: Difference.REFUSED, End.ANSWERED: Difference.ANSWERED}[
            new.end
        ]
    if [call.function for call in old.calls] != [call.function for call in new.calls] or old.unknown != new.unknown:
        return Difference.FUNCTION
    if [call.arguments for call in old.calls] != [call.arguments for call in new.calls]:
        return Difference.ARGUMENTS
    if old.calls != new.calls:
        return Difference.DEFINITION
    return Difference.REPLY if old.reply != new.reply else None


def _names(settings: Settings) -> frozenset[str]:
    return frozenset(name for bot in settings.bots.values() for name in (bot.name, *bot.aliases))


def _filters_not_run(settings: Settings) -> int:
    filters = settings.filters
    others = sum(one.blacklist is None for one in filters.turn)
    return others + len(filters.round) + len(filters.call) + len(filters.named)


async def _load(daemon: Daemon, database: OperatorConnection) -> None:
    """Load what chats have set for themselves. Raises ReaderError."""
    await daemon.chats.load(_Stored(database))
    for row in database.rows(chat_settings.holding()):
        given = {"function": row["function"], "arguments": row["arguments"], "by_name": row["given_by_name"]}
        # The writes are dropped: the grant holds in memory.
        daemon.grants.give(ChatRef.parse(row["chat"]), row["digest"], by=MemberRef.parse(row["given_by"]), **given)


class _Stored:
    """Reads from the operator's database, on its own connection."""

    def __init__(self, database: OperatorConnection) -> None:
        self._database = database

    async def read(self, query: Query) -> list[Row]:
        return self._database.rows(query)


class _RecordedAnswers(NoTurnLog):
    """Turn log that has the recorded answers."""

    def __init__(self, answers: Sequence[ModelAnswer], chat_round: int) -> None:
        self._answers = deque(answers)
        self._chat_round = chat_round

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        if round_number >= self._chat_round:
            # No function is offered here: the text that ended the recorded turn.
            return self._answers[-1] if self._answers and not self._answers[-1].calls else None
        return self._answers.popleft() if self._answers else None


class _NoModel:
    """ChatModel for requests without a recorded answer: an empty answer ends the turn."""

    name = "recorded"

    def __init__(self) -> None:
        self.was_asked = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.was_asked = True
        return ModelAnswer()

    async def probe(self) -> str:
        return self.name

    async def close(self) -> None:
        return None


class _Side:
    """The bot under one of the two settings."""

    def __init__(self, daemon: Daemon, settings: Settings, facts: _Facts, clock: InstantClock) -> None:
        self._daemon = daemon
        self._settings = settings
        self._clock = clock
        self._facts = facts
        self._model = _NoModel()
        self._results: dict[str, list[FunctionResult]] = {}
        self._calls: dict[str, PlannedCall] = {}
        self._refused: list[str] = []
        self._fingerprints: dict[FunctionSpec, str] = {}
        self._lines: defaultdict[ChatRef, deque[HistoryLine]] = defaultdict(
            lambda: deque(maxlen=settings.router.history_messages)
        )
        vouching = Vouching(Approvals(settings.approvals, daemon.grants, lambda chat: ()), found_here)
        invoker = Invoker(
            Policies(budget=Open(), approval=vouching),
            Deadlines(clock),
            clock,
            filters=[self._run],
            named_filters=dict.fromkeys(settings.filters.named, self._run),
            record=self._note,
        )
        words = [
            blacklist(one.blacklist.words, f"filters.turn[{place}].blacklist", reply=one.blacklist.reply)
            for place, one in enumerate(settings.filters.turn)
            if one.blacklist is not None
        ]
        new_names = sorted(_names(settings) - facts.names)
        self._hear = mention_parser(new_names) if new_names else None
        llm = FunctionCallLLM(self._model, invoker, settings.routing, clock)
        self._router = FunctionCallRouter(invoker, llm, words)

    async def planned(self, record: Record) -> Planned | Obstacle:
        """How the message ends; why that cannot be said."""
        await self._clock.sleep((record.sent_at - self._clock.now()) / timedelta(seconds=1))
        lines = self._lines[record.chat]
        found = await self._planned(record, lines)
        if record.obstacle is not Obstacle.NO_TEXT and record.reason not in _NOT_SERVED:
            lines.append(record.line)
        return found

    async def _planned(self, record: Record, lines: deque[HistoryLine]) -> Planned | Obstacle:
        served = self._daemon.chats.of(record.chat)
        functions = self._daemon.registry.of(served.settings.bot)
        context = self._context(record, served)
        is_muted, only_bot = record.reason is ReasonCode.MUTED, record.chat.key in self._facts.only_bot
        decision = judge(context, served, functions, None, only_bot=only_bot, is_muted=is_muted)
        if decision.reason in _NOT_SERVED or context.sender.is_bot:
            return Planned(End.SILENT, decision.reason, decision.detail)
        if record.obstacle is not None:
            return record.obstacle
        if not decision.starts_turn:
            return _without_turn(record, context, served, decision)
        turn_input = TurnInput(
            id=str(record.row["id"]),
            functions=functions,
            profile=lambda: served.profile,
            log=_RecordedAnswers(record.answers, self._settings.router.max_rounds + 1),
            history=FixedHistory(tuple(lines)),
            addressed=decision.addressed,
        )
        turn = Turn(turn_input, self._clock.monotonic() + self._settings.router.turn_timeout_seconds)
        self._results, self._calls, self._refused, self._model.was_asked = record.results(), {}, [], False
        outcome = await self._router.dispatch(context, turn)
        if outcome.kind is OutcomeKind.FALLBACK and not turn.memory.effects:
            outcome = explained(await self._router.run_chat_fallback(context, turn), outcome, turn)
        return self._ended(outcome, record, functions)

    def _context(self, record: Record, served: ServedChat) -> MessageContext:
        place = record.chat.key, record.row["sender"]
        is_command = record.text.startswith("/")
        context = record.context(
            is_group=record.chat.key in self._facts.groups,
            is_called=record.row["id"] in self._facts.called if is_command else record.has_turn,
            role=self._daemon.chats.role(record.row["sender"], self._facts.roles.get(place, Role.MEMBER)),
            bot=served.settings.bot,
        )
        if self._hear is None or is_command or context.mentions_bot:
            return context
        heard = self._hear(context.text)
        return replace(context, text=heard.text, mentions_bot=heard.mentions_bot)

    def _ended(self, outcome: TurnOutcome, record: Record, functions: BotFunctions) -> Planned:
        calls, reason, detail = tuple(self._calls.values()), outcome.reason, outcome.detail
        names = (call.name for answer in record.answers for call in answer.calls)
        unknown = tuple(name for name in names if name not in _NO_CALLS and functions.find(name) is None)
        needs_approval = outcome.question is not None and outcome.question.terms is not None
        if self._refused:
            reason, detail = ReasonCode.REFUSED, self._refused[0]
        elif self._model.was_asked and calls:
            reason, detail = ReasonCode.FUNCTION, calls[0].function
        elif self._model.was_asked and not (unknown or needs_approval):
            return Planned(End.ANSWERED, ReasonCode.CHAT, "", is_unanswered=True)
        if self._refused or unknown or needs_approval or reason in _REJECTED:
            end = End.REFUSED if outcome.kind is OutcomeKind.SENT else End.SILENT
        else:
            end = End.ANSWERED if outcome.messages else End.SILENT
        reply = "" if self._model.was_asked else "\n".join(message.text for message in outcome.messages)
        return Planned(end, reason, detail, calls, reply, unknown)

    async def _run(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        """Call filter that records the call and returns its stored result instead of running the function."""
        spec, arguments = invocation.spec, invocation.spec.arguments.dump(invocation.arguments)
        for name in spec.execution.sensitive & arguments.keys():
            arguments[name] = HIDDEN
        if spec not in self._fingerprints:
            self._fingerprints[spec] = spec.fingerprint
        body = orjson.dumps(arguments, default=str, option=orjson.OPT_SORT_KEYS).decode()
        self._calls[invocation.call.key] = PlannedCall(spec.name, body, self._fingerprints[spec])
        stored = self._results.get(spec.name)
        return stored.pop(0) if stored else FunctionResult(data=NOT_STORED)

    def _note(self, context: MessageContext, run: Run, result: FunctionResult, turn_id: str, duration_us: int) -> None:
        """Record a call that was refused."""
        if result.error is not None and result.error.code is ErrorCode.REFUSED and run.key not in self._calls:
            self._refused.append(cause(result, run.spec))


_NO_CALLS = frozenset({NO_FUNCTION, INSUFFICIENT.name})


def _without_turn(record: Record, context: MessageContext, served: ServedChat, decision: GateDecision) -> Planned:
    """End of a message that starts no turn: silent, unless a trigger or the bot's own choice makes it speak."""
    word = served.find_trigger(context.text) if context.is_group and decision.reason in _BESIDE_TURNS else ""
    if word:
        return Planned(End.ANSWERED, decision.reason, "triggers", reply=served.triggers[word])
    mode = served.settings.chime_in
    if decision.reason is ReasonCode.NOT_ADDRESSED and record.reason in UNASKED:
        end = End.ANSWERED if mode != "off" and record.reason is ReasonCode.CHIMED_IN else End.SILENT
        return Planned(end, decision.reason, served.settings.layers["chime_in"])
    return Planned(End.SILENT, decision.reason, decision.detail)
