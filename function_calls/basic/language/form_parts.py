"""A keyword form as a graph of parts, and the interface between parser and forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol

from function_calls.basic.language.tokens import Cursor, Token
from function_calls.basic.nodes import Expression, Target, Want
from function_calls.basic.values import some_of
from services.refs import JsonValue

_COMMA = ","
_MOST_USAGES = 3
_FEWEST_SHOWN = 40
_CALLED = "`{0} name(1, 2)`, or `{0} name WITH a = 1, b = 2`"
_AS_PEOPLE_WRITE: Mapping[str, str] = MappingProxyType(
    {
        "HEAR": "HEAR name, or HEAR name AS EMAIL",
        "FORMAT": '`y = FORMAT(value, "0.00")`, or `FORMAT value AS "0.00"`',
        "PRINT": '`PRINT "total:", total`',
        **{name: _CALLED.format(name) for name in ("CALL", "TOOL", "RUN TOOL")},
    }
)


class SlotKind(StrEnum):
    """What a slot takes. The members from WORD on are written behind its name."""

    VALUE = "value"
    LIST = "list"
    ONE_OF = "one_of"
    WORD = "word"
    NAME = "name"
    VARIABLE = "variable"
    ASSIGNMENTS = "assignments"
    CHANGES = "changes"
    TEXT = "text"
    CONDITION = "condition"
    FILTER = "filter"
    BLOCK = "block"
    NAMED = "named"
    NAMES = "names"
    ROW = "row"
    PAIR = "pair"
    KEY = "key"
    SEMICOLON = "semicolon"


class Exactly(NamedTuple):
    """A word or a sign that has to stand there."""

    text: str
    is_word: bool


class Slot(NamedTuple):
    """Something that the statement gives the keyword."""

    name: str
    kind: SlotKind
    words: tuple[str, ...] = ()
    """Those that ONE_OF takes."""


class Maybe(NamedTuple):
    """`[ … ]`."""

    parts: tuple[Part, ...]


class Either(NamedTuple):
    """`( … | … )`."""

    branches: tuple[tuple[Part, ...], ...]


LiteralCheck = Callable[[JsonValue], str]
"""What is wrong with a value that a script has written out, for its author; empty where nothing is."""
Part = Exactly | Slot | Maybe | Either


class Step(NamedTuple):
    """One thing to match, and what follows it."""

    part: Exactly | Slot
    after: Node


class Fork(NamedTuple):
    """Ways to go on, the first that fits is taken."""

    ways: tuple[Node, ...]


Node = Step | Fork | None
"""None: the form is over."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form, ready to be matched."""

    text: str
    """As its author wrote it."""
    lead: tuple[str, ...]
    """The words that it begins with."""
    parts: tuple[Part, ...]
    """What follows these."""
    node: Node = field(compare=False, repr=False)
    slots: tuple[str, ...]
    """The names of all slots, in their order."""
    required: frozenset[str]
    """The slots that every statement of this form fills."""
    words: frozenset[str]
    """All words behind the lead that stand in the form itself."""
    checks: Mapping[str, LiteralCheck] = field(default_factory=dict, compare=False, repr=False)
    """By the names of slots."""

    @property
    def name(self) -> str:
        """The keyword's name: `SEND MAIL`."""
        return " ".join(self.lead)


def usage_of(form: Form) -> str:
    """The form as an author of scripts reads it: `SEND MAIL to, subject, body [, files]`."""
    usage = _joined([*form.lead, *(_shown(part) for part in form.parts)])
    has_block = any(slot.kind is SlotKind.BLOCK for slot in slots_of(form.parts))
    return f"{usage} END {' '.join(form.lead[1:])}" if has_block and form.lead[0] == "BEGIN" else usage


def usages_of(forms: Sequence[Form], most: int) -> str:
    """How a keyword with these forms is written, in at most so many characters where more than one is told; as people
    write it, where its forms say more than can be read at a glance."""
    first = forms[0]
    if first.name in _AS_PEOPLE_WRITE:
        return _AS_PEOPLE_WRITE[first.name]
    told = ""
    for usage in list(dict.fromkeys(f"`{usage_of(form)}`" for form in forms))[:_MOST_USAGES]:
        if told and len(told) + len(usage) > most:
            break
        told += f" or {usage}" if told else usage
    return told if len(told) <= most else f"{told[: max(most, _FEWEST_SHOWN) - 2]}…`"


def linked(parts: Sequence[Part], after: Node = None) -> Node:
    """The graph of `parts` with `after` behind them."""
    node = after
    for part in reversed(parts):
        if isinstance(part, Maybe):
            node = Fork((linked(part.parts, node), node))
        elif isinstance(part, Either):
            node = Fork(tuple(linked(branch, node) for branch in part.branches))
        else:
            node = Step(part, node)
    return node


