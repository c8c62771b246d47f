"""Schema of command tool files: commands with arguments, Python callables, steps and output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from config.terms import BotName, Count, LocalPath, RoleName, Roles, Seconds, Section, Word, fault

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


_MOST_ASKED = 50
_NAME = r"[^\s\x00-\x1f]{1,128}"
_VARIABLE = re.compile(r"[^\W\d][\w-]*")


def _name(value: str) -> str:
    if not re.fullmatch(_NAME, value):
        raise fault("has to be 1 to 128 characters without spaces")
    return value


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise fault("names no tool")
    return names


def _variables(value: object) -> object:
    if isinstance(value, Mapping):
        for name, text in value.items():
            if not _VARIABLE.fullmatch(str(name)):
                raise fault(f"names {name!r}, which is no name for a variable")
            if not isinstance(text, str):
                raise fault(f"gives {name!r} something that is no text; put it in quotes")
        return dict(value)
    if value is None or isinstance(value, str) or callable(value):
        return None if value is None else as_reference(value)
    raise fault(f"has to be a mapping of names to texts, or {REFERENCE_FORM.removeprefix('has to be ')}")


def _parameters(value: object) -> object:
    if value is None or isinstance(value, Mapping):
        return value
    if isinstance(value, str | type):
        return as_reference(value)
    raise fault(f"has to be a mapping of parameters, a JSON Schema, or {REFERENCE_FORM.removeprefix('has to be ')}")


ToolName = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"})]
"""What a tool or a group is called: no spaces."""
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
"""A list of texts, or one."""


class ToolOptions(Section):
    """How a tool runs."""

    timeout_seconds: Seconds = 30
    """After this time a command is ended, with all that it has started."""
    output_chars: Count = Field(default=16_000, ge=100, le=1_000_000)
    """So much is kept of what a command writes."""
    approval: Literal["none", "once", "each_step"] = "none"
    """Whose yes it takes: nobody's, one for the whole run, or the asker's for each step, which is shown as it runs."""
    approved_by: Literal["asker"] | RoleName = "asker"
    """With approval `once`: whoever asks, or the least role."""
    sandbox: Literal["required", "preferred", "off"] = "preferred"
    """Whether commands run apart from this machine: always, where that can be had, or not."""
    network: bool = False
    """Whether commands may reach the network."""
    readable: tuple[LocalPath, ...] = Field(default=(), max_length=100)
    """Files and folders that commands may read, relative to the file that says so."""
    folder: Literal["own", "chat"] = "own"
    """Where commands work: an empty folder each, or one that the chat keeps and that all its tools share."""
    memory_megabytes: Count = Field(default=512, ge=16, le=1_048_576)
    """The most memory of one command."""
    max_steps: Count = Field(default=20, ge=1, le=1000)
    """The most steps of one run, those that `setup` adds included."""
    stream: bool | None = None
    """Whether the chat is shown now and then what a long command writes. Left out: yes, unless output.success says what
    the chat is shown."""

    @model_validator(mode="after")
    def _steps_are_asked_of_the_asker(self) -> ToolOptions:
        if self.approval == "each_step" and self.approved_by != "asker":
            raise fault("asks for each step, which only the asker can answer: for a role say `approval: once`")
        if self.approval == "each_step" and self.max_steps > _MOST_ASKED:
            raise fault(f"asks for each step, so `max_steps` can be {_MOST_ASKED} at most")
        if self.approval == "none" and self.approved_by != "asker":
            raise fault("names who approves, but `approval` is none: say `approval: once`")
        return self


class RetrySettings(Section):
    """How a run is repeated that failed for the moment."""

    max: Count = Field(ge=0, le=10)
    """How often, after the first time."""
    delay: Count = Field(default=0, ge=0, le=60_000)
    """Milliseconds before each."""


def _has_steps(tool: CommandTool) -> CommandTool:
    if not tool.cmds and tool.handlers.setup is None:
        raise fault("has no steps: give it `cmds`, or `handlers.setup` that makes them")
    if tool.parameters is not None and tool.sample is not None:
        raise fault("has both `parameters` and `schema`; keep one")
    return tool


class CommandTool(Section):
    """One tool. What stands here beside `cmds` and what belongs to it are the options of any function."""

    name: ToolName
    """What models and settings call it."""
    description: str = ""
    """What models are told."""
    parameters: Annotated[Any, BeforeValidator(_parameters, json_schema_input_type=Mapping[str, JsonValue] | str)] = (
        None
    )
    """Name → {type, description, required, default, …}; or a JSON Schema; or a pydantic model in Python."""
    sample: Mapping[str, Any] | None = Field(default=None, alias="schema")
    """Instead of parameters: the call as a model should write it, with sample values, or an OpenAI definition."""
    cmds: tuple[Step, ...] = Field(default=(), max_length=1000)
    """The steps, in order."""
    env: Annotated[Any, BeforeValidator(_variables, json_schema_input_type=Mapping[str, str] | str)] = None
    """Further variables: name → text with ${arguments}, or a callable that is given the request."""
    handlers: HandlerSettings = HandlerSettings()
    output: OutputSettings = OutputSettings()
    opts: ToolOptions = ToolOptions()
    system_prompt: Prompt = PromptSettings()

    examples: Texts = ()
    """Sentences that mean it; {slots} are named as parameters."""
    commands: Texts = ()
    """Words that call it directly, without the slash."""
    effect: Literal["read", "idempotent", "once"] = "once"
    """What it does to the world. Say `read` of what changes nothing; without a word nothing is repeated."""
    activation: Literal["always", "on_request"] = "always"
    """on_request: a chat has to take it to hand first, by @name."""
    offered_to: tuple[Literal["model", "command", "timer", "mcp", "api"], ...] | None = None
    """The ways that lead to it. Left out: all; with approval of each step those with somebody to ask."""
    bot: BotName | None = None
    """The only bot that has it."""
    scope: Literal["group", "private", "both"] = "both"
    """Where it may be called."""
    require_at: bool = False
    """True: in a group only when the bot is addressed."""
    roles: Roles | None = None
    """Who may call it: the least role, or a list."""
    tags: Texts = ()
    """Words to find it by."""
    groups: Texts = ()
    """Groups that it belongs to."""
    touches: tuple[Literal["reads_outside", "reads_private", "reaches_out", "sends_out", "stays_here"], ...] | None = (
        None
    )
    """What it touches beyond the asker's own things. Left out: it reads from outside, reaches out unless its effect is
    read, and sends out where it may reach the network."""
    timeout_seconds: Seconds | None = None
    """For all steps together. Left out: what they may take each, together."""
    retry: RetrySettings | None = None
    """How often a run is repeated after a failure for the moment; never with effect once."""
    ask: Mapping[str, str] = Field(default_factory=dict)
    """For a missing argument: the question."""
    confirm: str = ""
    """A question that wants a yes before every run; may hold {parameters}."""
    filters: Texts = ()
    """Names of filters around its runs."""
    serial: bool = False
    """Never beside another call of the same answer."""
    return_direct: bool = False
    """What it says is the answer; the model is not asked again."""
    sensitive: Texts = ()
    """Parameters that stay out of logs."""
    status_text: str = ""
    """What the chat is shown while it runs."""
    positional: Texts = ()
    """The parameters that words of a command line fill."""
    line: str = ""
    """The text parameter that is given a whole command line."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """Anything of your own."""

    _checked = model_validator(mode="after")(_has_steps)


class ToolGroupSettings(Section):
    """Tools that a chat takes to hand together."""

    name: ToolName
    """What follows the @."""
    description: str = ""
    """What people are told."""
    tools: Annotated[tuple[Word, ...], AfterValidator(_some), Field(max_length=200)]
    """Names of functions, of any source."""
    system_prompt: str = ""
    """What a model is told while they are at hand."""
    bot: BotName | None = None
    """The only bot that has it."""


class ToolFromPython(Section):
    """A tool that stands in Python, as a mapping of the same form. Other keys beside `module` replace its own."""

    model_config = ConfigDict(extra="allow")

    module: Reference
    """Where it stands."""


class CommandFile(Section):
    """A file of command tools."""

    tools: tuple[CommandTool | ToolFromPython, ...] = ()
    """The tools."""
    groups: tuple[ToolGroupSettings, ...] = ()
    """The groups."""


OWN_KEYS = frozenset(
    {"name", "description", "parameters", "sample", "cmds", "env", "handlers", "output", "opts", "system_prompt"}
)
"""The fields of a tool that are no options of functions in general."""
