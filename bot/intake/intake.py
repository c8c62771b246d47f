"""Intake of inbound events: normalise, deduplicate, gate, commit, acknowledge."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from weakref import WeakKeyDictionary

import orjson
import structlog

from bot.chats.chats import Chats, ServedChat
from bot.chats.open_questions import OpenQuestions, Pointed
from bot.engine.embedded import EmbeddedEngine, Job
from bot.intake.gate import Decisions, GateDecision, judge, meant, pointed_out, quoted_id
from bot.intake.notices import Alternations, Notices
from bot.platforms.base import Accepted, QueueFull
from bot.platforms.mentions import Found, finding
from config.settings import LimitsSettings
from config.texts import Phrases
from function_calls.context import Kind, MessageContext, MessageKey, context_from_json, context_to_json
from function_calls.questions.approval_questions import is_about_a_code
from function_calls.questions.open_questions import Answered
from function_calls.questions.resume import is_decision, read_answer
from function_calls.registry import BotFunctions
from function_calls.turn import OpenQuestion
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, ReasonCode
from services.store.chats import history, summaries
from services.store.ids import Ids
from services.store.port import Row, Store, StoreError, Write
from services.store.turns import inbox, pending

_SAID = frozenset({Kind.MESSAGE, Kind.EDIT})
_HANDLE = re.compile(r"[@＠]([^\s@＠,，:：;；!！?？()（）]+)")
_ADDRESSEE = re.compile(r"\s*[^\s@＠:,，：]+[:,，：]")


class Taking:
    """Extracts the functions on request that a message mentions."""

    def __init__(self) -> None:
        self._finds: WeakKeyDictionary[BotFunctions, Callable[[str], Found | None]] = WeakKeyDictionary()

    def read(self, context: MessageContext, functions: BotFunctions) -> MessageContext:
        """`context` with the mentioned functions in `takes` and without the mentions in its text, addressed to the bot;
        unchanged if it mentions none."""
        names, text = functions.activation.activatable, context.text
        if not names or context.kind not in _SAID or ("@" not in text and "＠" not in text) or text.startswith("/"):
            # Arguments of a command stay as they were written.
            return context
        find = self._finds.get(functions)
        if find is None:
            find = self._finds[functions] = finding(names)
        found = find(text)
        if found is None or (context.mentions and _are_members(context, found)):
            return context
        taken = (functions.activation.find(word) for word in found.names)
        takes = tuple(dict.fromkeys(one.name for one in taken if one is not None))
        return replace(context, text=found.text, mentions_bot=True, takes=takes)


def _are_members(context: MessageContext, found: Found) -> bool:
    """Whether the matches are member mentions according to the platform: members with such a native name, or as many
    mentioned members as there are mentions left to explain."""
    natives = {member.native.casefold() for member in context.mentions}
    if not natives.isdisjoint(found.names):
        return True
    handles = {one.casefold().rstrip(".'’") for one in _HANDLE.findall(context.text)}
    others = handles.difference(found.names)
    elsewhere = len(others) + (1 if _ADDRESSEE.match(context.text) else 0)
    return len(natives - handles) > elsewhere - len(natives & others)


_POINTING_SAID = (Kind.MESSAGE, Kind.CHOICE)


class Pointing:
    """Finds the open question that a message may answer."""

    def __init__(self, questions: OpenQuestions, chats: Chats) -> None:
        self._questions = questions
        self._chats = chats

    def question(self, context: MessageContext, pointed: Pointed | None) -> OpenQuestion | None:
        """The open question that the message may answer: the one it points to, exclusively; else the sender's own; else
        an unambiguous approval question. `pointed`: the question whose message it quotes."""
        if not self._questions.any_waiting:
            return None
        chat = context.chat
        own = self._questions.of(chat.key, context.sender.ref.key)
        waiting = self._questions.approvals_in(chat.key)
        found = pointed_out(context, waiting, pointed.question.id if pointed is not None else 0) if waiting else None
        if found is not None:
            return found
        if pointed is not None:
            return own if own is not None and own.id == pointed.question.id else None
        if context.kind is Kind.REACTION:
            # A reaction answers only the question of its message.
            return None
        if own is None and not waiting:
            return None
        names_another = self._names_a_code(context)
        if own is not None:
            return None if names_another and is_decision(own.question) else own
        if names_another:
            return None
        role = self._chats.role(context.sender.ref.key, context.sender.role)
        return meant(context, waiting, role, self._chats.profile(chat).texts)

    def closed(self, context: MessageContext, pointed: Pointed | None, question: OpenQuestion | None) -> str:
        """Text key of the notice on a message that answers a closed question; empty if there is nothing to say.
        `question`: the open question that it may answer."""
        if context.kind not in _POINTING_SAID:
            return ""
        if question is None and pointed is not None and self._answers(context, pointed):
            return "questions.closed" if pointed.question.terms is None else "approvals.closed"
        is_taken = question is not None and not is_decision(question.question)
        return "approvals.no_such_code" if not is_taken and self._names_a_code(context, question) else ""

    def _answers(self, context: MessageContext, pointed: Pointed) -> bool:
        """Whether the message would answer the question that it points to, if that were still open."""
        question, member = pointed.question, context.sender.ref.key
        if question.terms is None and pointed.member != member:
            return False
        if context.kind is Kind.CHOICE:
            return not context.text.startswith("/")
        if pointed.is_answered and not is_decision(question.question):
            # Later replies to an answered question may be about anything.
            return False
        answer = read_answer(question.question, context.text, self._chats.profile(context.chat).texts)
        return answer.kind is not Answered.UNRELATED

    def _names_a_code(self, context: MessageContext, question: OpenQuestion | None = None) -> bool:
        """Whether the message decides on a code that does not belong to `question`."""
        if question is not None and question.terms is not None:
            return False
        if context.text.startswith("/"):
            # A command is never an answer.
            return False
        return is_about_a_code(context.text, self._chats.profile(context.chat).texts, clearly=not context.calls_bot)


MessageId = tuple[str, str]
"""The chat's key and the native id of the message."""
_CHANGES_KEPT = 1000


