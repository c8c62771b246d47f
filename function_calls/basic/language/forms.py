"""Keyword forms: parser of their notation, `SEND MAIL {to}, {subject} [, {files}]`, and matching of statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, NoReturn

from function_calls.basic.codes import Code
from function_calls.basic.language.form_parts import (
    Either,
    Exactly,
    ExpressionParser,
    Fork,
    Form,
    LiteralCheck,
    Maybe,
    Node,
    Part,
    Slot,
    SlotKind,
    Step,
    first_of,
    linked,
    required_of,
    slots_of,
    usages_of,
    words_of,
)
from function_calls.basic.language.form_slots import PARSERS, Absent, Slots
from function_calls.basic.language.tokens import Cursor, Kind, Token
from function_calls.basic.nodes import Expression, KeywordCall, Literal, Target
from function_calls.basic.values import abbreviated

_PART = re.compile(
    r"\s*(?:\{(?P<slot>[^{}]*)\}|(?P<word>\w+)|(?P<sign>[\[\]()|,=;])|\"(?P<bracket>[()])\"|(?P<other>\S))"
)
_SLOT = re.compile(
    r"(?P<name>[a-z_][a-z0-9_]*)(?:(?P<list>\.\.\.|…)|:(?P<kind>\w+)|=(?P<words>[A-Z0-9_]+(?:\|[A-Z0-9_]+)*))?"
)
_WORD = re.compile(r"[A-Z][A-Z0-9_]*")


class BadForm(ValueError):
    """Raised for an invalid form, with a message for keyword authors."""


_WRITTEN = frozenset(SlotKind) - {SlotKind.VALUE, SlotKind.LIST, SlotKind.ONE_OF}
_TAKES_COMPARISONS = (SlotKind.VALUE, SlotKind.TEXT, SlotKind.LIST, SlotKind.NAME, SlotKind.CONDITION, SlotKind.FILTER)
_COMMA, _EQUALS = ",", "="


@lru_cache(maxsize=512)  # the compiler and each reload parse the same forms
def form_of(text: str) -> Form:
    """Parse and cache a form. Raises BadForm if its syntax is invalid or a slot could be filled twice."""
    lead, parts = _Reader(text).whole()
    node = linked(parts)
    slots = tuple(slots_of(parts))
    if twice := _filled_twice(parts):
        raise BadForm(f"form `{text}`: {{{twice}}} could be filled twice")
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
    """Parser of one form."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = [match for match in _PART.finditer(text) if match.group().strip()]
        self._at = 0

    def whole(self) -> tuple[tuple[str, ...], tuple[Part, ...]]:
        parts = self._parts()
        if self._at < len(self._found):
            self._bad(f"unexpected `{self._sign()}`")
        lead: list[str] = []
        for part in parts:
            if not (isinstance(part, Exactly) and part.is_word):
                break
            lead.append(part.text)
        if not lead:
            self._bad("it must begin with the name of the keyword in upper case")
        return tuple(lead), parts[len(lead) :]

    def _sign(self) -> str:
        return self._found[self._at].group("sign") or "" if self._at < len(self._found) else ""

    def _parts(self) -> tuple[Part, ...]:
        """Parse up to a closing or separating sign, which is not consumed, or the end."""
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
                self._bad(f"`{word}`: write words of the statement in upper case, and slots in {{braces}}")
            return Exactly(word, True)
        if bracket := found.group("bracket"):
            return Exactly(bracket, False)
        sign = found.group("sign")
        if sign == "[":
            return Maybe(self._group("[", "]"))
        if sign == "(":
            return Either(self._branches("(", ")"))
        if sign is None:
            self._bad(f"unexpected `{found.group('other')}`")
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
                self._bad(f"expected a word or a slot before `{ends}`")
            self._at += 1
            if ends == closed:
                return tuple(branches)

    def _slot(self, inside: str) -> Slot:
        match = _SLOT.fullmatch(inside)
        if match is None:
            self._bad(
                f"`{{{inside}}}` is not a valid slot: write {{name}}, {{name...}}, {{name:kind}} or {{name=A|B}}, with "
                f"the name in lower case and the words in upper case"
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
            self._bad(f"unknown slot kind `{kind}`; known kinds: {', '.join(sorted(_WRITTEN))}")
        return Slot(name, SlotKind(kind))

    def _bad(self, why: str) -> NoReturn:
        raise BadForm(f"form `{self._text}`: {why}")


def _filled_twice(parts: Sequence[Part]) -> str:
    """Name of a slot that one statement could fill twice, or empty."""
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
    """Raise BadForm for a form that cannot match as intended: with several variables for the result, or a slot that
    also takes the sign after it."""
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
        raise BadForm(f"form `{text}`: no comma may follow {{{slot.name}}}, which takes all values separated by commas")
    if slot.kind in _TAKES_COMPARISONS and _EQUALS in signs:
        raise BadForm(
            f"form `{text}`: {{{slot.name}}} would parse the `=` after it as a comparison; use {{{slot.name}:word}}"
        )


_ENDS = frozenset({"ELSE", "ELSEIF", "END", "ENDIF"})
"""Words that end a statement in a one-line IF."""
_OPERATORS = frozenset({"AND", "OR", "NOT", "IN", "IS", "LIKE", "MOD", "XOR"})
_NOT_AFTER_NAMES = _OPERATORS - {"NOT"} | {"THEN", "TO", "STEP", "AS", "ELSE"}
_BEGINS_VALUE = frozenset({"(", "{", "#{", "["})
_MOST_MISSING = 3
_LONGEST = 238
"""Maximum length of a message in characters."""


class Matched(NamedTuple):
    """A statement that matches a form."""

    keyword_call: KeywordCall
    into: Target | None
    """Target that receives the result, if the form has one."""


class _Way(NamedTuple):
    """A form with its leading words, separate or joined by `_`."""

    words: tuple[str, ...]
    form: Form


class Forms:
    """All forms, indexed by first word."""

    def __init__(self, forms: Iterable[Form]) -> None:
        forms = tuple(forms)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(form.name for form in forms))
        """Names of the keywords, without duplicates: `SEND MAIL`."""
        single: dict[str, list[Form]] = {}
        for form in forms:
            if len(form.lead) == 1:
                single.setdefault(form.name.lower(), []).append(form)
        alone = {form.name.lower() for form in forms if not form.required}
        self.usages = {name: usages_of(found, _LONGEST) for name, found in single.items() if name not in alone}
        """Syntax of one-word keywords that require arguments, by lower-case name."""
        ways: dict[str, list[_Way]] = {}
        # Longer names first; otherwise in the given order.
        for form in sorted(forms, key=lambda form: -len(form.lead)):
            ways.setdefault(form.lead[0], []).append(_Way(form.lead, form))
            if len(form.lead) > 1:
                joined = "_".join(form.lead)
                ways.setdefault(joined, []).append(_Way((joined,), form))
        self._ways = {word: tuple(found) for word, found in ways.items()}

    def match(self, cursor: Cursor, read: ExpressionParser, *, inside: bool) -> Matched | None:
        """Match the keyword at the cursor and advance past it; None, with the cursor unchanged, if there is none.

        With `inside`, within an expression, the match ends before tokens that cannot belong to it. Leading words may be
        joined by `_`: `CREATE_TASK`. Raises ScriptError if a keyword begins but fits none of its forms."""
        token = cursor.now
        if token.kind is not Kind.WORD:
            return None
        ways = self._ways.get(token.value)
        if ways is None:
            return None
        here = [way for way in ways if cursor.is_at(*way.words) and not (inside and _is_name(cursor, way))]
        return _Matching(cursor, read, Slots(cursor, read, self._ways, {}), inside).first_of(here) if here else None


