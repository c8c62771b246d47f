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
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import orjson

from bot.checks.recorded import NOT_STORED, Obstacle, Record, read_records
from bot.checks.scratch import scratch_daemon
from bot.daemon import Daemon
from bot.database.opening import operator_connection_of
from bot.intake.gate import judge
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
from services.llm.model import ModelAnswer
from services.redaction import HIDDEN
from services.refs import ChatRef, ErrorCode, MemberRef, ReasonCode, Role
from services.store.chats import chat_settings
from services.store.reader import OperatorConnection

_PROGRESS_EVERY = 100
_START = datetime(2025, 1, 1, tzinfo=UTC)
_Roles = dict[tuple[ChatRef, MemberRef], Role]
_REJECTED = frozenset(
    {ReasonCode.REFUSED, ReasonCode.FILTERED, ReasonCode.USAGE, ReasonCode.OVER_BUDGET, ReasonCode.UNKNOWN_COMMAND}
)
_NOT_SERVED = frozenset({ReasonCode.CHAT_NOT_ALLOWED, ReasonCode.CHAT_OFF, ReasonCode.FROM_BOT})
_NO_CALLS = frozenset({NO_FUNCTION, INSUFFICIENT.name})


class End(StrEnum):
    """How the bot treats a message."""

    ANSWERED = "answered"
    SILENT = "silent"
    REFUSED = "refused"
    """It replies, but a call is refused, needs an approval, or is unknown or invalid."""


class Difference(StrEnum):
    """Difference between the two ends of a message, the most important first."""

    SILENT = "silent now"
    REFUSED = "refused now"
    ANSWERED = "answered now"
    FUNCTION = "other function"
    ARGUMENTS = "other arguments"
    DEFINITION = "changed function"
    REPLY = "other reply"


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
    asks_model: bool = False
    """The model is asked, and its answer is not recorded."""

    def difference_from(self, old: Planned) -> Difference | None:
        """How it differs from `old` for members; None if they see the same."""
        if old.end is not self.end:
            return Difference[self.end.name]
        if old.unknown != self.unknown or [one.function for one in old.calls] != [one.function for one in self.calls]:
            return Difference.FUNCTION
        if [one.arguments for one in old.calls] != [one.arguments for one in self.calls]:
            return Difference.ARGUMENTS
        if old.calls != self.calls:
            return Difference.DEFINITION
        return Difference.REPLY if old.reply != self.reply else None


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
    """Messages with a turn whose senders have no role in the settings: the lowest that their recorded runs need."""

    def add(self, record: Record, old: Planned, new: Planned, *, is_assumed: bool) -> None:
        """Compare the ends of one message. `is_assumed`: the role of its sender is."""
        self.compared += 1
        self.unlike_recorded += old.reason is not record.reason
        self.assumed_roles += record.has_turn and is_assumed
        context, difference = record.context, new.difference_from(old)
        if difference is not None:
            at_ms = round(context.sent_at.timestamp() * 1000)
            message = (record.id, context.chat.key, context.sender.name, context.text, at_ms)
            self.changes.append(Change(*message, difference, old, new))


