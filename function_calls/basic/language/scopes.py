"""Survey of a script's names before parsing, and scopes of variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from function_calls.basic import nodes
from function_calls.basic.environment import ERROR_NAMES
from function_calls.basic.functions import CHANGING
from function_calls.basic.language.filter_texts import tracked_variables
from function_calls.basic.language.tokens import Kind, Token, behind_bracket
from function_calls.basic.nodes import Expression, Statement

_DECLARES = frozenset(["EACH", "DIM", "REDIM", "PRESERVE", "PARAM"])
_GIVES = frozenset(["FOR", "HEAR", "INPUT", "GOTO", "GOSUB"]) | _DECLARES
"""Words followed by a name that is assigned or is a label; after FOR, HEAR and INPUT only if no other words follow."""
_BEFORE_ASSIGNMENT = frozenset(["THEN", "ELSE", "SET", "LET", "CONST"])
CHANGES = frozenset(["+", "-", "*", "/", "&", "\\"])
"""Operators of compound assignments: `total += 1`."""


class Survey(NamedTuple):
    """Names in a script, in lower case."""

    variables: frozenset[str]
    definitions: dict[str, int]
    """Number of parameters by name of SUB or FUNCTION; the first definition wins."""
    goals: frozenset[str]
    """Labels that are the target of a jump."""


def survey(tokens: Sequence[Token]) -> Survey:
    """Collect the names that a script assigns, defines and jumps to."""
    looking = _Looking(tokens)
    looking.run()
    return Survey(frozenset(looking.variables), looking.definitions, frozenset(looking.goals))


class _Looking:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._withs = 0
        """Number of open WITH blocks; `name =` within one is a key."""
        self.variables: set[str] = set()
        self.definitions: dict[str, int] = {}
        self.goals: set[str] = set()

    def run(self) -> None:
        begins = True
        following = self._tokens[0]
        for index in range(1, len(self._tokens)):
            token, following = following, self._tokens[index]
            kind = token.kind
            if kind is Kind.WORD:
                if begins:
                    self._begins(token, following, index)
                if token.value in _GIVES and following.kind is Kind.WORD:
                    self._gives(token, following, index)
                begins = token.value in _BEFORE_ASSIGNMENT
            else:
                begins = kind is Kind.LINE or (begins and kind is Kind.NUMBER)

    def _begins(self, token: Token, following: Token, index: int) -> None:
        """Process the first two tokens of a statement; `index` is that of the second one."""
        value = token.value
        if following.kind is Kind.SYMBOL:
            if not self._withs and (following.text == "=" or is_assignment(self._tokens, index - 1)):
                self.variables.add(token.text.lower())
        elif value == "ENDWITH":
            self._withs -= 1
        elif following.kind is not Kind.WORD:
            return
        elif value == "WITH":
            self._withs += 1
            self.variables.add(following.text.lower())
        elif value == "END":
            self._withs -= following.value == "WITH"
        elif value in ("SUB", "FUNCTION"):
            names = parameters_at(self._tokens, index + 1)
            self.definitions.setdefault(following.text.lower(), len(names))
            self.variables.update(names)

    def _gives(self, token: Token, following: Token, index: int) -> None:
        if token.value in ("GOTO", "GOSUB"):
            self.goals.add(following.text.lower())
        elif following.value not in _DECLARES:
            behind = self._tokens[index + 1]
            if token.value in _DECLARES or behind.kind is not Kind.WORD or behind.value in ("IN", "AS"):
                self.variables.add(following.text.lower())


def parameters_at(tokens: Sequence[Token], index: int) -> tuple[str, ...]:
    """Parameter names in the parentheses at `index`; empty without parentheses. Stops at the first invalid token."""
    names: list[str] = []
    if not _is(tokens[index], "("):
        return ()
    index += 1
    expects = True
    while tokens[index].kind in (Kind.WORD, Kind.SYMBOL) and not _is(tokens[index], ")"):
        token = tokens[index]
        if token.kind is Kind.WORD and expects and token.value not in ("BYVAL", "BYREF"):
            names.append(token.text.lower())
            expects = False
        elif token.text == ",":
            expects = True
        index += 1
    return tuple(names)


def is_assignment(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word at `index`, with members and indexes after it, is followed by an assignment operator."""
    index += 1
    while True:
        token = tokens[index]
        if token.kind is not Kind.SYMBOL:
            return False
        if token.text == "=":
            return True
        if token.text in CHANGES:
            following = tokens[index + 1]
            return _is(following, "=") and following.at == (token.at.line, token.at.column + 1)
        if token.text == "." and tokens[index + 1].kind is Kind.WORD:
            index += 2
        elif token.text in ("(", "["):
            index = behind_bracket(tokens, index)
        else:
            return False


