"""The tree of a script: what the parser makes and code is generated from. Every node knows where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple

from services.refs import JsonValue


class At(NamedTuple):
    """A place in a script, both from 1."""

    line: int
    column: int


# Expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the script: NULL, TRUE, a number or a text without `${}`."""

    at: At
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Template:
    """A text with `${}`: its parts are joined as texts."""

    at: At
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, in lower case: names differ in no other way. `user.name` is a Member of the Name `user`."""

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
    """`of.name`, the name as written. Of a list it is the member of its first item."""

    at: At
    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`of[index]`, from 0; of a map, its key."""

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
    """`and` and `or` look at the right side only where the left one leaves it open. `not in` is a `not` of `in`."""

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
    """`name(arguments)`: a FUNCTION of the script, or a function of the language; the name in lower case.
    `x.name(a)` is `name(x, a)`. Of a name that is neither, an index: `a(1)` is `a[1]` in old scripts."""

    at: At
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Want:
    """A keyword that is the host's: `keyword` is the first words of its form ("SEND MAIL"), `arguments` the values of
    the form's slots by their names. Words that a form captures are Literals, a list of values is a ListOf, a block's
    text a Template. What was left out is not there."""

    at: At
    keyword: str
    arguments: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class FilterText:
    """What stands where a keyword takes a filter, and is not written out: a text that is put together out of `parts`.
    Literals are the filter's own, all else is a value in it. One part alone is the whole filter."""

    at: At
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class OfRow:
    """What a row of a table is to get. A name in it that is no variable is the column of that row."""

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
    | Want
    | FilterText
    | OfRow
)

# Statements


Target = Name | Member | Index


@dataclass(frozen=True, slots=True)
class Assign:
    """`[SET|LET] target = value`, and keywords that give a variable something: `HEAR x`."""

    at: At
    target: Target
    value: Expression


@dataclass(frozen=True, slots=True)
class Dim:
    """`DIM name(size)`: a list of so many NULLs; without a size an empty one. `ReDim` too."""

    at: At
    name: str
    size: Expression | None


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression for its effect: a keyword, a call."""

    at: At
    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    at: At
    branches: tuple[tuple[Expression, tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ForEach:
    """Over the items of a list, the keys of a map, the characters of a text. The variable keeps its last value."""

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
    """WHILE..WEND, DO WHILE..LOOP, DO..LOOP UNTIL and so on. `until`: it ends when the condition holds. `at_end`: it is
    looked at after the body. Without a condition it goes on until EXIT."""

    at: At
    kind: OneOf["do", "while"]
    condition: Expression | None
    until: bool
    at_end: bool
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """What a case of SELECT or SWITCH fits: equal to `low`; between `low` and `high`; or `subject operator low`."""

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
    """EXIT FOR | DO | WHILE | SUB | FUNCTION | SELECT; BREAK is `loop`, the innermost one."""

    at: At
    what: OneOf["for", "do", "while", "sub", "function", "select", "loop"]


@dataclass(frozen=True, slots=True)
class Continue:
    """CONTINUE [FOR | DO | WHILE]."""

    at: At
    what: OneOf["for", "do", "while", "loop"]


@dataclass(frozen=True, slots=True)
class Return:
    """In a SUB or FUNCTION to whoever called it; elsewhere the end of the run, with its result. After GOSUB, back."""

    at: At
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Stop:
    """END, STOP: the end of the run."""

    at: At


@dataclass(frozen=True, slots=True)
class Define:
    """SUB or FUNCTION, at the top of a script; names in lower case. Its own variables are its parameters and what it
    assigns that the script's top has not. In a FUNCTION its own name is what it returns, too."""

    at: At
    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class With:
    """WITH target … END WITH: puts members into a map, made where there is none. The right sides are evaluated outside
    of it, so `key = key` takes the variable. An inner WITH whose target is a Name is a member of the outer one."""

    at: At
    target: Target
    entries: tuple[tuple[str, Expression | With], ...]


@dataclass(frozen=True, slots=True)
class OnError:
    """`resume`: an error ends its statement alone, and the run goes on behind it. Otherwise an error ends the run.
    `label`: it goes on there."""

    at: At
    resume: bool
    label: str = ""


@dataclass(frozen=True, slots=True)
class Throw:
    """THROW e, ERROR e: the run fails with this text unless ON ERROR says otherwise."""

    at: At
    message: Expression


@dataclass(frozen=True, slots=True)
class Assert:
    at: At
    condition: Expression
    message: Expression | None


@dataclass(frozen=True, slots=True)
class Label:
    """A line's number or name, in lower case."""

    at: At
    name: str


@dataclass(frozen=True, slots=True)
class Goto:
    """GOTO, or with `comes_back` GOSUB."""

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
    """One PARAM as it was written."""

    at: At
    name: str
    """As written."""
    type: str = ""
    """In lower case; empty without AS, and with literal choices in its place."""
    type_at: At | None = None
    choices: tuple[JsonValue, ...] = ()
    """ENUM […], or `AS "easy", "hard"`."""
    like: JsonValue = None
    """The example; numbers stay numbers. `has_like` tells NULL from none."""
    has_like: bool = False
    description: str = ""
    optional: bool = False
    default: JsonValue = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """One tool of a file: its header and what it does."""

    at: At
    params: tuple[Param, ...]
    description: str
    """Empty where none is given."""
    description_at: At | None
    comment: str
    """The comment lines above it, for a description where none is given."""
    body: tuple[Statement, ...]
    name: str = ""
    """What the file names this one, where it does."""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole file. Nearly always it is one unit; SUBs and FUNCTIONs belong to all of them."""

    units: tuple[Unit, ...]
    definitions: tuple[Define, ...]
