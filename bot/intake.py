"""Everything that arrives passes here once: made fit, deduplicated, judged, kept; only then it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson
import structlog

from bot.alternations import Alternations
from bot.approval_answers import quoted_id
from bot.arrivals import Arrivals
from bot.chats import Chats, ServedChat
from bot.decisions import Decisions
from bot.engine.embedded import EmbeddedEngine
from bot.engine.job import Job
from bot.engine.keeping import Keeping
from bot.gate import Verdict, judge
from bot.inbound_text import fit
from bot.notices import Notices
from bot.open_questions import OpenQuestions, Pointed
from bot.platforms.base import Accepted, QueueFull
from bot.pointing import Pointing
from bot.taking import Taking
from config.settings import LimitsSettings
from function_calls.context import Kind, MessageContext, MessageKey
from function_calls.context_json import context_from_json, context_to_json
from function_calls.open_question import OpenQuestion
from function_calls.registry import BotFunctions
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, ReasonCode
from services.store import history, inbox, pending, summaries
from services.store.ids import Ids
from services.store.port import Row, Store, StoreError, Write

_log = structlog.get_logger("intake")
_PRUNE_EVERY = 100
_CHATS_COUNTED = 10_000
_NOT_SAID = frozenset({ReasonCode.CHAT_NOT_ALLOWED, ReasonCode.NOT_A_MESSAGE, ReasonCode.DELETED})
"""What ends so is no part of the conversation."""
_CHANGES = frozenset({Kind.EDIT, Kind.DELETE})
_NEW = Accepted.NEW  # a module's name is found faster than a member of an enumeration
_NEVER_SAID = frozenset({Kind.REACTION, Kind.TIMER, Kind.EXPIRY})
Claim = Callable[[Verdict, int], Sequence[Write]]
"""What is written with the verdict on something that is due and the id that its turn would have."""


class Intake:
    """Accepts events of all platforms."""

    def __init__(
        self,
        *,
        store: Store,
        engine: EmbeddedEngine,
        chats: Chats,
        functions: Callable[[str], BotFunctions],
        questions: OpenQuestions,
        decisions: Decisions,
        alternations: Alternations,
        notices: Notices,
        senders_retry: Callable[[ChatRef], bool],
        limits: LimitsSettings,
        history_per_chat: int,
        clock: Clock,
        ids: Ids,
        epoch: int,
        faults: FaultPoints,
    ) -> None:
        self._store = store
        self._engine = engine
        self._chats = chats
        self._functions = functions
        self._questions = questions
        self._decisions = decisions
        self._alternations = alternations
        self._pointing = Pointing(questions, chats)
        self._notices = notices
        self._senders_retry = senders_retry
        self._limits = limits
        self._history_per_chat = history_per_chat
        self._clock = clock
        self._ids = ids
        self._epoch = epoch
        self._reach = faults.reach
        self._taking = Taking()
        self._arrivals = Arrivals()
        self._heard: dict[str, int] = {}

    def use(self, limits: LimitsSettings) -> None:
        """From the next message on these limits hold."""
        self._limits = limits
        self._alternations.use(limits.bot_alternations)

    async def deliver(self, context: MessageContext, also: Sequence[Write] = ()) -> Accepted:
        """Take one event in, durably, together with `also`. Raises StoreError and QueueFull when nothing was taken."""
        served = self._chats.of(context.chat)
        context = self._prepared(context, served)
        if context.kind in _CHANGES and served.allowed_by is not None:
            async with self._arrivals.change((context.chat.key, context.key.native_id)):
                return await self._change(context, also)
        return await self._accept(context, also)

    async def fire(
        self,
        context: MessageContext,
        claim: Claim,
        ended: Callable[[], None] | None = None,
        question: OpenQuestion | None = None,
    ) -> Verdict:
        """Take in what is due, or that nobody answered `question`, in one unit with what `claim` gives for its verdict
        and its id, and return the verdict. Where the queue is full, nothing is kept and nothing ends. `ended` is called
        when a turn is over with it. Raises Conflict, and StoreError, when nothing was taken."""
        context = self._prepared(context, self._chats.of(context.chat))
        verdict = self._verdict(context, None)
        if question is not None:
            verdict = replace(verdict, question=question)
        if verdict.reason is ReasonCode.QUEUE_FULL:
            return verdict
        job = Job(self._ids.next(), context, addressed=True, question=question, ended=ended)
        self._reach("sched.before_claim")
        try:
            accepted, *others = self._writes(context, verdict, job.turn_id)
            claimed = claim(verdict, job.turn_id)
            await self._store.commit([accepted._replace(expect=1), *others, *claimed])
        finally:
            if verdict.is_for_us:
                self._engine.free_place(context.chat, immediate=False)
        self._reach("sched.after_claim")
        if verdict.is_for_us:
            self._engine.submit(job)
        else:
            self._notices.note(context, verdict)
        return verdict

    async def recover(self) -> int:
        """Take up the turns that an earlier process did not finish; returns how many."""
        jobs: list[Job] = []
        chats: set[ChatRef] = set()
        for row in await self._store.read(inbox.waiting()):
            job = await self._again(row)
            job.attempts = row["attempts"]
            job.suspect = job.attempts > 0
            if job.context.chat not in chats and not job.suspect:
                # Its first run is counted nowhere, but turns of a chat begin in order: this one may have begun.
                job.attempts = 1
            chats.add(job.context.chat)
            jobs.append(job)
        suspicious = {job.context.chat for job in jobs if job.suspect}
        # The order within a chat stays.
        for job in sorted(jobs, key=lambda one: one.context.chat not in suspicious):
            self._engine.submit(job)
        return len(jobs)

    async def take_up_retried(self) -> None:
        """Run the turns that were given up and that an operator lets run again."""
        for row in await self._store.read(inbox.retried()):
            job = await self._again(row)
            if (await self._store.commit([inbox.take_up(job.turn_id, self._epoch, 0)]))[0]:
                self._engine.submit(job)

    async def _again(self, row: Row) -> Job:
        """The job of a turn that is in the store."""
        question = None
        if row["question_id"] is not None:
            question = await self._questions.find(self._store, row["question_id"])
        context = context_from_json(orjson.loads(row["body"]))
        return Job(row["id"], context, True, question, recovered=True)

    def _prepared(self, context: MessageContext, served: ServedChat) -> MessageContext:
        context = fit(context, self._limits.message_chars, served.profile.texts)
        if context.bot != served.settings.bot:
            context = replace(context, bot=served.settings.bot)
        return self._taking.read(context, self._functions(context.bot))

    async def _accept(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        message, quoted = (context.chat.key, context.key.native_id), quoted_id(context)
        pointed = await self._pointed(context, quoted) if quoted else None
        if self._arrivals.any_changing:
            await self._arrivals.unchanging(message)
        edited = self._arrivals.edited(message)
        if edited is not None:
            context = replace(context, text=edited)
        verdict = self._verdict(context, pointed)
        if verdict.reason is ReasonCode.QUEUE_FULL and self._senders_retry(context.chat):
            return await self._refused(context, verdict, also)
        if verdict.told:
            verdict = await self._decisions.told(context, verdict)
        job = Job(self._ids.next(), context, verdict.addressed, verdict.question, immediate=verdict.immediate)
        # Until the first await nobody else is judged: the question and the place in the queue are this message's.
        if verdict.quick and self._engine.is_free(context.chat):
            return await self._begun(job, verdict, also)
        return await self._queued(job, verdict, also)

    async def _refused(self, context: MessageContext, verdict: Verdict, also: Sequence[Write]) -> Accepted:
        """Raise QueueFull, unless the message was accepted before."""
        if await self._store.read(inbox.known(context.key.text)):
            await self._store.commit(also)
            return Accepted.DUPLICATE
        self._notices.count(context, verdict)
        raise QueueFull(verdict.detail)

    async def _queued(self, job: Job, verdict: Verdict, also: Sequence[Write]) -> Accepted:
        """Take in a message, and then let its turn wait for those before it, where one answers it."""
        context = job.context
        message = (context.chat.key, context.key.native_id)
        if verdict.is_for_us:
            self._arrivals.accepting.setdefault(message, job)
        try:
            is_new = await self._keep(job, verdict, also)
            await self._arrivals.unchanging(message)
        finally:
            if self._arrivals.accepting.get(message) is job:
                del self._arrivals.accepting[message]
            if verdict.is_for_us:
                self._engine.free_place(context.chat, verdict.immediate)
        if not is_new:
            return Accepted.DUPLICATE
        self._reach("dedupe.after_insert")
        self._chats.heard(context.chat, job.turn_id)
        if not verdict.is_for_us:
            self._notices.note(context, verdict)
        elif not job.withdrawn:
            self._engine.submit(job)
        if _is_history(context, verdict):
            self._prune(context.chat.key)
        return _NEW

    async def _begun(self, job: Job, verdict: Verdict, also: Sequence[Write]) -> Accepted:
        """Take in a command while its turn runs: what the turn writes follows in the order of units, most often in the
        same commit."""
        chat = job.context.chat
        job.keeping = Keeping(self._store, job.turn_id)
        self._chats.heard(chat, job.turn_id)
        self._engine.free_place(chat, immediate=False)
        try:
            is_new = await self._keep(job, verdict, also)
        except StoreError:
            self._engine.abandon(job)
            raise
        if not is_new:
            self._engine.abandon(job)
            return Accepted.DUPLICATE
        self._reach("dedupe.after_insert")
        self._prune(chat.key)
        return _NEW

    async def _keep(self, job: Job, verdict: Verdict, also: Sequence[Write]) -> bool:
        """Make it durable; whether it was new. Its question is taken before the first await, so that two answers
        cannot both have it."""
        context = job.context
        chat, member = context.chat.key, context.sender.ref.key
        writes = self._writes(context, verdict, job.turn_id)
        taken = None
        if verdict.question is not None and verdict.question.question.terms is None:
            taken = job.taken = self._questions.take(chat, member)
            writes.append(pending.answer(verdict.question.id, job.turn_id))
        self._reach("recv.before_persist")
        try:
            if also:
                writes += also
            unit = self._store.commit(writes)
            if job.keeping is not None:
                unit = job.keeping.begin(unit)
                # The store waits for the turn's first step before it begins to write.
                self._engine.submit(job)
            touched = await unit
        except StoreError:
            # The platform delivers the answer again, and then it has to find its question.
            self._questions.put_back(chat, member, taken)
            raise
        self._reach("recv.after_persist_before_ack")
        self._arrivals.forget_early((chat, context.key.native_id))
        if touched[0] == 0:
            # It answered its question before: the one that is open now waits for another answer.
            self._questions.put_back(chat, member, taken)
            return False
        return True

    async def _pointed(self, context: MessageContext, quoted: str) -> Pointed | None:
        """The question whose message this one quotes, answers by a button or reacts to; None when it is no question."""
        chat = context.chat.key
        if self._chats.of(context.chat).allowed_by is None:
            return None
        if context.kind is Kind.REACTION and not self._questions.any_in(chat, context.sender.ref.key):
            return None
        return await self._questions.asked_by(self._store, chat, quoted)

    def _verdict(self, context: MessageContext, pointed: Pointed | None) -> Verdict:
        """What the gate says, and a place in the queue when it is for us; without one it is not."""
        chat = context.chat
        if self._arrivals.is_deleted((chat.key, context.key.native_id)):
            return Verdict(ReasonCode.DELETED)
        question = self._pointing.question(context, pointed)
        closed = self._pointing.closed(context, pointed, question)
        verdict = judge(context, self._chats.of(chat), self._functions(context.bot), question, closed)
        verdict = self._alternations.judge(context, verdict) or verdict
        if not verdict.is_for_us:
            return verdict
        limit = self._engine.keep_place(chat, verdict.immediate)
        return Verdict(ReasonCode.QUEUE_FULL, limit) if limit else verdict

    def _writes(self, context: MessageContext, verdict: Verdict, turn_id: int) -> list[Write]:
        now_ms = self._clock.now_ms()
        if verdict.is_for_us:
            taken_in = inbox.accept(
                turn_id,
                _event(context),
                body=orjson.dumps(context_to_json(context)).decode(),
                received_ms=now_ms,
                epoch=self._epoch,
                question_id=verdict.question.id if verdict.question else None,
            )
        else:
            reason = str(verdict.reason)
            taken_in = inbox.note(turn_id, _event(context), received_ms=now_ms, reason=reason, detail=verdict.detail)
        writes = [taken_in]
        if _is_history(context, verdict):
            quoted = context.reply_to
            writes.append(
                history.heard(
                    id=turn_id,
                    said=context.text,
                    at_ms=min(int(context.sent_at.timestamp() * 1000), now_ms),
                    reply_to=quoted.native_id if quoted else None,
                    reply_to_name=quoted.sender_name if quoted else "",
                )
            )
        return writes

    async def _change(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        """An edit or a deletion: of a message that waits, its text or its turn; later ones, history alone."""
        chat, native_id = context.chat.key, context.key.native_id
        deletes = context.kind is Kind.DELETE
        now_ms = self._clock.now_ms()
        if await self._store.read(inbox.known(context.key.text)):
            # Done before. Meanwhile there may have been a newer change, which an older one must not undo.
            await self._store.commit(also)
            return Accepted.DUPLICATE
        arriving = self._arrivals.accepting.get((chat, native_id))
        job = arriving or self._engine.waiting_job(context.chat, native_id)
        writes: list[Write] = []
        reason = ReasonCode.DELETED if deletes else ReasonCode.EDIT_TOO_LATE
        if job is not None:
            reason = ReasonCode.DELETED if deletes else ReasonCode.EDIT_TAKEN
            if deletes:
                job.withdrawn = True
                self._engine.remove(job)
                writes.append(inbox.end(job.turn_id, reason.value, "", now_ms))
            else:
                calls_bot = job.context.mentions_bot or context.mentions_bot
                job.context = replace(job.context, text=context.text, mentions_bot=calls_bot, takes=context.takes)
                writes.append(inbox.replace(job.turn_id, orjson.dumps(context_to_json(job.context)).decode()))
        # What nobody has allowed yet goes with the message that asked for it.
        withdrawn = self._questions.asked_for_by(chat, native_id) if deletes else []
        writes += self._questions.withdrawing(chat, withdrawn)
        if job is None:
            writes.append(inbox.changed(MessageKey(context.chat, native_id).text))
        # A summary may hold what is taken back here.
        writes.append(summaries.forget(chat, native_id))
        writes.append(history.deleted(chat, native_id) if deletes else history.edited(chat, native_id, context.text))
        try:
            noted = inbox.note(self._ids.next(), _event(context), received_ms=now_ms, reason=reason.value)
            touched = await self._store.commit([noted, *writes, *also])
        except StoreError:
            # Nothing was taken back: the message is still to be answered, until the platform delivers this again.
            if job is not None and deletes:
                job.withdrawn = False
                if job is not arriving:
                    self._engine.submit(job)
            raise
        self._questions.withdraw(chat, withdrawn)
        running = None if deletes or job is not None else self._engine.running_job(context.chat, native_id)
        if running is not None and running.context.text != context.text:
            running.edited = True
        if touched[len(writes)] == 0:
            self._arrivals.remember_early((chat, native_id), None if deletes else context.text)
        return _NEW if touched[0] else Accepted.DUPLICATE

    def _prune(self, chat: str) -> None:
        """Now and then, and with the first message since the start, which does not know what there was before."""
        count = self._heard.get(chat, _PRUNE_EVERY)
        if count >= _PRUNE_EVERY:
            count = 0
            self._store.post([history.prune(chat, self._history_per_chat)])
            if len(self._heard) >= _CHATS_COUNTED:
                self._heard.clear()
        self._heard[chat] = count + 1


def _event(context: MessageContext) -> inbox.Event:
    sender = context.sender
    return inbox.Event(
        key=context.key.text,
        chat=context.chat.key,
        native_id=context.key.native_id,
        sender=sender.ref.key,
        sender_name=sender.name,
        kind=str(context.kind),
    )


def _is_history(context: MessageContext, verdict: Verdict) -> bool:
    """Whether it is part of what the chat has said."""
    return not context.private and context.kind not in _NEVER_SAID and verdict.reason not in _NOT_SAID
