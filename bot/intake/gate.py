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
from function_calls.spec import ApprovalOutcome, ApprovalTerms
from function_calls.turn import OpenQuestion
from services.refs import ReasonCode, Role
from services.store.port import Row, Store
from services.store.turns import pending

_ABOUT_QUOTED = frozenset({"questions.closed", "approvals.closed"})
"""Texts that are about the question to which the message replies."""
_RECORDED_ONLY = frozenset({Kind.JOIN, Kind.LEAVE, Kind.ADDED})


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Decision on whether a message starts a turn, with its reason code."""

    reason: ReasonCode = ReasonCode.WAITING
    """Reason for not starting a turn; WAITING if a turn answers the message."""
    detail: str = ""
    """The settings key that decided."""
    addressed: bool = False
    question: OpenQuestion | None = None
    """The open question that the message answers."""
    notice_key: str = ""
    """Text key of a notice that is sent although no turn starts."""
    notice_text: str = ""
    """The notice itself, if it has more detail than the text of its key."""
    closes: tuple[str, ...] = ()
    """Native ids of bot messages whose choices become invalid."""
    leaves: bool = False
    """Whether the bot leaves the chat after the notice."""
    immediate: bool = False
    """Whether the message is a command that controls the queue and therefore bypasses it."""
    is_command: bool = False
    unasked: str = ""
    """Mode of the chime-in if the bot answers without being addressed."""

    @property
    def starts_turn(self) -> bool:
        """Whether a turn answers the message."""
        return self.reason is ReasonCode.WAITING


def judge(
    context: MessageContext,
    chat: ServedChat,
    functions: BotFunctions,
    question: OpenQuestion | None,
    closed: str = "",
    *,
    only_bot: bool = False,
    is_muted: bool = False,
) -> GateDecision:
    """The decision on one message. `question`: the open question to the sender, or the approval question that the
    message is about. `closed`: text key of the notice to send if the message answers no open question. `only_bot`:
    there are no other bots in the chat, so that a mistyped command starts a turn, which suggests the right one.
    `is_muted`: only commands and answers to questions start a turn."""
    # A waiting run is resumed with its expiry even if its chat is no longer served, so that it can clean up.
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
        # A button of a question that is closed or belongs to another member.
        return GateDecision(ReasonCode.NOT_ADDRESSED, context.kind.value)
    if is_called:
        return GateDecision(ReasonCode.MUTED, "/unmute") if is_muted else GateDecision(addressed=True)
    word = unknown_command(context.text)
    if word and only_bot and functions.one_edit_from(word):
        return GateDecision()
    if word:
        return GateDecision(ReasonCode.UNKNOWN_COMMAND, word)
    return GateDecision(ReasonCode.NOT_ADDRESSED)


def _answering(
    context: MessageContext, chat: ServedChat, question: OpenQuestion | None, closed: str
) -> GateDecision | None:
    """The decision on a message that answers a question; None if it answers none."""
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
    return GateDecision(ReasonCode.QUESTION_CLOSED, notice_key=closed, closes=quoted if closed in _ABOUT_QUOTED else ())


def _may_answer(context: MessageContext) -> bool:
    """Whether the message may be the answer to a question: no command or timer, and not addressed to another member or
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
        is_added = context.kind is Kind.ADDED
        notice = "joining.not_allowed" if is_added else ""
        return GateDecision(ReasonCode.CHAT_NOT_ALLOWED, "chats.allow", notice_key=notice, leaves=is_added)
    if context.kind in _RECORDED_ONLY:
        welcome = "joining.welcome" if context.kind is Kind.ADDED else ""
        return GateDecision(ReasonCode.NOT_A_MESSAGE, context.kind.value, notice_key=welcome)
    if context.sender.is_bot:
        return GateDecision(ReasonCode.FROM_BOT)
    if not chat.settings.enabled:
        return GateDecision(ReasonCode.CHAT_OFF, chat.settings.layers["enabled"])
    if context.backfilled:
        return GateDecision(ReasonCode.BACKFILLED)
    return None


def named_or_quoted(
    context: MessageContext, waiting: Sequence[OpenQuestion], asked_by_quoted: int
) -> OpenQuestion | None:
    """The approval question of `waiting` that the message names by code, else the one with the id `asked_by_quoted`,
    whose message it quotes or reacts to; else None."""
    named = codes_in(context.text)
    by_code = next((one for one in waiting if _terms(one).code in named), None)
    return by_code or next((one for one in waiting if one.id == asked_by_quoted), None)


def unambiguous_approval(
    context: MessageContext, waiting: Sequence[OpenQuestion], role: Role, texts: Phrases
) -> OpenQuestion | None:
    """The approval question that a bare yes or no is about: the sender's own if they may answer it, else the only open
    question if the message is addressed to the bot. None for other messages, such as replies. `role`: the sender's role
    in the message."""
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
    """Native id of the message that the reaction belongs to, or of the quoted bot message; empty if absent."""
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


class ApprovalOutcomes:
    """Reads the outcomes of approval questions from the store."""

    def __init__(self, store: Store, questions: OpenQuestions, chats: Chats) -> None:
        self._store = store
        self._questions = questions
        self._chats = chats

    async def how_closed(self, id_: int) -> ApprovalOutcome:
        """How the question was closed. Raises StoreError."""
        rows = await self._store.read(pending.how_closed(id_))
        return self._outcome(rows[0]) if rows else ApprovalOutcome()

    async def with_notice(self, context: MessageContext, decision: GateDecision) -> GateDecision:
        """`decision`, with a text on who decided and how if it is about an answer that came too late. Raises
        StoreError."""
        if decision.notice_key == _BY_CODE:
            row, question = await self._by_code(context)
        elif decision.notice_key == _BY_MESSAGE:
            row, question = await self._by_quoted_message(context)
        else:
            return decision
        if row is None or question is None:
            return decision
        texts = self._chats.profile(context.chat).texts
        text = too_late(self._outcome(row), question.question.function, texts)
        closes = decision.closes or await self._questions.messages_of(self._store, [question.id])
        return replace(decision, notice_text=text, closes=closes)

    async def _by_code(self, context: MessageContext) -> tuple[Row | None, OpenQuestion | None]:
        """The newest question with a code in the message, as its row and parsed, if its sender could see that question;
        else two None. Raises StoreError."""
        for code in codes_in(context.text):
            if not code.isalnum():
                continue
            for row in await self._store.read(pending.how_closed_with(context.chat.key, f'"code":"{code}"')):
                question = open_from_json(row["id"], orjson.loads(row["body"]))
                terms = question.terms
                if terms is not None and terms.code == code and _was_shown(terms, context):
                    return row, question
        return None, None

    async def _by_quoted_message(self, context: MessageContext) -> tuple[Row | None, OpenQuestion | None]:
        pointed = await self._questions.asked_by(self._store, context.chat.key, quoted_id(context))
        rows = await self._store.read(pending.how_closed(pointed.question.id)) if pointed is not None else ()
        return (rows[0], pointed.question) if rows and pointed is not None else (None, None)

    def _outcome(self, row: Row) -> ApprovalOutcome:
        how = row["state"]
        if how == "open" and not self._questions.is_waiting_approval(row["id"]):
            how = "expired"
        return ApprovalOutcome(how, row["sender_name"] or "") if how in _KNOWN else ApprovalOutcome()


def _was_shown(terms: ApprovalTerms, context: MessageContext) -> bool:
    """Whether the sender could see the question: a private one is visible to its asker in private only."""
    return not terms.asker.private or (context.private and terms.asker.sender.ref == context.sender.ref)
