"""Scopes: which variables are whose. What the script's top assigns belongs to all of it; what only a SUB or FUNCTION
assigns, and its parameters, are its own in each of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from function_calls.basic.caught import ERROR_NAMES
from function_calls.basic.filter_texts import followed_in
from function_calls.basic.functions import CHANGING
from function_calls.basic.nodes import (
    Apply,
    Assign,
    Define,
    Dim,
    Evaluate,
    Expression,
    ForEach,
    ForTo,
    If,
    Index,
    Literal,
    Loop,
    Member,
    Name,
    Select,
    Statement,
    With,
)

SESSION_VARIABLES = frozenset(
    {
        "bot", "botname", "channel", "chat", "err", "error", "error_message", "from", "group", "is_group", "language",
        "mobile", "now", "rnd", "role", "session", "session_id", "sessionid", "timer", "today", "user", "user_id",
        "useremail", "userid", "username", "userphone",
    }
)  # fmt: skip
"""What a run may know without that the script sets it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in one procedure."""

    top: frozenset[str]
    """The variables of the script."""
    own: frozenset[str] | None
    """Those of this SUB or FUNCTION; None in the script itself."""
    given: frozenset[str]
    """Those of its own that have a value from its start."""
    definitions: Mapping[str, Define]
    followed: frozenset[str] = frozenset()
    """The variables beside which the parts of their text are kept."""

    def has(self, name: str) -> bool:
        """Whether it is a variable that the script gives a value somewhere, as far as this procedure sees."""
        return name in self.top or (self.own is not None and name in self.own)

    def is_top(self, name: str) -> bool:
        """Whether a value that it is given here is the script's."""
        return self.own is None or name not in self.own

    def of_rows(self, names: Iterable[str]) -> Scope:
        """That of a value which is reckoned for each row, in which these names have values."""
        return Scope(frozenset(names), None, frozenset(), self.definitions)

    def load(self, name: str) -> str:
        """The instruction that takes its value."""
        if self.own is None or name in self.given:
            return "load"
        return "load_own" if name in self.own else "load_top"

    def store(self, name: str) -> str:
        """The instruction that gives it one."""
        return "store" if self.own is None or name in self.own else "store_top"


def top_scope(body: Iterable[Statement], parameters: Iterable[str], definitions: Mapping[str, Define]) -> Scope:
    """That of the script itself, which is called with these parameters."""
    followed = followed_in((body, tuple(definitions.values())))
    return Scope(frozenset(parameters) | _assigned(body), None, frozenset(), definitions, followed)


def own_scope(definition: Define, top: Scope) -> Scope:
    """That of a SUB or FUNCTION."""
    given = frozenset(definition.parameters) | {definition.name}
    return Scope(top.top, given | (_assigned(definition.body) - top.top), given, top.definitions, top.followed)


def root_of(target: Expression) -> str | None:
    """The variable that is changed when `target` is given a value; None where there is none."""
    while isinstance(target, Member | Index):
        target = target.of
    return target.name if isinstance(target, Name | Apply) else None


def clears_error(statement: Statement) -> bool:
    """Whether it is `ERR = 0` or the like, which says that the last error is dealt with."""
    if not isinstance(statement, Assign) or not isinstance(statement.target, Name):
        return False
    return statement.target.name in ERROR_NAMES and isinstance(statement.value, Literal) and not statement.value.value


def _assigned(body: Iterable[Statement]) -> frozenset[str]:
    names: set[str | None] = set()
    waiting: list[Iterable[Statement]] = [body]
    while waiting:
        for statement in waiting.pop():
            if not clears_error(statement):
                names.update(_given_a_value(statement))
            waiting.extend(_bodies(statement))
    return frozenset(name for name in names if name is not None)


def _given_a_value(statement: Statement) -> Iterator[str | None]:
    if isinstance(statement, Assign | With):
        yield root_of(statement.target)
    elif isinstance(statement, Dim):
        yield statement.name
    elif isinstance(statement, ForEach | ForTo):
        yield statement.variable
    elif isinstance(statement, Evaluate) and (target := changed_by(statement.expression)) is not None:
        yield root_of(target)


def changed_by(expression: Expression) -> Name | Member | Index | None:
    """What a call changes that stands as a statement of its own: `PUSH list, x` is `list = PUSH(list, x)`."""
    if not isinstance(expression, Apply) or expression.name not in CHANGING or not expression.arguments:
        return None
    target = expression.arguments[0]
    return target if isinstance(target, Name | Member | Index) else None


def _bodies(statement: Statement) -> Iterator[tuple[Statement, ...]]:
    if isinstance(statement, If):
        yield from (body for _, body in statement.branches)
        yield statement.otherwise
    elif isinstance(statement, ForEach | ForTo | Loop):
        yield statement.body
    elif isinstance(statement, Select):
        yield from (body for _, body in statement.cases)
        yield statement.otherwise
