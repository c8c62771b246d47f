"""A function that asks the member questions during its run and records how it was resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import Choice, FunctionResult, Message, Resumed
from tests.fakes.functions import Recorder


class Asking:
    """Asks `questions` one after another, then returns all answers. Its resume state is the list of them."""

    def __init__(
        self,
        name: str = "fill",
        questions: Sequence[str] = ("Your name?",),
        *,
        choices: Sequence[Choice] = (),
        first: str = "",
        on_cancel: str | None = "Put away.",
        **options: Any,
    ) -> None:
        self._questions = tuple(questions)
        self._choices = tuple(choices)
        self._first = first
        self._on_cancel = on_cancel
        self.resumed: list[Resumed | None] = []
        self.recorder = Recorder(
            name, options.pop("parameters", None), does=self._run, **{"commands": [name], **options}
        )
        self.spec = self.recorder.spec

    @property
    def runs(self) -> list[tuple[str, str]]:
        """How each run was resumed: the kind of answer and its value; `began` for a first run."""
        return [("began", "") if one is None else (one.kind, one.answer) for one in self.resumed]

    async def _run(self, context: MessageContext, arguments: dict[str, Any], call: Call) -> FunctionResult:
        resumed = call.resumed
        self.resumed.append(resumed)
        if resumed is not None and resumed.kind != "answered":
            return FunctionResult.say(self._on_cancel) if self._on_cancel else FunctionResult()
        answers = [] if resumed is None else [*resumed.state["answers"], resumed.answer]
        if len(answers) < len(self._questions):
            asked = FunctionResult.ask(
                self._questions[len(answers)], resume={"answers": answers}, choices=self._choices
            )
            return replace(asked, messages=(Message(self._first),)) if self._first and not answers else asked
        return FunctionResult.say(f"Thanks: {', '.join(answers)}.", data=answers)
