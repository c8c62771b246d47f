"""Random script trees with all kinds of nodes, mostly meaningful, sometimes invalid."""

from __future__ import annotations

from random import Random
from typing import Any

from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.nodes import (
    Apply,
    Assert,
    Assign,
    At,
    Binary,
    Case,
    Continue,
    Define,
    Dim,
    Evaluate,
    Expression,
    ForEach,
    ForTo,
    Goto,
    If,
    Index,
    IsNull,
    KeywordCall,
    Label,
    Leave,
    ListOf,
    Literal,
    Loop,
    MapOf,
    Member,
    Name,
    OnError,
    Param,
    Return,
    Select,
    Statement,
    Stop,
    Target,
    Template,
    Throw,
    Unary,
    Unit,
    With,
)

NAMES = ("a", "b", "c", "list", "map", "err", "error", "p")
KEYS = ("x", "Y", "length", "0")
OPERATORS: tuple[Any, ...] = (
    *("+", "-", "*", "/", "\\", "mod", "^", "&", "=", "<>", "<", "<=", ">", ">=", "in", "like", "and", "or"),
    *("+", "+", "&", "<", "="),
)
LITERALS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, -1, 0.5, 1e308, 2**62, "", "x", "12", "Ω", "a,b", "2026-03-29", "no"),
    *(1, 2, 3, "x"),
)


