"""Schema of command tool files: commands with arguments, Python callables, steps and output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from config.terms import (
    BotName,
    Count,
    LocalPath,
    RoleName,
    Roles,
    Seconds,
    Section,
    Word,
    described_matching,
    settings_error,
)

_REFERENCE = r"([^\s:]*/[^:]+\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_IN_A_FILE = r"[^\s:]+\.py:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
REFERENCE_FORM = "has to be package.module:name or ./file.py:name"


def as_reference(value: object) -> object:
    """Validate `value` as a Python reference or a callable. Raises PydanticCustomError."""
    if callable(value) or (isinstance(value, str) and re.fullmatch(_REFERENCE, value)):
        return value
    raise settings_error(REFERENCE_FORM)


def _step(value: object) -> object:
    if isinstance(value, list | tuple):
        return {"argv": value}
    if isinstance(value, str) or callable(value):
        return {"python": value}
    return value


def _names_python(value: object) -> bool:
    """Whether `value` is a callable, or a text that consists of a reference to one in a Python file."""
    return callable(value) or (isinstance(value, str) and re.fullmatch(_IN_A_FILE, value) is not None)


def _words(value: object) -> object:
    if _names_python(value):
        return {"python": value}
    return {"model": value, "chat": value} if isinstance(value, str) else value


def _prompt(value: object) -> object:
    if _names_python(value):
        return {"python": value}
    return {"text": value} if isinstance(value, str) else value


Reference = Annotated[
    Any, BeforeValidator(as_reference, json_schema_input_type=Annotated[str, Field(pattern=f"^{_REFERENCE}$")])
]
"""A Python object: `package.module:name`, or `./file.py:name` relative to the file."""


class StepSettings(Section):
    """One step: a command as a list of words, or a Python callable."""

    argv: tuple[str, ...] = Field(default=(), max_length=1000)
    """The program and its arguments. Each word stays a single argument after its ${variables} are replaced; no shell is
    used."""
    python: Reference | None = None
    """Called with the run and the output of the previous step; its return value is the step's output."""
    stdin: str = ""
    """Standard input of the command. ${input} is the output of the previous step."""
    when: str = ""
    """Name of a variable: the step runs only if its value is neither empty nor false."""
    dash: Literal["refused", "allowed"] = "refused"
    """Whether a word that begins with a variable may begin with `-` and so be an option."""

    succeeds_with: tuple[Count, ...] = Field(default=(0,), min_length=1, max_length=256)
    """Exit codes that mean success. `grep`, for example, exits with 1 if nothing matches."""

    @model_validator(mode="after")
    def _one_of_both(self) -> StepSettings:
        if bool(self.argv) == (self.python is not None):
            raise settings_error("has to be either a command, as a list of words, or a Python callable")
        if self.python is not None and self.stdin:
            raise settings_error("gives stdin to a Python callable, which has its input as an argument")
        return self


class WordingSettings(Section):
    """Text on a step's outcome, for the model and for the chat."""

    model: str | None = None
    """For the model. Missing: the default text."""
    chat: str | None = None
    """For the chat. Empty: none."""
    python: Reference | None = None
    """Called instead; returns a text, {model: …, chat: …}, or None."""


class PromptSettings(Section):
    """Description of the tool for models without function calling."""

    text: str = ""
    """${schema} is replaced by a sample call."""
    python: Reference | None = None
    """Called with the sample call; returns the text."""


Step = Annotated[StepSettings, BeforeValidator(_step, json_schema_input_type=list[str] | str | StepSettings)]
"""A step as a list of words, a callable, or a mapping."""
Wording = Annotated[WordingSettings, BeforeValidator(_words, json_schema_input_type=str | WordingSettings)]
"""A text for both, `./file.py:name`, or a mapping."""
Prompt = Annotated[PromptSettings, BeforeValidator(_prompt, json_schema_input_type=str | PromptSettings)]
"""A text, `./file.py:name`, or a mapping."""


class HandlerSettings(Section):
    """Python callables around the steps."""

    setup: Reference | None = None
    """Called with the run once before the first step; may change the list `run.cmds`."""
    approved: Reference | None = None
    """Called with the run and each step before it; False prevents the step, True runs it without asking, None applies
    opts.approval."""
    on_exit: Step | None = None
    """A callable that receives the run and its outcome, or a command. Runs once, whatever the outcome."""


class OutputSettings(Section):
    """Texts on steps that have succeeded, failed or been rejected."""

    success: Wording | None = None
    """After each successful step."""
    error: Wording | None = None
    """After a failed step."""
    rejected: Wording | None = None
    """When a step was rejected."""


