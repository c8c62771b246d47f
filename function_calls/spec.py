"""FunctionSpec and FunctionResult: the definition of a function, and the result of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import orjson

from function_calls.context import Attachment, MessageContext, Sender
from services.refs import ChatRef, Effect, ErrorCode, JsonObject, JsonValue, MemberRef, Role
from services.retry import RetryPolicy

if TYPE_CHECKING:
    from function_calls.call import Call

ResumedKind = Literal["answered", "cancelled", "expired"]


@dataclass(frozen=True, slots=True)
class Resumed:
    """Saved state of a run that waits for an answer, and the answer."""

    state: JsonObject
    """Plain data that the handler saved with its question."""
    answer: str
    """Text of the answer, or empty."""
    kind: ResumedKind = "answered"
    """`cancelled`: the member cancelled the run. `expired`: nobody answered in time; messages of the run are not
    shown. A run of either kind may not ask again."""
    number: int = 1
    """Number of questions that the run has asked so far."""


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """Scope of an approval, and the members who may give it."""

    digest: str
    """Digest of the function, its exact arguments, the chat, the asker and the rule: an approval covers this only."""
    grant: str
    """Digest without the asker, for reusable approvals. Empty: only single-use approvals are possible."""
    code: str
    """Short code that identifies this question in answers."""
    role: Role | None
    """Lowest role that may approve. None: the asker only."""
    by_other: bool
    """The asker may not approve, whatever their role."""
    asker: MessageContext
    """The requesting message. The run has the rights of its sender, not of the approving member."""

    def may_allow(self, member: MemberRef, role: Role) -> bool:
        """Whether `member`, whose current role is `role`, may approve."""
        is_asker = member == self.asker.sender.ref
        if self.role is None:
            return is_asker
        return role.rank >= self.role.rank and not (self.by_other and is_asker)

    def may_refuse(self, member: MemberRef, role: Role) -> bool:
        """Whether `member` may reject. The asker may always withdraw the request."""
        return member == self.asker.sender.ref or self.may_allow(member, role)


class ApprovalOutcome(NamedTuple):
    """How an approval question was closed."""

    how: str = ""
    """`allowed`, `refused`, `expired` or `withdrawn`; empty if unknown."""
    by: str = ""
    """Name of the member who decided."""


class Approved(NamedTuple):
    """An approval, consumed by one run."""

    digest: str
    by: Sender
    always: bool
    """Later runs of the same kind in the chat need no approval."""
    is_noted: bool = False
    """Whether the run consumed it before it asked a question; the same run continues."""
    further: tuple[str, ...] = ()
    """Digests of further runs of the same answer of the model that it covers, each once."""

    def covers(self, digest: str) -> bool:
        """Whether it approves the run with this digest."""
        return digest == self.digest or digest in self.further

    def consumed_by(self, left: Approved | None) -> str:
        """Digest of the run that consumed its part, if `left` is what remains."""
        remaining = () if left is None else (left.digest, *left.further)
        return next((one for one in (self.digest, *self.further) if one not in remaining), "")

    def without(self, digest: str) -> Approved | None:
        """The approval after the run with `digest` has consumed its part; None if nothing is left."""
        left = tuple(one for one in (self.digest, *self.further) if one != digest)
        return self._replace(digest=left[0], further=left[1:]) if left else None


@dataclass(frozen=True, slots=True)
class Choice:
    """A suggested answer, shown as a button, or as a word on networks without buttons."""

    label: str
    value: str
    """Text of the message that a press produces."""
    stays: bool = False
    """The button stays after a press and works independently of others; a press is a message, not an answer."""

    def to_json(self) -> list[str | bool]:
        """Plain data from which `Choice(*…)` restores it: label, value, and True if it stays."""
        return [self.label, self.value, True] if self.stays else [self.label, self.value]


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send."""

    text: str
    to: ChatRef | MemberRef | None = None
    """Recipient: None for this chat, a member for a private message, or another chat."""
    reply_to: str | None = None
    """Native id of the message to reply to; None lets delivery choose."""
    mentions: tuple[MemberRef, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()
    brief: str = ""
    """Optional shorter text for networks that limit the lines of a reply."""
    markdown: bool = False
    """The text is Markdown, as in a model's answers; networks without formatting show it as plain text."""
    update: Message | None = None
    """Sent instead of this message when a button was pressed, in place of the message with the button, where the
    network can edit. Only its text and choices are used."""


@dataclass(frozen=True, slots=True)
class FunctionError:
    """Reason why a run failed. `text` is safe to show in a chat; texts of unexpected exceptions are never used."""

    code: ErrorCode
    text: str
    fields: tuple[str, ...] = ()
    """Arguments that are wrong or missing."""


@dataclass(frozen=True, slots=True)
class BaseQuestion:
    """Common fields of the four kinds of question. A question ends the turn; its answer continues in a new turn."""

    kind: ClassVar[str] = ""
    """Name of the kind in the stored form."""
    text: str
    function: str
    arguments: JsonObject
    """Raw arguments known so far."""
    choices: tuple[Choice, ...] = ()
    nested: bool = False
    """`function` was called by another function, and is called as nested again."""

    @property
    def saved_run(self) -> Resumed | None:
        """Saved state of the run that waits for the answer and must be ended without it; None if none has begun."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentQuestion(BaseQuestion):
    """Asks for a missing argument."""

    kind: ClassVar[str] = "argument"
    field: str
    """The parameter that the answer fills."""


@dataclass(frozen=True, slots=True)
class ConfirmQuestion(BaseQuestion):
    """Asks the member for a yes before a run."""

    kind: ClassVar[str] = "confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuestion(BaseQuestion):
    """Asks the members who may approve a run."""

    kind: ClassVar[str] = "approval"
    terms: ApprovalTerms
    interrupted: Resumed | None = None
    """Saved state of a run that asked something before and needs the approval to continue; None if it has not
    started."""
    said: tuple[str, ...] = ()
    """Texts that this run has sent to the chat, including questions."""
    further: tuple[str, ...] = ()
    """Digests of the other runs of the same answer of the model that the question covers."""

    @property
    def saved_run(self) -> Resumed | None:
        return self.interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class InputQuestion(BaseQuestion):
    """Asked by a handler during its run."""

    kind: ClassVar[str] = "input"
    resume: JsonObject
    """State that the handler receives with the answer."""
    number: int = 1
    """Number of this question within the run, from 1."""
    allowed: str = ""
    """Digest of the approval that the run consumed at its start; empty if it needed none."""
    said: tuple[str, ...] = ()
    """Texts that the run has sent to the chat, including questions."""
    only_choices: bool = False
    """A message that matches none of the choices is not an answer; the question stays open."""
    takes_files: bool = False
    """A message with a file and no text is an answer."""
    key: str = ""
    """Key of the run that asks."""
    passes_on: str = ""
    """Key of the nested run whose question this is; the asking run passes the answer to it."""

    @property
    def saved_run(self) -> Resumed:
        return Resumed(self.resume, "", number=self.number)


Question = ArgumentQuestion | ConfirmQuestion | ApprovalQuestion | InputQuestion


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """Result of a run, successful or failed."""

    handled: bool = True
    messages: tuple[Message, ...] = ()
    data: JsonValue = None
    """Data for the model and for callers in code; not shown in the chat. For a failure, its details."""
    error: FunctionError | None = None
    question: Question | None = None
    context_updates: Mapping[str, Any] = field(default_factory=dict)
    """Values to write into the turn's state for later calls."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    outside: bool = False
    """Contains outside text: it is fenced for models. Set by a handler for individual results, and by `invoke` if the
    run or a nested run has read data with a label in `TAINTING`."""

    @property
    def ok(self) -> bool:
        """True if the run succeeded."""
        return self.error is None and self.question is None

    @property
    def reply(self) -> str:
        """All texts for this chat, joined by line ends."""
        return "\n".join(message.text for message in self.messages if message.to is None)

    @property
    def at_list(self) -> tuple[MemberRef, ...]:
        """All members mentioned in the messages, without duplicates, in order."""
        return tuple(dict.fromkeys(member for message in self.messages for member in message.mentions))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """All files attached to the messages, in order."""
        return tuple(file for message in self.messages for file in message.attachments)

    def for_model(self, *, said: bool = False, before: Sequence[str] = ()) -> JsonObject:
        """Data for the model: data and texts, the error with its code, fields and data, or the question as `asked`.
        `said`: the chat has seen the texts, so the model need not repeat them. `before`: texts that the run sent to the
        chat earlier."""
        if self.error is not None:
            data: JsonObject = {"error": self.error.code.value, "message": self.error.text}
            if self.error.fields:
                data["fields"] = list(self.error.fields)
            if self.data is not None:
                data["result"] = self.data
            if before:
                data["said_in_chat"] = list(before)
            return data
        if self.question is not None:
            return {"asked": self.question.text}
        data = {"ok": True} if self.handled else {"ok": False, "message": "not handled"}
        if self.data is not None:
            data["result"] = self.data
        if before:
            data["said_in_chat"] = list(before)
        if self.messages:
            key = "said_in_chat" if said else "text"
            data[key] = [*data.get(key, ()), *(message.text for message in self.messages)]
        return data

    def for_chat(self) -> tuple[Message, ...]:
        """Messages for the chat, or else the error's text."""
        if self.messages or self.error is None:
            return self.messages
        return (Message(self.error.text),)

    def from_nested(self) -> FunctionResult:
        """The result as the calling function receives it, with its question, if any, marked as nested."""
        if self.question is None or self.question.nested:
            return self
        return replace(self, question=replace(self.question, nested=True))

    @classmethod
    def say(cls, text: str, *, data: JsonValue = None, **fields: Any) -> FunctionResult:
        """Successful result with a message, whose `fields` are those of Message, and `data` for models."""
        message = Message(text, **fields) if fields else Message(text)
        return cls(True, (message,), data)

    @classmethod
    def ask(
        cls,
        text: str,
        *,
        resume: JsonObject | None = None,
        choices: Sequence[Choice] = (),
        only_choices: bool = False,
        passes_on: str = "",
        takes_files: bool = False,
    ) -> FunctionResult:
        """Ask the member `text`. The answer runs the function again with the same arguments; `call.resumed` then holds
        the answer and `resume`, which is plain data. `only_choices`: a message that is none of `choices` is not an
        answer, and the question stays open; a no may include its reason. `passes_on`: key of the nested run that asked
        this question; pass the answer to it with `call.invoke(resumed=…)`. `takes_files`: a file without text is an
        answer, with an empty text. Raises ValueError for `only_choices` without `choices`."""
        if only_choices and not choices:
            raise ValueError("a question with only_choices offers some")
        # The invoker fills in the function and its arguments.
        question = InputQuestion(
            text,
            "",
            {},
            choices=tuple(choices),
            resume=dict(resume or {}),
            only_choices=only_choices,
            passes_on=passes_on,
            takes_files=takes_files,
        )
        return cls(question=question)

    @classmethod
    def fail(cls, code: ErrorCode, text: str, fields: Sequence[str] = ()) -> FunctionResult:
        """Failed result; `text` is shown in the chat."""
        return cls(error=FunctionError(code, text, tuple(fields)))

    def with_error_text(self, text: str) -> FunctionResult:
        """The same result with another text of its error; unchanged if it has no error."""
        if self.error is None:
            return self
        return replace(self, error=replace(self.error, text=text))


class ToolError(Exception):
    """Raised by a handler to fail on purpose: `text` is shown in the chat, `code` decides about retries."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class ArgumentError(Exception):
    """Invalid arguments. `problems` maps each wrong argument to the schema of allowed values (None: unknown argument);
    `missing` names required arguments that are absent. Names inside of values are paths, as in `lines.0.qty`; the empty
    name means all arguments together."""

    def __init__(self, problems: Mapping[str, JsonObject | None], missing: Sequence[str] = ()) -> None:
        super().__init__(", ".join([*problems, *missing]))
        self.problems = dict(problems)
        self.missing = tuple(missing)


class ArgumentParser(Protocol):
    """Parses raw arguments into the type that the handler takes."""

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """Typed arguments. Raises ArgumentError."""

    def dump(self, arguments: Any) -> JsonObject:
        """Arguments as plain JSON for the ledger and the call log, in a dict that may be changed."""


class Activation(StrEnum):
    """When a function is offered to a model."""

    ALWAYS = "always"
    ON_REQUEST = "on_request"


class OfferedTo(StrEnum):
    """Paths on which a function may be called."""

    MODEL = "model"
    COMMAND = "command"
    TIMER = "timer"
    MCP = "mcp"
    API = "api"


class Touch(StrEnum):
    """Data labels: access beyond the asker's own data in this chat. Checked in `function_calls/checks/approvals.py`."""

    READS_OUTSIDE = "reads_outside"  # its result contains outside text: the web, files, other programs, other members
    READS_PRIVATE = "reads_private"  # its result contains data that not everybody in this chat may know
    REACHES_OUT = "reaches_out"  # acts on others' data, other chats, members, networks, or this machine
    SENDS_OUT = "sends_out"  # sends its arguments beyond this machine and its services: a search, a post
    AFFECTS_MEMBERS = "affects_members"  # acts on other members; a model's call always needs the asker's yes
    STAYS_HERE = "stays_here"  # its effect stays in this chat, is visible there and can be undone


TAINTING = frozenset({Touch.READS_OUTSIDE, Touch.READS_PRIVATE})
"""Labels of data that are fenced for models and not sent to a caller's model."""
Scope = Literal["group", "private", "both"]
Handler = Callable[[MessageContext, Any, "Call"], Awaitable[FunctionResult]]
"""All forms of handlers are adapted to this type when the spec is built."""


START_FUNCTION = "session"
"""Metadata key of specs and script definitions; True marks the start function of chats."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Data for models in addition to the function's name, description and parameters."""

    examples: tuple[str, ...] = ()
    """Sample requests for this function; may contain `{slots}` named as parameters."""
    result_schema: JsonObject | None = None
    system_prompt: str = ""
    """Instructions for the model while the function is offered."""
    activation: Activation = Activation.ALWAYS
    groups: frozenset[str] = frozenset()
    """Groups that it joins, in addition to groups that list it."""


@dataclass(frozen=True, slots=True)
class CommandForm:
    """Command form of a function."""

    words: tuple[str, ...] = ()
    """Command words in any language, without the slash; two words at most."""
    line: str = ""
    """The text parameter that receives the whole command line, for the handler to parse. Empty: the words fill the
    parameters in order."""
    positional: tuple[str, ...] = ()
    """Parameters filled by position; the others are named, as in `days=3`. Empty: all."""
    immediate: bool = False
    """Runs outside the chat's queue; only for functions that control the queue, such as stop."""


@dataclass(frozen=True, slots=True)
class Access:
    """Rules for callers of a function: bots, paths, places and roles."""

    bot: str | None = None
    """None: all bots."""
    offered_to: frozenset[OfferedTo] = frozenset(OfferedTo)
    scope: Scope = "both"
    require_at: bool = False
    roles: frozenset[Role] = frozenset(Role)
    confirm: str = ""
    """Yes/no question before every run, as text or `@key`; may hold `{parameters}`."""
    approval: Literal["", "asker"] | Role = ""
    """Required approval for each run with its exact arguments: by the asker, or by a member of at least this role.
    Empty: none. The settings may override it."""
    sinks: frozenset[str] = frozenset()
    """Parameters that say who is affected, what is moved and where it goes. A call that a model wrote runs without a
    question only if the asker named their values. Empty: all parameters with texts or numbers."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How a function runs."""

    effect: Effect = Effect.READ
    touches: frozenset[Touch] = frozenset()
    timeout_seconds: float = 30.0
    retry: RetryPolicy | None = None
    """Applies after transient failures; never with effect `once`."""
    filters: tuple[str, ...] = ()
    ask: Mapping[str, str] = field(default_factory=dict)
    """Question for a missing argument, as text or as a key of `texts/` in the form `@todo.ask_text`."""
    serial: bool = False
    """An answer of a model with a call of it runs its calls in order; without, reads run at the same time."""
    return_direct: bool = False
    """Its messages are the answer; the model is not asked again."""
    background: bool = False
    """The turn leaves the queue of its chat when a run starts, and may take as long as the run's timeout. A run that a
    crash interrupts is reported and not repeated, whatever its effect."""
    status_text: str = ""
    """Shown in the chat when a run starts."""
    sensitive: frozenset[str] = frozenset()
    """Parameters whose values are not written to logs."""
    configured: tuple[Callable[[str], bool], ...] = ()
    """For each requested service that has to be configured: returns whether it is, for the bot of that name."""

    @property
    def starts_once(self) -> bool:
        """Whether a run is never started again after a crash."""
        return self.background or self.effect is Effect.ONCE


@dataclass(frozen=True, slots=True)
class Origin:
    """Location and labels of a function's definition."""

    source: str = ""
    """`file:line` of the definition."""
    version: str = ""
    """Digest of the code, if it can change without a new release of Rollcall. An approval does not cover another
    version."""
    declared: frozenset[str] = frozenset()
    """Options that the author has set explicitly."""
    built_in: bool = False
    """Part of Rollcall: `config/texts` describes it to members."""
    tags: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Declared keys that are not options; preserved on export."""
    services: tuple[str, ...] = ()
    """Names of the types of services and ports that the handler requests; known for marked Python functions only."""
    runs: Literal["", "async", "thread"] = ""
    """How the handler runs: in the event loop or in a thread; known for marked Python functions only."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSpec:
    """Definition of a function. Compared by identity: a reload makes new specs."""

    name: str
    description: str
    handler: Handler
    parameters: JsonObject
    """JSON Schema, draft 7, of an object; `$ref`s inlined."""
    arguments: ArgumentParser
    prompt: Prompt = Prompt()
    command: CommandForm = CommandForm()
    access: Access = Access()
    execution: Execution = Execution()
    origin: Origin = Origin()

    @property
    def fingerprint(self) -> str:
        """Digest of the facts that a stored question relies on; an old answer does not run a changed function."""
        access = self.access
        facts = [self.name, self.parameters, self.execution.effect.value, sorted(access.roles), access.confirm]
        if self.origin.version:
            facts.append(self.origin.version)
        return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    def is_set_up(self, bot: str) -> bool:
        """Whether the services it needs are configured for `bot`. Otherwise a run only reports that they are not, so
        members are not pointed to it."""
        return all(is_configured(bot) for is_configured in self.execution.configured)

    @property
    def is_start_function(self) -> bool:
        """Whether it is a start function, which runs once at the beginning of a chat."""
        return self.origin.metadata.get(START_FUNCTION) is True


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """A named group of functions, with a prompt for models while the group is active."""

    name: str
    description: str
    functions: tuple[str, ...]
    """Names of the functions."""
    system_prompt: str = ""
    bot: str | None = None
    """None: all bots."""
    source: str = ""
    """`file:line` of the definition."""


def source_of(definition: FunctionSpec | ToolGroup) -> str:
    """`file:line` of the definition, or empty."""
    return definition.origin.source if isinstance(definition, FunctionSpec) else definition.source


@dataclass(frozen=True, slots=True)
class Activatable:
    """A function or group that a chat can activate."""

    name: str
    description: str
    functions: tuple[str, ...]
    """Names of its registered functions, in registration order."""
    system_prompt: str = ""
    """Prompt for models while the group is active; empty for a function, which has its own."""
    is_group: bool = True


def leaves_chat(spec: FunctionSpec) -> bool:
    """Whether a call of the function may affect anything beyond what the asker sees and can undo in this chat."""
    touches = spec.execution.touches
    if spec.execution.effect is Effect.READ:
        return Touch.SENDS_OUT in touches or Touch.REACHES_OUT in touches
    return Touch.STAYS_HERE not in touches
