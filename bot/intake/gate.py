"""Decision on whether a message starts a turn, with its reason code, and which approval it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from bot.chats.chats import Chats, ServedChat
from bot.chats.open_questions import OpenQuestions
from config.texts import Phrases
from function_calls.context import Kind, MessageContext
from function_calls.questions.approval_questions import codes_in, too_late
from function_calls.questions.open_questions import Answered, open_from_json
from function_calls.questions.resume import read_answer
from function_calls.registry import BotFunctions
from function_calls.router import unknown_command
from function_calls.spec import ApprovalTerms, Became
from function_calls.turn import OpenQuestion
from services.refs import ReasonCode, Role
from services.store.port import Row, Store
from services.store.turns import pending

_OF_THE_QUOTED = frozenset({"questions.closed", "approvals.closed"})
"""What is said of the question that a message points to."""
_RECORDED_ONLY = frozenset({Kind.JOIN, Kind.LEAVE})


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What the gate says of one message."""

    reason: ReasonCode = ReasonCode.WAITING
    """Why it is not for us; WAITING: it is, and a turn answers it."""
    detail: str = ""
    """The settings key that decided."""
    addressed: bool = False
    question: OpenQuestion | None = None
    """The open question that it answers."""
    told: str = ""
    """The key of the sentence that is said although no turn answers it."""
    says: str = ""
    """The sentence itself, where more is known than its key says."""
    closes: tuple[str, ...] = ()
    """The message of the bot's whose choices lead nowhere any more."""
    immediate: bool = False
    """It controls the queue, so it does not wait in it."""
    is_command: bool = False

    @property
    def is_for_us(self) -> bool:
        """Whether a turn answers it."""
        return self.reason is ReasonCode.WAITING


def judge(
    context: MessageContext,
    chat: ServedChat,
    functions: BotFunctions,
    question: OpenQuestion | None,
    closed: str = "",
) -> GateDecision:
    """The decision on one message. `question` is what the sender was asked in this chat and has not answered, or what
    waits for somebody's yes and is meant here. `closed`: what is said to it where it answers none that is open."""
    # A run that waits is told also where nobody is served any more, so that it can put things away.
    refused = None if context.kind is Kind.EXPIRY else _not_served(context, chat)
    if refused is not None or context.timer is not None or context.kind is Kind.EXPIRY:
        return refused or GateDecision(addressed=True)
    is_called = context.calls_bot
    is_reaction = context.kind is Kind.REACTION
    if not is_reaction and not context.text.strip() and not context.attachments and not context.takes:
        return GateDecision(ReasonCode.EMPTY)
    answering = _answering(context, chat, question, closed)
    if answering is not None:
        return answering
    if is_reaction:
        return GateDecision(ReasonCode.NOT_A_MESSAGE, context.kind.value)
    line = functions.command_line(context.text, bare=is_called)
    if line is not None:
        spec = line.spec
        return GateDecision(addressed=True, is_command=True, immediate=spec.command.immediate)
    if context.kind is Kind.CHOICE:
        # A button under a question to somebody else, or to nobody any more.
        return GateDecision(ReasonCode.NOT_ADDRESSED, context.kind.value)
    if is_called:
        return GateDecision(addressed=True)
    word = unknown_command(context.text)
    if word:
        return GateDecision(ReasonCode.UNKNOWN_COMMAND, word)
    return GateDecision(ReasonCode.NOT_ADDRESSED)


def _answering(
    context: MessageContext, chat: ServedChat, question: OpenQuestion | None, closed: str
) -> GateDecision | None:
    """The decision on what answers a question; None where it answers none."""
    if (question is None and not closed) or not _may_answer(context):
        return None
    if question is not None:
        has_files = bool(context.attachments)
        answer = read_answer(question.question, context.text, chat.profile.texts, has_files=has_files)
        if answer.kind is not Answered.UNRELATED:
            return GateDecision(addressed=True, question=question)
    if not closed:
        return None
    quoted = (context.reply_to.native_id,) if context.reply_to is not None else ()
    return GateDecision(ReasonCode.QUESTION_CLOSED, told=closed, closes=quoted if closed in _OF_THE_QUOTED else ())


def _may_answer(context: MessageContext) -> bool:
    """Whether it can be the answer to a question of the bot's: no command, no timer, and not said to another member or
    to a function."""
    if context.text.startswith("/") or context.kind is Kind.TIMER or context.takes:
        return False
    if not context.is_group:
        return True
    if context.reply_to is not None:
        return context.reply_to.from_bot
    return context.mentions_bot or not context.mentions


