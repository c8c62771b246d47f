"""How turns end that did not simply come to an answer, and what is said with an end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.engine.job import Job
from bot.open_questions import Asked
from function_calls.context import MessageContext
from function_calls.failed_runs import unknown
from function_calls.open_question import OpenQuestion
from function_calls.outcome import TurnOutcome, sent
from function_calls.progress import shown
from function_calls.questions import naming
from function_calls.results import storable_text
from function_calls.spec import Message
from function_calls.turn import Turn
from function_calls.turn_log import StoredRun
from function_calls.usage import done_text, plain_name
from services.refs import Effect, ReasonCode
from services.reminder_words import reminder_text
from services.store.port import Write
from services.timer import Timer, TimerKind, TimerState

_NOTE_CHARS = 80
_ATTEMPTS = "limits.attempts_per_turn"
Runs = Mapping[str, StoredRun]
"""What is known of the runs of a turn, by their keys, in the order in which they began."""


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


def given_up(job: Job, turn: Turn, runs: Runs, timer: Timer | None) -> TurnOutcome:
    """The end of a turn whose runs ended the process too often: what is recorded of its effects, and that it is given
    up. A reminder is said all the same; nothing is said of what belongs to a timer that was removed."""
    texts, called = turn.profile().texts, job.context.timer
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


def unfit(job: Job, turn: Turn, runs: Runs, short_id: str) -> TurnOutcome:
    """The end of a turn whose own end could not be kept: what is recorded of its effects, and that something went
    wrong, of which the log has more under `short_id`."""
    sorry = Message(turn.profile().texts.say("failures.turn", id=short_id))
    return sent(ReasonCode.FUNCTION_FAILED, [*recorded(job, turn, runs), sorry], short_id)


def stopped(job: Job, turn: Turn, runs: Runs) -> TurnOutcome:
    """The end of a turn that somebody stopped."""
    return interrupted(job, turn, runs, ReasonCode.STOPPED, turn.profile().texts.say("stop.stopped"), "")


def interrupted(job: Job, turn: Turn, runs: Runs, reason: ReasonCode, text: str, detail: str) -> TurnOutcome:
    """The end of a turn that was cut short: what effects have said is said all the same, and one that was under way is
    told as unknown."""
    said = {message.text for message in turn.said}
    done = [one for one in recorded(job, turn, runs) if one.text not in said]
    messages = [*turn.said, *done, Message(text)]
    if turn.in_flight:
        name, texts = turn.in_flight, turn.profile().texts
        is_running = name in turn.still_running
        messages += unknown(turn.functions.find(name) or name, texts, still_running=is_running).for_chat()
        reason, detail = ReasonCode.UNKNOWN_OUTCOME, name
    return sent(reason, messages, detail)


def recorded(job: Job, turn: Turn, runs: Runs) -> list[Message]:
    """What `runs`, by their keys, say of the effects of the turn, in words alone: the messages of those that ended,
    and of a `once` that began and did not end, that its outcome is unknown. A run within another one is told only where
    that one has not ended."""
    texts, found = turn.profile().texts, list[Message]()
    ended = [f"{key}." for key, run in runs.items() if run.result is not None]
    begun = [key for key, run in runs.items() if run.result is None and run.effect is Effect.ONCE]
    for key, run in runs.items():
        if run.effect is Effect.READ or key.startswith(tuple(ended)) or key in turn.unfinished:
            continue
        function = turn.functions.find(run.function) or run.function
        if run.result is None:
            is_innermost = not any(one.startswith(f"{key}.") for one in begun)
            said = unknown(function, texts).for_chat() if key in begun and is_innermost else ()
        elif run.result.question is not None:
            said = ()
        else:
            said = shown(run.result) or (Message(done_text([function], texts)),)
        found += [Message(storable_text(one.text), to=one.to) for one in said]
    if found and job.runs_for is not job.context:
        # It was asked for there, perhaps in private.
        turn.asker = job.runs_for
    return found