class Trees:
    """Generates scripts."""

    def __init__(self, random: Random, depth: int = 4) -> None:
        self._random = random
        self._depth = depth
        self._line = 0
        self._labels: list[str] = []
        self._definitions: list[Define] = []
        self._inside: tuple[str, ...] = ()

    def script(self) -> tuple[Unit, list[Define]]:
        """A unit and its SUBs and FUNCTIONs."""
        self._definitions = [Define(self._at(), name, parameters, ()) for name, parameters in self._heads()]
        self._definitions = [
            Define(head.at, head.name, head.parameters, self._procedure(("sub", "function")))
            for head in self._definitions
        ]
        body = self._procedure(())
        return Unit(At(1, 1), (Param(At(1, 1), "P"),), "", None, "", body), self._definitions

    def _heads(self) -> list[tuple[str, tuple[str, ...]]]:
        heads = [("f", ("n",)), ("g", ()), ("h", ("a", "q"))]
        return heads[: self._random.randrange(4)]

    def _procedure(self, inside: tuple[str, ...]) -> tuple[Statement, ...]:
        self._labels = [str(10 * number) for number in range(self._random.randrange(3))]
        self._inside = inside
        body: list[Statement] = list(self._body(self._depth, 8))
        if self._random.random() < 0.5:
            body.insert(0, OnError(self._at(), resume=True))
        if "function" in inside and self._random.random() < 0.5:
            body.append(Return(self._at(), self._expression(2)))
        for label in self._labels:
            body.insert(self._random.randrange(len(body) + 1), Label(self._at(), label))
        return tuple(body)

    def _at(self) -> At:
        self._line += 1
        return At(self._line, 1)

    def _body(self, depth: int, most: int = 4) -> tuple[Statement, ...]:
        return tuple(self._statement(depth) for _ in range(self._random.randrange(most)))

    def _statement(self, depth: int) -> Statement:
        simple = (self._assign,) * 6 + (self._wanting,) * 3 + (self._errors,) * 2 + (
            self._dim, self._call, self._push, self._jump, self._with, self._ends,
        )  # fmt: skip
        blocks = (self._if, self._for_each, self._for_to, self._loop, self._select)
        make = self._random.choice(simple + blocks * 2 if depth > 0 else simple)
        return make(depth)

    def _assign(self, depth: int) -> Statement:
        return Assign(self._at(), self._target(), self._expression(depth))

    def _wanting(self, depth: int) -> Statement:
        if self._random.random() < 0.5:
            return Assign(self._at(), self._target(), self._want(2))
        return Evaluate(self._at(), self._want(2))

    def _errors(self, depth: int) -> Statement:
        labels = ("", "", *self._labels)
        kinds: tuple[Statement, ...] = (
            OnError(self._at(), resume=True),
            OnError(self._at(), resume=True),
            OnError(self._at(), resume=False, label=self._random.choice(labels)),
            Throw(self._at(), self._expression(2)),
            Assert(self._at(), self._expression(2), None),
        )
        return self._random.choice(kinds)

    def _dim(self, depth: int) -> Statement:
        return Dim(self._at(), self._random.choice(NAMES), self._expression(1) if self._random.random() < 0.5 else None)

    def _call(self, depth: int) -> Statement:
        return Evaluate(self._at(), self._apply(2))

    def _push(self, depth: int) -> Statement:
        return Evaluate(
            self._at(),
            Apply(self._at(), self._random.choice(("push", "append")), (self._target(), self._expression(2))),
        )

    def _jump(self, depth: int) -> Statement:
        if self._labels and self._random.random() < 0.5:
            return Goto(self._at(), self._random.choice(self._labels), self._random.random() < 0.5)
        kinds: tuple[Any, ...] = ("for", "do", "while", "loop")
        if self._random.random() < 0.5:
            return Continue(self._at(), self._random.choice(kinds))
        return Leave(self._at(), self._random.choice((*kinds, "select", *self._inside)))

    def _with(self, depth: int) -> Statement:
        inner = With(self._at(), Name(self._at(), "x"), (("y", self._expression(1)),))
        entries = (("x", self._expression(1)), ("x", inner), ("z", self._expression(1)))
        return With(self._at(), self._target(), entries[: self._random.randrange(4)])

    def _ends(self, depth: int) -> Statement:
        value = self._expression(1) if self._random.random() < 0.3 else None
        return Stop(self._at()) if self._random.random() < 0.1 else Return(self._at(), value)

    def _if(self, depth: int) -> Statement:
        branches = tuple((self._expression(2), self._body(depth - 1)) for _ in range(self._random.randrange(1, 3)))
        return If(self._at(), branches, self._body(depth - 1))

    def _for_each(self, depth: int) -> Statement:
        return ForEach(self._at(), self._random.choice(NAMES), self._expression(2), self._body(depth - 1))

    def _for_to(self, depth: int) -> Statement:
        step = self._expression(1) if self._random.random() < 0.4 else None
        first, last = self._expression(1), self._expression(1)
        return ForTo(self._at(), self._random.choice(NAMES), first, last, step, self._body(depth - 1))

    def _loop(self, depth: int) -> Statement:
        kinds: tuple[Any, ...] = ("do", "while")
        condition = self._expression(2) if self._random.random() < 0.9 else None
        chance = self._random.random
        body = self._body(depth - 1)
        return Loop(self._at(), self._random.choice(kinds), condition, chance() < 0.5, chance() < 0.5, body)

    def _select(self, depth: int) -> Statement:
        cases = tuple(
            ((self._case(), self._case())[: self._random.randrange(1, 3)], self._body(depth - 1)) for _ in range(2)
        )
        return Select(self._at(), self._expression(2), cases, self._body(depth - 1))

    def _case(self) -> Case:
        operators: tuple[Any, ...] = ("=", "<>", "<", ">=")
        high = self._expression(1) if self._random.random() < 0.3 else None
        return Case(self._at(), self._expression(1), high, self._random.choice(operators))

    def _target(self) -> Target:
        target: Target = Name(self._at(), self._random.choice((*NAMES, *self._procedures())))
        for _ in range(self._random.choice((0, 0, 0, 1, 1, 2, 3))):
            if self._random.random() < 0.5:
                target = Member(self._at(), target, self._random.choice(KEYS))
            else:
                target = Index(self._at(), target, self._expression(1))
        return target

    def _procedures(self) -> list[str]:
        return [definition.name for definition in self._definitions]

    def _expression(self, depth: int) -> Expression:
        leaves = (self._literal, self._name)
        inner = (
            *(self._binary, self._binary, self._binary, self._unary, self._list, self._map, self._member, self._index),
            *(self._template, self._apply, self._null, self._want),
        )
        make = self._random.choice(leaves + inner if depth > 0 else leaves)
        return make(depth)

    def _literal(self, depth: int) -> Expression:
        return Literal(self._at(), self._random.choice(LITERALS))

    def _name(self, depth: int) -> Expression:
        return Name(self._at(), self._random.choice(NAMES))

    def _binary(self, depth: int) -> Expression:
        left, right = self._expression(depth - 1), self._expression(depth - 1)
        return Binary(self._at(), self._random.choice(OPERATORS), left, right)

    def _unary(self, depth: int) -> Expression:
        operators: tuple[Any, ...] = ("-", "not")
        return Unary(self._at(), self._random.choice(operators), self._expression(depth - 1))

    def _list(self, depth: int) -> Expression:
        return ListOf(self._at(), tuple(self._expression(depth - 1) for _ in range(self._random.randrange(4))))

    def _map(self, depth: int) -> Expression:
        keys = [self._random.choice(KEYS) for _ in range(self._random.randrange(3))]
        return MapOf(self._at(), tuple((key, self._expression(depth - 1)) for key in keys))

    def _member(self, depth: int) -> Expression:
        return Member(self._at(), self._expression(depth - 1), self._random.choice(KEYS))

    def _index(self, depth: int) -> Expression:
        return Index(self._at(), self._expression(depth - 1), self._expression(depth - 1))

    def _template(self, depth: int) -> Expression:
        return Template(self._at(), (self._literal(0), self._expression(depth - 1)))

    def _null(self, depth: int) -> Expression:
        return IsNull(self._at(), self._expression(depth - 1), self._random.random() < 0.5)

    def _apply(self, depth: int) -> Expression:
        if self._definitions and self._random.random() < 0.6:
            definition = self._random.choice(self._definitions)
            name, count = definition.name, len(definition.parameters)
        else:
            name = self._random.choice(sorted(FUNCTIONS))
            fewest, most = FUNCTIONS[name].fewest, FUNCTIONS[name].most
            count = self._random.randint(fewest, fewest + 2 if most is None else most)
        return Apply(self._at(), name, tuple(self._expression(depth - 1) for _ in range(count)))

    def _want(self, depth: int) -> Expression:
        keyword = self._random.choice(("GET", "TALK", "HEAR", "FAIL"))
        return KeywordCall(
            self._at(), keyword, (("first", self._expression(depth - 1)), ("second", self._expression(0)))
        )
