"""Parser state of one script: names, collected problems and nesting depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from function_calls.basic.codes import Code, ScriptError, ScriptProblem
from function_calls.basic.language.scopes import Survey
from function_calls.basic.language.unsupported import foreign_phrase, unsupported_message
from function_calls.basic.nodes import At, Expression, Literal
from function_calls.basic.values import text_of

_MOST_SEARCHES = 20
"""Limit per script. Each search takes about a millisecond."""


class Nearest:
    """Spelling suggestions, cached and limited in number."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._searches = 0

    def hint(self, words: Iterable[str], known: Iterable[str]) -> str:
        """`; did you mean X?` for the first of `words` (in upper case) similar to one of `known`; otherwise empty."""
        candidates: list[str] | None = None
        for word in words:
            if word not in self._found:
                if self._searches >= _MOST_SEARCHES or len(word) > 40:
                    return ""
                self._searches += 1
                candidates = candidates if candidates is not None else sorted(known)
                near = get_close_matches(word, candidates, 1, 0.7)
                self._found[word] = near[0] if near else ""
            if self._found[word]:
                return f"; did you mean {self._found[word]}?"
        return ""


Arity = tuple[int, int | None]
"""Minimum and maximum number of arguments; a maximum of None is unlimited."""

MOST_NESTED = 100
"""Maximum total nesting of brackets, blocks, signs and texts with `${}`."""
HIGHEST = 200
"""Maximum height of an expression tree; recursive functions over the tree rely on it."""
_LONGEST_SHOWN = 60


class ParserState:
    """Names, problems and nesting depth of the script being parsed."""

    def __init__(
        self, functions: Mapping[str, Arity], keywords: tuple[str, ...], names: Survey, faulty_lines: frozenset[int]
    ) -> None:
        self.functions = functions
        self.keywords = keywords
        self.foreign: set[str] = set()
        """Statements of other languages that have been reported."""
        self._faulty_lines = faulty_lines
        """Lines with lexer problems. Further problems there are dropped, because the tokens are guesses."""
        self.definitions: Mapping[str, int] = names.definitions
        self.variables = names.variables
        self.faults: list[ScriptProblem] = []
        self.depth = 0
        self.nearest = Nearest()

    def fault(self, at: At, code: Code, message: str) -> None:
        """Report a problem at one position, without aborting the statement."""
        self.failed(ScriptProblem(at, code, message), at.line, at.line)

    def failed(self, fault: ScriptProblem, first_line: int, last_line: int) -> None:
        """Report a problem of a statement that spans these lines."""
        if not any(line in self._faulty_lines for line in range(first_line, last_line + 1)):
            self.faults.append(fault)

    def enter(self, at: At, levels: int = 1) -> None:
        """Increase `depth`, which the caller must decrease again. Raises ScriptError if it exceeds MOST_NESTED."""
        if self.depth + levels > MOST_NESTED:
            raise ScriptError(
                at,
                Code.TOO_DEEP,
                f"more than {MOST_NESTED} nested brackets or blocks; move parts into variables, a SUB or a FUNCTION",
            )
        self.depth += levels

    @contextmanager
    def deeper(self, at: At, levels: int = 1) -> Iterator[None]:
        """Context manager that calls `enter` and decreases `depth` again at the end. Raises ScriptError."""
        self.enter(at, levels)
        try:
            yield
        finally:
            self.depth -= levels

    def knows(self, name: str) -> bool:
        """Whether the name is a function, SUB or built-in."""
        return name in self.functions or name in self.definitions

    def takes_none(self, name: str) -> bool:
        """Whether the name can be called without arguments."""
        if name in self.definitions:
            return not self.definitions[name]
        return name in self.functions and not self.functions[name][0]

    def no_function(self, at: At, name: str, arguments: Sequence[Expression] | None = None) -> ScriptProblem:
        """Problem for a call of an unknown function. `arguments`, if parsed, are repeated in the hint."""
        if (phrase := foreign_phrase((name.upper(),), self.keywords)) and not self.knows(name):
            return ScriptProblem(at, Code.UNKNOWN_FUNCTION, unsupported_message(phrase))
        known = (*(one.upper() for one in (*self.functions, *self.definitions)), *self.keywords)
        hint = self.nearest.hint((name.upper(),), known)
        if "CALL" in self.keywords:
            hint += f"; to call a function of the bot write CALL {name}({_written(arguments)})"
        return ScriptProblem(at, Code.UNKNOWN_FUNCTION, f"unknown function {name.upper()}{hint}")

    def check_call(self, at: At, name: str, count: int, arguments: Sequence[Expression] | None = None) -> None:
        """Report a problem if `name` is unknown or does not accept `count` arguments."""
        fewest, most = self.definitions.get(name, 0), None
        if name in self.definitions:
            fewest, most = self.definitions[name], self.definitions[name]
        elif name in self.functions:
            fewest, most = self.functions[name]
        else:
            self.failed(self.no_function(at, name, arguments), at.line, at.line)
            return
        if count < fewest or (most is not None and count > most):
            self.fault(at, Code.WRONG_COUNT, f"{name.upper()} takes {arguments_text(fewest, most)}, got {count}")


def _written(arguments: Sequence[Expression] | None) -> str:
    """Source of short literal arguments for a hint; `…` for all others."""
    if arguments is None or not all(isinstance(one, Literal) for one in arguments):
        return "…"
    values = [one.value for one in arguments if isinstance(one, Literal)]
    shown = ", ".join(f'"{one}"' if isinstance(one, str) else text_of(one) or "NULL" for one in values)
    is_plain = len(shown) <= _LONGEST_SHOWN and shown.isprintable() and not any('"' in str(one) for one in values)
    return shown if is_plain else "…"


def arguments_text(fewest: int, most: int | None) -> str:
    """Number of arguments for messages, such as `1 or 2 arguments`."""
    if most is None:
        return f"at least {fewest} argument{'s' * (fewest != 1)}"
    if fewest == most:
        return f"{fewest or 'no'} argument{'s' * (fewest != 1)}"
    return f"{fewest} {'to' if most - fewest > 1 or not fewest else 'or'} {most} arguments"
