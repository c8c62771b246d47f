"""Parses scripts with a few keywords and functions, and formats trees as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass

from function_calls.basic.language.form_parts import ExpressionParser
from function_calls.basic.language.parser import Arity, Parsed, parse
from function_calls.basic.language.tokens import Cursor, Inner, Kind
from function_calls.basic.nodes import Expression, KeywordCall, Statement, Target

FUNCTIONS: Mapping[str, Arity] = {
    "now": (0, 0),
    "today": (0, 0),
    "len": (1, 1),
    "ubound": (1, 1),
    "format": (2, 2),
    "random": (0, 2),
    "push": (2, None),
    "contains": (2, 2),
    "trim": (1, 1),
}
KEYWORDS = (
    *("TALK", "PRINT", "GET", "GET BOT MEMORY", "SET BOT MEMORY", "HEAR", "FIND", "SAVE", "SEND MAIL", "SEND FILE"),
    *(
        "LLM",
        "LIST",
        "BEGIN TALK",
        "BEGIN MAIL",
        "BEGIN SYSTEM PROMPT",
        "CALL",
        "WAIT",
        "LIST TOOLS",
        "TABLE",
        "FORMAT",
    ),
)
_ENDS = frozenset(("ELSE", "ELSEIF", "END", "ENDIF"))


@dataclass(frozen=True)
class Given:
    """A parsed keyword."""

    keyword_call: KeywordCall
    into: Target | None = None


class SomeForms:
    """Keywords with any number of values; HEAR takes a variable, a block takes its text, and FORMAT has AS."""

    def __init__(self, names: tuple[str, ...] = KEYWORDS) -> None:
        self.names = names

    def match(self, cursor: Cursor, read: ExpressionParser, *, inside: bool) -> Given | None:
        """The longest matching name at the cursor."""
        fitting = [name for name in self.names if cursor.is_at(*name.split())]
        if not fitting:
            return None
        name = max(fitting, key=len)
        at = cursor.now.at
        cursor.index += len(name.split())
        if name == "HEAR":
            if cursor.is_line_end:
                return Given(KeywordCall(at, name, ()))
            return Given(KeywordCall(at, name, ()), read.target(cursor))
        if name == "FORMAT":
            first = read.expression(cursor)
            if not cursor.words("AS"):
                cursor.fail(f"FORMAT: expected AS, {cursor.found()}")
            return Given(KeywordCall(at, name, (("value", first), ("pattern", read.expression(cursor)))))
        if cursor.is_symbol("+", "-", "*", ".", "=", "<"):
            cursor.fail(f"{name}: expected a value, {cursor.found()}")
        values = self._values(cursor, read)
        if not values and name not in ("LIST TOOLS", "WAIT"):
            cursor.fail(f"{name}: expected a value, {cursor.found()}")
        return Given(KeywordCall(at, name, tuple((str(number), value) for number, value in enumerate(values))))

    def _values(self, cursor: Cursor, read: ExpressionParser) -> list[Expression]:
        found: list[Expression] = []
        while not cursor.is_line_end and not cursor.is_symbol(")", "]", "}", ","):
            if cursor.now.kind is Kind.BLOCK:
                found.append(read.text(cursor.take()))
                break
            if cursor.now.kind is Kind.WORD and cursor.now.value in _ENDS:
                break
            found.append(read.expression(cursor))
            if cursor.now.kind is not Kind.BLOCK and not cursor.symbol(","):
                break
        return found


def text_of(parts: tuple[str | Inner, ...]) -> str:
    """Parts of a text, with `${…}` as written."""
    return "".join(part if isinstance(part, str) else f"${{{part.source}}}" for part in parts)


def read(text: str, forms: SomeForms | None = None) -> Parsed:
    """Parser result of a script."""
    return parse(text, forms or SomeForms(), FUNCTIONS)


def body(text: str) -> tuple[Statement, ...]:
    """Statements of a valid script with one tool."""
    parsed = read(text)
    assert parsed.faults == ()
    assert len(parsed.script.units) == 1
    return parsed.script.units[0].body


def value(text: str) -> str:
    """An expression, formatted by `shown`."""
    (statement,) = body(f"result = {text}")
    return shown(getattr(statement, "value"))  # noqa: B009 - always an Assign, else `shown` fails


def faults(text: str) -> list[tuple[int, int, str]]:
    """Line, column and code of all problems."""
    return [(*fault.at, fault.code.name) for fault in read(text).faults]


def message(text: str) -> str:
    """Message of the only problem."""
    (fault,) = read(text).faults
    return fault.message


def shown(node: object) -> str:
    """A tree without positions: `Binary` of `+`, 1 and the variable x is `(1 + x)`."""
    if isinstance(node, tuple):
        return f"[{_all(node)}]"
    if not is_dataclass(node) or isinstance(node, type):
        return repr(node)
    parts = [getattr(node, field.name) for field in fields(node) if field.name != "at"]
    kind = type(node).__name__
    return _SHORT[kind](*parts) if kind in _SHORT else f"{kind}({_all(parts)})"


def _all(nodes: Iterable[object]) -> str:
    return ", ".join(shown(node) for node in nodes)


_SHORT: Mapping[str, Callable[..., str]] = {
    "Name": str,
    "Literal": repr,
    "Binary": lambda operator, left, right: f"({shown(left)} {operator} {shown(right)})",
    "Member": lambda of, name: f"{shown(of)}.{name}",
    "Index": lambda of, index: f"{shown(of)}[{shown(index)}]",
    "Apply": lambda name, arguments: f"{name}({_all(arguments)})",
    "KeywordCall": lambda keyword, arguments: f"{keyword}<{_all(one for _, one in arguments)}>",
    "MapOf": lambda entries: "{" + ", ".join(f"{key}: {shown(one)}" for key, one in entries) + "}",
    "FilterText": lambda parts: f"filter({_all(parts)})" if len(parts) > 1 else shown(parts[0]),
    "ListOf": lambda items: f"[{_all(items)}]",
    "Template": lambda parts: f"join({_all(parts)})",
}
