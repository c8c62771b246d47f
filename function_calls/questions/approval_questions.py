"""Approval questions: an authorized member answers yes, always, or no with a reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from config.texts import Phrases
from function_calls.context import MessageContext, Sender
from function_calls.outcome import TurnOutcome, sent
from function_calls.questions.open_questions import (
    SEPARATORS,
    Answer,
    Answered,
    argument_list,
    plain,
    read_yes_or_no,
    run_question,
)
from function_calls.questions.waiting_runs import WaitingTurn
from function_calls.schema.commands import role_name, short_about
from function_calls.spec import (
    ApprovalOutcome,
    ApprovalQuestion,
    ApprovalTerms,
    Approved,
    Choice,
    FunctionSpec,
    Message,
)
from services.patterns import visible_line
from services.redaction import HIDDEN
from services.refs import ErrorCode, JsonObject, ReasonCode

_SHOWN_CHARS = 300
_NAME_CHARS = 60
_WORD = re.compile(r"(?<![^\s,，:：;；(（])#?([0-9a-z]+)(?![^\s,，:：;；.。!！)）])", re.IGNORECASE | re.ASCII)
"""A separate word that may be the code of an approval."""
_CODE = re.compile(r"[0-9a-f]{5}", re.ASCII)


def approval_question(spec: FunctionSpec, values: JsonObject, terms: ApprovalTerms, texts: Phrases) -> ApprovalQuestion:
    """Ask the authorized members to approve the run with the arguments `values`."""
    key = "asker" if terms.role is None else "other" if terms.by_other else "role"
    facts = {"asker": shown_name(terms.asker.sender), "role": role_name(terms.role, texts), "code": terms.code}
    question = run_question(spec, values, texts)
    if question and len(question) <= _SHOWN_CHARS:
        text = texts.say(f"approvals.ask_{key}_in_words", question=question, **facts)
    else:
        text = texts.say(
            f"approvals.ask_{key}",
            function=spec.name,
            description=short_about(spec, texts),
            arguments=f" ({shown_arguments(spec, values, texts)})" if values else "",
            **facts,
        )
    return ApprovalQuestion(text, spec.name, values, tuple(_choices(terms, texts)), terms=terms)


def for_all(calls: Sequence[tuple[FunctionSpec, ApprovalQuestion]], texts: Phrases) -> ApprovalQuestion:
    """One question for all `calls`, which the same answer of a model contains. All have the same terms but for their
    digests. The approval is not reusable."""
    first = calls[0][1]
    terms = replace(first.terms, grant="")
    key = "asker" if terms.role is None else "other" if terms.by_other else "role"
    lines = [f"{number}. {_as_line(spec, one.arguments, texts)}" for number, (spec, one) in enumerate(calls, 1)]
    text = texts.say(
        f"approvals.ask_several_{key}",
        asker=shown_name(terms.asker.sender),
        calls="\n".join(lines),
        role=terms.role.value if terms.role else "",
        code=terms.code,
    )
    further = tuple(one.terms.digest for _, one in calls[1:])
    return replace(first, text=text, terms=terms, choices=tuple(_choices(terms, texts)), further=further)


def _as_line(spec: FunctionSpec, values: JsonObject, texts: Phrases) -> str:
    """The run as a question in words, else as its name and arguments."""
    return run_question(spec, values, texts) or (
        f"{spec.name} ({shown_arguments(spec, values, texts)})" if values else spec.name
    )


def _choices(terms: ApprovalTerms, texts: Phrases) -> Sequence[Choice]:
    answers = ["yes", "no", "always"] if terms.grant else ["yes", "no"]
    return [
        Choice(texts.say(f"approvals.{one}_label"), f"{texts.words(f'approvals.{one}_words')[0]} {terms.code}")
        for one in answers
    ]


def shown_arguments(spec: FunctionSpec, values: JsonObject, texts: Phrases) -> str:
    """The arguments as people are shown them and as grants store them: sensitive values are hidden, and a long text is
    cut and followed by its length and digest."""
    text = argument_list(
        {
            name: HIDDEN if name in spec.execution.sensitive else visible_line(plain(value))
            for name, value in values.items()
        },
        texts,
    )
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}… [{len(text)}, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}]"


def shown_name(sender: Sender) -> str:
    """The sender's name without invisible characters, at most 60 characters."""
    return visible_line(sender.name)[:_NAME_CHARS]


def who_may(terms: ApprovalTerms, texts: Phrases) -> str:
    """Text for a member without the right to decide, with the required role."""
    key = "asker" if terms.role is None else "other" if terms.by_other else "role"
    role = role_name(terms.role, texts)
    return texts.say(f"approvals.only_{key}", asker=shown_name(terms.asker.sender), role=role)


def rejection(
    answer_text: MessageContext,
    asker: MessageContext,
    function: str,
    reason: str,
    texts: Phrases,
    *,
    others_wait: bool = False,
) -> str:
    """Text for the chat and the model about a rejection. A reason given in private is not repeated in public.
    `others_wait`: other requests are open, so the text names the asker."""
    if answer_text.private and not asker.private:
        reason = ""
    by, requester = answer_text.sender, asker.sender
    key = "approvals.rejected_because" if reason else "approvals.rejected"
    if others_wait and requester.ref != by.ref:
        key += "_of"
    return texts.say(
        key, name=shown_name(by), asker=shown_name(requester), function=function, reason=visible_line(reason)
    )


