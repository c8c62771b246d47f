"""Find conditions that can be removed without failing a test.

    python -m tests.harness.removed_checks                                    all of `guarding_modules`
    python -m tests.harness.removed_checks function_calls/checks/approvals.py      one module with its listed tests
    python -m tests.harness.removed_checks function_calls/schema/commands.py tests/function_calls

Arguments are modules, followed by tests for them. Each condition is removed in a separate process, and the tests in
which it makes a difference run until one fails, the fastest first. Prints a line of JSON for each condition: its code,
the first failing test, and the number of tests in which it makes a difference. A removal without a failing test is an
error, except those listed with a reason in `guarding_modules`, which are reported and not tried. Exit status 1 for
errors.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from tests.harness.guarding_modules import GUARDING

_LETS_THROUGH = frozenset({"None", "ALLOWED", "False", "True", "''", "[]"})
_GIVES = ast.Return | ast.Assign | ast.AnnAssign | ast.NamedExpr
_MOST_SECONDS = 60
"""Limit for one test."""


class Condition(NamedTuple):
    """A condition of a module, and its replacement."""

    where: str
    """Qualified name of its function."""
    text: str
    start: int
    end: int
    instead: str
    is_asked: bool
    """Only its truth value is used, not the value itself."""
    number: int = 1
    """Number among the conditions of the function with the same text."""

    @property
    def name(self) -> str:
        """Function and text; a repeated text is followed by its number."""
        return f"{self.where}: {self.text}" + (f" ({self.number})" if self.number > 1 else "")

    def gone_from(self, source: bytes) -> str:
        """The source without the condition, with the same line numbers."""
        lines = "\n" * source[self.start : self.end].count(b"\n")
        return (source[: self.start] + f"({self.instead}{lines})".encode() + source[self.end :]).decode()


def conditions_of(source: str) -> list[Condition]:
    """Conditions of `if` and of comprehensions, and the operands of `and` and `or` in them, in returned values and in
    assigned values."""
    text = source.encode()
    starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]

    def gone(where: str, node: ast.expr, instead: str, is_asked: bool) -> Condition:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return Condition(where, " ".join(text[start:end].decode().split()), start, end, instead, is_asked)

    found: dict[tuple[int, int, str], Condition] = {}
    for one in itertools.starmap(gone, _places(ast.parse(source), "")):
        # A condition may be found twice, as an operand of two expressions; the first is kept.
        found.setdefault((one.start, -one.end, one.instead), one)
    seen: Counter[str] = Counter()
    for key, one in sorted(found.items()):
        seen[one.name] += 1
        found[key] = one._replace(number=seen[one.name])
    return [found[key] for key in sorted(found)]


def _places(node: ast.AST, where: str) -> Iterator[tuple[str, ast.expr, str, bool]]:
    for child in ast.iter_child_nodes(node):
        within = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{where}.{child.name}".lstrip(".")
        if isinstance(child, ast.If) and within:
            last = child.body[-1]
            lets_through = isinstance(last, ast.Return) and ast.unparse(last).removeprefix("return ") in _LETS_THROUGH
            yield within, child.test, str(lets_through), True
            yield from _parts(within, child.test, is_asked=True)
        if isinstance(child, ast.comprehension) and within:
            for test in child.ifs:
                yield within, test, "True", True
                yield from _parts(within, test, is_asked=True)
        if isinstance(child, _GIVES) and child.value is not None and within:
            yield from _parts(within, child.value, is_asked=False)
        yield from _places(child, within)


def _parts(where: str, node: ast.AST, *, is_asked: bool) -> Iterator[tuple[str, ast.expr, str, bool]]:
    is_joined = isinstance(node, ast.BoolOp)
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            # The last operand is the result; the others only decide.
            yield where, part, str(isinstance(node.op, ast.And)), is_asked or part is not node.values[-1]
    is_asked = is_asked and (is_joined or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)))
    for child in ast.iter_child_nodes(node):
        yield from _parts(where, child, is_asked=is_asked)


def take_out(module: Any, condition: Condition) -> None:
    """Remove the condition from the function in this process. Copies of the module's source are changed, too."""
    source = condition.gone_from(Path(module.__file__).read_bytes())
    _exchange(module, source, [condition.where])


def _exchange(module: Any, source: str, functions: Sequence[str]) -> None:
    """Replace the code of these functions with code compiled from `source`, which also becomes the module's source."""
    as_it_is: Callable[[Any], str] = inspect.getsource
    inspect.getsource = lambda of: source if of is module else as_it_is(of)  # type: ignore[assignment]
    compiled = compile(source, module.__file__, "exec", dont_inherit=True)
    for where in functions:
        names = where.split(".")
        found: Any = vars(module)[names[0]]
        depth = 1
        while inspect.isclass(found):
            found, depth = vars(found)[names[depth]], depth + 1
        found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        function = inspect.unwrap(found)
        assert isinstance(function, FunctionType), where
        code = compiled
        for name in names[:depth]:
            code = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)
        function.__code__ = code