def _is_name(cursor: Cursor, way: _Way) -> bool:
    """Whether a one-word keyword is used as a variable: `weather.temperature`, `list[0]`, `total = count`."""
    if len(way.form.lead) > 1 or not way.form.required:
        return False
    word, after = cursor.now, cursor.ahead()
    if after.kind is Kind.WORD:
        return after.value in _NOT_AFTER_NAMES
    if after.kind is not Kind.SYMBOL:
        return after.kind in (Kind.LINE, Kind.END)
    return after.text not in _BEGINS_VALUE or (after.text == "[" and after.at == word.end)


class _Matching:
    """Matches one statement against the forms that share its first words."""

    def __init__(self, cursor: Cursor, read: ExpressionParser, slots: Slots, inside: bool) -> None:
        self._cursor = cursor
        self._read = read
        self._slots = slots
        self._inside = inside
        self._in_parentheses = False
        self._filled: list[tuple[str, Expression]] = []
        self._into: Target | None = None
        self._form = ""
        """Name of the form being tried."""
        self._furthest = -1
        self._furthest_form = ""
        self._expected: list[str] = []

    def first_of(self, ways: Sequence[_Way]) -> Matched:
        """Match the first form that fits among those with the longest name; within an expression the longest match."""
        cursor, start = self._cursor, self._cursor.index
        best: Matched | None = None
        checks: Mapping[str, LiteralCheck] = {}
        ends, lead = start, 0
        for way in ways:
            if best is not None and len(way.form.lead) < lead:
                break
            cursor.index = start
            at = cursor.now.at
            if not self._fits(way):
                continue
            if best is None or cursor.index > ends:
                best = Matched(KeywordCall(at, way.form.name, tuple(self._filled)), self._into)
                checks = way.form.checks
                ends, lead = cursor.index, len(way.form.lead)
            if not self._inside:
                break
        if best is None:
            cursor.index = self._furthest
            self._fail(ways)
        cursor.index = ends
        for name, given in best.keyword_call.arguments:
            if name in checks and isinstance(given, Literal) and (wrong := checks[name](given.value)):
                cursor.fail(wrong, Code.BAD_ARGUMENT, given.at)
        return best

    def _fits(self, way: _Way) -> bool:
        self._cursor.index += len(way.words)
        self._form = way.form.name
        self._filled, self._into = [], None
        self._in_parentheses = _has_parentheses(self._cursor, way.form, self._inside)
        if self._in_parentheses:
            self._cursor.take()
        return self._goes(way.form.node)

    def _goes(self, node: Node) -> bool:
        """Whether the statement matches from `node` to its end; otherwise the cursor position is undefined.
        Backtracking uses a list instead of recursion, because keywords can be nested."""
        others: list[tuple[Node, int, int, Target | None]] = []
        while True:
            if isinstance(node, Fork):
                state = self._cursor.index, len(self._filled), self._into
                others += [(way, *state) for way in reversed(node.ways[1:])]
                node = node.ways[0]
            elif node is not None and self._takes(node):
                node = node.after
            elif node is None and self._ends():
                return True
            elif not others:
                return False
            else:
                node, self._cursor.index, filled, self._into = others.pop()
                del self._filled[filled:]

    def _takes(self, step: Step) -> bool:
        part = step.part
        if isinstance(part, Exactly):
            passes = self._cursor.words if part.is_word else self._cursor.symbol
            return passes(part.text) or self._misses(f"`{part.text}`")
        try:
            if part.kind is SlotKind.VARIABLE:
                self._into = self._slots.target()
            else:
                self._filled.append((part.name, self._filling(part, step.after)))
        except Absent as absent:
            return self._misses(absent.what or _called(part))
        return True

    def _filling(self, slot: Slot, after: Node) -> Expression:
        match slot.kind:
            case SlotKind.ONE_OF:
                return self._slots.one_of(slot.words)
            case SlotKind.WORD | SlotKind.TOOL:
                signs = {part.text for part in first_of(after) if isinstance(part, Exactly) and not part.is_word}
                return self._slots.word(before=signs, or_variable=slot.kind is SlotKind.TOOL)
            case SlotKind.NAME:
                return self._slots.name(before_names=_is_before(after, SlotKind.NAMES))
        return PARSERS[slot.kind](self._slots)

    def _ends(self) -> bool:
        cursor = self._cursor
        if self._in_parentheses:
            if not cursor.symbol(")"):
                return self._misses("`)`")
            if self._inside:
                return True
        if self._inside:
            return not cursor.is_symbol(":") or self._misses("")
        return _is_over(cursor.now) or self._misses("")

    def _misses(self, expected: str) -> bool:
        """Record `expected` for the error message if this is the furthest position so far. Returns False."""
        index = self._cursor.index
        if index > self._furthest:
            self._furthest, self._furthest_form, self._expected = index, self._form, []
        if index == self._furthest and expected not in self._expected:
            self._expected.append(expected)
        return False

    def _fail(self, ways: Sequence[_Way]) -> NoReturn:
        cursor, name = self._cursor, self._furthest_form
        missing = [one for one in self._expected if one]
        if "" in self._expected or not missing:
            message = f"{name}: expected the end of the statement, {cursor.found()}{_quotes(cursor)}; write "
        else:
            message = f"{name}: expected {' or '.join(missing[:_MOST_MISSING])}, {cursor.found()}; write "
        cursor.fail(message + usages_of([way.form for way in ways if way.form.name == name], _LONGEST - len(message)))