def _not_served(context: MessageContext, chat: ServedChat) -> GateDecision | None:
    if chat.allowed_by is None:
        return GateDecision(ReasonCode.CHAT_NOT_ALLOWED, "chats.allow")
    if context.kind in _RECORDED_ONLY:
        return GateDecision(ReasonCode.NOT_A_MESSAGE, context.kind.value)
    if context.sender.is_bot:
        return GateDecision(ReasonCode.FROM_BOT)
    if not chat.settings.enabled:
        return GateDecision(ReasonCode.CHAT_OFF, chat.settings.layers["enabled"])
    if context.backfilled:
        return GateDecision(ReasonCode.BACKFILLED)
    return None


def pointed_out(context: MessageContext, waiting: Sequence[OpenQuestion], asked_by_quoted: int) -> OpenQuestion | None:
    """The one that the message names by its code, else that the message asked which it quotes or reacts to."""
    named = codes_in(context.text)
    by_code = next((one for one in waiting if _terms(one).code in named), None)
    return by_code or next((one for one in waiting if one.id == asked_by_quoted), None)


def meant(context: MessageContext, waiting: Sequence[OpenQuestion], role: Role, texts: Phrases) -> OpenQuestion | None:
    """The one that a bare yes or no is about: the sender's own, where they may answer it; or the only one there is,
    where it is said to the bot. `role` is the sender's as the message has it."""
    if context.kind is not Kind.MESSAGE or context.reply_to is not None or not waiting:
        return None
    member = context.sender.ref
    own = [one for one in waiting if _terms(one).asker.sender.ref == member]
    if len(own) == 1:
        is_yes = read_answer(own[0].question, context.text, texts).kind in (Answered.YES, Answered.ALWAYS)
        if not is_yes or _terms(own[0]).may_allow(member, role):
            return own[0]
    is_addressed = context.mentions_bot or not context.is_group
    return waiting[0] if is_addressed and len(waiting) == 1 else None


def quoted_id(context: MessageContext) -> str:
    """The id of the message that it reacts to, or of the bot's that it quotes; empty where there is none."""
    if context.kind is Kind.REACTION:
        return context.key.native_id
    return context.reply_to.native_id if context.reply_to is not None and context.reply_to.from_bot else ""


def _terms(question: OpenQuestion) -> ApprovalTerms:
    terms = question.terms
    if terms is None:
        raise ValueError("this question is for one member alone")
    return terms


_KNOWN = frozenset({"allowed", "refused", "expired", "withdrawn"})
_BY_CODE, _BY_MESSAGE = "approvals.no_such_code", "approvals.closed"


class Decisions:
    """Reads them from the store."""

    def __init__(self, store: Store, questions: OpenQuestions, chats: Chats) -> None:
        self._store = store
        self._questions = questions
        self._chats = chats

    async def of(self, id_: int) -> Became:
        """What became of that question. Raises StoreError."""
        rows = await self._store.read(pending.became(id_))
        return self._became(rows[0]) if rows else Became()

    async def told(self, context: MessageContext, decision: GateDecision) -> GateDecision:
        """`decision` on an answer that comes too late, with who decided and how in place of that it is so. Raises
        StoreError."""
        if decision.told == _BY_CODE:
            row, question = await self._with_a_code_of(context)
        elif decision.told == _BY_MESSAGE:
            row, question = await self._asked_by_the_quoted(context)
        else:
            return decision
        if row is None or question is None:
            return decision
        texts = self._chats.profile(context.chat).texts
        said = too_late(self._became(row), question.question.function, texts)
        closes = decision.closes or await self._questions.messages_of(self._store, [question.id])
        return replace(decision, says=said, closes=closes)

    async def _with_a_code_of(self, context: MessageContext) -> tuple[Row | None, OpenQuestion | None]:
        """The newest question whose code the message names and that its sender was shown."""
        for code in codes_in(context.text):
            if not code.isalnum():
                continue
            for row in await self._store.read(pending.became_with(context.chat.key, f'"code":"{code}"')):
                question = open_from_json(row["id"], orjson.loads(row["body"]))
                terms = question.terms
                if terms is not None and terms.code == code and _was_shown(terms, context):
                    return row, question
        return None, None

    async def _asked_by_the_quoted(self, context: MessageContext) -> tuple[Row | None, OpenQuestion | None]:
        pointed = await self._questions.asked_by(self._store, context.chat.key, quoted_id(context))
        rows = await self._store.read(pending.became(pointed.question.id)) if pointed is not None else ()
        return (rows[0], pointed.question) if rows and pointed is not None else (None, None)

    def _became(self, row: Row) -> Became:
        how = row["state"]
        if how == "open" and not self._questions.is_waiting_approval(row["id"]):
            how = "expired"
        return Became(how, row["sender_name"] or "") if how in _KNOWN else Became()


def _was_shown(terms: ApprovalTerms, context: MessageContext) -> bool:
    """What waits in private is not spoken of to anybody else."""
    return not terms.asker.private or (context.private and terms.asker.sender.ref == context.sender.ref)
