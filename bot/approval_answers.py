"""Which of the questions for a person's yes a message speaks of. Whether its sender may answer is asked later, of the
platform; here it is only kept apart from all that people say to each other."""

from __future__ import annotations

from collections.abc import Sequence

from config.texts import Phrases
from function_calls.answers import Answered, codes_in
from function_calls.approval_terms import ApprovalTerms
from function_calls.context import Kind, MessageContext
from function_calls.open_question import OpenQuestion
from function_calls.questions import read_answer
from services.refs import Role

_REACTION = Kind.REACTION  # a module's name is found faster than a member of an enumeration


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
    if context.kind is _REACTION:
        return context.key.native_id
    return context.reply_to.native_id if context.reply_to is not None and context.reply_to.from_bot else ""


def _terms(question: OpenQuestion) -> ApprovalTerms:
    terms = question.question.terms
    if terms is None:
        raise ValueError("this question is for one member alone")
    return terms
