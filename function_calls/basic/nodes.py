"""Syntax tree of a script, between parser and code generation. Every node has its source position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple

from services.refs import JsonValue


class At(NamedTuple):
    """Source position, line and column from 1."""

    line: int
    column: int


# Expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal: NULL, TRUE, FALSE, a number or a text without `${}`."""

    at: At
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Template:
    """A text with `${}`; its parts are joined as texts."""

    at: At
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, in lower case: names are case-insensitive. `user.name` is a Member of the Name `user`."""

    at: At
    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]`."""

    at: At
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """`#{k: v}` or `{"k": v}`; keys as written."""

    at: At
    entries: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """`of.name`, the name as written. For a list, the member of its first item."""

    at: At
    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`of[index]`, from 0; for a map, the entry with this key."""

    at: At
    of: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    at: At
    operator: OneOf["-", "not"]
    operand: Expression


Operator = OneOf["+", "-", "*", "/", "\\", "mod", "^", "&", "=", "<>", "<", "<=", ">", ">=", "in", "like", "and", "or"]


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary operation. `and` and `or` short-circuit; `a NOT IN b` is parsed as `NOT (a IN b)`."""

    at: At
    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS [NOT] NULL`; `negated` with NOT."""

    at: At
    operand: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Apply:
    """`name(arguments)`: a FUNCTION of the script or a language function; the name in lower case. `x.name(a)` is
    `name(x, a)`. For any other name an index: old scripts write `a(1)` for `a[1]`."""

    at: At
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class KeywordCall:
    """A host keyword: `keyword` is the first words of its form ("SEND MAIL"), `arguments` the slot values by name.
    Captured words are Literals, a list of values is a ListOf, the text of a block a Template. Omitted slots are
    absent."""

    at: At
    keyword: str
    arguments: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class FilterText:
    """A filter argument of a keyword that is computed by the script: `parts` are its concatenated parts. Literals are
    filter source, other parts are values in it. A single part is the whole filter."""

    at: At
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RowExpression:
    """New value of a row's column. A name in it that is not a variable is a column of that row."""

    at: At
    value: Expression


Expression = (
    Literal
    | Template
    | Name
    | ListOf
    | MapOf
    | Member
    | Index
    | Unary
    | Binary
    | IsNull
    | Apply
    | KeywordCall
    | FilterText
    | RowExpression
)

# Statements


Target = Name | Member | Index


@dataclass(frozen=True, slots=True)
class Assign:
    """`[SET|LET] target = value`, and keywords that set a variable: `HEAR x`."""

    at: At
    target: Target
    value: Expression


@dataclass(frozen=True, slots=True)
class Dim:
    """`DIM name(size)`: a list of `size` NULLs; without a size an empty list. Also `ReDim`."""

    at: At
    name: str
    size: Expression | None


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression evaluated for its effect: a keyword or a call."""

    at: At
    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    at: At
    branches: tuple[tuple[Expression, tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ForEach:
    """Iterates over items of a list, keys of a map or characters of a text. The variable keeps its last value."""

    at: At
    variable: str
    of: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ForTo:
    at: At
    variable: str
    first: Expression
    last: Expression
    step: Expression | None
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """WHILE..WEND, DO WHILE..LOOP, DO..LOOP UNTIL and so on. `until`: ends when the condition is true. `at_end`:
    evaluates the condition after the body. Without a condition it repeats until EXIT."""

    at: At
    kind: OneOf["do", "while"]
    condition: Expression | None
    until: bool
    at_end: bool
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A CASE of SELECT or SWITCH: matches `low`; the range `low` to `high`; or `subject operator low`."""

    at: At
    low: Expression
    high: Expression | None = None
    operator: OneOf["=", "<>", "<", "<=", ">", ">="] = "="


@dataclass(frozen=True, slots=True)
class Select:
    at: At
    subject: Expression
    cases: tuple[tuple[tuple[Case, ...], tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """EXIT FOR | DO | WHILE | SUB | FUNCTION | SELECT; BREAK is `loop`, the innermost loop."""

    at: At
    what: OneOf["for", "do", "while", "sub", "function", "select", "loop"]


@dataclass(frozen=True, slots=True)
class Continue:
    """CONTINUE [FOR | DO | WHILE]."""

    at: At
    what: OneOf["for", "do", "while", "loop"]


@dataclass(frozen=True, slots=True)
class Return:
    """Returns from a SUB, a FUNCTION or a GOSUB; elsewhere ends the run with its result."""

    at: At
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Stop:
    """END, STOP: ends the run."""

    at: At


@dataclass(frozen=True, slots=True)
class Define:
    """SUB or FUNCTION at the top level of a script; names in lower case. Its parameters are local, and so are variables
    that it assigns and the top level does not. The variable with a FUNCTION's own name is its return value."""

    at: At
    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class With:
    """WITH target … END WITH: sets members of a map, which is created if missing. The right sides are evaluated outside
    of it, so `key = key` reads the variable. An inner WITH whose target is a Name is a member of the outer WITH."""

    at: At
    target: Target
    entries: tuple[tuple[str, Expression | With], ...]


@dataclass(frozen=True, slots=True)
class OnError:
    """Error handling. `resume`: skips the failing statement and continues after it. `label`: continues there. With
    neither, an error ends the run."""

    at: At
    resume: bool
    label: str = ""


@dataclass(frozen=True, slots=True)
class Throw:
    """THROW e, ERROR e: raises a runtime error with this text, which ON ERROR may handle."""

    at: At
    message: Expression


@dataclass(frozen=True, slots=True)
class Assert:
    at: At
    condition: Expression
    message: Expression | None


@dataclass(frozen=True, slots=True)
class Label:
    """A line number or label, in lower case."""

    at: At
    name: str


@dataclass(frozen=True, slots=True)
class Goto:
    """GOTO, or GOSUB if `comes_back`."""

    at: At
    label: str
    comes_back: bool = False


Statement = (
    Assign | Dim | Evaluate | If | ForEach | ForTo | Loop | Select | Leave | Continue | Return | Stop | Define | With
    | OnError | Throw | Assert | Label | Goto
)  # fmt: skip


# The header


@dataclass(frozen=True, slots=True)
class Param:
    """A PARAM or RETURNS as written."""

    at: At
    name: str
    """As written."""
    type: str = ""
    """In lower case; empty without AS, or if AS has literal choices."""
    type_at: At | None = None
    choices: tuple[JsonValue, ...] = ()
    """ENUM […], or `AS "easy", "hard"`."""
    like: JsonValue = None
    """The example; numbers stay numbers. `has_like` distinguishes LIKE NULL from no LIKE."""
    has_like: bool = False
    description: str = ""
    optional: bool = False
    default: JsonValue = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """One tool of a file: header and body."""

    at: At
    params: tuple[Param, ...]
    description: str
    """Empty without DESCRIPTION."""
    description_at: At | None
    comment: str
    """Comment lines above the unit, used if DESCRIPTION is missing."""
    body: tuple[Statement, ...]
    name: str = ""
    """Name given in the file, or empty."""
    results: tuple[Param, ...] = ()
    """Its RETURNS lines."""
    metadata: tuple[tuple[str, JsonValue], ...] = ()
    """Its META lines: names, all beginning with `x-`, and values."""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole file, usually with one unit; all units share its SUBs and FUNCTIONs."""

    units: tuple[Unit, ...]
    definitions: tuple[Define, ...]
