"""Intake of inbound events: normalise, deduplicate, gate, commit, acknowledge."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import InitVar, dataclass, replace
from datetime import timedelta
from weakref import WeakKeyDictionary

import orjson
import structlog

from bot.chats.chats import Chats, ServedChat
from bot.chats.open_questions import OpenQuestions, QuotedQuestion
from bot.engine.embedded import EmbeddedEngine, Job
from bot.intake.chime_in import ChimeIn, Conversation
from bot.intake.gate import ApprovalOutcomes, GateDecision, judge, named_or_quoted, quoted_id, unambiguous_approval
from bot.intake.gathering import Gathering, extended
from bot.intake.notices import BotLoopLimit, Notices
from bot.intake.unasked import Unasked
from bot.platforms.base import Accepted, QueueFull
from bot.platforms.mentions import Found, name_finder
from config.settings import LimitsSettings
from config.terms import is_timezone
from config.texts import Phrases
from function_calls.context import Kind, MessageContext, MessageKey, context_from_json, context_to_json, with_part
from function_calls.questions.approval_questions import is_about_a_code
from function_calls.questions.open_questions import Answered
from function_calls.questions.resume import is_decision, read_answer
from function_calls.registry import BotFunctions
from function_calls.turn import OpenQuestion
from services.chats.privacy import MemberData
from services.clock import Clock
from services.fault_points import FaultPoints
from services.recent import Recent
from services.refs import ChatRef, MemberRef, ReasonCode
from services.store.chats import history, members, summaries
from services.store.ids import Ids
from services.store.port import Row, Store, StoreError, Write
from services.store.turns import inbox, outbox, pending

_WITH_TEXT = frozenset({Kind.MESSAGE, Kind.EDIT})
_HANDLE = re.compile(r"[@＠]([^\s@＠,，:：;；!！?？()（）]+)")
_ADDRESSEE = re.compile(r"\s*[^\s@＠:,，：]+[:,，：]")


class FunctionMentions:
    """Extracts the functions on request that a message mentions."""

    def __init__(self) -> None:
        self._finds: WeakKeyDictionary[BotFunctions, Callable[[str], Found | None]] = WeakKeyDictionary()

    def extract(self, context: MessageContext, functions: BotFunctions) -> MessageContext:
        """`context` with the mentioned functions in `takes` and without the mentions in its text, addressed to the bot;
        unchanged if it mentions none."""
        names, text = functions.activation.activatable, context.text
        if (
            not names
            or context.kind not in _WITH_TEXT
            or ("@" not in text and "＠" not in text)
            or text.startswith("/")
        ):
            # Arguments of a command stay as they were written.
            return context
        find = self._finds.get(functions)
        if find is None:
            find = self._finds[functions] = name_finder(names)
        found = find(text)
        if found is None or (context.mentions and _are_members(context, found)):
            return context
        mentioned = (functions.activation.find(word) for word in found.names)
        takes = tuple(dict.fromkeys(one.name for one in mentioned if one is not None))
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


_ANSWER_KINDS = (Kind.MESSAGE, Kind.CHOICE)


class QuestionLookup:
    """Finds the open question that a message may answer."""

    def __init__(self, questions: OpenQuestions, chats: Chats) -> None:
        self._questions = questions
        self._chats = chats

    def question(self, context: MessageContext, pointed: QuotedQuestion | None) -> OpenQuestion | None:
        """The open question that the message may answer: the one it points to, exclusively; else the sender's own; else
        an unambiguous approval question; else None. `pointed`: the question whose message it quotes."""
        if not self._questions.any_waiting:
            return None
        chat = context.chat
        own = self._questions.of(chat.key, context.sender.ref.key)
        waiting = self._questions.approvals_in(chat.key)
        found = (
            named_or_quoted(context, waiting, pointed.question.id if pointed is not None else 0) if waiting else None
        )
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
        return unambiguous_approval(context, waiting, role, self._chats.profile(chat).texts)

    def closed(self, context: MessageContext, pointed: QuotedQuestion | None, question: OpenQuestion | None) -> str:
        """Text key of the notice on a message that answers a closed question; empty if there is nothing to say.
        `question`: the open question that it may answer."""
        if context.kind not in _ANSWER_KINDS:
            return ""
        if question is None and pointed is not None and self._answers(context, pointed):
            return "questions.closed" if pointed.question.terms is None else "approvals.closed"
        is_open_for_text = question is not None and not is_decision(question.question)
        return "approvals.no_such_code" if not is_open_for_text and self._names_a_code(context, question) else ""

    def _answers(self, context: MessageContext, pointed: QuotedQuestion) -> bool:
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
_MOST_EARLY_CHANGES = 1000


class PendingChanges:
    """Coordinates messages in acceptance with their edits and deletions, in whichever order they arrive."""

    def __init__(self) -> None:
        self.accepting: dict[MessageId, Job] = {}
        """Messages that are being committed and will be queued next."""
        self._early = Recent[MessageId, str | None](_MOST_EARLY_CHANGES)
        self._changing: dict[MessageId, asyncio.Event] = {}

    @property
    def any_changing(self) -> bool:
        """Whether a change of any message is in progress."""
        return bool(self._changing)

    async def wait_unchanged(self, message: MessageId) -> None:
        """Wait until no change of `message` is in progress."""
        while message in self._changing:
            await self._changing[message].wait()

    @asynccontextmanager
    async def change(self, message: MessageId) -> AsyncIterator[None]:
        """Context manager that serialises changes of `message`, which is neither accepted nor queued during a change.
        Waits for a change in progress."""
        await self.wait_unchanged(message)
        done = self._changing[message] = asyncio.Event()
        try:
            yield
        finally:
            del self._changing[message]
            done.set()

    def remember_early(self, message: MessageId, text: str | None) -> None:
        """Keep a change that came before its message: the new text, or None for a deletion."""
        self._early[message] = text

    def is_deleted(self, message: MessageId) -> bool:
        """Whether its deletion came before the message."""
        return self._early.get(message, "") is None

    def edited(self, message: MessageId) -> str | None:
        """The new text, if an edit came before the message, else None."""
        return self._early.get(message)

    def forget_early(self, message: MessageId) -> None:
        """Drop the early change after its message has arrived."""
        self._early.pop(message, None)


# Replaced rather than dropped: dropping a character could turn harmless text into a command.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_LONGEST_NAME = 128


def normalized_text(text: str, longest: int) -> str:
    """`text` in NFC with LF line ends, each unsafe character replaced by U+FFFD, cut at `longest` characters."""
    text = text[: longest * 2]
    if text.isascii() and text.isprintable():
        return text[:longest]
    return unicodedata.normalize("NFC", _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n")))[:longest]


def normalized_name(name: str) -> str:
    """A display name on one line, of at most 128 characters; "?" if it is blank."""
    if name.isascii() and name.isalnum() and len(name) <= _LONGEST_NAME:
        return name
    return " ".join(normalized_text(name, _LONGEST_NAME).split()) or "?"


def normalized(context: MessageContext, longest: int, texts: Phrases) -> MessageContext:
    """`context` with all its texts normalised; the same object if nothing changed. A text that was cut says so at its
    end."""
    original, name, quoted = context.text, normalized_name(context.sender.name), context.reply_to
    text = normalized_text(original, longest + 1)
    if len(text) > longest or len(original) > 2 * longest:
        text = f"{text[:longest]}\n{texts.say('intake.cut')}"
    if text == original and name == context.sender.name and quoted is None and not context.chat_title:
        return context
    if quoted is not None:
        quoted = replace(
            quoted, sender_name=normalized_name(quoted.sender_name), text=normalized_text(quoted.text, longest)
        )
    return replace(
        context,
        text=text,
        sender=replace(context.sender, name=name),
        reply_to=quoted,
        chat_title=normalized_name(context.chat_title) if context.chat_title else "",
    )


_log = structlog.get_logger("intake")
_PRUNE_EVERY = 100
_CHATS_COUNTED = 10_000
_NOT_IN_HISTORY = frozenset({ReasonCode.CHAT_NOT_ALLOWED, ReasonCode.NOT_A_MESSAGE, ReasonCode.DELETED})
"""Reasons of messages that are not part of the conversation."""
_CHANGES = frozenset({Kind.EDIT, Kind.DELETE})
_OWN = frozenset({Kind.TIMER, Kind.EXPIRY})
"""Events of the bot itself, which are answered however late."""
_MOST_ZONES = 10_000
_NEVER_IN_HISTORY = frozenset({Kind.REACTION, Kind.TIMER, Kind.EXPIRY})
Claim = Callable[[GateDecision, int], Sequence[Write]]
"""Returns the writes to commit with the decision on a due event. Called with the decision and the turn id."""


@dataclass(eq=False, repr=False, kw_only=True)
class Intake:
    """Accepts events of all platforms."""

    store: Store
    engine: EmbeddedEngine
    chats: Chats
    functions: Callable[[str], BotFunctions]
    questions: OpenQuestions
    decisions: ApprovalOutcomes
    bot_loop_limit: BotLoopLimit
    notices: Notices
    is_here: Callable[[ChatRef], bool]
    """Whether this process holds the account of a chat."""
    senders_retry: Callable[[ChatRef], bool]
    is_only_bot: Callable[[ChatRef], bool]
    has_model: InitVar[Callable[[], bool]]
    member_data: MemberData
    may_name_bot: Callable[[MessageContext], bool]
    limits: LimitsSettings
    history_per_chat: int
    clock: Clock
    ids: Ids
    epoch: int
    faults: InitVar[FaultPoints]

    def __post_init__(self, has_model: Callable[[], bool], faults: FaultPoints) -> None:
        self._question_lookup = QuestionLookup(self.questions, self.chats)
        self._chime_in = ChimeIn(self.chats, self.store, self.clock, has_model)
        self.gathering = Gathering(self.engine, self.clock, self.limits, has_model)
        self.unasked = Unasked(self.notices, self.chats, self.clock)
        self._oldest = timedelta(minutes=self.limits.answer_within_minutes)
        self._reach = faults.reach
        self._function_mentions = FunctionMentions()
        self._pending_changes = PendingChanges()
        self._counts = Recent[str, int](_CHATS_COUNTED)
        self._zones = Recent[MemberRef, str](_MOST_ZONES)
        """Time zones that networks know and that are stored already, by member."""

    def use(self, limits: LimitsSettings) -> None:
        """Apply new limits from the next message on."""
        self.limits = limits
        self._oldest = timedelta(minutes=limits.answer_within_minutes)
        self.bot_loop_limit.use(limits.bot_alternations)
        self.gathering.limits = limits

    async def forget(self, chat: str, member: str) -> None:
        """Drop what is in memory about the member with that key."""
        self._zones.pop(MemberRef.parse(member), None)

    async def accept(self, context: MessageContext, also: Sequence[Write] = ()) -> Accepted:
        """Accept one event durably, together with `also`. Raises StoreError or QueueFull if nothing was stored."""
        self.chats.note_language(context)
        served = self.chats.of(context.chat)
        context = self._prepared(context, served)
        if context.kind in _CHANGES and served.allowed_by is not None:
            async with self._pending_changes.change((context.chat.key, context.key.native_id)):
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
        context = self._prepared(context, self.chats.of(context.chat))
        decision = self._decide(context, None)
        if question is not None:
            decision = replace(decision, question=question)
        if decision.reason is ReasonCode.QUEUE_FULL:
            return decision
        job = Job(self.ids.next(), context, addressed=True, question=question, ended=ended)
        self._reach("sched.before_claim")
        try:
            accepted, *others = self._writes(context, decision, job.turn_id)
            claimed = claim(decision, job.turn_id)
            await self.store.commit([accepted._replace(expect=1), *others, *claimed])
        finally:
            if decision.starts_turn:
                self.engine.release_slot(context.chat, immediate=False)
        self._reach("sched.after_claim")
        if decision.starts_turn:
            self.engine.submit(job)
        else:
            self.notices.note(context, decision)
        return decision

    async def recover(self, account: str = "") -> int:
        """Queue the turns that an earlier process did not finish, of one account (`network:account`) in a cluster;
        returns their number. Raises StoreError."""
        jobs: list[Job] = []
        chats: set[ChatRef] = set()
        for row in await self.store.read(inbox.WAITING_TURNS):
            if not row["chat"].startswith(account):
                continue
            job = await self.job_of_row(row)
            job.attempts = row["attempts"]
            # In a cluster the turn may be running on a worker, which is no reason for suspicion.
            job.suspect = job.attempts > 0 and not account
            if job.context.chat not in chats and not job.suspect:
                # First runs are not counted in the store. A chat's turns start in order, so only this one may have
                # started.
                job.attempts = 1
            chats.add(job.context.chat)
            jobs.append(job)
        suspicious = {job.context.chat for job in jobs if job.suspect}
        # The sort is stable, so the order within a chat is kept.
        for job in sorted(jobs, key=lambda one: one.context.chat not in suspicious):
            self.engine.submit(job)
        return len(jobs)

    async def take_up_retried(self) -> None:
        """Run the given-up turns that an operator has released for a retry. Raises StoreError."""
        for row in await self.store.read(inbox.RETRIED):
            job = await self.job_of_row(row)
            if not self.is_here(job.context.chat):
                continue
            if (await self.store.commit([inbox.take_up(job.turn_id, self.epoch, 0)]))[0]:
                self.engine.submit(job)

    async def job_of_row(self, row: Row) -> Job:
        """The job of a stored turn."""
        question = None
        if row["question_id"] is not None:
            question = await self.questions.find(self.store, row["question_id"])
        context = context_from_json(orjson.loads(row["body"]))
        self.chats.note_language(context)
        return Job(row["id"], context, True, question, recovered=True)

    def _prepared(self, context: MessageContext, served: ServedChat) -> MessageContext:
        context = normalized(context, self.limits.message_chars, served.profile.texts)
        if context.bot != served.settings.bot:
            context = replace(context, bot=served.settings.bot)
        return self._function_mentions.extract(context, self.functions(context.bot))

    async def _accept(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        context = await self._with_known_quote(context)
        message, quoted = (context.chat.key, context.key.native_id), quoted_id(context)
        pointed = await self._pointed(context, quoted) if quoted else None
        if self._pending_changes.any_changing:
            await self._pending_changes.wait_unchanged(message)
        edited = self._pending_changes.edited(message)
        if edited is not None:
            context = replace(context, text=edited)
        is_busy = self.engine.is_busy(context.chat) or self.gathering.waiting_job(context.chat) is not None
        conversation = None if is_busy or self._is_unrecorded(context) else await self._chime_in.conversation(context)
        if self.gathering.may_join(context) and await self.store.read(inbox.known(context.key.text)):
            await self.store.commit(also)
            return Accepted.DUPLICATE
        decision = self._decide(context, pointed, conversation)
        waiting = self.gathering.joined(context, decision)
        if waiting is not None:
            if decision.starts_turn:
                self.engine.release_slot(context.chat, decision.immediate)
            return await self._joined(waiting, context, also)
        context = replace(context, unasked=decision.unasked) if decision.unasked else context
        if decision.reason is ReasonCode.QUEUE_FULL and self.senders_retry(context.chat):
            return await self._refused(context, decision, also)
        if decision.notice_key:
            decision = await self.decisions.with_notice(context, decision)
        job = Job(self.ids.next(), context, decision.addressed, decision.question, immediate=decision.immediate)
        # No await between the decision and the first write: claiming the question and the queue slot is atomic.
        return await self._queued(job, decision, also)

    async def _with_known_quote(self, context: MessageContext) -> MessageContext:
        """`context`; if it replies to a message that its network does not describe, with whether that is a message of
        the bot. Quoted text of members who opted out is left out. Raises StoreError."""
        quoted = context.reply_to
        if quoted is None:
            return context
        if quoted.text:
            key = MessageKey(context.chat, quoted.native_id).text
            may_quote = await self.member_data.may_quote(context.chat, quoted.native_id, key)
            return context if may_quote else replace(context, reply_to=replace(quoted, text=""))
        if quoted.from_bot:
            return context
        is_own = bool(await self.store.read(outbox.turn_of(context.chat.key, quoted.native_id)))
        return replace(context, reply_to=replace(quoted, from_bot=True)) if is_own else context

    async def _joined(self, job: Job, context: MessageContext, also: Sequence[Write]) -> Accepted:
        """Accept a message that is answered with the waiting turn `job`, and commit it with the turn's new text. Raises
        StoreError if nothing was stored, also if the turn is not."""
        job.context = extended(job.context, context)
        writes = self._writes(context, GateDecision(ReasonCode.GATHERED), self.ids.next())
        try:
            await self.store.commit([*writes, inbox.replace(job.turn_id, _body(job.context))._replace(expect=1), *also])
        except StoreError:
            job.context = with_part(job.context, context.key.native_id, None)
            raise
        self._pending_changes.forget_early((context.chat.key, context.key.native_id))
        return Accepted.NEW

    async def _refused(self, context: MessageContext, decision: GateDecision, also: Sequence[Write]) -> Accepted:
        """Raise QueueFull, unless the message was accepted before."""
        if await self.store.read(inbox.known(context.key.text)):
            await self.store.commit(also)
            return Accepted.DUPLICATE
        self.notices.count(context, decision)
        raise QueueFull(decision.detail)

    async def _queued(self, job: Job, decision: GateDecision, also: Sequence[Write]) -> Accepted:
        """Commit a message and, if it starts a turn, queue it. Returns DUPLICATE, without queueing, if the message is
        already stored, else NEW. The slot in the engine is released in any case."""
        context = job.context
        message = (context.chat.key, context.key.native_id)
        if decision.starts_turn:
            self._pending_changes.accepting.setdefault(message, job)
            # Further messages of a member who opted out may be for others.
            if not self._is_unrecorded(context):
                self.gathering.begin(job, decision)
        is_new = False
        try:
            is_new = await self._keep(job, decision, also)
            await self._pending_changes.wait_unchanged(message)
        finally:
            if self._pending_changes.accepting.get(message) is job:
                del self._pending_changes.accepting[message]
            if decision.starts_turn:
                self.engine.release_slot(context.chat, decision.immediate)
            if not is_new:
                self.gathering.drop(job)
        if not is_new:
            return Accepted.DUPLICATE
        self._reach("dedupe.after_insert")
        self.chats.note_latest(context.chat, job.turn_id)
        if not decision.starts_turn:
            self.notices.note(context, decision)
        elif not job.withdrawn:
            self.gathering.submit(job)
        self.unasked.act(context, decision, is_unrecorded=self._is_unrecorded(context))
        if _is_history(context, decision):
            self._prune(context.chat.key)
        return Accepted.NEW

    async def _keep(self, job: Job, decision: GateDecision, also: Sequence[Write]) -> bool:
        """Commit the message; returns whether it was new. The question is taken before the first await, so that two
        answers cannot both claim it."""
        context = job.context
        chat, member = context.chat.key, context.sender.ref.key
        writes = self._writes(context, decision, job.turn_id)
        claimed = None
        if decision.question is not None and decision.question.terms is None:
            claimed = job.claimed = self.questions.claim_own(chat, member)
            writes.append(pending.answer(decision.question.id, job.turn_id))
        self._reach("recv.before_persist")
        try:
            if also:
                writes += also
            touched = await self.store.commit(writes)
        except StoreError:
            # The platform will redeliver the answer, which must find its question open.
            self.questions.reopen(chat, member, claimed)
            raise
        self._reach("recv.after_persist_before_ack")
        self._pending_changes.forget_early((chat, context.key.native_id))
        if touched[0] == 0:
            # A duplicate: the open question is a newer one and waits for another answer.
            self.questions.reopen(chat, member, claimed)
            return False
        return True

    async def _pointed(self, context: MessageContext, quoted: str) -> QuotedQuestion | None:
        """The question whose message this one quotes, answers by button or reacts to; None if that is no question.
        Raises StoreError."""
        chat = context.chat.key
        if self.chats.of(context.chat).allowed_by is None:
            return None
        if context.kind is Kind.REACTION and not self.questions.any_in(chat, context.sender.ref.key):
            return None
        return await self.questions.asked_by(self.store, chat, quoted)

    def _decide(
        self, context: MessageContext, pointed: QuotedQuestion | None, conversation: Conversation | None = None
    ) -> GateDecision:
        """The decision of the gate; DELETED for a message deleted before. A message that starts a turn reserves a queue
        slot, or is dropped as QUEUE_FULL."""
        chat = context.chat
        if self._pending_changes.is_deleted((chat.key, context.key.native_id)):
            return GateDecision(ReasonCode.DELETED)
        question = self._question_lookup.question(context, pointed)
        closed = self._question_lookup.closed(context, pointed, question)
        functions, only_bot = self.functions(context.bot), self.is_only_bot(chat)
        is_muted = self.chats.muted_until(chat, self.clock.now()) is not None
        served = self.chats.of(chat)
        decision = judge(context, served, functions, question, closed, only_bot=only_bot, is_muted=is_muted)
        if decision.reason is ReasonCode.NOT_ADDRESSED and not is_muted and self.may_name_bot(context):
            # The turn hears it, and ends in silence if it does not name the bot.
            decision, conversation = GateDecision(), None
        if conversation is not None and decision.reason is ReasonCode.NOT_ADDRESSED:
            decision = self._chime_in.judge(context, conversation)
        decision = self.bot_loop_limit.judge(context, decision) or decision
        if not decision.starts_turn:
            return decision
        if context.kind not in _OWN and self.clock.now() - context.sent_at > self._oldest:
            return GateDecision(ReasonCode.BACKFILLED, "limits.answer_within_minutes")
        limit = self.engine.reserve_slot(chat, decision.immediate)
        if not limit:
            self._chime_in.note_turn(chat)
        return GateDecision(ReasonCode.QUEUE_FULL, limit) if limit else decision

    def _writes(self, context: MessageContext, decision: GateDecision, turn_id: int) -> list[Write]:
        now_ms, is_unrecorded = self.clock.now_ms(), self._is_unrecorded(context)
        if decision.starts_turn:
            accept_write = inbox.accept(
                turn_id,
                _event(context),
                body=_body(context),
                received_ms=now_ms,
                epoch=self.epoch,
                question_id=decision.question.id if decision.question else None,
            )
        else:
            reason = str(decision.reason)
            # The detail of an unknown command is a word of the message.
            detail = "" if is_unrecorded and decision.reason is ReasonCode.UNKNOWN_COMMAND else decision.detail
            accept_write = inbox.note(turn_id, _event(context), received_ms=now_ms, reason=reason, detail=detail)
        writes = [accept_write]
        zone = context.sender.zone
        if zone and self._zones.get(context.sender.ref) != zone and is_timezone(zone):
            self._zones[context.sender.ref] = zone
            writes.append(members.suggest_zone(context.sender.ref.key, zone))
        if _is_history(context, decision) and not is_unrecorded:
            quoted = context.reply_to
            writes.append(
                history.add_member_message(
                    id=turn_id,
                    text=context.marked_text,
                    at_ms=min(int(context.sent_at.timestamp() * 1000), now_ms),
                    reply_to=quoted.native_id if quoted else None,
                    reply_to_name=quoted.sender_name if quoted else "",
                )
            )
        return writes

    def _is_unrecorded(self, context: MessageContext) -> bool:
        return self.member_data.is_opted_out(context.chat, context.sender.ref)

    async def _change(self, context: MessageContext, also: Sequence[Write]) -> Accepted:
        """Apply an edit or deletion: to a waiting message's text or turn; later, to the history only."""
        chat, native_id = context.chat.key, context.key.native_id
        deletes = context.kind is Kind.DELETE
        now_ms = self.clock.now_ms()
        if await self.store.read(inbox.known(context.key.text)):
            # A duplicate. It must not undo a newer change that has come since.
            await self.store.commit(also)
            return Accepted.DUPLICATE
        arriving = self._pending_changes.accepting.get((chat, native_id))
        arriving = arriving or self.gathering.waiting_job(context.chat, native_id)
        job = arriving or self.engine.waiting_job(context.chat, native_id)
        writes: list[Write] = []
        reason = ReasonCode.DELETED if deletes else ReasonCode.EDIT_TOO_LATE
        if job is not None:
            reason = ReasonCode.DELETED if deletes else ReasonCode.EDIT_TAKEN
            writes.append(self._change_job(job, context, now_ms))
        # Open approval questions are withdrawn with the message that requested them.
        withdrawn = self.questions.asked_for_by(chat, native_id) if deletes else []
        writes += self.questions.withdraw_writes(chat, withdrawn)
        if job is None:
            writes.append(inbox.changed(MessageKey(context.chat, native_id).text))
        # A summary may contain the text that is changed.
        writes.append(summaries.forget(chat, native_id))
        writes.append(
            history.deleted(chat, native_id) if deletes else history.edited(chat, native_id, context.marked_text)
        )
        try:
            noted = inbox.note(self.ids.next(), _event(context), received_ms=now_ms, reason=reason.value)
            touched = await self.store.commit([noted, *writes, *also])
        except StoreError:
            # Nothing was stored: the message is still to be answered until the platform redelivers the change.
            if job is not None and job.withdrawn:
                job.withdrawn = False
                if job is not arriving:
                    self.engine.submit(job)
            raise
        self.questions.withdraw(chat, withdrawn)
        running = None if deletes or job is not None else self.engine.running_job(context.chat, native_id)
        if running is not None and running.context.text != context.text:
            running.mark_edited()
        if touched[len(writes)] == 0:
            self._pending_changes.remember_early((chat, native_id), None if deletes else context.text)
        return Accepted.NEW if touched[0] else Accepted.DUPLICATE

    def _change_job(self, job: Job, context: MessageContext, now_ms: int) -> Write:
        """Apply an edit or deletion to a waiting job, which is withdrawn with its first message. Returns the write."""
        native_id, deletes = context.key.native_id, context.kind is Kind.DELETE
        if deletes and native_id == job.context.key.native_id:
            job.withdrawn = True
            self.engine.remove(job)
            return inbox.end(job.turn_id, ReasonCode.DELETED.value, "", now_ms)
        changed = with_part(job.context, native_id, None if deletes else context.text)
        if native_id == job.context.key.native_id:
            calls_bot = changed.mentions_bot or context.mentions_bot
            changed = replace(changed, mentions_bot=calls_bot, takes=context.takes)
        job.context = changed
        return inbox.replace(job.turn_id, _body(changed))

    def _prune(self, chat: str) -> None:
        """Prune the history of `chat` every 100 messages, and on its first message since the start."""
        count = self._counts.get(chat, _PRUNE_EVERY)
        if count >= _PRUNE_EVERY:
            count = 0
            self.store.post([history.prune(chat, self.history_per_chat)])
        self._counts[chat] = count + 1


def _body(context: MessageContext) -> str:
    return orjson.dumps(context_to_json(context)).decode()


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
    return not context.private and context.kind not in _NEVER_IN_HISTORY and decision.reason not in _NOT_IN_HISTORY
