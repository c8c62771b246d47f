"""How a turn ends that is one run: a command, what is due, or what an answer led to."""

from __future__ import annotations

from function_calls.open_question import Continuation, OpenQuestion
from function_calls.outcome import OutcomeKind, TurnOutcome, sent
from function_calls.policies import OVER_BUDGET
from function_calls.progress import cause, shown
from function_calls.questions import asking_messages, fingerprint
from function_calls.spec import FunctionResult, FunctionSpec, Message
from function_calls.turn import Turn
from function_calls.turn_log import Path
from function_calls.usage import done_text
from services.refs import ErrorCode, ReasonCode

_REASONS = {
    ErrorCode.BAD_ARGUMENTS: ReasonCode.USAGE,
    ErrorCode.MISSING_ARGUMENTS: ReasonCode.USAGE,
    ErrorCode.NOT_FOUND: ReasonCode.USAGE,
    ErrorCode.REFUSED: ReasonCode.REFUSED,
    ErrorCode.UNKNOWN_OUTCOME: ReasonCode.UNKNOWN_OUTCOME,
}


def outcome_of(
    turn: Turn,
    spec: FunctionSpec,
    result: FunctionResult,
    reason: ReasonCode,
    asked: tuple[str, ...],
    path: Path = Path.COMMAND,
) -> TurnOutcome:
    """The outcome of a turn that is one run."""
    question = result.question
    if question is not None and question.field not in asked:
        on = Continuation(
            path.value,
            # A function may hand on the question of another one that it called.
            fingerprint(turn.functions.find(question.function) or spec),
            turn.state,
            asked=(*asked, *([question.field] if question.field else [])),
            taint=sorted(turn.taint),
            asked_at=turn.asked_at_seconds,
        )
        messages = asking_messages(result, turn.profile().texts)
        return TurnOutcome(OutcomeKind.SENT, ReasonCode.ASKED, messages, OpenQuestion(question, on), detail=spec.name)
    if result.error is not None:
        reason = _REASONS.get(result.error.code, ReasonCode.FUNCTION_FAILED)
        detail = cause(result, spec)
        if OVER_BUDGET in result.metadata:
            is_told = result.metadata[OVER_BUDGET] == "told" and turn.answering is None
            return sent(ReasonCode.OVER_BUDGET, () if is_told else result.for_chat(), detail, result.error.code)
        return sent(reason, result.for_chat(), detail, result.error.code)
    if not result.handled and not result.messages and not turn.effects:
        return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT, detail=spec.name)
    messages = shown(result)
    if not messages and turn.effects and turn.answering is not None:
        messages = (Message(done_text([spec], turn.profile().texts)),)
    return sent(reason, messages, spec.name)
