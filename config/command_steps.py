"""Steps of command tools, what is called around them, and what is said of them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from config.terms import Count, Section, fault

_REFERENCE = r"([^\s:]*/[^:]+\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
REFERENCE_FORM = "has to be package.module:name or ./file.py:name"


def as_reference(value: object) -> object:
    """`value`, which names something in Python, or is it. Raises what validators raise."""
    if callable(value) or (isinstance(value, str) and re.fullmatch(_REFERENCE, value)):
        return value
    raise fault(REFERENCE_FORM)


def _step(value: object) -> object:
    if isinstance(value, list | tuple):
        return {"argv": value}
    if isinstance(value, str) or callable(value):
        return {"python": value}
    return value


def _words(value: object) -> object:
    if isinstance(value, str):
        return {"model": value, "chat": value}
    return {"python": value} if callable(value) else value


def _prompt(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    return {"python": value} if callable(value) else value


Reference = Annotated[
    Any, BeforeValidator(as_reference, json_schema_input_type=Annotated[str, Field(pattern=f"^{_REFERENCE}$")])
]
"""Something in Python: `package.module:name`, or `./file.py:name` beside the file that says so."""


class StepSettings(Section):
    """One step: a command as a list of its words, or a Python callable."""

    argv: tuple[str, ...] = Field(default=(), max_length=1000)
    """The program and its arguments. Each word stays one word, whatever stands for its ${variables}; no shell reads
    them."""
    python: Reference | None = None
    """Called with the run and the output of the step before it; what it returns is its own."""
    stdin: str = ""
    """What the command reads. ${input} is the output of the step before."""
    when: str = ""
    """A variable: the step runs only where it has a value that is neither empty nor false."""
    dash: Literal["refused", "allowed"] = "refused"
    """Whether a word that begins with a variable may begin with `-`, by which programs know their options."""

    succeeds_with: tuple[Count, ...] = Field(default=(0,), min_length=1, max_length=256)
    """The exit codes that mean that all is well. `grep` ends with 1 where it has found nothing."""

    @model_validator(mode="after")
    def _one_of_both(self) -> StepSettings:
        if bool(self.argv) == (self.python is not None):
            raise fault("has to be either a command, as a list of words, or a Python callable")
        if self.python is not None and self.stdin:
            raise fault("gives stdin to a Python callable, which has its input as an argument")
        return self


class WordingSettings(Section):
    """What is said of a step, to the model and to the chat."""

    model: str | None = None
    """For the model. Left out: what it is told anyway."""
    chat: str | None = None
    """For the chat. Empty: nothing."""
    python: Reference | None = None
    """Called instead; returns a text, or {model: …, chat: …}, or nothing."""


class PromptSettings(Section):
    """What models without function calling are told of the tool in place of its description."""

    text: str = ""
    """${schema} stands for a sample of the call."""
    python: Reference | None = None
    """Called with the sample; returns the text."""


Step = Annotated[StepSettings, BeforeValidator(_step, json_schema_input_type=list[str] | str | StepSettings)]
"""A step as it may be written: a list of words, a callable, or a mapping."""
Wording = Annotated[WordingSettings, BeforeValidator(_words, json_schema_input_type=str | WordingSettings)]
"""A text for both, or a mapping."""
Prompt = Annotated[PromptSettings, BeforeValidator(_prompt, json_schema_input_type=str | PromptSettings)]
"""A text, or a mapping."""


class HandlerSettings(Section):
    """Python that is called around the steps."""

    setup: Reference | None = None
    """Called with the run, once, before the first step; may change the list `run.cmds`."""
    approved: Reference | None = None
    """Called with the run and each step before it; False prevents it, True lets it run without asking, None leaves it
    to opts.approval."""
    on_exit: Step | None = None
    """A callable that is given the run and how it ended, or a command. Once, however the run ends."""


class OutputSettings(Section):
    """What is said when steps have run, failed or been refused."""

    success: Wording | None = None
    """After each step that did what it should."""
    error: Wording | None = None
    """After a step that did not."""
    rejected: Wording | None = None
    """When a step was refused."""