def tell_of(module: Any, conditions: Sequence[Condition], reached: Callable[[int], None], first: int = 0) -> None:
    """Call `reached` with the number of each condition whose value differs from its replacement: the index in
    `conditions` plus `first`."""

    def reach(number: int, value: object) -> object:
        condition = conditions[number - first]
        instead = condition.instead == "True"
        if value is not instead and not (condition.is_asked and bool(value) is instead):
            reached(number)
        return value

    source = Path(module.__file__).read_bytes()
    # Of several conditions with the same start, the longest is the outermost.
    marks = [(one.start, -one.end, f"__reach_{first}__({number}, (") for number, one in enumerate(conditions, first)]
    marks += [(one.end, one.end - one.start, "))") for one in conditions]
    for place, _, mark in sorted(marks, key=lambda mark: (mark[0], mark[2] != "))", mark[1]), reverse=True):
        source = source[:place] + mark.encode() + source[place:]
    vars(builtins)[f"__reach_{first}__"] = reach  # also visible to copies of the module
    _exchange(module, source.decode(), list(dict.fromkeys(one.where for one in conditions)))


class _Removal(NamedTuple):
    file: str
    module: Any
    condition: Condition


class _OneByOne:
    """Runs the collected tests once for each condition, in a fork of this process."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._removals: list[_Removal] = []
        self._failed: list[str] = []
        self.faults = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test that only fails to find the condition in the source does not count.
        if report.failed and "occurs 0 times" not in str(report.longrepr):
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # Not earlier, because pytest has to import the dependencies of the modules first.
        self._removals = [one for file in self._files for one in _removals(file)]
        coming = self._coming(session)
        for number, removal in enumerate(self._removals):
            file, _, (where, text, _, _, instead, *_) = removal
            line: dict[str, object] = {"module": file, "where": where, "condition": text, "instead": instead}
            reason = GUARDING[file].harmless.get(removal.condition.name) if file in GUARDING else None
            if reason is None:
                tests = coming.get(number, [])
                noticed = _in_a_copy(partial(self._noticing, removal, tests)) if tests else ""
                self.faults += not noticed
                line |= {"noticed_by": noticed, "tests": len(tests)}
            else:
                line["harmless"] = reason
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
            sys.stdout.flush()
        return True

    def _coming(self, session: pytest.Session) -> dict[int, list[pytest.Item]]:
        """The tests that each condition affects, by its number, fastest first."""
        said = _in_a_copy(partial(self._watched, session.items))
        runs = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert len(runs) == len(session.items), said[-2000:]
        coming: dict[int, list[pytest.Item]] = {}
        for test, run in sorted(zip(session.items, runs, strict=True), key=lambda one: one[1]["seconds"]):
            if run["failed"]:
                sys.stderr.write(f"fails with every condition in its place: {test.nodeid}\n")
                continue
            for number in run["reached"]:
                coming.setdefault(number, []).append(test)
        return coming

    def _watched(self, tests: list[pytest.Item]) -> Iterator[str]:
        """Duration, result and reached conditions of each test, as JSON."""
        reached: set[int] = set()
        numbers: dict[str, list[int]] = {}
        for number, one in enumerate(self._removals):
            numbers.setdefault(one.file, []).append(number)
        for those in numbers.values():
            conditions = [self._removals[number].condition for number in those]
            tell_of(self._removals[those[0]].module, conditions, reached.add, those[0])
        began = time.monotonic()
        for _ in _run(tests):
            ended = time.monotonic()
            run = {"seconds": ended - began, "failed": bool(self._failed), "reached": sorted(reached)}
            yield json.dumps(run) + "\n"
            began = ended
            reached.clear()
            self._failed.clear()

    def _noticing(self, removal: _Removal, tests: list[pytest.Item]) -> Iterator[str]:
        """The first test that fails without the condition."""
        take_out(removal.module, removal.condition)
        for _ in _run(tests):
            if self._failed:
                yield self._failed[0]
                return


def _removals(file: str) -> Iterator[_Removal]:
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    for condition in conditions_of(inspect.getsource(module)):
        yield _Removal(file, module, condition)


def _run(tests: Sequence[pytest.Item]) -> Iterator[None]:
    for test, following in itertools.zip_longest(tests, tests[1:]):
        signal.alarm(_MOST_SECONDS)
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        yield
    signal.alarm(0)


def _in_a_copy(work: Callable[[], Iterator[str]]) -> str:
    """Output of `work` in a fork of this process; its child processes end with it."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            with os.fdopen(writing, "w", buffering=1) as pipe:
                pipe.writelines(work())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(process, 0)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    return said or ("it hung or died" if status else "")


def main(arguments: list[str]) -> int:
    """Try the modules named in `arguments`. Returns 1 for errors."""
    modules = [one for one in arguments if not one.startswith("tests/")] or list(GUARDING)
    tests = [one for one in arguments if one.startswith("tests/")]
    if unknown := [one for one in modules if one not in GUARDING and not tests]:
        sys.stderr.write(f"no tests are known that see {', '.join(unknown)}: name some\n")
        return 2
    tests = tests or list(dict.fromkeys(test for module in modules for test in GUARDING[module].tests))
    one_by_one = _OneByOne(modules)
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["-q", "--no-header", "--tb=line", "--capture=no", "-p", "no:cacheprovider"]
        ended = pytest.main([*quiet, f"--basetemp={folder}/tests", *tests], plugins=[one_by_one])
    return 1 if one_by_one.faults or ended else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