def plan(
    current: Settings,
    new: Settings,
    *,
    count: int = 5000,
    chat: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Plan:
    """Compare how the latest `count` recorded messages of `chat` (None: of all chats) end under both settings. The
    database is that of `current`, which a running daemon may have open. `progress` is called with the number of steps
    done and in all. Blocks and runs its own event loop: call it in a thread or process. Raises ReaderError, and
    DefinitionError for filters that cannot be used."""
    # The accepted tools of MCP servers are in the same database.
    new = new.model_copy(update={"home": current.home, "store": current.store})
    with operator_connection_of(current) as database:
        records = read_records(database, chat, count)
        olds, news = asyncio.run(_simulated(records, (current, new), database, progress))
    found = Plan()
    for record, old, planned in zip(records, olds, news, strict=True):
        if isinstance(old, Obstacle) and isinstance(planned, Planned) and record.has_turn:
            # Not served any more, which is certain. The other end is the recorded one.
            old = Planned(End.ANSWERED, record.reason, record.detail)
        if isinstance(old, Planned) and isinstance(planned, Planned) and not (old.asks_model and planned.asks_model):
            found.add(record, old, planned, is_assumed=record.context.sender.ref.key not in current.members)
        else:
            obstacles = (one for one in (old, planned) if isinstance(one, Obstacle))
            found.not_compared[next(obstacles, Obstacle.NO_ANSWER)] += 1
    return found


async def _simulated(
    records: Sequence[Record],
    both: tuple[Settings, Settings],
    database: OperatorConnection,
    progress: Callable[[int, int], None],
) -> list[list[Planned | Obstacle]]:
    """The ends of `records` under each of both settings."""
    ends: list[list[Planned | Obstacle]] = []
    roles: _Roles = {}
    for number, settings in enumerate(both):
        # The sources of functions have time limits, so the daemon has the system's clock.
        async with scratch_daemon(settings) as daemon:
            _load(daemon, database)
            if not number:
                roles = _roles(daemon, records)
            side = _Side(daemon, settings, _names(settings) - _names(both[0]), roles)
            ends.append([])
            for done, record in enumerate(records):
                if done % _PROGRESS_EVERY == 0:
                    progress(number * len(records) + done, len(both) * len(records))
                ends[number].append(await side.planned(record))
    progress(len(both) * len(records), len(both) * len(records))
    return ends


def _load(daemon: Daemon, database: OperatorConnection) -> None:
    """Load what chats have set for themselves, except notes. Raises ReaderError."""
    chats = daemon.chats
    for row in database.rows(chat_settings.EVERYTHING):
        chats.set_own(ChatRef.parse(row["chat"]), row["name"], row["value"])
    for row in database.rows(chat_settings.ALL_ACTIVATIONS):
        chat = ChatRef.parse(row["chat"])
        chats.set_active_functions(chat, [*chats.active_functions(chat), row["name"]])
    for row in database.rows(chat_settings.HOLDING):
        given = {"function": row["function"], "arguments": row["arguments"], "by_name": row["given_by_name"]}
        # The writes are dropped: the grant holds in memory.
        daemon.grants.give(ChatRef.parse(row["chat"]), row["digest"], by=MemberRef.parse(row["given_by"]), **given)


def _roles(daemon: Daemon, records: Sequence[Record]) -> _Roles:
    """The lowest roles that the recorded runs of members need."""
    roles: _Roles = {}
    for record in records:
        served, place = daemon.chats.of(record.context.chat), (record.context.chat, record.context.sender.ref)
        for run in record.runs:
            spec = daemon.registry.of(served.settings.bot).find(run["function"])
            if spec is not None and run["code"] != ErrorCode.REFUSED and (able := roles_here(spec, served.profile)):
                least = min(able, key=lambda role: role.rank)
                roles[place] = max(roles.get(place, Role.MEMBER), least, key=lambda role: role.rank)
    return roles


def _names(settings: Settings) -> frozenset[str]:
    return frozenset(name for bot in settings.bots.values() for name in (bot.name, *bot.aliases))


class _RecordedAnswers(NoTurnLog):
    """Turn log that has an answer for every round: the recorded ones in order, then empty ones, which end the turn."""

    def __init__(self, answers: Sequence[ModelAnswer], chat_round: int) -> None:
        self._answers = list(answers)
        self._chat_round = chat_round
        self.ran_out = False

    def stored_answer(self, round_number: int) -> ModelAnswer:
        if round_number >= self._chat_round and self._answers and not self._answers[-1].calls:
            # No function is offered here: the text that ended the recorded turn.
            return self._answers[-1]
        if self._answers and round_number < self._chat_round:
            return self._answers.pop(0)
        self.ran_out = True
        return ModelAnswer()


class _Side:
    """The bot under one of the two settings. `new_names` of bots may be in the stored texts."""

    def __init__(self, daemon: Daemon, settings: Settings, new_names: frozenset[str], roles: _Roles) -> None:
        self._roles = roles
        self._chats = daemon.chats
        self._registry = daemon.registry
        self._settings = settings.router
        self._clock = InstantClock(_START)
        self._hear = mention_parser(sorted(new_names)) if new_names else None
        self._results: dict[str, list[FunctionResult]] = {}
        self._calls: dict[str, PlannedCall] = {}
        self._refused: list[str] = []
        self._fingerprints: dict[FunctionSpec, str] = {}
        self._lines: defaultdict[ChatRef, deque[HistoryLine]] = defaultdict(
            lambda: deque(maxlen=settings.router.history_messages)
        )
        invoker = Invoker(
            Policies(Open(), Vouching(Approvals(settings.approvals, daemon.grants, lambda chat: ()), found_here)),
            Deadlines(self._clock),
            self._clock,
            filters=[self._run],
            named_filters=dict.fromkeys(settings.filters.named, self._run),
            record=self._note,
        )
        words = [
            blacklist(one.blacklist.words, f"filters.turn[{place}].blacklist", reply=one.blacklist.reply)
            for place, one in enumerate(settings.filters.turn)
            if one.blacklist is not None
        ]
        llm = FunctionCallLLM(daemon.model, invoker, settings.routing, self._clock)
        self._router = FunctionCallRouter(invoker, llm, words)

    async def planned(self, record: Record) -> Planned | Obstacle:
        """How the message ends, or why that is unknown."""
        context, lines = record.context, self._lines[record.context.chat]
        await self._clock.sleep((context.sent_at - self._clock.now()) / timedelta(seconds=1))
        found = await self._planned(record, context, tuple(lines))
        sent_ms, sender = round(context.sent_at.timestamp() * 1000), context.sender
        lines.append(HistoryLine(sender.name, context.text, sent_ms, from_bot=False, sender=sender.ref.key))
        return found

    async def _planned(
        self, record: Record, context: MessageContext, lines: Sequence[HistoryLine]
    ) -> Planned | Obstacle:
        served = self._chats.of(context.chat)
        functions, sender = self._registry.of(served.settings.bot), context.sender
        role = self._chats.role(sender.ref.key, self._roles.get((context.chat, sender.ref), Role.MEMBER))
        context = replace(context, bot=served.settings.bot, sender=replace(sender, role=role))
        if self._hear is not None and not context.mentions_bot and not context.text.startswith("/"):
            heard = self._hear(context.text)
            context = replace(context, text=heard.text, mentions_bot=heard.mentions_bot)
        is_muted = record.reason is ReasonCode.MUTED
        # Without a mention, the bot answers only mistyped commands, and only where there are no other bots.
        was_answered = record.has_turn and record.reason is ReasonCode.UNKNOWN_COMMAND
        decision = judge(context, served, functions, None, only_bot=was_answered, is_muted=is_muted)
        if was_answered and decision.reason is ReasonCode.UNKNOWN_COMMAND:
            context = replace(context, mentions_bot=True)
            decision = judge(context, served, functions, None)
        if record.obstacle is not None and decision.reason not in _NOT_SERVED:
            return record.obstacle
        if not decision.starts_turn:
            is_plain = context.is_group and decision.reason in (ReasonCode.NOT_ADDRESSED, ReasonCode.MUTED)
            if is_plain and (word := served.find_trigger(context.text)):
                return Planned(End.ANSWERED, decision.reason, "triggers", reply=served.triggers[word])
            return Planned(End.SILENT, decision.reason, decision.detail)
        log = _RecordedAnswers(record.answers, self._settings.max_rounds + 1)
        turn_input = TurnInput(
            str(record.id), functions, lambda: served.profile, log, FixedHistory(lines), addressed=decision.addressed
        )
        turn = Turn(turn_input, self._clock.monotonic() + self._settings.turn_timeout_seconds)
        self._results, self._calls, self._refused = record.results(), {}, []
        outcome = await self._router.dispatch(context, turn)
        if outcome.kind is OutcomeKind.FALLBACK and not turn.memory.effects:
            outcome = explained(await self._router.run_chat_fallback(context, turn), outcome, turn)
        return self._ended(outcome, record, functions, ran_out=log.ran_out)

    def _ended(self, outcome: TurnOutcome, record: Record, functions: BotFunctions, *, ran_out: bool) -> Planned:
        calls, reason, detail = tuple(self._calls.values()), outcome.reason, outcome.detail
        names = (call.name for answer in record.answers for call in answer.calls)
        unknown = tuple(name for name in names if name not in _NO_CALLS and functions.find(name) is None)
        is_refused = bool(self._refused or unknown or (outcome.question and outcome.question.terms))
        if self._refused:
            reason, detail = ReasonCode.REFUSED, self._refused[0]
        elif ran_out and calls:
            reason, detail = ReasonCode.FUNCTION, calls[0].function
        elif ran_out and not is_refused:
            return Planned(End.ANSWERED, ReasonCode.CHAT, "", asks_model=True)
        replied = End.REFUSED if is_refused or reason in _REJECTED else End.ANSWERED
        reply = "" if ran_out else "\n".join(message.text for message in outcome.messages)
        return Planned(replied if outcome.messages else End.SILENT, reason, detail, calls, reply, unknown)

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
