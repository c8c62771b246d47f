"""How the form of a keyword is written, `SEND MAIL {to}, {subject}, {body} [, {files}]`, and what it becomes: a small
graph of steps, made once, along which a statement is matched.

    WORD , = ; "(" ")"    stand in the statement as they are; the first words are the keyword's name
    {slot}                a value                       {slot...}          one or more values with commas between
    {slot:word}           a word, `weather.bas`, or a value that begins with a quote
    {slot:name}           the same, of a table: a bare word is its name
    {slot:key}            a value; of a text or `(…)` with an operator behind it only that
    {slot:semicolon}      TRUE for a `;`
    {slot=A|B}            one of these words            {slot:variable}    a variable that receives the result
    {slot:assignments}    `a = 1, b = 2`                {slot:condition}   `a = 1 AND b > 2`
    {slot:filter}         a value that is a filter: what is joined in it stays values
    {slot:changes}        assignments in which a name that is no variable is a column of the row that is changed
    {slot:text}           a value that begins with a text in quotes
    {slot:block}          what stands between BEGIN … and END …
    {slot:named}          one or more values by their names    {slot:pair}    `key = value`, the key any value
    {slot:names}          `(a, b)`, bare words          {slot:row}          `(1, "x")`, values
    [ … ]                 may be left out               ( … | … )          one of these
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NoReturn

from function_calls.basic.form_parts import (
    Either,
    Exactly,
    Fork,
    Form,
    Maybe,
    Node,
    Part,
    Slot,
    SlotKind,
    first_of,
    linked,
    required_of,
    slots_of,
    words_of,
)

_PART = re.compile(
    r"\s*(?:\{(?P<slot>[^{}]*)\}|(?P<word>\w+)|(?P<sign>[\[\]()|,=;])|\"(?P<bracket>[()])\"|(?P<other>\S))"
)
_SLOT = re.compile(
    r"(?P<name>[a-z_][a-z0-9_]*)(?:(?P<list>\.\.\.|…)|:(?P<kind>\w+)|=(?P<words>[A-Z0-9_]+(?:\|[A-Z0-9_]+)*))?"
)
_WORD = re.compile(r"[A-Z][A-Z0-9_]*")


class BadForm(ValueError):
    """A form that cannot be understood; says what is wrong with it, for whoever writes keywords."""


_WRITTEN = frozenset(SlotKind) - {SlotKind.VALUE, SlotKind.LIST, SlotKind.ONE_OF}
_TAKES_COMPARISONS = (SlotKind.VALUE, SlotKind.TEXT, SlotKind.LIST, SlotKind.NAME, SlotKind.CONDITION, SlotKind.FILTER)
_COMMA, _EQUALS = ",", "="


@lru_cache(maxsize=512)  # the same keywords are read for the compiler and for the runs, and again at every change
def form_of(text: str) -> Form:
    """The form that `text` describes. Raises BadForm."""
    lead, parts = _Reader(text).whole()
    node = linked(parts)
    slots = tuple(slots_of(parts))
    if twice := _filled_twice(parts):
        raise BadForm(f"form `{text}`: {{{twice}}} would be filled twice")
    _check(text, slots, node)
    return Form(
        text,
        lead,
        parts,
        node,
        tuple(dict.fromkeys(slot.name for slot in slots)),
        required_of(parts),
        frozenset(words_of(parts)),
    )


class _Reader:
    """Reads one form."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = [match for match in _PART.finditer(text) if match.group().strip()]
        self._at = 0

    def whole(self) -> tuple[tuple[str, ...], tuple[Part, ...]]:
        parts = self._parts()
        if self._at < len(self._found):
            self._bad(f"`{self._sign()}` closes nothing")
        lead: list[str] = []
        for part in parts:
            if not (isinstance(part, Exactly) and part.is_word):
                break
            lead.append(part.text)
        if not lead:
            self._bad("it has to begin with a word in upper case, the keyword's name")
        return tuple(lead), parts[len(lead) :]

    def _sign(self) -> str:
        return self._found[self._at].group("sign") or "" if self._at < len(self._found) else ""

    def _parts(self) -> tuple[Part, ...]:
        """Up to a sign that closes or separates, which is not passed, or the form's end."""
        parts: list[Part] = []
        while self._at < len(self._found) and self._sign() not in ("]", ")", "|"):
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> Part:
        found = self._found[self._at]
        self._at += 1
        if (inside := found.group("slot")) is not None:
            return self._slot(inside.strip())
        if word := found.group("word"):
            if not _WORD.fullmatch(word):
                self._bad(f"`{word}`: words of the statement stand in upper case, what it is given in {{braces}}")
            return Exactly(word, True)
        if bracket := found.group("bracket"):
            return Exactly(bracket, False)
        sign = found.group("sign")
        if sign == "[":
            return Maybe(self._group("[", "]"))
        if sign == "(":
            return Either(self._branches("(", ")"))
        if sign is None:
            self._bad(f"`{found.group('other')}` is nothing that a form can hold")
        return Exactly(sign, False)

    def _group(self, opened: str, closed: str) -> tuple[Part, ...]:
        branches = self._branches(opened, closed)
        return branches[0] if len(branches) == 1 else (Either(branches),)

    def _branches(self, opened: str, closed: str) -> tuple[tuple[Part, ...], ...]:
        branches: list[tuple[Part, ...]] = []
        while True:
            branches.append(self._parts())
            ends = self._sign()
            if ends not in (closed, "|"):
                self._bad(f"`{opened}` is not closed")
            if not branches[-1]:
                self._bad(f"there is nothing before `{ends}`")
            self._at += 1
            if ends == closed:
                return tuple(branches)

    def _slot(self, inside: str) -> Slot:
        match = _SLOT.fullmatch(inside)
        if match is None:
            self._bad(
                f"`{{{inside}}}` is no slot: write {{name}}, {{name...}}, {{name:kind}} or {{name=A|B}}, with the name "
                f"in lower case and the words in upper case"
            )
        name = match["name"]
        if match["list"]:
            return Slot(name, SlotKind.LIST)
        if match["words"]:
            return Slot(name, SlotKind.ONE_OF, tuple(match["words"].split("|")))
        kind = match["kind"]
        if kind is None:
            return Slot(name, SlotKind.VALUE)
        if kind not in _WRITTEN:
            self._bad(f"`{kind}` is no kind of a slot; there are {', '.join(sorted(_WRITTEN))}")
        return Slot(name, SlotKind(kind))

    def _bad(self, why: str) -> NoReturn:
        raise BadForm(f"form `{self._text}`: {why}")