class Arrivals:
    """Coordinates messages in acceptance with their edits and deletions, in whichever order they arrive."""

    def __init__(self) -> None:
        self.accepting: dict[MessageId, Job] = {}
        """Messages that are being committed and will be queued next."""
        self._early: OrderedDict[MessageId, str | None] = OrderedDict()
        self._changing: dict[MessageId, asyncio.Event] = {}

    @property
    def any_changing(self) -> bool:
        """Whether a change of any message is in progress."""
        return bool(self._changing)

    async def unchanging(self, message: MessageId) -> None:
        """Wait until no change of `message` is in progress."""
        while message in self._changing:
            await self._changing[message].wait()

    @asynccontextmanager
    async def change(self, message: MessageId) -> AsyncIterator[None]:
        """Serialise changes of `message`, which is neither accepted nor queued during a change."""
        await self.unchanging(message)
        done = self._changing[message] = asyncio.Event()
        try:
            yield
        finally:
            del self._changing[message]
            done.set()

    def remember_early(self, message: MessageId, text: str | None) -> None:
        """Keep a change that came before its message: the new text, or None for a deletion."""
        self._early[message] = text
        while len(self._early) > _CHANGES_KEPT:
            self._early.popitem(last=False)

    def is_deleted(self, message: MessageId) -> bool:
        """Whether its deletion came before the message."""
        return self._early.get(message, "") is None

    def edited(self, message: MessageId) -> str | None:
        """The new text, if an edit came before the message."""
        return self._early.get(message)

    def forget_early(self, message: MessageId) -> None:
        """Drop the early change after its message has arrived."""
        self._early.pop(message, None)


