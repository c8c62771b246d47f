"""Commit of a turn's end: result, messages, open question and state in one unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace

import structlog

from bot.chats.chat_notes import StartScripts
from bot.chats.chats import Chats
from bot.chats.open_questions import Asked, OpenQuestions
from bot.delivery.collected import Collected
from bot.delivery.delivery import Address, Delivery, Origin, OutboxRows
from bot.delivery.outgoing import Due, OutboundMessage, addressed_to
from bot.engine.embedded import Job
from bot.platforms.base import ChatPlatform
from bot.telemetry.metrics import Metrics
from bot.turns.turn_log import StoreTurnLog
from function_calls.context import Kind, MessageContext, without_words
from function_calls.failures import unknown
from function_calls.outcome import TurnOutcome, sent, shown
from function_calls.result import storable_text
from function_calls.schema.commands import done_text, plain_name
from function_calls.spec import Message
from function_calls.turn import OpenQuestion, StoredRun, Turn
from services.chats.privacy import MemberData
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, Effect, MemberRef, ReasonCode
from services.store import member_data as member_rows
from services.store.chats import history
from services.store.ids import Ids, generated_ms
from services.store.port import Conflict, Store, Write
from services.store.turns import inbox, outbox
from services.timers.reminders import FUNCTION as REMINDER
from services.timers.reminders import reminder_text
from services.timers.timer import Timer, TimerKind, TimerState, ms_of

_NOTE_CHARS = 80
_ATTEMPTS = "limits.attempts_per_turn"
Runs = Mapping[str, StoredRun]
"""Stored runs of a turn by run key, in starting order."""


def question_to_reopen(job: Job, turn: Turn, outcome: TurnOutcome) -> Asked | None:
    """The question that stays open because a filter stopped its answer, or because the message was a new request that
    asks nothing itself; else None. A repeated attempt does not know how far the earlier one came, so it never reopens
    the question."""
    if job.claimed is None or turn.memory.resumed or job.repeated:
        return None
    is_new = turn.input.answering is None and outcome.question is None
    return job.claimed if is_new or outcome.reason is ReasonCode.FILTERED else None


def sent_notice_writes(turn: Turn, messages: Sequence[Message]) -> list[Write]:
    """Writes that record as shown the notices of the turn that `messages` contain. A model may have left one out."""
    if not turn.output.notices:
        return []
    return [
        notice.sent_record for notice in turn.output.notices if any(notice.text in message.text for message in messages)
    ]


def final_messages(
    job: Job, turn: Turn, outcome: TurnOutcome, replaced: OpenQuestion | None, asker: MessageContext
) -> Sequence[Message]:
    """The messages of the turn's outcome, with notes for `asker` on granted approvals, edits and replaced questions.
    `replaced`: the open question that the new question replaces."""
    if outcome.question is None and not job.edited and not turn.output.granted:
        return outcome.messages
    messages = _with_edit_note(job, turn, _mentioning_asked(outcome.messages, outcome.question, asker))
    return [*_grant_message(turn), *_with_replaced_note(replaced, messages, turn, asker)]


def _mentioning_asked(
    messages: tuple[Message, ...], asked: OpenQuestion | None, context: MessageContext
) -> tuple[Message, ...]:
    """`messages`, whose last message asks a question. In a group it mentions the only member who may answer, the sender
    of `context`."""
    is_one_of_many = asked is not None and asked.terms is None and context.is_group and not context.private
    if not is_one_of_many or not messages or messages[-1].to is not None or messages[-1].mentions:
        return messages
    return (*messages[:-1], replace(messages[-1], mentions=(context.sender.ref,)))


def _with_edit_note(job: Job, turn: Turn, messages: Sequence[Message]) -> Sequence[Message]:
    """`messages`; if the message they answer was edited meanwhile, the last one says so."""
    if not job.edited or not messages:
        return messages
    *others, last = messages
    note = turn.input.profile().texts.say("turns.edited_meanwhile")
    return [*others, replace(last, text=f"{last.text}\n{note}".strip())]


def _grant_message(turn: Turn) -> Sequence[Message]:
    """The message about a standing approval that the chat has given in this turn; empty without one."""
    return (
        [Message(turn.input.profile().texts.say("grants.given", code=turn.output.granted))]
        if turn.output.granted
        else []
    )


def _with_replaced_note(
    replaced: OpenQuestion | None, messages: Sequence[Message], turn: Turn, asker: MessageContext
) -> Sequence[Message]:
    """`messages`, whose last message asks `asker` something. If that replaces the unanswered question `replaced`, the
    last message says so."""
    if replaced is None or not messages:
        return messages
    texts = turn.input.profile().texts
    *others, last = messages
    lines = replaced.question.text.strip().splitlines()
    # A question asked in private is not quoted where others can read it.
    if not lines or (replaced.private and not asker.private):
        note = texts.say("questions.leaves")
    else:
        short = lines[0] if len(lines[0]) <= _NOTE_CHARS else f"{lines[0][:_NOTE_CHARS].rstrip()}…"
        note = texts.say("questions.leaves_this", question=short)
    return [*others, replace(last, text=f"{note}\n{last.text}")]


def explained(chat: TurnOutcome, routed: TurnOutcome, turn: Turn) -> TurnOutcome:
    """The outcome `chat` of the chat fallback, with the settings key in its detail if functions are switched off."""
    if routed.reason is not ReasonCode.FUNCTIONS_OFF or chat.reason is not ReasonCode.CHAT:
        return chat
    return replace(chat, reason=ReasonCode.FUNCTIONS_OFF, detail=turn.input.profile().layers["functions_on"])


def given_up(job: Job, turn: Turn, runs: Runs, timer: Timer | None) -> TurnOutcome:
    """Outcome of a turn whose runs crashed the process too often: the recorded effects and a notice that the bot gave
    up. A reminder is still sent; a removed timer only reports its effects."""
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


def end_not_stored(job: Job, turn: Turn, runs: Runs, short_id: str) -> TurnOutcome:
    """Outcome of a turn whose end could not be stored: the recorded effects and an error message with `short_id`, which
    identifies the log entry."""
    sorry = Message(turn.input.profile().texts.say("failures.turn", id=short_id))
    return sent(ReasonCode.FUNCTION_FAILED, [*recorded(job, turn, runs), sorry], short_id)


def stopped(job: Job, turn: Turn, runs: Runs) -> TurnOutcome:
    """Outcome of a turn that a member stopped."""
    return interrupted(job, turn, runs, ReasonCode.STOPPED, turn.input.profile().texts.say("stop.stopped"), "")


def interrupted(job: Job, turn: Turn, runs: Runs, reason: ReasonCode, text: str, detail: str) -> TurnOutcome:
    """Outcome of a turn that was cut short: the messages of its effects, then `text`. An effect that was still running
    is reported as unknown."""
    sent_texts = {message.text for message in turn.output.said}
    done = [one for one in recorded(job, turn, runs) if one.text not in sent_texts]
    messages = [*turn.output.said, *done, Message(text)]
    if turn.memory.in_flight:
        name, texts = turn.memory.in_flight, turn.input.profile().texts
        is_running = name in turn.memory.still_running
        messages += unknown(turn.input.functions.find(name) or name, texts, still_running=is_running).for_chat()
        reason, detail = ReasonCode.UNKNOWN_OUTCOME, name
    return sent(reason, messages, detail)


def recorded(job: Job, turn: Turn, runs: Runs) -> list[Message]:
    """Messages that report the effects in `runs`, as plain text: the messages of runs that ended, and "unknown outcome"
    for each `once` run that started and did not end. A nested run is reported only if its outer run has not ended."""
    texts, found = turn.input.profile().texts, list[Message]()
    ended = [f"{key}." for key, run in runs.items() if run.result is not None]
    unfinished = [key for key, run in runs.items() if run.result is None and run.effect is Effect.ONCE]
    for key, run in runs.items():
        if run.effect is Effect.READ or key.startswith(tuple(ended)) or key in turn.memory.unfinished:
            continue
        function = turn.input.functions.find(run.function) or run.function
        if run.result is None:
            is_innermost = not any(one.startswith(f"{key}.") for one in unfinished)
            messages = unknown(function, texts).for_chat() if key in unfinished and is_innermost else ()
        elif run.result.question is not None:
            messages = ()
        else:
            messages = shown(run.result) or (Message(done_text([function], texts)),)
        found += [Message(storable_text(one.text), to=one.to) for one in messages]
    if found and job.runs_for is not job.context:
        # The reply goes to the request, which may have been private.
        turn.memory.asker = job.runs_for
    return found


_log = structlog.get_logger("turns")


@dataclass(eq=False, repr=False, kw_only=True)
class Closing:
    """Commits the end of turns and hands their messages to the delivery."""

    chats: Chats
    questions: OpenQuestions
    start_scripts: StartScripts
    store: Store
    delivery: Delivery
    metrics: Metrics
    clock: Clock
    ids: Ids
    epoch: InitVar[int]
    faults: InitVar[FaultPoints]
    collected: Collected
    member_data: MemberData
    after: Callable[[str, ChatRef], None] | None = None
    """Called for each ended turn (id, chat) after its messages are handed to the delivery."""

    def __post_init__(self, epoch: int, faults: FaultPoints) -> None:
        self._rows = OutboxRows(self.ids, epoch)
        self._reach = faults.reach
        self.on_given_up: list[Callable[[Job], None]] = []
        """Called for each turn that was given up."""

    async def close(self, job: Job, turn: Turn, log: StoreTurnLog, outcome: TurnOutcome) -> None:
        """Commit `outcome` as the end of `turn`, and hand its messages to the delivery. Raises StoreError on
        failure."""
        now_ms = self.clock.now_ms()
        writes = log.rest()
        due = _due(job, now_ms) if outcome.reason is not ReasonCode.STOPPED else None
        reopened = question_to_reopen(job, turn, outcome)
        asker, question, question_id = turn.memory.asker or job.context, outcome.question, 0
        chat, member = asker.chat.key, asker.sender.ref.key
        replaced: OpenQuestion | None = None
        closes: tuple[str, ...] = ()
        if question is not None or job.question is not None:
            replaced = self._replaced_question(job, turn, outcome)
            closes = await self._closed_messages(job, replaced, is_used=reopened is None) if outcome.messages else ()
        first = await self._next_number(job)
        if job.context.is_group and not self.delivery.is_here(job.context.chat):
            # The gateway has received the messages that came since.
            newest = await self.store.read(history.newest_of_members(job.context.chat.key))
            self.chats.note_latest(job.context.chat, newest[0]["id"] or 0)
        messages = final_messages(job, turn, outcome, replaced, asker)
        has_status = await self.delivery.statuses.end(job.turn_id, is_recovered=job.recovered)
        rows, outbound = self._outbound(job, turn, messages, now_ms, due, closes, first, ends_status=has_status)
        writes += rows
        if job.context.timer is not None and rows:
            self.collected.note()
            outcome = outcome if outbound else replace(outcome, reason=ReasonCode.COLLECTED)
        writes += sent_notice_writes(turn, outcome.messages)
        if question is not None:
            has_waiting_run, question_id = question.question.saved_run is not None, self.ids.next()
            question = replace(question, private=asker.private, asker=without_words(asker) if has_waiting_run else None)
            writes += self.questions.ask(question_id, question, chat, member, job.turn_id)
        if reopened is not None:
            writes += self.questions.reopen_writes(chat, job.context.sender.ref.key, reopened, job.turn_id)
        if turn.output.ran_start_function:
            writes += self.start_scripts.started_writes(job.context)
        writes += _end(job, outcome, now_ms, asker.sender.ref if self._is_unrecorded(job, turn) else None)
        self._reach("reply.before_outbox")
        try:
            await self.store.commit(writes)
        except Conflict:
            _log.warning("turn_ended_elsewhere", turn=job.turn_id)
            self.delivery.statuses.forget(job.turn_id)
            return
        if question is not None:
            self.questions.open(question_id, question, chat, member)
        if reopened is not None:
            self.questions.reopen(chat, job.context.sender.ref.key, reopened)
        self._ended(job, turn, outcome, outbound)

    def _ended(self, job: Job, turn: Turn, outcome: TurnOutcome, outbound: Sequence[OutboundMessage]) -> None:
        """Update metrics, hand over the messages and call the callbacks, after the end of the turn is durable."""
        self.metrics.turn_ended(outcome.reason, (self.clock.now_ms() - generated_ms(job.turn_id)) * 1000)
        if outcome.reason is ReasonCode.GAVE_UP:
            for call in self.on_given_up:
                call(job)
        if turn.output.ran_start_function:
            self.start_scripts.mark_started(job.context)
        self.delivery.hand_over(outbound)
        self.delivery.statuses.forget(job.turn_id)
        if self.after is not None:
            self.after(turn.input.id, job.context.chat)

    def _is_unrecorded(self, job: Job, turn: Turn) -> bool:
        """Whether the sender, or the member whose request the turn continues, has opted out."""
        contexts = (job.context, turn.memory.asker or job.context)
        return any(self.member_data.is_opted_out(one.chat, one.sender.ref) for one in contexts)

    async def _next_number(self, job: Job) -> int:
        """Number of the first message. After a restart it continues behind the stored messages, so that no key is used
        twice. Raises StoreError."""
        if not job.recovered:
            return 0
        numbers = [int(row["key"].split(":")[1]) for row in await self.store.read(outbox.keys(job.turn_id))]
        return max(numbers, default=-1) + 1

    def _replaced_question(self, job: Job, turn: Turn, outcome: TurnOutcome) -> OpenQuestion | None:
        """The asker's open question that the question of this turn replaces, or None."""
        if outcome.question is None or outcome.question.terms is not None:
            return None
        asker = turn.memory.asker or job.context
        return self.questions.of(asker.chat.key, asker.sender.ref.key)

    async def _closed_messages(self, job: Job, replaced: OpenQuestion | None, *, is_used: bool) -> tuple[str, ...]:
        """Native ids of the messages whose choices are invalid after this turn: those of the `replaced` question, and
        of the answered one if `is_used`. Raises StoreError."""
        ids = [replaced.id] if replaced is not None else []
        question = job.question
        if question is not None and is_used:
            is_claimed = question.terms is None
            if is_claimed or await self.questions.claimed(self.store, question.id, job.turn_id):
                ids.append(question.id)
        return await self.questions.messages_of(self.store, ids)

    def _outbound(
        self,
        job: Job,
        turn: Turn,
        messages: Sequence[Message],
        now_ms: int,
        due: Due | None,
        closes: tuple[str, ...],
        first: int,
        *,
        ends_status: bool,
    ) -> tuple[list[Write], list[OutboundMessage]]:
        """The writes and outbound messages for `messages`. The first gets `due` and `closes`; numbering starts at
        `first`. Keys are the same on every attempt of the turn. `ends_status`: the only message replaces the status of
        the turn, or the status is deleted after all messages."""
        # A private request is answered in private, no matter who approved it.
        context, profile = turn.memory.asker or job.context, turn.input.profile()
        is_unrecorded = self._is_unrecorded(job, turn)
        writes: list[Write] = []
        outbound: list[OutboundMessage] = []
        for number, message in enumerate(messages, first):
            if context.private and message.to is None:
                message = replace(message, to=context.sender.ref)
            if not message.text.strip() and not message.attachments:
                continue
            chat, private_to = addressed_to(message, context.chat)
            platform = served_platform(chat, context.chat, self.delivery, self.chats, str(job.turn_id))
            if platform is None:
                continue
            if number == first and message.to is None and message.reply_to is None and self._needs_quote(job):
                message = replace(message, reply_to=job.context.key.native_id)
            origin = Origin(
                turn_id=job.turn_id,
                number=number,
                asked_by=context.sender.ref,
                bot_name=profile.bot_name,
                texts=profile.texts,
                # The text of a timer was written by its creator, perhaps for another member.
                outside=bool(turn.memory.outside) or job.context.timer is not None,
                due=due,
                closes=closes if chat == context.chat else (),
                pressed=_pressed(job.context) if chat == job.context.chat else None,
                ends_status=ends_status and len(messages) == 1 and chat == job.context.chat,
                is_held=self._is_collected(job, message, chat),
                is_unrecorded=is_unrecorded,
            )
            rows, pieces = self._rows.of(message, Address(chat, private_to, platform), origin, now_ms)
            writes += rows
            outbound += pieces
            due = None
            closes = () if chat == context.chat else closes
        if ends_status and not any(one.status for one in outbound):
            chat = job.context.chat
            platform = served_platform(chat, chat, self.delivery, self.chats, str(job.turn_id))
            if platform is not None:
                to = Address(chat, None, platform)
                write, message_ = self._rows.end_of_status(job.turn_id, first + len(messages), to, now_ms)
                writes.append(write)
                outbound.append(message_)
        return writes, outbound

    def _is_collected(self, job: Job, message: Message, chat: ChatRef) -> bool:
        """Whether a public message of a schedule waits for the end of the quiet hours. Reminders do not: members have
        asked for their time."""
        timer = job.context.timer
        if timer is None or timer.function == REMINDER or message.to is not None:
            return False
        return self.chats.quiet_until(chat, self.clock.now()) is not None

    def _needs_quote(self, job: Job) -> bool:
        """Whether the reply has to quote the message: in a group, other messages have arrived since."""
        if job.context.timer is not None or job.context.kind is Kind.EXPIRY:
            return False
        return job.context.is_group and not self.chats.is_latest(job.context.chat, job.turn_id)


