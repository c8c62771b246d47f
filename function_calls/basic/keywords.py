"""Keywords: statements of scripts that the host carries out. A module of keywords is a module of marked functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from function_calls.basic.language.form_parts import LiteralCheck
from function_calls.basic.nodes import At
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import Choice, Message
from services.refs import JsonObject, JsonValue

Value = JsonValue
"""A value of a script: None, a bool, an int, a float, a text, a list or a map with texts as keys. Dates are texts in
ISO form. A row set of FIND is a list of maps."""
Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "__rollcall_keyword__"


@dataclass(frozen=True, slots=True)
class KeywordDeclaration:
    """What the decorator was given."""

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

    A form is written as the statement is, with words in upper case and slots in braces:
    `SEND MAIL {to}, {subject}, {body} [, {files}]` (see forms.py). The first words name the keyword, and all forms
    begin with the same number of arguments' names as the function has parameters; what a form leaves out is the
    parameter's default. `effect` and `touches` as of a function; a script has those of all its keywords together.
    `check`: for slots by their names, what is wrong with a value that stands written out in the script, so that its
    author hears of it before it runs. Without `description` the first paragraph of the docstring serves."""

    def mark(function: Function) -> Function:
        text = description or " ".join((function.__doc__ or "").strip().split("\n\n", 1)[0].split())
        setattr(function, _MARK, KeywordDeclaration(forms, text, effect, tuple(touches), check))
        return function

    return mark


def keyword_declaration(candidate: object) -> KeywordDeclaration | None:
    """The mark on `candidate`, or None."""
    declaration = getattr(candidate, _MARK, None)
    return declaration if isinstance(declaration, KeywordDeclaration) else None


@dataclass(frozen=True, slots=True)
class Asks:
    """A keyword's result that is not there yet: the member is asked, the turn ends, and the keyword is carried out once
    more with the answer in `run.answer`."""

    text: str
    """Empty: what the script has said last is the question."""
    choices: tuple[Choice, ...] = ()
    only_choices: bool = False
    takes_files: bool = False
    """A file without words is an answer."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What a script may, beside what its caller may."""

    functions: tuple[str, ...] = ()
    """The functions that it may CALL, as patterns of their names; beside those that touch nothing outside the chat."""
    shared_tables: tuple[str, ...] = ()
    """The tables that all chats of the bot have in common, as patterns of names. Any other belongs to its chat."""
    shared_memory: tuple[str, ...] = ()
    """What the bot remembers for all its chats, and of a member in all chats, as patterns of the names."""


def _no_line(before: str, more: str) -> bool:
    return False


@dataclass(slots=True)
class ScriptRun:
    """What a keyword may know and do in one run of a script."""

    context: MessageContext
    call: Call
    bot: str
    """The bot whose script it is."""
    tool: str
    """The name of the script's tool."""
    folder: str
    """Where the script lies in its storage, with `/` at the end; empty at the top."""
    grants: Grants
    say: Callable[[Message], None]
    """Let the chat, or whom the message names, hear this when the run ends or asks. Raises RunError over the limit."""
    kept: JsonObject
    """Plain data that keywords keep for the rest of the run, by their own keys; it outlives questions."""
    at: At
    """Where the keyword stands that is carried out now."""
    passing: dict[str, Any] = field(default_factory=dict)
    """What keywords keep until the run asks something: secrets, which are stored nowhere."""
    answer: str | None = None
    """What the member said to the keyword's question."""
    asked: int = 0
    """How often the keyword has asked so far."""
    begins: bool = False
    """Whether it is the script with which the chat begins, which nobody has called."""
    heard: bool = False
    """What members say, or are called, may be in what the run knows by now: somebody gave it arguments or an answer,
    it has called something, or it has looked at who asks. Until then all its words are its author's."""
    say_on: Callable[[str, str], bool] = _no_line
    """Let the message that was said last, and that says the first of these texts, go on with the second one; whether
    there is such a message. Raises RunError over the limit."""
    outside: bool = False
    """Set by a keyword whose value holds words of others: web pages, files, what other members said."""
    thread_seconds: float = 0.0
    """Of the processor, which keywords have spent in threads of their own and the run has not been charged for."""

    @property
    def is_of_author(self) -> bool:
        """Whether all that the run can say by now is its author's own words."""
        return not (self.heard or self.outside)


KeywordHandler = Callable[[ScriptRun, Mapping[str, Value]], Awaitable["Value | Asks"]]
"""Takes the values of the slots by name. Raises RunError."""
