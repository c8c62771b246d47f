"""Keywords: script statements that the host executes. A keyword module is a module of marked functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from function_calls.basic.language.form_parts import LiteralCheck
from function_calls.basic.nodes import At
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import Choice, Message
from services.refs import JsonObject, JsonValue

Value = JsonValue
"""Value of a script: None, bool, int, float, text, list, or map with text keys. Dates are texts in ISO form. FIND
returns rows as a list of maps."""
Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "__rollcall_keyword__"


@dataclass(frozen=True, slots=True)
class KeywordDeclaration:
    """Arguments of the decorator."""

    forms: tuple[str, ...]
    description: str
    effect: str
    touches: tuple[str, ...]
    checks: Mapping[str, LiteralCheck]


def basic_keyword(
    *forms: str,
    effect: str = "read",
    touches: Sequence[str] = (),
    description: str = "",
    check: Mapping[str, LiteralCheck] = MappingProxyType({}),
) -> Callable[[Function], Function]:
    """Mark `async def f(run: ScriptRun, slot, …, *, service: Type) -> Value | Asks` as a keyword of scripts.

    A form is written like the statement, with words in upper case and slots in braces: `SEND MAIL {to}, {subject},
    {body} [, {files}]` (see forms.py). The first words are the keyword's name. All forms begin with the same slots, in
    the order of the function's parameters; an omitted slot takes the parameter's default. `effect` and `touches` are
    those of functions; a script combines those of all its keywords. `check` maps slots to validators of literal values,
    so that invalid ones are reported at compile time. `description` defaults to the docstring's first paragraph."""

    def mark(function: Function) -> Function:
        text = description or " ".join((function.__doc__ or "").strip().split("\n\n", 1)[0].split())
        setattr(function, _MARK, KeywordDeclaration(forms, text, effect, tuple(touches), check))
        return function

    return mark


def keyword_declaration(candidate: object) -> KeywordDeclaration | None:
    """The mark on `candidate`, or None."""
    declaration = getattr(candidate, _MARK, None)
    return declaration if isinstance(declaration, KeywordDeclaration) else None


def marked_functions(modules: Iterable[ModuleType]) -> list[tuple[Callable[..., Any], KeywordDeclaration]]:
    """The marked functions defined in the modules themselves, in order."""
    return [
        (function, declaration)
        for module in modules
        for function in vars(module).values()
        if (declaration := keyword_declaration(function)) is not None and function.__module__ == module.__name__
    ]


@dataclass(frozen=True, slots=True)
class Asks:
    """Result of a keyword that needs an answer: the member is asked, the turn ends, and the keyword is executed again
    with the answer in `run.answer`."""

    text: str
    """Empty: the last message of the script is the question."""
    choices: tuple[Choice, ...] = ()
    only_choices: bool = False
    takes_files: bool = False
    """A file without text is accepted as the answer."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Permissions of a script in addition to its caller's."""

    functions: tuple[str, ...] = ()
    """Name patterns of the functions it may CALL, in addition to those without access outside the chat."""
    shared_tables: tuple[str, ...] = ()
    """Name patterns of tables shared by all chats of the bot. All other tables belong to one chat."""
    shared_memory: tuple[str, ...] = ()
    """Name patterns of memory shared by all chats of the bot, including a member's memory across chats."""


@dataclass(slots=True)
class ScriptRun:
    """Access of a keyword to one run of a script."""

    context: MessageContext
    call: Call
    bot: str
    """Id of the script's bot."""
    tool: str
    """Name of the script's tool."""
    folder: str
    """The script's folder in its storage, with a trailing `/`; empty at the top."""
    grants: Grants
    say: Callable[[Message], None]
    """Send a message to the chat, or to the member it names, when the run ends or asks. Raises RunError over the
    limit."""
    stored_data: JsonObject
    """Plain data that keywords store under their own keys for the rest of the run; kept across questions."""
    at: At
    """Source position of the keyword being executed."""
    transient_data: dict[str, Any] = field(default_factory=dict)
    """Data of keywords that is kept until the run asks a question: secrets, which are never stored."""
    arguments: Mapping[str, Value] = field(default_factory=dict)
    """Arguments of this run, with which it schedules itself."""
    answer: str | None = None
    """The member's answer to the keyword's question."""
    asked: int = 0
    """Number of questions that the keyword has asked so far."""
    begins: bool = False
    """Whether this is the chat's start script, which has no caller."""
    knows_member_text: bool = False
    """Whether the run may know words of members: it received arguments or an answer, called a function, or read data of
    the caller. Until then all its words are its author's."""
    append_to_last: Callable[[str, str], bool] = lambda before, more: False
    """Append the second text to the last message if its text is the first; returns whether it did. Raises RunError over
    the limit."""
    has_outside_text: bool = False
    """Set by keywords whose value contains text of others: web pages, files, messages of other members."""
    thread_seconds: float = 0.0
    """Processor time of keywords in their own threads that has not been charged to the run yet."""

    @property
    def is_of_author(self) -> bool:
        """Whether all words of the run so far are its author's."""
        return not (self.knows_member_text or self.has_outside_text)


KeywordHandler = Callable[[ScriptRun, Mapping[str, Value]], Awaitable["Value | Asks"]]
"""Receives the slot values by name. Raises RunError."""