def _is(token: Token, symbol: str) -> bool:
    return token.kind is Kind.SYMBOL and token.text == symbol


SESSION_VARIABLES = frozenset(
    {
        "bot", "botname", "channel", "chat", "err", "error", "error_message", "from", "group", "is_group", "language",
        "mobile", "now", "rnd", "role", "session", "session_id", "sessionid", "timer", "today", "user", "user_id",
        "useremail", "userid", "username", "userphone",
    }
)  # fmt: skip
"""Names that a run may predefine."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of names in one procedure or in the script itself."""

    top: frozenset[str]
    """Variables of the script."""
    own: frozenset[str] | None
    """Local variables of the SUB or FUNCTION; None for the script itself."""
    preset: frozenset[str]
    """Local variables that are set when the procedure starts."""
    definitions: Mapping[str, nodes.Define]
    followed: frozenset[str] = frozenset()
    """Variables whose text parts are tracked for filters (see `filter_texts.py`)."""

    def has(self, name: str) -> bool:
        """Whether it is a variable that is assigned somewhere and visible in this scope."""
        return name in self.top or (self.own is not None and name in self.own)

    def is_top(self, name: str) -> bool:
        """Whether an assignment to `name` in this scope sets a variable of the script, not a local one."""
        return self.own is None or name not in self.own

    def of_rows(self, names: Iterable[str]) -> Scope:
        """Scope of an expression evaluated for each row, with these names as variables."""
        return Scope(frozenset(names), None, frozenset(), self.definitions)

    def load(self, name: str) -> str:
        """Name of the instruction that loads the variable: `load_own` for one of this procedure, `load_top` for one of
        the script, `load` if they are the same or it is preset."""
        if self.own is None or name in self.preset:
            return "load"
        return "load_own" if name in self.own else "load_top"

    def store(self, name: str) -> str:
        """Name of the instruction that stores the variable: `store` in this procedure, `store_top` in the script."""
        return "store" if self.own is None or name in self.own else "store_top"


def top_scope(body: Iterable[Statement], parameters: Iterable[str], definitions: Mapping[str, nodes.Define]) -> Scope:
    """Scope of the script itself, with its parameters."""
    followed = tracked_variables((body, tuple(definitions.values())))
    return Scope(frozenset(parameters) | _assigned(body), None, frozenset(), definitions, followed)


def own_scope(definition: nodes.Define, top: Scope) -> Scope:
    """Scope of a SUB or FUNCTION."""
    preset = frozenset(definition.parameters) | {definition.name}
    return Scope(top.top, preset | (_assigned(definition.body) - top.top), preset, top.definitions, top.followed)


def root_of(target: Expression) -> str | None:
    """Name of the variable that an assignment to `target` changes, or None."""
    while isinstance(target, nodes.Member | nodes.Index):
        target = target.of
    return target.name if isinstance(target, nodes.Name | nodes.Apply) else None


def clears_error(statement: Statement) -> bool:
    """Whether it is `ERR = 0` or equivalent, which clears the last error."""
    if not isinstance(statement, nodes.Assign) or not isinstance(statement.target, nodes.Name):
        return False
    return (
        statement.target.name in ERROR_NAMES
        and isinstance(statement.value, nodes.Literal)
        and not statement.value.value
    )


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
    if isinstance(statement, nodes.Assign | nodes.With):
        yield root_of(statement.target)
    elif isinstance(statement, nodes.Dim):
        yield statement.name
    elif isinstance(statement, nodes.ForEach | nodes.ForTo):
        yield statement.variable
    elif isinstance(statement, nodes.Evaluate) and (target := changed_by(statement.expression)) is not None:
        yield root_of(target)


def changed_by(expression: Expression) -> nodes.Name | nodes.Member | nodes.Index | None:
    """Target changed by a call used as a statement: `PUSH list, x` is `list = PUSH(list, x)`. None if there is none."""
    if not isinstance(expression, nodes.Apply) or expression.name not in CHANGING or not expression.arguments:
        return None
    target = expression.arguments[0]
    return target if isinstance(target, nodes.Name | nodes.Member | nodes.Index) else None


def _bodies(statement: Statement) -> Iterator[tuple[Statement, ...]]:
    if isinstance(statement, nodes.If):
        yield from (body for _, body in statement.branches)
        yield statement.otherwise
    elif isinstance(statement, nodes.ForEach | nodes.ForTo | nodes.Loop):
        yield statement.body
    elif isinstance(statement, nodes.Select):
        yield from (body for _, body in statement.cases)
        yield statement.otherwise
