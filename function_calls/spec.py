"""FunctionSpec and FunctionResult: what a function is, and what a run of it returns."""

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
    """Text of the answer; empty if there is none."""
    kind: ResumedKind = "answered"
    """`cancelled`: the member cancelled the run. `expired`: nobody answered in time; messages of the run are not
    shown. A run of either kind may not ask again."""
    number: int = 1
    """Number of questions that the run has asked so far."""


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """Scope of an approval, and who may give it."""

    digest: str
    """Digest of the function, its exact arguments, the chat, the asker and the rule: an approval covers this only."""
    grant: str
    """Digest without the asker, for standing approvals. Empty: a standing approval is not possible."""
    code: str
    """Short code by which answers name this question."""
    role: Role | None
    """Lowest role that may approve. None: the asker only."""
    by_other: bool
    """The asker may not approve, whatever their role."""
    asker: MessageContext
    """The requesting message. The run has the rights of its sender, whoever approves."""

    def may_allow(self, member: MemberRef, role: Role) -> bool:
        """Whether `member`, whose current role is `role`, may approve."""
        is_asker = member == self.asker.sender.ref
        if self.role is None:
            return is_asker
        return role.rank >= self.role.rank and not (self.by_other and is_asker)

    def may_refuse(self, member: MemberRef, role: Role) -> bool:
        """Whether `member` may reject. The asker may always withdraw the request."""
        return member == self.asker.sender.ref or self.may_allow(member, role)


class Became(NamedTuple):
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
    """It was consumed and recorded before the run asked a question; the same run continues."""


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
        """Saved state of the run that waits for the answer and must learn how it ends; None if no run has started."""
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
    """Asks whoever may allow a run for their approval."""

    kind: ClassVar[str] = "approval"
    terms: ApprovalTerms
    goes_on: Resumed | None = None
    """Saved state of a run that asked something before and needs the approval to continue; None if it has not
    started."""
    said: tuple[str, ...] = ()
    """Texts that this run has said in the chat, questions included."""

    @property
    def saved_run(self) -> Resumed | None:
        return self.goes_on


@dataclass(frozen=True, slots=True, kw_only=True)
class InputQuestion(BaseQuestion):
    """Asked by a handler during its run."""

    kind: ClassVar[str] = "input"
    resume: JsonObject
    """State that the handler is given back with the answer."""
    number: int = 1
    """Number of this question within the run, from 1."""
    allowed: str = ""
    """Digest of the approval that the run consumed at its start; empty if it needed none."""
    said: tuple[str, ...] = ()
    """Texts that the run has said in the chat, questions included."""
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
        """The result as the calling function receives it: its question is marked as nested."""
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
        """Ask the member `text`. The answer runs the function again with the same arguments; `call.resumed` then holds
        the answer and `resume`, which is plain data. `only_choices`: a message that is none of `choices` is not an
        answer, and the question stays open; a no may include its reason. `passes_on`: key of the nested run whose
        question this is; give it the answer with `call.invoke(goes_on=…)`. `takes_files`: a file without text is an
        answer, with an empty text."""
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


class ArgumentError(Exception):
    """Arguments that do not fit. `problems` maps each wrong argument to the schema of what is allowed (None: there is
    no such argument); `missing` names those that are required and absent."""

    def __init__(self, problems: Mapping[str, JsonObject | None], missing: Sequence[str] = ()) -> None:
        super().__init__(", ".join([*problems, *missing]))
        self.problems = dict(problems)
        self.missing = tuple(missing)


class ArgumentParser(Protocol):
    """Turns raw arguments into what the handler takes."""

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The typed arguments. Raises ArgumentError."""

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
    def fingerprint(self) -> str:
        """Digest of everything that a stored question relies on: an old answer does not run a changed function."""
        access = self.access
        facts = [self.name, self.parameters, self.execution.effect.value, sorted(access.roles), access.confirm]
        if self.origin.version:
            facts.append(self.origin.version)
        return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

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
