"""Commit of a turn's end: result, messages, open question and state in one unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from bot.chats.chat_notes import Beginnings
from bot.chats.chats import Chats
from bot.chats.open_questions import Asked, OpenQuestions
from bot.delivery.delivery import Address, Delivery, Origin, OutboundMessage, OutboxRows
from bot.delivery.outgoing import Due, addressed_to
from bot.engine.embedded import Job
from bot.telemetry.metrics import Metrics
from bot.turns.turn_log import StoreTurnLog
from function_calls.context import Kind, MessageContext, without_words
from function_calls.failures import unknown
from function_calls.outcome import TurnOutcome, sent, shown
from function_calls.result import storable_text
from function_calls.schema.commands import done_text, plain_name
from function_calls.spec import Message
from function_calls.turn import OpenQuestion, StoredRun, Turn
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, Effect, ReasonCode
from services.store.ids import Ids
from services.store.port import Conflict, Store, Write
from services.store.turns import inbox, outbox
from services.timers.reminders import reminder_text
from services.timers.timer import Timer, TimerKind, TimerState, ms_of

_NOTE_CHARS = 80
_ATTEMPTS = "limits.attempts_per_turn"
Runs = Mapping[str, StoredRun]
"""What is known of the runs of a turn, by their keys, in the order in which they began."""


def unheeded(job: Job, turn: Turn, outcome: TurnOutcome) -> Asked | None:
    """The question that still waits, because a filter stopped its answer. Of a turn that was tried before nobody knows
    here how far it came."""
    if job.taken is None:
        return None
    is_unheeded = outcome.reason is ReasonCode.FILTERED and not turn.memory.resumed and not job.repeated
    return job.taken if is_unheeded else None


def told(turn: Turn, messages: Sequence[Message]) -> list[Write]:
    """What notes the notices of the turn that `messages` hold. A model may have kept one to itself."""
    if not turn.output.notices:
        return []
    return [notice.told for notice in turn.output.notices if any(notice.text in message.text for message in messages)]


def worded(
    job: Job, turn: Turn, outcome: TurnOutcome, left: OpenQuestion | None, asker: MessageContext
) -> Sequence[Message]:
    """What the turn says in the end: the messages of its outcome, with what else `asker` has to know of them. `left`:
    the question that waits no longer because of what is asked now."""
    if outcome.question is None and not job.edited and not turn.output.granted:
        return outcome.messages
    messages = _of_this_text(job, turn, _naming(outcome.messages, outcome.question, asker))
    return [*_granted(turn), *_leaving(left, messages, turn, asker)]


def _naming(messages: tuple[Message, ...], asked: OpenQuestion | None, context: MessageContext) -> tuple[Message, ...]:
    """`messages`, whose last one asks, with a mention of the only member who may answer if others read it. `context`:
    the message of that member."""
    is_one_of_many = asked is not None and asked.terms is None and context.is_group and not context.private
    if not is_one_of_many or not messages or messages[-1].to is not None or messages[-1].mentions:
        return messages
    return (*messages[:-1], replace(messages[-1], mentions=(context.sender.ref,)))


def _of_this_text(job: Job, turn: Turn, messages: Sequence[Message]) -> Sequence[Message]:
    """`messages`; when what they answer was edited meanwhile, the last one says so."""
    if not job.edited or not messages:
        return messages
    *others, last = messages
    note = turn.input.profile().texts.say("turns.edited_meanwhile")
    return [*others, replace(last, text=f"{last.text}\n{note}".strip())]


def _granted(turn: Turn) -> Sequence[Message]:
    """What is said of what the chat allows for always from now on."""
    return (
        [Message(turn.input.profile().texts.say("grants.given", code=turn.output.granted))]
        if turn.output.granted
        else []
    )


def _leaving(
    left: OpenQuestion | None, messages: Sequence[Message], turn: Turn, asker: MessageContext
) -> Sequence[Message]:
    """`messages`, the last of which asks `asker` something; where they had been asked `left` and had not answered, it
    says that this waits no longer."""
    if left is None or not messages:
        return messages
    texts = turn.input.profile().texts
    *others, last = messages
    lines = left.question.text.strip().splitlines()
    # What was asked in private is not repeated where others read it.
    if not lines or (left.private and not asker.private):
        note = texts.say("questions.leaves")
    else:
        short = lines[0] if len(lines[0]) <= _NOTE_CHARS else f"{lines[0][:_NOTE_CHARS].rstrip()}…"
        note = texts.say("questions.leaves_this", question=short)
    return [*others, replace(last, text=f"{note}\n{last.text}")]


def explained(chat: TurnOutcome, routed: TurnOutcome, turn: Turn) -> TurnOutcome:
    """An answer in plain words, and why it is no more than that where settings decided it."""
    if routed.reason is not ReasonCode.FUNCTIONS_OFF or chat.reason is not ReasonCode.CHAT:
        return chat
    return replace(chat, reason=ReasonCode.FUNCTIONS_OFF, detail=turn.input.profile().layers["functions_on"])


def given_up(job: Job, turn: Turn, runs: Runs, timer: Timer | None) -> TurnOutcome:
    """The end of a turn whose runs ended the process too often: what is recorded of its effects, and that it is given
    up. A reminder is said all the same; nothing is said of what belongs to a timer that was removed."""
    texts, called = turn.input.profile().texts, job.context.timer
    done = recorded(job, turn, runs)
    if called is None:
        text = texts.say("failures.gave_up_after" if done else "failures.gave_up")
        return sent(ReasonCode.GAVE_UP, [*done, Message(text)], _ATTEMPTS)
    if timer is None or timer.state is TimerState.REMOVED:
        return sent(ReasonCode.GAVE_UP, done, _ATTEMPTS)
    if timer.kind is TimerKind.REMINDER:
        text, mentions = reminder_text(timer, timer.title, texts, may_call_all=False)
        return sent(ReasonCode.TIMER, [Message(text, mentions=mentions), *done], called.function)
    text = texts.say("timers.gave_up", title=timer.title or plain_name(called.function))
    return sent(ReasonCode.GAVE_UP, [*done, Message(text)], _ATTEMPTS)


def unfit(job: Job, turn: Turn, runs: Runs, short_id: str) -> TurnOutcome:
    """The end of a turn whose own end could not be kept: what is recorded of its effects, and that something went
    wrong, of which the log has more under `short_id`."""
    sorry = Message(turn.input.profile().texts.say("failures.turn", id=short_id))
    return sent(ReasonCode.FUNCTION_FAILED, [*recorded(job, turn, runs), sorry], short_id)


def stopped(job: Job, turn: Turn, runs: Runs) -> TurnOutcome:
    """The end of a turn that somebody stopped."""
    return interrupted(job, turn, runs, ReasonCode.STOPPED, turn.input.profile().texts.say("stop.stopped"), "")


def interrupted(job: Job, turn: Turn, runs: Runs, reason: ReasonCode, text: str, detail: str) -> TurnOutcome:
    """The end of a turn that was cut short: what effects have said is said all the same, and one that was under way is
    told as unknown."""
    said = {message.text for message in turn.output.said}
    done = [one for one in recorded(job, turn, runs) if one.text not in said]
    messages = [*turn.output.said, *done, Message(text)]
    if turn.memory.in_flight:
        name, texts = turn.memory.in_flight, turn.input.profile().texts
        is_running = name in turn.memory.still_running
        messages += unknown(turn.input.functions.find(name) or name, texts, still_running=is_running).for_chat()
        reason, detail = ReasonCode.UNKNOWN_OUTCOME, name
    return sent(reason, messages, detail)


def recorded(job: Job, turn: Turn, runs: Runs) -> list[Message]:
    """What `runs`, by their keys, say of the effects of the turn, in words alone: the messages of those that ended,
    and of a `once` that began and did not end, that its outcome is unknown. A run within another one is told only where
    that one has not ended."""
    texts, found = turn.input.profile().texts, list[Message]()
    ended = [f"{key}." for key, run in runs.items() if run.result is not None]
    begun = [key for key, run in runs.items() if run.result is None and run.effect is Effect.ONCE]
    for key, run in runs.items():
        if run.effect is Effect.READ or key.startswith(tuple(ended)) or key in turn.memory.unfinished:
            continue
        function = turn.input.functions.find(run.function) or run.function
        if run.result is None:
            is_innermost = not any(one.startswith(f"{key}.") for one in begun)
            said = unknown(function, texts).for_chat() if key in begun and is_innermost else ()
        elif run.result.question is not None:
            said = ()
        else:
            said = shown(run.result) or (Message(done_text([function], texts)),)
        found += [Message(storable_text(one.text), to=one.to) for one in said]
    if found and job.runs_for is not job.context:
        # It was asked for there, perhaps in private.
        turn.memory.asker = job.runs_for
    return found


_log = structlog.get_logger("turns")


class Closing:
    """Closes turns."""

    def __init__(
        self,
        *,
        chats: Chats,
        questions: OpenQuestions,
        beginnings: Beginnings,
        store: Store,
        delivery: Delivery,
        metrics: Metrics,
        clock: Clock,
        ids: Ids,
        epoch: int,
        faults: FaultPoints,
        after: Callable[[str, ChatRef], None] | None = None,
    ) -> None:
        """`after` is told of each turn that has ended, once its messages are handed over."""
        self._chats = chats
        self._questions = questions
        self._beginnings = beginnings
        self._store = store
        self._delivery = delivery
        self._metrics = metrics
        self._clock = clock
        self._ids = ids
        self._rows = OutboxRows(ids, epoch)
        self._reach = faults.reach
        self._after = after
        self.on_given_up: list[Callable[[Job], None]] = []
        """Called for each turn that was given up."""

    async def close(self, job: Job, turn: Turn, log: StoreTurnLog, outcome: TurnOutcome) -> None:
        """Keep `outcome` as the end of `turn`, and hand over what it says. Raises StoreError when it cannot be kept."""
        now_ms = self._clock.now_ms()
        writes = log.rest()
        due = _due(job, now_ms) if outcome.reason is not ReasonCode.STOPPED else None
        given_back = unheeded(job, turn, outcome)
        asker, question, question_id = turn.memory.asker or job.context, outcome.question, 0
        chat, member = asker.chat.key, asker.sender.ref.key
        left: OpenQuestion | None = None
        closes: tuple[str, ...] = ()
        if question is not None or job.question is not None:
            left = self._left(job, turn, outcome)
            closes = await self._closed(job, left, is_heeded=given_back is None) if outcome.messages else ()
        first = await self._next_number(job)
        messages = worded(job, turn, outcome, left, asker)
        said, parcels = self._said(job, turn, messages, now_ms, due, closes, first)
        writes += said
        writes += told(turn, outcome.messages)
        if question is not None:
            is_told, question_id = question.question.saved_run is not None, self._ids.next()
            question = replace(question, private=asker.private, asker=without_words(asker) if is_told else None)
            writes += self._questions.ask(question_id, question, chat, member, job.turn_id)
        if given_back is not None:
            writes += self._questions.give_back(chat, job.context.sender.ref.key, given_back, job.turn_id)
        if turn.output.begins:
            writes.append(self._beginnings.note(job.context))
        writes.append(_end(job, outcome, now_ms))
        self._reach("reply.before_outbox")
        try:
            await self._store.commit(writes)
        except Conflict:
            _log.warning("turn_ended_elsewhere", turn=job.turn_id)
            return
        if question is not None:
            self._questions.waits(question_id, question, chat, member)
        if given_back is not None:
            self._questions.put_back(chat, job.context.sender.ref.key, given_back)
        self._ended(job, turn, outcome, parcels)

    def _ended(self, job: Job, turn: Turn, outcome: TurnOutcome, parcels: Sequence[OutboundMessage]) -> None:
        """The end of the turn is durable: hand over what it says, and tell everybody who counts ends."""
        self._metrics.turn_ended(outcome.reason)
        if outcome.reason is ReasonCode.GAVE_UP:
            for call in self.on_given_up:
                call(job)
        if turn.output.begins:
            self._beginnings.is_noted(job.context)
        self._delivery.hand_over(parcels)
        if self._after is not None:
            self._after(turn.input.id, job.context.chat)

    async def _next_number(self, job: Job) -> int:
        """The number of the first message: a turn that is retried has said something before, and no key is used
        twice."""
        if not job.recovered:
            return 0
        numbers = [int(row["key"].split(":")[1]) for row in await self._store.read(outbox.keys(job.turn_id))]
        return max(numbers, default=-1) + 1

    def _left(self, job: Job, turn: Turn, outcome: TurnOutcome) -> OpenQuestion | None:
        """The question that no longer waits because of what this turn asks."""
        if outcome.question is None or outcome.question.terms is not None:
            return None
        asker = turn.memory.asker or job.context
        return self._questions.of(asker.chat.key, asker.sender.ref.key)

    async def _closed(self, job: Job, left: OpenQuestion | None, *, is_heeded: bool) -> tuple[str, ...]:
        """The messages whose choices lead nowhere any more once this turn has ended."""
        ids = [left.id] if left is not None else []
        question = job.question
        if question is not None and is_heeded:
            is_taken = question.terms is None
            if is_taken or await self._questions.claimed(self._store, question.id, job.turn_id):
                ids.append(question.id)
        return await self._questions.messages_of(self._store, ids)

    def _said(
        self,
        job: Job,
        turn: Turn,
        messages: Sequence[Message],
        now_ms: int,
        due: Due | None,
        closes: tuple[str, ...],
        first: int,
    ) -> tuple[list[Write], list[OutboundMessage]]:
        """The writes and parcels of what is to be said; the first of them is `due` and `closes` earlier ones. A key is
        the same on every attempt of the turn. `first`: the number of the first message."""
        # What was asked for in private is answered in private, whoever allowed it.
        context, profile = turn.memory.asker or job.context, turn.input.profile()
        writes: list[Write] = []
        parcels: list[OutboundMessage] = []
        for number, message in enumerate(messages, first):
            if context.private and message.to is None:
                message = replace(message, to=context.sender.ref)
            chat, private_to = addressed_to(message, context.chat)
            if not message.text.strip() and not message.attachments:
                continue
            platform = self._delivery.platform(chat)
            if platform is None or (chat != context.chat and self._chats.of(chat).allowed_by is None):
                _log.error(
                    "message_to_a_chat_that_is_not_served", turn=turn.input.id, chat=chat.key, setting="chats.allow"
                )
                continue
            if number == first and message.to is None and message.reply_to is None and self._needs_quote(job):
                message = replace(message, reply_to=job.context.key.native_id)
            origin = Origin(
                turn_id=job.turn_id,
                number=number,
                asked_by=context.sender.ref,
                bot_name=profile.bot_name,
                texts=profile.texts,
                # What is due was worded by whoever set it, perhaps for somebody else.
                outside=bool(turn.memory.outside) or job.context.timer is not None,
                due=due,
                closes=closes if chat == context.chat else (),
            )
            rows, pieces = self._rows.of(message, Address(chat, private_to, platform), origin, now_ms)
            writes += rows
            parcels += pieces
            due = None
            closes = () if chat == context.chat else closes
        return writes, parcels

    def _needs_quote(self, job: Job) -> bool:
        """In a group where others have spoken meanwhile, an answer says whom it answers."""
        if job.context.timer is not None or job.context.kind is Kind.EXPIRY:
            return False
        return job.context.is_group and not self._chats.is_latest(job.context.chat, job.turn_id)


def _end(job: Job, outcome: TurnOutcome, now_ms: int) -> Write:
    if outcome.reason is ReasonCode.GAVE_UP:
        return inbox.give_up(job.turn_id, outcome.detail, now_ms)
    return inbox.end(job.turn_id, str(outcome.reason), outcome.detail, now_ms)


def _due(job: Job, now_ms: int) -> Due | None:
    """When what a timer says at `now_ms` was to be said; the time that its function took is nobody's delay."""
    timer = job.context.timer
    if timer is None:
        return None
    return Due(ms_of(timer.due_at) + now_ms - job.begun_ms, was_away=job.recovered or timer.was_away)
