"""Which conditions on the way to a handler no test would miss.

    python -m tests.harness.removed_checks function_calls/approvals.py tests/bot/test_approvals.py …

The first name is a module, the others are tests that can see it. Each of its conditions that lets something through or
holds it back is taken out in turn, in a process of its own, and the tests are run until one fails. A line of JSON for
each: what was taken out, and the test that noticed it; an empty one is a condition that matters to nobody. 1: there is
one. What is only quicker with the condition is no fault; whoever reads the list has to judge.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

_LETS_THROUGH = frozenset({"None", "ALLOWED", "False", "True", "''", "[]"})
_MOST_SECONDS = 120


class Condition(NamedTuple):
    """A condition of a module, and what takes its place."""

    where: str
    """The function that it stands in, by its whole name."""
    text: str
    start: int
    end: int
    instead: str

    def gone_from(self, source: bytes) -> str:
        """The source without it, line for line."""
        lines = "\n" * source[self.start : self.end].count(b"\n")
        return (source[: self.start] + f"({self.instead}{lines})".encode() + source[self.end :]).decode()


def conditions_of(source: str) -> list[Condition]:
    """The conditions before a `return` or `raise`, and the parts of those that are joined by `and` and `or`."""
    text = source.encode()
    starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]

    def gone(where: str, node: ast.expr, instead: str) -> Condition:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return Condition(where, " ".join(text[start:end].decode().split()), start, end, instead)

    found = [gone(where, node, instead) for where, node, instead in _places(ast.parse(source), "")]
    return list(dict.fromkeys(found))


def _places(node: ast.AST, where: str) -> Iterator[tuple[str, ast.expr, str]]:
    for child in ast.iter_child_nodes(node):
        within = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{where}.{child.name}".lstrip(".")
        if isinstance(child, ast.If) and within:
            last = child.body[-1]
            lets_through = isinstance(last, ast.Return) and ast.unparse(last).removeprefix("return ") in _LETS_THROUGH
            yield within, child.test, str(lets_through)
            yield from _parts(within, child.test)
        if isinstance(child, ast.Return) and child.value is not None:
            yield from _parts(within, child.value)
        yield from _places(child, within)


def _parts(where: str, condition: ast.expr) -> Iterator[tuple[str, ast.expr, str]]:
    for node in ast.walk(condition):
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                yield where, part, str(isinstance(node.op, ast.And))


def take_out(module: Any, condition: Condition) -> None:
    """From now on the function in this process is without the condition, and so is what copies the module's source."""
    source = condition.gone_from(Path(module.__file__).read_bytes())
    names = condition.where.split(".")
    found: Any = vars(module)[names[0]]
    depth = 1
    while inspect.isclass(found):
        found, depth = vars(found)[names[depth]], depth + 1
    found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType), condition.where
    code = compile(source, module.__file__, "exec", dont_inherit=True)
    for name in names[:depth]:
        code = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)
    function.__code__ = code
    as_it_is: Callable[[Any], str] = inspect.getsource
    inspect.getsource = lambda of: source if of is module else as_it_is(of)  # type: ignore[assignment]


class _OneByOne:
    """Runs the collected tests once for each condition, in a copy of this process."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._failed: list[str] = []
        self.unnoticed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test that looks for the condition in the source, and does not find it, notices nothing.
        if report.failed and "stands 0 times" not in str(report.longrepr):
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for condition in conditions_of(inspect.getsource(self._module)):
            noticed = self._noticed_by(session, condition)
            self.unnoticed += not noticed
            line = {"where": condition.where, "condition": condition.text, "instead": condition.instead}
            sys.stdout.write(json.dumps({**line, "noticed_by": noticed}) + "\n")
            sys.stdout.flush()
        return True

    def _noticed_by(self, session: pytest.Session, condition: Condition) -> str:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            self._child(session, condition, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read().decode()
        _, status = os.waitpid(process, 0)
        return said or ("it hung or died" if status else "")

    def _child(self, session: pytest.Session, condition: Condition, writing: int) -> None:
        signal.alarm(_MOST_SECONDS)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        take_out(self._module, condition)
        for test, following in itertools.zip_longest(session.items, session.items[1:]):
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if self._failed:
                os.write(writing, self._failed[0].encode())
                break
        os._exit(0)


def main(arguments: list[str]) -> int:
    """Take out what the module has, and run the tests. 1: something was not noticed."""
    if len(arguments) < 2:
        sys.stderr.write(__doc__ or "")
        return 2
    file, *tests = arguments
    one_by_one = _OneByOne(importlib.import_module(file.removesuffix(".py").replace("/", ".")))
    quiet = ["-q", "--no-header", "--tb=line", "--capture=no", "-p", "no:cacheprovider"]
    pytest.main([*quiet, *tests], plugins=[one_by_one])
    return 1 if one_by_one.unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
