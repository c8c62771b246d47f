"""Calls of the language's functions, with values or from an expression."""

from __future__ import annotations

import ast
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import World
from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.values import OPERATORS, negated
from tests.fakes.basic_world import FixedWorld

_WORDS = {"TRUE": True, "FALSE": False, "NULL": None}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def call(name: str, *arguments: Any, world: World | None = None) -> Any:
    """Result of the function."""
    return FUNCTIONS[name].run(world or FixedWorld(), arguments)


def refused(name: str, *arguments: Any, world: World | None = None) -> tuple[RunCode, str]:
    """Code and detail of the function's error."""
    try:
        given = call(name, *arguments, world=world)
    except RunError as fault:
        return fault.code, fault.detail
    raise AssertionError(f"{name} gave {given!r:.80}")


def worked_out(expression: str, world: World | None = None) -> Any:
    """Value of an expression of calls and literals, in the syntax that BASIC and Python share."""
    return _value(ast.parse(expression, mode="eval").body, world or FixedWorld())


def _value(node: ast.expr, world: World) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name.lower()].run(world, [_value(each, world) for each in arguments])
        case ast.Constant(value=value):
            return value
        case ast.Name(id=word):
            return _WORDS[word]
        case ast.List(elts=items):
            return [_value(each, world) for each in items]
        case ast.Dict(keys=keys, values=values):
            return {
                _value(key, world): _value(value, world)
                for key, value in zip(keys, values, strict=True)
                if key is not None
            }
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return negated(_value(operand, world))
        case ast.BinOp(left=left, op=sign, right=right):
            return OPERATORS[_SIGNS[type(sign)]](_value(left, world), _value(right, world))
        case ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]):
            return OPERATORS[">"](_value(left, world), _value(right, world))
    raise AssertionError(ast.dump(node))
