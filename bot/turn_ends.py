"""How turns end that did not simply come to an answer, and what is said with an end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.engine.job import Job
from bot.open_questions import Asked
from function_calls.context import MessageContext
from function_calls.failed_runs import unknown
from function_calls.open_question import OpenQuestion
from function_calls.outcome import TurnOutcome, sent
from function_calls.questions import naming
from function_calls.results import storable_text
from function_calls.spec import Message
from function_calls.turn import Turn
from function_calls.turn_log import StoredRun
from services.refs import Effect, ReasonCode
from services.store.port import Write

_NOTE_CHARS = 80


def unheeded(job: Job, turn: Turn, outcome: TurnOutcome) -> Asked | None:
    """The question that still waits, because a filter stopped its answer. Of a turn that was tried before nobody knows
    here how far it came."""
    if job.taken is None:
        return None
    is_unheeded = outcome.reason is ReasonCode.FILTERED and not turn.resumed and not job.repeated
    return job.taken if is_unheeded else None


def told(turn: Turn, messages: Sequence[Message]) -> list[Write]:
    """What notes the notices of the turn that `messages` hold. A model may have kept one to itself."""
    if not turn.notices:
        return []
    return [notice.told for notice in turn.notices if any(notice.text in message.text for message in messages)]


def worded(
    job: Job, turn: Turn, outcome: TurnOutcome, left: OpenQuestion | None, asker: MessageContext
) -> Sequence[Message]:
    """What the turn says in the end: the messages of its outcome, with what else `asker` has to know of them. `left`:
    the question that waits no longer because of what is asked now."""
    if outcome.question is None and not job.edited and not turn.granted:
        return outcome.messages
    messages = _of_this_text(job, turn, naming(outcome.messages, outcome.question, asker))
    return [*_granted(turn), *_leaving(left, messages, turn, asker)]


def _of_this_text(job: Job, turn: Turn, messages: Sequence[Message]) -> Sequence[Message]:
    """`messages`; when what they answer was edited meanwhile, the last one says so."""
    if not job.edited or not messages:
        return messages
    *others, last = messages
    note = turn.profile().texts.say("turns.edited_meanwhile")
    return [*others, replace(last, text=f"{last.text}\n{note}".strip())]


def _granted(turn: Turn) -> Sequence[Message]:
    """What is said of what the chat allows for always from now on."""
    return [Message(turn.profile().texts.say("grants.given", code=turn.granted))] if turn.granted else []


def _leaving(
    left: OpenQuestion | None, messages: Sequence[Message], turn: Turn, asker: MessageContext
) -> Sequence[Message]:
    """`messages`, the last of which asks `asker` something; where they had been asked `left` and had not answered, it
    says that this waits no longer."""
    if left is None or not messages:
        return messages
    texts = turn.profile().texts
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
    return replace(chat, reason=ReasonCode.FUNCTIONS_OFF, detail=turn.profile().layers["functions_on"])


def unfit(turn: Turn, runs: Iterable[StoredRun], short_id: str) -> TurnOutcome:
    """The end of a turn whose own end could not be kept: what its effects have said, in words alone, and that something
    went wrong, of which the log has more under `short_id`."""
    said: list[Message] = []
    for run in runs:
        spec = turn.functions.find(run.function)
        if run.result is not None and spec is not None and spec.effect is not Effect.READ:
            said += [Message(storable_text(message.text)) for message in run.result.for_chat()]
    sorry = Message(turn.profile().texts.say("failures.turn", id=short_id))
    return sent(ReasonCode.FUNCTION_FAILED, [*said, sorry], short_id)


def stopped(turn: Turn) -> TurnOutcome:
    """The end of a turn that somebody stopped."""
    return interrupted(turn, ReasonCode.STOPPED, turn.profile().texts.say("stop.stopped"), "")


def interrupted(turn: Turn, reason: ReasonCode, text: str, detail: str) -> TurnOutcome:
    """The end of a turn that was cut short: what effects have said is said all the same, and one that was under way is
    told as unknown."""
    messages = [*turn.said, Message(text)]
    if turn.in_flight:
        name, texts = turn.in_flight, turn.profile().texts
        is_running = name in turn.still_running
        messages += unknown(turn.functions.find(name) or name, texts, still_running=is_running).for_chat()
        reason, detail = ReasonCode.UNKNOWN_OUTCOME, name
    return sent(reason, messages, detail)