# Replaced rather than dropped: dropping a character could turn harmless text into a command.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_LONGEST_NAME = 128


def fit_text(text: str, longest: int) -> str:
    """`text` in NFC with LF line ends, each unsafe character replaced by U+FFFD, cut at `longest` characters."""
    text = text[: longest * 2]
    if text.isascii() and text.isprintable():
        return text[:longest]
    return unicodedata.normalize("NFC", _UNFIT.sub("\ufffd", text.replace("\r\n", "\n")))[:longest]


def fit_name(name: str) -> str:
    """A display name on one line, of at most 128 characters; "?" if it is blank."""
    if name.isascii() and name.isalnum() and len(name) <= _LONGEST_NAME:
        return name
    return " ".join(fit_text(name, _LONGEST_NAME).split()) or "?"


def fit(context: MessageContext, longest: int, texts: Phrases) -> MessageContext:
    """`context` with all its texts normalised; the same object if nothing changed. A text that was cut says so at its
    end."""
    given, name, quoted = context.text, fit_name(context.sender.name), context.reply_to
    text = fit_text(given, longest + 1)
    if len(text) > longest or len(given) > 2 * longest:
        text = f"{text[:longest]}\n{texts.say('intake.cut')}"
    if text == given and name == context.sender.name and quoted is None and not context.chat_title:
        return context
    if quoted is not None:
        quoted = replace(quoted, sender_name=fit_name(quoted.sender_name), text=fit_text(quoted.text, longest))
    return replace(
        context,
        text=text,
        sender=replace(context.sender, name=name),
        reply_to=quoted,
        chat_title=fit_name(context.chat_title) if context.chat_title else "",
    )