def slots_of(parts: Sequence[Part]) -> Iterator[Slot]:
    """All slots, in their order."""
    for part in parts:
        if isinstance(part, Slot):
            yield part
        elif isinstance(part, Maybe):
            yield from slots_of(part.parts)
        elif isinstance(part, Either):
            for branch in part.branches:
                yield from slots_of(branch)


def words_of(parts: Sequence[Part]) -> Iterator[str]:
    """All words that may stand in a statement."""
    for part in parts:
        if isinstance(part, Exactly) and part.is_word:
            yield part.text
        elif isinstance(part, Slot):
            yield from part.words
        elif isinstance(part, Maybe):
            yield from words_of(part.parts)
        elif isinstance(part, Either):
            for branch in part.branches:
                yield from words_of(branch)


def required_of(parts: Sequence[Part]) -> frozenset[str]:
    """The slots that every statement fills."""
    required: frozenset[str] = frozenset()
    for part in parts:
        if isinstance(part, Slot):
            required |= {part.name}
        elif isinstance(part, Either):
            required |= frozenset.intersection(*map(required_of, part.branches))
    return required


def first_of(node: Node) -> Iterator[Exactly | Slot]:
    """What may stand where `node` begins."""
    if isinstance(node, Step):
        yield node.part
    elif isinstance(node, Fork):
        for way in node.ways:
            yield from first_of(way)


def _shown(part: Part) -> str:
    if isinstance(part, Exactly):
        return part.text
    if isinstance(part, Slot):
        return _shown_slot(part)
    if isinstance(part, Maybe):
        return f"[{_joined([_shown(one) for one in part.parts])}]"
    return f"({' | '.join(_joined([_shown(one) for one in branch]) for branch in part.branches)})"


def _shown_slot(slot: Slot) -> str:
    # Names that are words of Python are written with `_` at their end there.
    name = slot.name.rstrip("_") or slot.name
    if slot.kind in (SlotKind.LIST, SlotKind.NAMED):
        return f"{name}, …"
    if slot.kind in (SlotKind.NAMES, SlotKind.ROW):
        return f"({name}, …)"
    if slot.kind is SlotKind.PAIR:
        return "name = value"
    if slot.kind is SlotKind.SEMICOLON:
        return ";"
    if slot.kind is SlotKind.ONE_OF:
        return "|".join(some_of(slot.words))
    if slot.kind in (SlotKind.ASSIGNMENTS, SlotKind.CHANGES):
        return "column = value, …"
    if slot.kind is SlotKind.CONDITION:
        return "column = value [AND …]"
    return "…" if slot.kind is SlotKind.BLOCK else name


def _joined(shown: Sequence[str]) -> str:
    text = ""
    for one in shown:
        text += one if not text or one.startswith(_COMMA) else f" {one}"
    return text


class Reads(Protocol):
    """Reads what stands in a statement. All methods raise ScriptError."""

    def expression(self, cursor: Cursor) -> Expression:
        """The expression at the cursor, as long as it goes."""

    def operand(self, cursor: Cursor) -> Expression:
        """The same up to the first operator."""

    def target(self, cursor: Cursor) -> Target:
        """What can be assigned to."""

    def text(self, token: Token) -> Expression:
        """The Literal or Template of a TEXT or a BLOCK."""


class MatchedForm(Protocol):
    """A keyword that was read."""

    @property
    def want(self) -> Want:
        """It, with its arguments."""

    @property
    def into(self) -> Target | None:
        """What receives its result, where the form says so."""


class KeywordForms(Protocol):
    """The forms of all keywords."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the keywords: `SEND MAIL`."""

    def match(self, cursor: Cursor, read: Reads, *, inside: bool) -> MatchedForm | None:
        """The keyword that begins at the cursor, or None. Raises ScriptError where it begins and goes wrong."""


class KeywordWords(NamedTuple):
    """What keywords begin with."""

    first: frozenset[str]
    """`SEND`, and `SEND_MAIL` for SEND MAIL."""
    pairs: frozenset[str]
    """The first two words of each, or its only one."""
    names: frozenset[str]


@lru_cache(maxsize=8)
def keyword_words_of(names: tuple[str, ...]) -> KeywordWords:
    """The words of keywords with these names. Kept, since all scripts are read with the same keywords."""
    split = [name.split() for name in names]
    first = frozenset(word for words in split for word in (words[0], "_".join(words)))
    return KeywordWords(first, frozenset(" ".join(words[:2]) for words in split), frozenset(names))