def served_platform(
    chat: ChatRef, asked_in: ChatRef, delivery: Delivery, chats: Chats, turn: str
) -> ChatPlatform | None:
    """The platform of `chat`; None, with an error in the log, if the chat is not served. The chat `asked_in` was
    checked when its turn began."""
    platform = delivery.platform(chat)
    if platform is None or (chat != asked_in and chats.of(chat).allowed_by is None):
        _log.error("message_to_a_chat_that_is_not_served", turn=turn, chat=chat.key, setting="chats.allow")
        return None
    return platform


def _end(job: Job, outcome: TurnOutcome, now_ms: int, unrecorded: MemberRef | None) -> list[Write]:
    """Writes of the end. Of a turn of the member `unrecorded`, who has opted out, nothing is kept: no body for a retry,
    and no detail that is a word of the message."""
    if unrecorded is None and outcome.reason is ReasonCode.GAVE_UP:
        return [inbox.give_up(job.turn_id, outcome.detail, now_ms)]
    is_word = unrecorded is not None and outcome.reason is ReasonCode.UNKNOWN_COMMAND
    ended = inbox.end(job.turn_id, str(outcome.reason), "" if is_word else outcome.detail, now_ms)
    if unrecorded is None:
        return [ended]
    answered = job.question.id if job.question is not None else 0
    return [ended, *member_rows.drop_turn(job.turn_id, answered, job.context.chat.key, unrecorded.key)]


def _due(job: Job, now_ms: int) -> Due | None:
    """Due time of a timer's message sent at `now_ms`, not counting run time as delay; None without a timer."""
    timer = job.context.timer
    if timer is None:
        return None
    return Due(ms_of(timer.due_at) + now_ms - job.started_ms, was_away=job.recovered or timer.was_away)


def _pressed(context: MessageContext) -> str | None:
    """Native id of the message whose button was pressed; None if the context is no press of a button."""
    is_press = context.kind is Kind.CHOICE and context.reply_to is not None and context.reply_to.from_bot
    return context.reply_to.native_id if is_press and context.reply_to is not None else None