def too_late(outcome: ApprovalOutcome, function: str, texts: Phrases) -> str:
    """Text for an answer to a question that is already closed."""
    if not outcome.how:
        return texts.say("approvals.closed")
    name = visible_line(outcome.by)[:_NAME_CHARS]
    return texts.say(f"approvals.late_{outcome.how}", name=name, function=function)


def not_in_time(terms: ApprovalTerms, function: str, texts: Phrases, *, others_wait: bool) -> str:
    """Text for an expired question. `others_wait`: other requests are open, so the text names the asker."""
    key = "approvals.expired_of" if others_wait else "approvals.expired"
    return texts.say(key, function=function, asker=shown_name(terms.asker.sender))


def read_decision(code: str, text: str, texts: Phrases) -> Answer:
    """Answer that `text` gives to the approval `code`: YES, ALWAYS, NO with or without a reason, or UNRELATED."""
    rest = without_code(code, text).strip(SEPARATORS)
    word = " ".join(rest.casefold().split())
    if word in texts.words("approvals.always_words"):
        return Answer(Answered.ALWAYS)
    return read_yes_or_no(rest, texts)


def is_about_a_code(text: str, texts: Phrases, *, clearly: bool) -> bool:
    """Whether `text` has the form of a decision that names a code. `clearly`: exclude texts that may be ordinary
    conversation."""
    found = [one for one in _WORD.finditer(text) if _CODE.fullmatch(one[1].lower())]
    if len(found) != 1:
        return False
    code = found[0][1].lower()
    if not found[0][0].startswith("#"):
        # Five digits may be a number, and five letters a word.
        if code.isalpha() or (clearly and code.isdigit()):
            return False
        rest = without_code(code, text).strip(SEPARATORS).casefold()
        own_words = (f"approvals.{one}_words" for one in ("yes", "no", "always"))
        if not any(rest.startswith(word) for key in own_words for word in texts.words(key)):
            return False
    return read_decision(code, text, texts).kind is not Answered.UNRELATED


def codes_in(text: str) -> frozenset[str]:
    """Words of `text` that may be codes of approvals, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def without_code(code: str, text: str) -> str:
    """`text` without the code of the approval."""
    return _WORD.sub(lambda found: " " if found[1].lower() == code else found[0], text)


async def resume(waiting: WaitingTurn, question: ApprovalQuestion, text: str) -> TurnOutcome:
    """Run the function with the asker's current rights, or report the rejection to the chat and the model."""
    context, turn, texts, terms = waiting.context, waiting.turn, waiting.texts, question.terms
    answer = read_decision(terms.code, text, texts)
    allows = answer.kind in (Answered.YES, Answered.ALWAYS)
    member, role = context.sender.ref, await turn.role_now(context.sender)
    may = terms.may_allow(member, role) if allows else terms.may_refuse(member, role)
    # If an earlier attempt of this turn claimed the question before a crash, its decision remains valid.
    if not may and not await turn.input.approval.claimed():
        return sent(ReasonCode.REFUSED, [Message(who_may(terms, texts))], question.function, ErrorCode.REFUSED)
    if not await turn.input.approval.claim(allows):
        late = too_late(await turn.input.approval.how_closed(), question.function, texts)
        return sent(ReasonCode.ANSWERED_QUESTION, [Message(late)], question.function)
    sender = terms.asker.sender
    asker = replace(terms.asker, sender=replace(sender, role=await turn.role_now(sender)))
    turn.memory.asker = asker
    waiting = replace(waiting, context=asker)
    spec = waiting.find(question)
    if spec is None:
        return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=question.function))])
    if allows:
        is_always = answer.kind is Answered.ALWAYS
        turn.memory.approved = Approved(terms.digest, context.sender, is_always, further=question.further)
        if question.interrupted is not None:
            return await waiting.resume_run(question, spec, question.interrupted)
        return await waiting.run(question, spec, question.arguments, confirmed=True)
    turn.memory.rejected |= frozenset(question.further)
    rejected = rejection(context, asker, spec.name, answer.value, texts, others_wait=turn.input.approval.others_wait())
    ended = await waiting.end(question, "cancelled")
    if not waiting.on.transcript:
        return sent(ReasonCode.ANSWERED_QUESTION, [Message(rejected), *ended], spec.name)
    turn.output.said += [Message(rejected), *ended]
    return await waiting.refuse(spec, rejected)


async def expire(waiting: WaitingTurn, question: ApprovalQuestion) -> TurnOutcome:
    """Report to the chat that nobody decided, and end the waiting run."""
    others_wait = waiting.turn.input.approval.others_wait()
    message = Message(not_in_time(question.terms, question.function, waiting.texts, others_wait=others_wait))
    return sent(ReasonCode.EXPIRED, [message, *await waiting.end(question, "expired")], question.function)
