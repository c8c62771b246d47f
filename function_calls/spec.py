"""FunctionSpec and FunctionResult: what a function is, and what a run of it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from function_calls.context import Attachment, MessageContext, Sender
from services.refs import ChatRef, Effect, ErrorCode, JsonObject, JsonValue, MemberRef, Role
from services.retry import RetryPolicy

if TYPE_CHECKING:
    from function_calls.call import Call

ResumedKind = Literal["answered", "cancelled", "expired"]


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a run goes on from that has asked the member something before."""

    state: JsonObject
    """The plain data that the earlier run left."""
    answer: str
    """What the member said; empty where nobody answered."""
    kind: ResumedKind = "answered"
    """`cancelled`: the member said that it should end. `expired`: nobody answered in time; what this run says is not
    shown. A run of either kind asks no more."""
    number: int = 1
    """How many questions the run has asked so far."""


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """What a yes would hold for, and whose."""

    digest: str
    """Of the function, its exact arguments, the chat, the asker and the rule: a yes is for this and nothing else."""
    grant: str
    """The same for every asker: what a yes for always holds for. Empty: there is none for always."""
    code: str
    """What people write to say which question they mean."""
    role: Role | None
    """The least role that may say yes. None: the asker alone."""
    by_other: bool
    """The asker may not, whatever their role."""
    asker: MessageContext
    """The message that led here: the run is the asker's, with the asker's rights, whoever allows it."""

    def may_allow(self, member: MemberRef, role: Role) -> bool:
        """Whether the yes of `member`, who is `role` now, counts."""
        is_asker = member == self.asker.sender.ref
        if self.role is None:
            return is_asker
        return role.rank >= self.role.rank and not (self.by_other and is_asker)

    def may_refuse(self, member: MemberRef, role: Role) -> bool:
        """Whether the no of `member` counts. Askers may always take back what they asked for."""
        return member == self.asker.sender.ref or self.may_allow(member, role)


class Became(NamedTuple):
    """What became of a question for a person's yes that waits no longer."""

    how: str = ""
    """`allowed`, `refused`, `expired` or `withdrawn`; empty where that is not known."""
    by: str = ""
    """The name of who decided."""


class Approved(NamedTuple):
    """A yes. It allows one run and is gone."""

    digest: str
    by: Sender
    always: bool
    """The next such runs in the chat are not to be asked for."""
    is_noted: bool = False
    """It was given before the run asked something, and kept then: the same run goes on."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that is offered as a button, or as a word where there are no buttons."""

    label: str
    value: str
    """What comes back as the text of a message when it is chosen."""
    stays: bool = False
    """It may be chosen again, and beside others: something to say, and no answer to a question."""

    def to_json(self) -> list[str | bool]:
        """As plain data: what `Choice(*…)` takes."""
        return [self.label, self.value, True] if self.stays else [self.label, self.value]


