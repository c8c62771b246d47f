"""Arithmetic as people write it, exact where numbers can be, and bounded in everything."""

from __future__ import annotations

from fractions import Fraction

from services.calculator_tokens import NUMBER, BadExpression, Problem, Token, tokens_of
from services.exact import TooLarge, apply, power, remainder, within

__all__ = ["BadExpression", "Problem", "Value", "calculate"]

_DEPTH = 60
_ADDING = ("+", "-")
_MULTIPLYING = ("*", "/", "//", "mod")
_STARTS = (NUMBER, "name", "(")