def _quotes(cursor: Cursor) -> str:
    """Hint for unquoted words, or for two texts without `+`."""
    is_second_text = cursor.now.kind is cursor.ahead(-1).kind is Kind.TEXT
    return "; put texts in quotes and join them with `+`" if is_second_text or cursor.now.kind is Kind.WORD else ""


def _is_before(after: Node, kind: SlotKind) -> bool:
    return isinstance(after, Step) and isinstance(after.part, Slot) and after.part.kind is kind


_CALLED = {
    SlotKind.VARIABLE: "a variable",
    SlotKind.ASSIGNMENTS: "`column = value`",
    SlotKind.CHANGES: "`column = value`",
    SlotKind.CONDITION: "a condition",
    SlotKind.PAIR: "`name = value`",
    SlotKind.SEMICOLON: "`;`",
    SlotKind.NAMES: "`(column, …)`",
    SlotKind.ROW: "`(value, …)`",
    SlotKind.BLOCK: "the text of the block",
}
"""Descriptions of slots that do not name the slot."""


def _called(slot: Slot) -> str:
    """Description of the missing slot for error messages, such as `a variable` or a list of the allowed words."""
    if slot.kind is SlotKind.ONE_OF:
        few = abbreviated(slot.words)
        return " or ".join(f"`{word}`" for word in few) if few == slot.words else f"a word such as `{few[0]}`"
    return _CALLED.get(slot.kind) or f"a value for `{slot.name.rstrip('_') or slot.name}`"