@dataclass(frozen=True, slots=True)
class Message:
    """One thing to say."""

    text: str
    to: ChatRef | MemberRef | None = None
    """None: this chat. A member: in private. Another chat: there."""
    reply_to: str | None = None
    """The native id of the message that this answers; None lets delivery choose."""
    mentions: tuple[MemberRef, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()
    brief: str = ""
    """A short text to send instead of `text` on networks that limit the lines of a reply. Empty: there is none."""


@dataclass(frozen=True, slots=True)
class FunctionError:
    """Why a run gave nothing. `text` is safe to show in a chat; a stranger's exception never is."""

    code: ErrorCode
    text: str
    fields: tuple[str, ...] = ()
    """The arguments that are wrong or missing."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the bot asks back. It ends the turn; the answer is a new turn that goes on from there."""

    kind: Literal["argument", "confirm", "approval", "input"]
    text: str
    function: str
    arguments: JsonObject
    """The raw arguments known so far."""
    field: str = ""
    """For `argument`: the parameter that the answer fills."""
    choices: tuple[Choice, ...] = ()
    terms: ApprovalTerms | None = None
    """For `approval`: what is to be allowed, and who may."""
    nested: bool = False
    """Another function was calling `function`: the answer leads to it by that way."""
    resume: JsonObject | None = None
    """For `input`: what the handler needs to go on, which it is given back with the answer."""
    number: int = 1
    """For `input`: the run's first question, or a later one."""
    allowed: str = ""
    """For `input`: the digest of the yes that the run was given before it began; empty where it needed none."""
    said: tuple[str, ...] = ()
    """What the run that asked with `input` has said in the chat so far, with its questions."""
    only_choices: bool = False
    """For `input`: what matches none of the choices is no answer, and the question waits on."""
    takes_files: bool = False
    """For `input`: a message with a file and no words is an answer."""
    key: str = ""
    """For `input`: of the run that asks."""
    passes_on: str = ""
    """For `input`: the key of a run within the one that asks, whose question this is, and which that one leads to."""
    goes_on: Resumed | None = None
    """For `approval`: what the run goes on from that needs the yes now, because it has asked something before; None
    where it begins with it."""

    @property
    def is_of_a_run(self) -> bool:
        """Whether a run that has begun waits for the answer, and has to hear how it ends."""
        return self.resume is not None or self.goes_on is not None


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The outcome of a run, of failure too."""

    handled: bool = True
    messages: tuple[Message, ...] = ()
    data: JsonValue = None
    """For the model and for callers in code; not shown in the chat. Of a failure: what is known of it."""
    error: FunctionError | None = None
    question: Question | None = None
    context_updates: Mapping[str, Any] = field(default_factory=dict)
    """Written into the turn's state for the calls that follow."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    outside: bool = False
    """It holds words of others, so a model is given it within a fence and the turn is tainted. Set by a handler whose
    results do so now and then, and by `invoke` where the run, or one within it, has read what taints."""

    @property
    def ok(self) -> bool:
        """True when the run did what was asked."""
        return self.error is None and self.question is None

    @property
    def reply(self) -> str:
        """All the texts for this chat, joined by line ends."""
        return "\n".join(message.text for message in self.messages if message.to is None)

    @property
    def at_list(self) -> tuple[MemberRef, ...]:
        """Everybody whom the messages mention, each once, in order."""
        return tuple(dict.fromkeys(member for message in self.messages for member in message.mentions))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """All the files of the messages."""
        return tuple(file for message in self.messages for file in message.attachments)

    def for_model(self, *, said: bool = False, before: Sequence[str] = ()) -> JsonObject:
        """What the model is told: data and texts, or the error with its code, fields and data. `said`: the chat has
        seen the texts, so the model need not repeat them. `before`: what the run has said in the chat when it asked."""
        if self.error is not None:
            told: JsonObject = {"error": self.error.code.value, "message": self.error.text}
            if self.error.fields:
                told["fields"] = list(self.error.fields)
            if self.data is not None:
                told["result"] = self.data
            if before:
                told["said_in_chat"] = list(before)
            return told
        if self.question is not None:
            return {"asked": self.question.text}
        told = {"ok": True} if self.handled else {"ok": False, "message": "not handled"}
        if self.data is not None:
            told["result"] = self.data
        if before:
            told["said_in_chat"] = list(before)
        if self.messages:
            key = "said_in_chat" if said else "text"
            told[key] = [*told.get(key, ()), *(message.text for message in self.messages)]
        return told

    def for_chat(self) -> tuple[Message, ...]:
        """What people are told: the messages, else the error's text."""
        if self.messages or self.error is None:
            return self.messages
        return (Message(self.error.text),)

    def from_nested(self) -> FunctionResult:
        """The same as another function that was calling it has it: a question knows that it came from within."""
        if self.question is None or self.question.nested:
            return self
        return replace(self, question=replace(self.question, nested=True))

    @classmethod
    def say(cls, text: str, *, data: JsonValue = None, **fields: Any) -> FunctionResult:
        """Handled, with one message."""
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
        """Not done yet: the member is asked `text`. The answer runs the same function with the same arguments once
        more, and `call.resumed` then holds it together with `resume`, which is plain data. `only_choices`: whatever
        else than one of `choices` the member says is talk, and the question waits on; a no may bear its reason.
        `passes_on`: the key of the question of a run within this one, which is then given the answer by
        `call.invoke(goes_on=…)`. `takes_files`: a file without words is an answer too, and an empty one."""
        if only_choices and not choices:
            raise ValueError("a question with only_choices offers some")
        # Which function it is, and with what, is known to whoever runs it.
        question = Question(
            "input",
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
        """Not done; `text` is shown."""
        return cls(error=FunctionError(code, text, tuple(fields)))

    def with_error_text(self, text: str) -> FunctionResult:
        """The same failure in other words."""
        if self.error is None:
            return self
        return replace(self, error=replace(self.error, text=text))


class ToolError(Exception):
    """Raised by a handler to fail on purpose: `text` is shown in the chat, `code` decides about retries."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class ArgumentFault(Exception):
    """Arguments that do not fit. `problems` maps each wrong argument to the schema of what is allowed (None: there is
    no such argument); `missing` names those that are required and absent."""

    def __init__(self, problems: Mapping[str, JsonObject | None], missing: Sequence[str] = ()) -> None:
        super().__init__(", ".join([*problems, *missing]))
        self.problems = dict(problems)
        self.missing = tuple(missing)


class ArgumentParser(Protocol):
    """Turns raw arguments into what the handler takes."""

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The typed arguments. Raises ArgumentFault."""

    def dump(self, arguments: Any) -> JsonObject:
        """The arguments as plain JSON, in a dict that may be changed: what the ledger and the call log hold."""


class Activation(StrEnum):
    """When a function is offered to a model."""

    ALWAYS = "always"
    ON_REQUEST = "on_request"


class OfferedTo(StrEnum):
    """Ways to a function that its spec opens."""

    MODEL = "model"
    COMMAND = "command"
    TIMER = "timer"
    MCP = "mcp"
    API = "api"


class Touch(StrEnum):
    """What a function touches beyond the asker's own things in this chat. `function_calls/checks/approvals.py` decides
    by it."""

    READS_OUTSIDE = "reads_outside"  # its result holds words of others: the web, files, other programs, other members
    READS_PRIVATE = "reads_private"  # its result holds what not everybody in this chat may know
    REACHES_OUT = "reaches_out"  # acts on others' things, other chats, members, networks, or this machine
    SENDS_OUT = "sends_out"  # what it is given goes on to others than this machine and its services: a search, a post
    STAYS_HERE = "stays_here"  # its effect is the asker's own affair in this chat, though it happens only once


TAINTING = frozenset({Touch.READS_OUTSIDE, Touch.READS_PRIVATE})
"""What taints a turn that has read it."""
Scope = Literal["group", "private", "both"]
Handler = Callable[[MessageContext, Any, "Call"], Awaitable[FunctionResult]]
"""Every handler form is adapted to this one when its spec is made."""


BEGINS_CHATS = "session"
"""True under this key in the metadata of its spec, and of the definition of the script that it is."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model sees of a function beside its name, description and parameters."""

    examples: tuple[str, ...] = ()
    """Sentences that mean this function; may hold `{slots}` named as parameters."""
    result_schema: JsonObject | None = None
    system_prompt: str = ""
    """Instructions for the model while the function is offered."""
    activation: Activation = Activation.ALWAYS
    groups: frozenset[str] = frozenset()
    """Groups that it belongs to beside those that list it themselves."""


@dataclass(frozen=True, slots=True)
class CommandForm:
    """How people type a function as a command."""

    words: tuple[str, ...] = ()
    """Command words in any language, without the slash; two words at most."""
    line: str = ""
    """The text parameter that receives the whole command line, which the handler parses. Empty: the words fill the
    parameters in order."""
    positional: tuple[str, ...] = ()
    """The parameters that words of a command line fill; the others are named, as in `days=3`. Empty: all."""
    immediate: bool = False
    """Runs outside the chat's queue: only for what controls the queue, such as stop."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call a function, where and by which path."""

    bot: str | None = None
    """None: all bots."""
    offered_to: frozenset[OfferedTo] = frozenset(OfferedTo)
    scope: Scope = "both"
    require_at: bool = False
    roles: frozenset[Role] = frozenset(Role)
    confirm: str = ""
    """Yes/no question before every run, as text or `@key`; may hold `{parameters}`."""
    approval: Literal["", "asker"] | Role = ""
    """Whose approval each run needs, for exactly its arguments: the asker's, or that of a least role. Empty: nobody's.
    The settings may override it."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How a function runs."""

    effect: Effect = Effect.READ
    touches: frozenset[Touch] = frozenset()
    timeout_seconds: float = 30.0
    retry: RetryPolicy | None = None
    """After transient failures; never for effect `once`."""
    filters: tuple[str, ...] = ()
    ask: Mapping[str, str] = field(default_factory=dict)
    """Question for a missing argument, as text or as a key of `texts/` in the form `@todo.ask_text`."""
    serial: bool = False
    """Never runs beside another call of the same answer."""
    return_direct: bool = False
    """Its messages are the answer; the model is not asked again."""
    status_text: str = ""
    """Shown in the chat when a run starts."""
    sensitive: frozenset[str] = frozenset()
    """Parameters whose values are not written to logs."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a function comes from, and its labels."""

    source: str = ""
    """`file:line` of the definition."""
    version: str = ""
    """Digest of what runs, where that may change without a release of ours: an approval does not carry over to another
    version."""
    declared: frozenset[str] = frozenset()
    """The options that the author has set; the others have their defaults."""
    tags: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Declared keys that are not options; preserved on export."""


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
    def begins_chats(self) -> bool:
        """Whether the bot runs it once, when a chat begins."""
        return self.origin.metadata.get(BEGINS_CHATS) is True


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Some functions under a name, with what a model is told while they are at hand."""

    name: str
    description: str
    functions: tuple[str, ...]
    """Their names."""
    system_prompt: str = ""
    bot: str | None = None
    """None: for all bots."""
    source: str = ""
    """`file:line` of the definition."""


def source_of(definition: FunctionSpec | ToolGroup) -> str:
    """`file:line` of the definition, or empty."""
    return definition.origin.source if isinstance(definition, FunctionSpec) else definition.source


@dataclass(frozen=True, slots=True)
class Takeable:
    """One name that a chat may take to hand, and what comes with it."""

    name: str
    description: str
    functions: tuple[str, ...]
    """Those that there are, in registration order."""
    system_prompt: str = ""
    """What a model is told while the group is at hand; a function tells it for itself."""
    is_group: bool = True