_MOST_ASKED = 50
_NAME = r"[^\s\x00-\x1f]{1,128}"
_VARIABLE = re.compile(r"[^\W\d][\w-]*")


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise settings_error("names no tool")
    return names


def _variables(value: object) -> object:
    if isinstance(value, Mapping):
        for name, text in value.items():
            if not _VARIABLE.fullmatch(str(name)):
                raise settings_error(f"names {name!r}, which is no name for a variable")
            if not isinstance(text, str):
                raise settings_error(f"gives {name!r} something that is no text; put it in quotes")
        return dict(value)
    if value is None or isinstance(value, str) or callable(value):
        return None if value is None else as_reference(value)
    raise settings_error(f"has to be a mapping of names to texts, or {REFERENCE_FORM.removeprefix('has to be ')}")


def _parameters(value: object) -> object:
    if value is None or isinstance(value, Mapping):
        return value
    if isinstance(value, str | type):
        return as_reference(value)
    raise settings_error(
        f"has to be a mapping of parameters, a JSON Schema, or {REFERENCE_FORM.removeprefix('has to be ')}"
    )


ToolName = Annotated[str, *described_matching(_NAME, "has to be 1 to 128 characters without spaces")]
"""Name of a tool or group, without spaces."""
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
"""A text or a list of texts."""


class ToolOptions(Section):
    """Execution options of a tool."""

    timeout_seconds: Seconds = 30
    """Timeout of a command; its child processes are ended, too."""
    output_chars: Count = Field(default=16_000, ge=100, le=1_000_000)
    """Maximum length of a command's output that is kept."""
    max_results: Count | None = Field(default=None, ge=1, le=1_000_000)
    """Maximum number of results of a step for model and chat: lines of a command, items of a callable's list. The next
    step gets all. Missing: no limit."""
    approval: Literal["none", "once", "each_step"] = "none"
    """Required approvals: none, one for the whole run, or the asker's for each step as it will run."""
    approved_by: Literal["asker"] | RoleName = "asker"
    """With approval `once`: the asker, or the lowest role that may approve."""
    sandbox: Literal["required", "preferred", "off"] | None = None
    """Whether commands run in a sandbox: always, if available, or never. Missing: always if models may fill parameters,
    otherwise if available. `off` with such parameters needs the tool's name in the setting `sandbox.unisolated`."""
    network: bool = False
    """Whether commands may use the network. Not permitted if models may fill parameters."""
    readable: tuple[LocalPath, ...] = Field(default=(), max_length=100)
    """Files and folders that commands may read, relative to this file."""
    folder: Literal["own", "chat"] = "own"
    """Working directory: a new empty folder, or the chat's folder, which all its tools share."""
    memory_megabytes: Count = Field(default=512, ge=16, le=1_048_576)
    """Memory limit of one command."""
    max_steps: Count = Field(default=20, ge=1, le=1000)
    """Maximum number of steps per run, including those added by `setup`."""
    stream: bool | None = None
    """Whether the output of a long command is shown in the chat from time to time. Missing: yes, unless output.success
    has a text for the chat."""

    @model_validator(mode="after")
    def _steps_are_asked_of_the_asker(self) -> ToolOptions:
        if self.approval == "each_step" and self.approved_by != "asker":
            raise settings_error("asks for each step, which only the asker can answer: for a role say `approval: once`")
        if self.approval == "each_step" and self.max_steps > _MOST_ASKED:
            raise settings_error(f"asks for each step, so `max_steps` can be {_MOST_ASKED} at most")
        if self.approval == "none" and self.approved_by != "asker":
            raise settings_error("names who approves, but `approval` is none: say `approval: once`")
        return self


class RetrySettings(Section):
    """Retries of a run after a temporary failure."""

    max: Count = Field(ge=0, le=10)
    """Maximum number of retries."""
    delay: Count = Field(default=0, ge=0, le=60_000)
    """Milliseconds before each retry."""


def _has_steps(tool: CommandTool) -> CommandTool:
    if not tool.cmds and tool.handlers.setup is None:
        raise settings_error("has no steps: give it `cmds`, or `handlers.setup` that makes them")
    if tool.parameters is not None and tool.sample is not None:
        raise settings_error("has both `parameters` and `schema`; keep one")
    return tool