def _filled_twice(parts: Sequence[Part]) -> str:
    """A slot that one statement would fill twice; empty where there is none."""
    filled: set[str] = set()
    for part in parts:
        branches = part.branches if isinstance(part, Either) else (part.parts,) if isinstance(part, Maybe) else ()
        for branch in branches:
            if twice := _filled_twice(branch):
                return twice
        here = {slot.name for slot in slots_of((part,))}
        if here & filled:
            return min(here & filled)
        filled |= here
    return ""


def _check(text: str, slots: Sequence[Slot], node: Node) -> None:
    """Refuse what could never be matched as its author means it."""
    if len({slot.name for slot in slots if slot.kind is SlotKind.VARIABLE}) > 1:
        raise BadForm(f"form `{text}`: only one slot can be a variable that receives the result")
    open_nodes, seen = [node], set()
    while open_nodes:
        node = open_nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Fork):
            open_nodes += node.ways
            continue
        open_nodes.append(node.after)
        if isinstance(node.part, Slot):
            _check_what_follows(
                text, node.part, {part.text for part in first_of(node.after) if isinstance(part, Exactly)}
            )


def _check_what_follows(text: str, slot: Slot, signs: set[str]) -> None:
    if slot.kind in (SlotKind.LIST, SlotKind.NAMED, SlotKind.ASSIGNMENTS, SlotKind.CHANGES) and _COMMA in signs:
        raise BadForm(
            f"form `{text}`: behind {{{slot.name}}}, which takes all that commas separate, no comma can stand"
        )
    if slot.kind in _TAKES_COMPARISONS and _EQUALS in signs:
        raise BadForm(
            f"form `{text}`: {{{slot.name}}} would take the `=` behind it for a comparison, which "
            f"{{{slot.name}:word}} does not"
        )