_log = structlog.get_logger("intake")
_PRUNE_EVERY = 100
_CHATS_COUNTED = 10_000
_NOT_SAID = frozenset({ReasonCode.CHAT_NOT_ALLOWED, ReasonCode.NOT_A_MESSAGE, ReasonCode.DELETED})
"""Reasons of messages that are not part of the conversation."""
_CHANGES = frozenset({Kind.EDIT, Kind.DELETE})
_NEVER_SAID = frozenset({Kind.REACTION, Kind.TIMER, Kind.EXPIRY})
Claim = Callable[[GateDecision, int], Sequence[Write]]
"""Returns the writes to commit with the decision on a due event. Called with the decision and the turn id."""


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
        """Apply new limits from the next message on."""
        self._limits = limits
        self._alternations.use(limits.bot_alternations)

    async def deliver(self, context: MessageContext, also: Sequence[Write] = ()) -> Accepted:
        """Accept one event durably, together with `also`. Raises StoreError or QueueFull if nothing was stored."""
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
    ) -> GateDecision:
        """Accept a due timer, or the expiry of `question`, in one unit with the writes of `claim`; returns the
        decision. If the queue is full, nothing is stored. `ended` is called when the turn ends. Raises Conflict or
        StoreError if nothing was stored."""
        context = self._prepared(context, self._chats.of(context.chat))
        decision = self._decide(context, None)
        if question is not None:
            decision = replace(decision, question=question)
        if decision.reason is ReasonCode.QUEUE_FULL:
            return decision
        job = Job(self._ids.next(), context, addressed=True, question=question, ended=ended)
        self._reach("sched.before_claim")
        try:
            accepted, *others = self._writes(context, decision, job.turn_id)
            claimed = claim(decision, job.turn_id)
            await self._store.commit([accepted._replace(expect=1), *others, *claimed])
        finally:
            if decision.is_for_us:
                self._engine.free_place(context.chat, immediate=False)
        self._reach("sched.after_claim")
        if decision.is_for_us:
            self._engine.submit(job)
        else:
            self._notices.note(context, decision)
        return decision

    async def recover(self) -> int:
        """Queue the turns that an earlier process did not finish; returns their number."""
        jobs: list[Job] = []
        chats: set[ChatRef] = set()
        for row in await self._store.read(inbox.waiting()):
            job = await self._again(row)
            job.attempts = row["attempts"]
            job.suspect = job.attempts > 0
            if job.context.chat not in chats and not job.suspect:
                # First runs are not counted in the store. A chat's turns start in order, so only this one may have
                # started.
                job.attempts = 1
            chats.add(job.context.chat)
            jobs.append(job)
        suspicious = {job.context.chat for job in jobs if job.suspect}
        # The sort is stable, so the order within a chat is kept.
        for job in sorted(jobs, key=lambda one: one.context.chat not in suspicious):
            self._engine.submit(job)
        return len(jobs)

    async def take_up_retried(self) -> None:
        """Run the given-up turns that an operator has released for a retry."""
        for row in await self._store.read(inbox.retried()):
            job = await self._again(row)
            if (await self._store.commit([inbox.take_up(job.turn_id, self._epoch, 0)]))[0]:
                self._engine.submit(job)

    async def _again(self, row: Row) -> Job:
        """The job of a stored turn."""
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
        decision = self._decide(context, pointed)
        if decision.reason is ReasonCode.QUEUE_FULL and self._senders_retry(context.chat):
            return await self._refused(context, decision, also)
        if decision.told:
            decision = await self._decisions.told(context, decision)
        job = Job(self._ids.next(), context, decision.addressed, decision.question, immediate=decision.immediate)
        # No await between the decision and the first write: claiming the question and the queue slot is atomic.
        return await self._queued(job, decision, also)

    async def _refused(self, context: MessageContext, decision: GateDecision, also: Sequence[Write]) -> Accepted:
        """Raise QueueFull, unless the message was accepted before."""
        if await self._store.read(inbox.known(context.key.text)):
            await self._store.commit(also)
            return Accepted.DUPLICATE
        self._notices.count(context, decision)
        raise QueueFull(decision.detail)

    async def _queued(self, job: Job, decision: GateDecision, also: Sequence[Write]) -> Accepted:
        """Commit a message and, if it starts a turn, queue it."""
        context = job.context
        message = (context.chat.key, context.key.native_id)
        if decision.is_for_us:
            self._arrivals.accepting.setdefault(message, job)
        try:
            is_new = await self._keep(job, decision, also)
            await self._arrivals.unchanging(message)
        finally:
            if self._arrivals.accepting.get(message) is job:
                del self._arrivals.accepting[message]
            if decision.is_for_us:
                self._engine.free_place(context.chat, decision.immediate)
        if not is_new:
            return Accepted.DUPLICATE
        self._reach("dedupe.after_insert")
        self._chats.heard(context.chat, job.turn_id)
        if not decision.is_for_us:
            self._notices.note(context, decision)
        elif not job.withdrawn:
            self._engine.submit(job)
        if _is_history(context, decision):
            self._prune(context.chat.key)
        return Accepted.NEW

    async def _keep(self, job: Job, decision: GateDecision, also: Sequence[Write]) -> bool:
        """Commit the message; returns whether it was new. The question is taken before the first await, so that two
        answers cannot both claim it."""
        context = job.context
        chat, member = context.chat.key, context.sender.ref.key
        writes = self._writes(context, decision, job.turn_id)
        taken = None
        if decision.question is not None and decision.question.terms is None:
            taken = job.taken = self._questions.take(chat, member)
            writes.append(pending.answer(decision.question.id, job.turn_id))
        self._reach("recv.before_persist")
        try:
            if also:
                writes += also
            touched = await self._store.commit(writes)
        except StoreError:
            # The platform will redeliver the answer, which must find its question open.
            self._questions.put_back(chat, member, taken)
            raise
        self._reach("recv.after_persist_before_ack")
        self._arrivals.forget_early((chat, context.key.native_id))
        if touched[0] == 0:
            # A duplicate: the open question is a newer one and waits for another answer.
            self._questions.put_back(chat, member, taken)
            return False
        return True

    async def _pointed(self, context: MessageContext, quoted: str) -> Pointed | None:
        """The question whose message this one quotes, answers by button or reacts to; None if that is no question."""
        chat = context.chat.key
        if self._chats.of(context.chat).allowed_by is None:
            return None
        if context.kind is Kind.REACTION and not self._questions.any_in(chat, context.sender.ref.key):
            return None
        return await self._questions.asked_by(self._store, chat, quoted)

    def _decide(self, context: MessageContext, pointed: Pointed | None) -> GateDecision:
        """The decision of the gate. A message that starts a turn reserves a queue slot, or is dropped as QUEUE_FULL."""
        chat = context.chat
        if self._arrivals.is_deleted((chat.key, context.key.native_id)):
            return GateDecision(ReasonCode.DELETED)
        question = self._pointing.question(context, pointed)
        closed = self._pointing.closed(context, pointed, question)
        decision = judge(context, self._chats.of(chat), self._functions(context.bot), question, closed)
        decision = self._alternations.judge(context, decision) or decision
        if not decision.is_for_us:
            return decision
        limit = self._engine.keep_place(chat, decision.immediate)
        return GateDecision(ReasonCode.QUEUE_FULL, limit) if limit else decision

    def _writes(self, context: MessageContext, decision: GateDecision, turn_id: int) -> list[Write]:
        now_ms = self._clock.now_ms()
        if decision.is_for_us:
            taken_in = inbox.accept(
                turn_id,
                _event(context),
                body=orjson.dumps(context_to_json(context)).decode(),
                received_ms=now_ms,
                epoch=self._epoch,
                question_id=decision.question.id if decision.question else None,
            )
        else:
            reason = str(decision.reason)
            taken_in = inbox.note(turn_id, _event(context), received_ms=now_ms, reason=reason, detail=decision.detail)
        writes = [taken_in]
        if _is_history(context, decision):
            quoted = context.reply_to
            writes.append(
                history.add_member_message(
                    id=turn_id,
                    text=context.text,
                    at_ms=min(int(context.sent_at.timestamp() * 1000), now_ms),
                    reply_to=quoted.native_id if quoted else None,
                    reply_to_name=quoted.sender_name if quoted else "",
                )
            )
        return writes

    async def _change(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        """Apply an edit or deletion: to a waiting message's text or turn; later, to the history only."""
        chat, native_id = context.chat.key, context.key.native_id
        deletes = context.kind is Kind.DELETE
        now_ms = self._clock.now_ms()
        if await self._store.read(inbox.known(context.key.text)):
            # A duplicate. It must not undo a newer change that has come since.
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
        # Open approval questions are withdrawn with the message that requested them.
        withdrawn = self._questions.asked_for_by(chat, native_id) if deletes else []
        writes += self._questions.withdrawing(chat, withdrawn)
        if job is None:
            writes.append(inbox.changed(MessageKey(context.chat, native_id).text))
        # A summary may contain the text that is changed.
        writes.append(summaries.forget(chat, native_id))
        writes.append(history.deleted(chat, native_id) if deletes else history.edited(chat, native_id, context.text))
        try:
            noted = inbox.note(self._ids.next(), _event(context), received_ms=now_ms, reason=reason.value)
            touched = await self._store.commit([noted, *writes, *also])
        except StoreError:
            # Nothing was stored: the message is still to be answered until the platform redelivers the change.
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
        return Accepted.NEW if touched[0] else Accepted.DUPLICATE

    def _prune(self, chat: str) -> None:
        """Prune the history of `chat` every 100 messages, and on its first message since the start."""
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


def _is_history(context: MessageContext, decision: GateDecision) -> bool:
    """Whether the message is part of the chat's history."""
    return not context.private and context.kind not in _NEVER_SAID and decision.reason not in _NOT_SAID