def _is_over(token: Token) -> bool:
    return token.kind in (Kind.LINE, Kind.END) or (token.kind is Kind.WORD and token.value in _ENDS)


def _has_parentheses(cursor: Cursor, form: Form, inside: bool) -> bool:
    """Whether the parenthesis at the cursor contains all arguments of the keyword, instead of beginning the first value
    as in `TALK (a + b) * 2`."""
    if not cursor.is_symbol("("):
        return False
    behind, has_comma = _behind_parenthesis(cursor)
    if behind is None:
        return False
    if has_comma:
        return True
    if not inside:
        return _is_over(behind)
    if behind.kind is Kind.WORD and behind.value in form.words:
        return False
    is_attached = cursor.now.at == cursor.ahead(-1).end  # no space before the parenthesis
    return is_attached or not _continues(behind)


def _behind_parenthesis(cursor: Cursor) -> tuple[Token | None, bool]:
    """The token after the `)` that matches the `(` at the cursor, or None if it is not closed in this statement; and
    whether there are commas directly within the parentheses."""
    depth, count, has_comma = 0, 0, False
    while True:
        token = cursor.ahead(count)
        if token.kind in (Kind.LINE, Kind.END):
            return None, has_comma
        if token.kind is Kind.SYMBOL:
            if token.text in ("(", "[", "{", "#{"):
                depth += 1
            elif token.text in (")", "]", "}"):
                depth -= 1
                if not depth:
                    return cursor.ahead(count + 1), has_comma
            has_comma = has_comma or (token.text == "," and depth == 1)
        count += 1


def _continues(token: Token) -> bool:
    if token.kind is Kind.WORD:
        return token.value in _OPERATORS
    return token.kind is Kind.SYMBOL and token.text not in (")", "]", "}")
