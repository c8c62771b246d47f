"""Runs single script statements with the keywords of given modules, without the language's parser and machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, get_type_hints

from function_calls.basic.keywords import ScriptRun, Value, keyword_declaration
from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.language.tokens import Cursor
from function_calls.basic.nodes import (
    Binary,
    Expression,
    FilterText,
    Index,
    KeywordCall,
    ListOf,
    Literal,
    MapOf,
    Member,
    Name,
    RowExpression,
    Unary,
)
from function_calls.basic.values import OPERATORS, item, member, negated
from tests.function_calls.basic.small_reader import SmallExpressions, small_tokens


class Saying:
    """Runs one statement at a time."""

    def __init__(self, modules: Iterable[ModuleType], services: Mapping[type, object]) -> None:
        self._functions: dict[str, Any] = {}
        forms = []
        for module in modules:
            for function in vars(module).values():
                declaration = keyword_declaration(function)
                if declaration is None or function.__module__ != module.__name__:
                    continue
                for form in map(form_of, declaration.forms):
                    forms.append(form)
                    self._functions[form.name] = function
        self._services = services
        self._forms = Forms(forms)

    async def __call__(self, run: ScriptRun, statement: str, /, **variables: Value) -> Value:
        """Result of a statement with one keyword; `variables` are values by name."""
        cursor = Cursor(small_tokens(statement))
        matched = self._forms.match(cursor, SmallExpressions(self._forms), inside=False)
        assert matched is not None, statement
        return await self._done(run, matched.keyword_call, variables)

    async def _done(self, run: ScriptRun, want: KeywordCall, variables: Mapping[str, Value]) -> Value:
        function = self._functions[want.keyword]
        given = {name: await self._value(run, one, variables) for name, one in want.arguments}
        hints = get_type_hints(function)
        services = {name: self._services[hints[name]] for name in function.__kwdefaults__ or ()}
        keyword_only = function.__code__.co_varnames[function.__code__.co_argcount :][
            : function.__code__.co_kwonlyargcount
        ]
        services |= {name: self._services[hints[name]] for name in keyword_only}
        return await function(run, **given, **services)

    async def _operated(
        self, run: ScriptRun, node: Unary | Binary | RowExpression, variables: Mapping[str, Value]
    ) -> Value:
        if isinstance(node, RowExpression):
            return ["value", await self._value(run, node.value, variables)]
        if isinstance(node, Unary):
            return negated(await self._value(run, node.operand, variables))
        sides = (await self._value(run, node.left, variables), await self._value(run, node.right, variables))
        return OPERATORS[node.operator](*sides)

    async def _filter(self, run: ScriptRun, parts: Sequence[Expression], variables: Mapping[str, Value]) -> Value:
        values = [await self._value(run, part, variables) for part in parts]
        if len(parts) == 1:
            return values[0]
        both = zip(parts, values, strict=True)
        return ["filter", *(value if isinstance(part, Literal) else [value] for part, value in both)]

    async def _value(self, run: ScriptRun, expression: Expression, variables: Mapping[str, Value]) -> Value:
        match expression:
            case Literal(_, value):
                return value
            case Name(_, name):
                return variables.get(name)
            case Member(_, of, name):
                return member(await self._value(run, of, variables), name)
            case Index(_, of, index):
                return item(await self._value(run, of, variables), await self._value(run, index, variables))
            case ListOf(_, items):
                return [await self._value(run, one, variables) for one in items]
            case MapOf(_, entries):
                return {key: await self._value(run, one, variables) for key, one in entries}
            case Unary() | Binary() | RowExpression():
                return await self._operated(run, expression, variables)
            case KeywordCall():
                return await self._done(run, expression, variables)
            case FilterText(_, parts):
                return await self._filter(run, parts, variables)
            case _:
                raise AssertionError(f"this is beyond the tests' reader: {expression}")
