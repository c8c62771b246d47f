"""What people were asked, and what they have allowed."""

from __future__ import annotations

from dataclasses import dataclass

from bot.decisions import Decisions
from bot.open_questions import OpenQuestions
from bot.parts.ground import Ground
from function_calls.approvals import Approvals
from services.grants import Grants


@dataclass(frozen=True, slots=True)
class Consent:
    """Questions that wait, what became of approvals, and whose yes a run needs."""

    questions: OpenQuestions
    decisions: Decisions
    grants: Grants
    approvals: Approvals


def consent_of(ground: Ground) -> Consent:
    """Nothing is asked yet: `questions` and `grants` are loaded at the start."""
    settings, store, clock = ground.settings, ground.store, ground.clock
    questions = OpenQuestions(clock, settings.questions.expires_seconds, settings.approvals.expires_seconds)
    grants = Grants(store, clock, ground.ids)
    return Consent(
        questions=questions,
        decisions=Decisions(store, questions, ground.chats),
        grants=grants,
        approvals=Approvals(settings.approvals, grants, lambda chat: questions.approvals_in(chat.key)),
    )
