"""How a keyword ends a run, or holds it up, by other means than its value."""

from __future__ import annotations

from function_calls.spec import Question


class EndOfRun(Exception):
    """The run is over, and what it has said so far is said."""


class HeldUpWithin(Exception):
    """What the keyword was calling asks `question`: for a person's yes, or for a word in the midst of its run. The run
    goes on with the answer, and the keyword is carried out once more."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.function)
        self.question = question
