"""A keyword form as a graph of parts, and the interface between parser and forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

from function_calls.basic.language.tokens import Cursor, Token
from function_calls.basic.nodes import Expression, Target
from function_calls.basic.values import abbreviated
from services.refs import JsonValue

_COMMA = ","
_MOST_USAGES = 3
_FEWEST_SHOWN = 40
_CALLED = "`{0} name(1, 2)`, or `{0} name WITH a = 1, b = 2`"
_AS_PEOPLE_WRITE: Mapping[str, str] = {
    "HEAR": "HEAR name, or HEAR name AS EMAIL",
    "FORMAT": '`y = FORMAT(value, "0.00")`, or `FORMAT value AS "0.00"`',
    "PRINT": '`PRINT "total:", total`',
    **{name: _CALLED.format(name) for name in ("CALL", "TOOL", "RUN TOOL")},
}


class SlotKind(StrEnum):
    """Syntax that a slot accepts. Members from WORD on are named explicitly in a form."""

    VALUE = "value"
    LIST = "list"
    ONE_OF = "one_of"
    WORD = "word"
    TOOL = "tool"
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
    """A literal word or sign."""

    text: str
    is_word: bool


class Slot(NamedTuple):
    """A value in a statement that becomes an argument of the keyword."""

    name: str
    kind: SlotKind
    words: tuple[str, ...] = ()
    """The words that ONE_OF accepts."""


class Maybe(NamedTuple):
    """Optional parts, `[ … ]`."""

    parts: tuple[Part, ...]


class Either(NamedTuple):
    """Alternatives, `( … | … )`."""

    branches: tuple[tuple[Part, ...], ...]


LiteralCheck = Callable[[JsonValue], str]
"""Check of a literal argument. Returns a problem for the author, or an empty text."""
Part = Exactly | Slot | Maybe | Either


class Step(NamedTuple):
    """A part to match, and its successor."""

    part: Exactly | Slot
    after: Node


class Fork(NamedTuple):
    """Alternatives to try in order."""

    ways: tuple[Node, ...]


Node = Step | Fork | None
"""None is the end of the form."""


@dataclass(frozen=True, slots=True)
class Form:
    """A parsed form."""

    text: str
    """Source of the form."""
    lead: tuple[str, ...]
    """Leading words, the keyword's name."""
    parts: tuple[Part, ...]
    """Parts after the leading words."""
    node: Node = field(compare=False, repr=False)
    slots: tuple[str, ...]
    """Names of all slots, in order."""
    required: frozenset[str]
    """Slots that every statement of this form fills."""
    words: frozenset[str]
    """Words of the form after the leading ones."""
    checks: Mapping[str, LiteralCheck] = field(default_factory=dict, compare=False, repr=False)
    """Checks by slot name."""

    @property
    def name(self) -> str:
        """Name of the keyword: `SEND MAIL`."""
        return " ".join(self.lead)


def usage_of(form: Form) -> str:
    """The form as shown to script authors: `SEND MAIL to, subject, body [, files]`."""
    usage = _joined([*form.lead, *(_shown(part) for part in form.parts)])
    has_block = any(slot.kind is SlotKind.BLOCK for slot in slots_of(form.parts))
    return f"{usage} END {' '.join(form.lead[1:])}" if has_block and form.lead[0] == "BEGIN" else usage


def usages_of(forms: Sequence[Form], most: int) -> str:
    """Syntax of a keyword, in at most `most` characters if it has several forms. Complex keywords have a fixed text."""
    first = forms[0]
    if first.name in _AS_PEOPLE_WRITE:
        return _AS_PEOPLE_WRITE[first.name]
    message = ""
    for usage in list(dict.fromkeys(f"`{usage_of(form)}`" for form in forms))[:_MOST_USAGES]:
        if message and len(message) + len(usage) > most:
            break
        message += f" or {usage}" if message else usage
    return message if len(message) <= most else f"{message[: max(most, _FEWEST_SHOWN) - 2]}…`"


def linked(parts: Sequence[Part], after: Node = None) -> Node:
    """Link `parts` into a graph that ends in `after`, and return its first node; optional parts and alternatives are
    forks."""
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
    """Yield all slots in order, including those in optional parts and in all branches of alternatives."""
    return (part for part in _leaves(parts) if isinstance(part, Slot))


def words_of(parts: Sequence[Part]) -> Iterator[str]:
    """Yield all words that may occur in a statement, including those of slots and of all alternatives."""
    for part in _leaves(parts):
        if isinstance(part, Slot):
            yield from part.words
        elif part.is_word:
            yield part.text


def _leaves(parts: Sequence[Part]) -> Iterator[Exactly | Slot]:
    for part in parts:
        if isinstance(part, Maybe | Either):
            for branch in part.branches if isinstance(part, Either) else (part.parts,):
                yield from _leaves(branch)
        else:
            yield part


def required_of(parts: Sequence[Part]) -> frozenset[str]:
    """Names of the slots that every statement fills: not in an optional part, and in all branches of an alternative."""
    required: frozenset[str] = frozenset()
    for part in parts:
        if isinstance(part, Slot):
            required |= {part.name}
        elif isinstance(part, Either):
            required |= frozenset.intersection(*map(required_of, part.branches))
    return required


def first_of(node: Node) -> Iterator[Exactly | Slot]:
    """Parts that may come first at `node`."""
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
    # Names that are reserved in Python have a trailing `_` in the form.
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
        return "|".join(abbreviated(slot.words))
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


class ExpressionParser(Protocol):
    """Parser of expressions in a statement. All methods raise ScriptError."""

    def expression(self, cursor: Cursor) -> Expression:
        """Parse the longest expression at the cursor."""

    def operand(self, cursor: Cursor) -> Expression:
        """Parse an operand: the expression up to the first operator."""

    def target(self, cursor: Cursor) -> Target:
        """Parse an assignment target."""

    def text(self, token: Token) -> Expression:
        """Convert a TEXT or BLOCK token to a Literal or Template."""


class KeywordWords(NamedTuple):
    """Words that begin keywords."""

    first: frozenset[str]
    """First words, such as `SEND`, and joined names, such as `SEND_MAIL`."""
    pairs: frozenset[str]
    """The first two words of each keyword, or its only one."""
    names: frozenset[str]


@lru_cache(maxsize=8)
def keyword_words_of(names: tuple[str, ...]) -> KeywordWords:
    """The words of keywords with these names. Cached, since all scripts use the same keywords."""
    split = [name.split() for name in names]
    first = frozenset(word for words in split for word in (words[0], "_".join(words)))
    return KeywordWords(first, frozenset(" ".join(words[:2]) for words in split), frozenset(names))