class CommandTool(Section):
    """One tool. Keys that do not concern `cmds` are the options of any function."""

    name: ToolName
    """Name of the tool for models and settings."""
    description: str = ""
    """Description for models."""
    parameters: Annotated[Any, BeforeValidator(_parameters, json_schema_input_type=Mapping[str, JsonValue] | str)] = (
        None
    )
    """Name → {type, description, required, default, …}; or a JSON Schema; or a pydantic model in Python."""
    sample: Mapping[str, Any] | None = Field(default=None, alias="schema")
    """Instead of parameters: a sample call with values, or an OpenAI definition."""
    cmds: tuple[Step, ...] = Field(default=(), max_length=1000)
    """Steps in order."""
    env: Annotated[Any, BeforeValidator(_variables, json_schema_input_type=Mapping[str, str] | str)] = None
    """Additional variables: name → text with ${arguments}, or a callable that receives the request."""
    handlers: HandlerSettings = HandlerSettings()
    output: OutputSettings = OutputSettings()
    opts: ToolOptions = ToolOptions()
    system_prompt: Prompt = PromptSettings()

    examples: Texts = ()
    """Example sentences; {slots} are parameter names."""
    commands: Texts = ()
    """Command words, without the slash."""
    effect: Literal["read", "idempotent", "once"] = "once"
    """Effect on the world. Use `read` for tools that change nothing; the default prevents repetitions."""
    activation: Literal["always", "on_request"] = "always"
    """on_request: a chat has to activate it first, by @name."""
    offered_to: tuple[Literal["model", "command", "timer", "mcp", "api"], ...] | None = None
    """Ways to call it. Missing: all; with approval of each step only those where somebody can be asked."""
    bot: BotName | None = None
    """The only bot with this tool."""
    scope: Literal["group", "private", "both"] = "both"
    """Kinds of chats where it may be called."""
    require_at: bool = False
    """True: in groups it runs only if the bot is addressed."""
    roles: Roles | None = None
    """Permitted roles: the lowest one, or a list."""
    tags: Texts = ()
    """Tags for selecting it."""
    groups: Texts = ()
    """Groups that it belongs to."""
    touches: tuple[Literal["reads_outside", "reads_private", "reaches_out", "sends_out", "stays_here"], ...] | None = (
        None
    )
    """Data that it accesses beyond the asker's own. Missing: it reads from outside, reaches out unless its effect is
    read, and sends out if it may use the network."""
    timeout_seconds: Seconds | None = None
    """Timeout of all steps together. Missing: the sum of their timeouts."""
    retry: RetrySettings | None = None
    """Retries after a temporary failure; never with effect once."""
    ask: Mapping[str, str] = Field(default_factory=dict)
    """Questions for missing arguments, by parameter."""
    confirm: str = ""
    """A question to be confirmed before every run; may contain {parameters}."""
    filters: Texts = ()
    """Names of filters around its runs."""
    serial: bool = False
    """Does not run concurrently with other calls of the same model answer."""
    return_direct: bool = False
    """Its output is the answer; the model is not asked again."""
    sensitive: Texts = ()
    """Parameters that are redacted in logs."""
    sinks: Texts = ()
    """Parameters that say who is affected, what is moved and where it goes. Missing: all texts and numbers."""
    status_text: str = ""
    """Text shown in the chat while it runs."""
    positional: Texts = ()
    """Parameters filled by the words of a command line."""
    line: str = ""
    """The text parameter that receives the whole command line."""
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    """Custom data."""

    _checked = model_validator(mode="after")(_has_steps)

    @property
    def is_open_to_models(self) -> bool:
        """Whether models, including those of MCP clients, may call it."""
        return self.offered_to is None or not {"model", "mcp"}.isdisjoint(self.offered_to)


class ToolGroupSettings(Section):
    """Tools that a chat activates together."""

    name: ToolName
    """The name after the @."""
    description: str = ""
    """Description for people."""
    tools: Annotated[tuple[Word, ...], AfterValidator(_some), Field(max_length=200)]
    """Names of functions from any source."""
    system_prompt: str = ""
    """Instructions for a model while the group is active."""
    bot: BotName | None = None
    """The only bot with this group."""


class ToolFromPython(Section):
    """A tool defined in Python, as a mapping of the same form. Keys other than `module` override its values."""

    model_config = ConfigDict(extra="allow")

    module: Reference
    """Reference to the mapping."""


class CommandFile(Section):
    """A file of command tools."""

    tools: tuple[CommandTool | ToolFromPython, ...] = ()
    """Tools of the file."""
    groups: tuple[ToolGroupSettings, ...] = ()
    """Groups of the file."""


OWN_KEYS = frozenset(
    {"name", "description", "parameters", "sample", "cmds", "env", "handlers", "output", "opts", "system_prompt"}
)
"""Fields of a tool that are not options of functions in general."""
