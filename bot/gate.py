"""Is this message for us? Always with a reason."""

from __future__ import annotations

from dataclasses import dataclass

from bot.chats import ServedChat
from function_calls.answers import Answered
from function_calls.context import Kind, MessageContext
from function_calls.open_question import OpenQuestion
from function_calls.questions import read_answer
from function_calls.registry import BotFunctions
from function_calls.router import unknown_command
from services.quick_init import quick_init
from services.refs import ReasonCode

_OF_THE_QUOTED = frozenset({"questions.closed", "approvals.closed"})
"""What is said of the question that a message points to."""
_RECORDED_ONLY = frozenset({Kind.JOIN, Kind.LEAVE})
# To look a member up in its enumeration costs three times a module's name, for each message of a busy chat.
_WAITING, _REACTION, _EXPIRY = ReasonCode.WAITING, Kind.REACTION, Kind.EXPIRY


@quick_init
@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of one message."""

    reason: ReasonCode = _WAITING
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
    quick: bool = False
    """It is a command that may be begun with while the message is being written down."""

    @property
    def is_for_us(self) -> bool:
        """Whether a turn answers it."""
        return self.reason is _WAITING


def judge(
    context: MessageContext,
    chat: ServedChat,
    functions: BotFunctions,
    question: OpenQuestion | None,
    closed: str = "",
) -> Verdict:
    """The verdict on one message. `question` is what the sender was asked in this chat and has not answered, or what
    waits for somebody's yes and is meant here. `closed`: what is said to it where it answers none that is open."""
    # A run that waits is told also where nobody is served any more, so that it can put things away.
    refused = None if context.kind is _EXPIRY else _not_served(context, chat)
    if refused is not None or context.timer is not None or context.kind is _EXPIRY:
        return refused or Verdict(addressed=True)
    is_called = context.calls_bot
    is_reaction = context.kind is _REACTION
    if not is_reaction and not context.text.strip() and not context.attachments and not context.takes:
        return Verdict(ReasonCode.EMPTY)
    answering = _answering(context, chat, question, closed)
    if answering is not None:
        return answering
    if is_reaction:
        return Verdict(ReasonCode.NOT_A_MESSAGE, context.kind.value)
    line = functions.command_line(context.text, bare=is_called)
    if line is not None:
        spec = line.spec
        return Verdict(addressed=True, is_command=True, immediate=spec.immediate, quick=spec.is_quick)
    if context.kind is Kind.CHOICE:
        # A button under a question to somebody else, or to nobody any more.
        return Verdict(ReasonCode.NOT_ADDRESSED, context.kind.value)
    if is_called:
        return Verdict(addressed=True)
    word = unknown_command(context.text)
    if word:
        return Verdict(ReasonCode.UNKNOWN_COMMAND, word)
    return Verdict(ReasonCode.NOT_ADDRESSED)


def _answering(context: MessageContext, chat: ServedChat, question: OpenQuestion | None, closed: str) -> Verdict | None:
    """The verdict on what answers a question; None where it answers none."""
    if (question is None and not closed) or not _may_answer(context):
        return None
    if question is not None:
        has_files = bool(context.attachments)
        answer = read_answer(question.question, context.text, chat.profile.texts, has_files=has_files)
        if answer.kind is not Answered.UNRELATED:
            return Verdict(addressed=True, question=question)
    if not closed:
        return None
    quoted = (context.reply_to.native_id,) if context.reply_to is not None else ()
    return Verdict(ReasonCode.QUESTION_CLOSED, told=closed, closes=quoted if closed in _OF_THE_QUOTED else ())


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


def _not_served(context: MessageContext, chat: ServedChat) -> Verdict | None:
    if chat.allowed_by is None:
        return Verdict(ReasonCode.CHAT_NOT_ALLOWED, "chats.allow")
    if context.kind in _RECORDED_ONLY:
        return Verdict(ReasonCode.NOT_A_MESSAGE, context.kind.value)
    if context.sender.is_bot:
        return Verdict(ReasonCode.FROM_BOT)
    if not chat.settings.enabled:
        return Verdict(ReasonCode.CHAT_OFF, chat.settings.layers["enabled"])
    if context.backfilled:
        return Verdict(ReasonCode.BACKFILLED)
    return None
