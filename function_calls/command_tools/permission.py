"""Whether a step may run: what a person is asked, and what the answer means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from config.texts import Phrases
from function_calls.answers import Answered, read_decision
from function_calls.call import Resumed
from function_calls.command_tools.outcomes import Failure, as_code, fail, shown
from function_calls.command_tools.request import StepFacts
from function_calls.spec import Choice, FunctionResult
from services.json_values import JsonObject
from services.refs import ErrorCode

_SHOWN_CHARS = 2000
Why = Literal["by_person", "by_tool", "expired", "changed", "too_long"]


class Rejected(Exception):
    """A step is not to run."""

    def __init__(self, why: Why, reason: str = "") -> None:
        super().__init__(why)
        self.why: Why = why
        self.reason = reason
        """What the person said, where they said more than no."""

    def failure(self, step: StepFacts, texts: Phrases, name: str, ran: Sequence[str]) -> Failure:
        """What is said of it where the tool has no words of its own. `ran`: the commands that have run before."""
        key = f"command_tools.model_{self.why}{'_because' if self.reason else ''}"
        model = texts.say(key, command=shown(step), reason=self.reason)
        if not ran:
            return fail(ErrorCode.REFUSED, texts, f"rejected_{self.why}", model=model, name=name)
        model = f"{model} {texts.say('command_tools.model_ran_before', commands='; '.join(ran))}"
        said = "stopped_by_person" if self.why == "by_person" else f"rejected_{self.why}"
        failure = fail(ErrorCode.REFUSED, texts, said, model=model, name=name)
        before = texts.say("command_tools.ran_before", commands="\n".join(map(as_code, ran)))
        text = failure.result.error.text if failure.result.error is not None else ""
        return replace(failure, result=failure.result.with_error_text(f"{text} {before}"))


def question(step: StepFacts, stdin: str, texts: Phrases, name: str, state: JsonObject) -> FunctionResult:
    """Ask whoever asked for the run. Raises Rejected for what is too long to be read: nobody can allow what they are
    not shown."""
    command = shown(step, stdin)
    if len(command) > _SHOWN_CHARS:
        raise Rejected("too_long")
    choices = (
        Choice(texts.say("approvals.yes_label"), texts.words("answers.yes")[0]),
        Choice(texts.say("approvals.no_label"), texts.words("answers.no")[0]),
    )
    text = texts.say("command_tools.ask_step", name=name, command=as_code(command))
    return FunctionResult.ask(text, resume=state, choices=choices, only_choices=True)


class Permission:
    """Reads the answers of people."""

    def __init__(self, texts: Phrases) -> None:
        self._texts = texts

    def check(self, resumed: Resumed, digest: str) -> None:
        """Return when exactly the step that was asked about may run, which `digest` is of. Raises Rejected."""
        if resumed.kind != "answered":
            raise Rejected("expired" if resumed.kind == "expired" else "by_person")
        if resumed.state["asked"] != digest:
            raise Rejected("changed")
        answer = read_decision("", resumed.answer, self._texts)
        if answer.kind in (Answered.YES, Answered.ALWAYS):
            return
        # A no may say why, or what to do instead.
        raise Rejected("by_person", answer.value)
