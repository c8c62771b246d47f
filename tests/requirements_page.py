"""docs/requirements.md: each requirement as a sentence, with the tests that cover it.

    python -m tests.requirements_page            check that the page is up to date
    python -m tests.requirements_page --write    generate it

The sentences are in docs/requirements.yaml. The tests are found by their `@pytest.mark.requirement("A1", "B2")`, which
is parsed without importing the module: on a test, on a class, in `pytestmark`, or in the marks of a parameter set.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
SENTENCES = ROOT / "docs" / "requirements.yaml"
PAGE = ROOT / "docs" / "requirements.md"
TESTS = ROOT / "tests"

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Section(NamedTuple):
    """Requirements with the same letter, numbered from 1."""

    letter: str
    last: int
    title: str


SECTIONS = (
    Section("A", 63, "BASIC scripts as functions"),
    Section("B", 32, "The MCP form"),
    Section("C", 28, "Functions made of commands, and calls written as text"),
    Section("D", 68, "One way from a message to a function"),
    Section("E", 51, "Definitions in every form, and the built-in tools"),
    Section("F", 9, "Where the demands differ"),
)
IDS = frozenset(f"{section.letter}{number}" for section in SECTIONS for number in range(1, section.last + 1))

INTRODUCTION = """\
# Requirements

<!-- Made by `python -m tests.requirements_page --write` from requirements.yaml and the marks of the tests. -->

Requirements of Rollcall and the tests that show them. *Shown*: at least one test is marked with the requirement, and
fails when it is broken. A requirement *not yet* shown may be missing or merely untested.
"""


class Shown(NamedTuple):
    """A test that covers a requirement."""

    file: str
    """Relative to tests/, with forward slashes."""
    test: str
    """Name of the test, `Class::test` in a class, or empty for all tests of the file."""


def read_sentences(path: Path = SENTENCES) -> dict[str, str]:
    """The sentence of each requirement, by ID. Raises ruamel's DuplicateKeyError for a repeated ID."""
    sentences: dict[str, str] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return sentences


def collect(folder: Path = TESTS) -> dict[str, list[Shown]]:
    """The marked tests below `folder`, by ID, in the order of file and line. Raises ValueError with file and line for a
    mark whose IDs are not string literals."""
    found: dict[str, list[Shown]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        file = path.relative_to(folder).as_posix()
        for requirement, test in _marks_in(ast.parse(path.read_text(encoding="utf-8")), file):
            tests = found.setdefault(requirement, [])
            if Shown(file, test) not in tests:
                tests.append(Shown(file, test))
    return found


def faults(sentences: Mapping[str, str], shown: Mapping[str, Sequence[Shown]]) -> list[str]:
    """Errors in the sentences and marks, one line each."""
    return [
        *(f"docs/requirements.yaml has no sentence for {name}" for name in in_order(IDS - sentences.keys())),
        *(f"docs/requirements.yaml describes {name}, which is unknown" for name in in_order(sentences.keys() - IDS)),
        *(
            f"tests/{test.file}: {test.test or 'pytestmark'} is marked {name}, which is unknown"
            for name in in_order(shown.keys() - IDS)
            for test in shown[name]
        ),
    ]


def render(sentences: Mapping[str, str], shown: Mapping[str, Sequence[Shown]]) -> str:
    """The generated page."""
    done = sum(1 for name in IDS if shown.get(name))
    parts = [INTRODUCTION, f"{done} of {len(IDS)} are shown.\n"]
    for section in SECTIONS:
        parts.append(f"## {section.letter}. {section.title}\n")
        parts.append("| ID | Requirement | Status | Tests |\n|---|---|---|---|")
        names = [f"{section.letter}{number}" for number in range(1, section.last + 1)]
        parts.append("\n".join(_line(name, sentences.get(name, ""), shown.get(name, ())) for name in names) + "\n")
    return "\n".join(parts)


def in_order(names: Iterable[str]) -> list[str]:
    """IDs sorted by letter, then by number; invalid IDs are last."""

    def key(name: str) -> tuple[str, int, str]:
        match = re.fullmatch(r"([A-Z])(\d+)", name)
        return (match[1], int(match[2]), "") if match else ("~", 0, name)

    return sorted(names, key=key)


def main(arguments: Sequence[str]) -> int:
    """Write the page with `--write`, else compare it. Returns 1 for errors or an outdated page, else 0."""
    sentences, shown = read_sentences(), collect()
    if complaints := faults(sentences, shown):
        sys.stderr.write("\n".join(complaints) + "\n")
        return 1
    page = render(sentences, shown)
    if "--write" in arguments:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.stderr.write("docs/requirements.md is stale: python -m tests.requirements_page --write\n")
        return 1
    return 0


def _line(name: str, sentence: str, tests: Sequence[Shown]) -> str:
    by_file: dict[str, list[str]] = {}
    for file, test in tests:
        by_file.setdefault(file, []).append(test)
    cells = [
        f"[{file}](../tests/{file})" + (": " if any(names) else "") + ", ".join(f"`{test}`" for test in names if test)
        for file, names in by_file.items()
    ]
    return f"| {name} | {sentence} | {'shown' if tests else 'not yet'} | {'; '.join(cells)} |"


def _marks_in(module: ast.Module, file: str) -> Iterator[tuple[str, str]]:
    """(ID, test) for each mark of a file."""
    for requirement in _assigned(module.body, file):
        yield requirement, ""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            of_class = [*_decorated(node, file), *_assigned(node.body, file)]
            for test in filter(_is_test, node.body):
                for requirement in [*of_class, *_decorated(test, file)]:
                    yield requirement, f"{node.name}::{test.name}"
        elif _is_test(node):
            for requirement in _decorated(node, file):
                yield requirement, node.name


def _is_test(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def _assigned(body: Iterable[ast.stmt], file: str) -> list[str]:
    """IDs in `pytestmark = …`."""
    return [
        requirement
        for node in body
        if isinstance(node, ast.Assign) and "pytestmark" in (ast.unparse(target) for target in node.targets)
        for requirement in _required_by(node.value, file)
    ]


def _decorated(node: Definition, file: str) -> list[str]:
    """IDs in the decorators of `node`, including those of parameter sets."""
    return [requirement for decorator in node.decorator_list for requirement in _required_by(decorator, file)]


def _required_by(expression: ast.expr, file: str) -> Iterator[str]:
    for call in ast.walk(expression):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.requirement":
            for argument in call.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise ValueError(f"tests/{file}:{call.lineno}: give the requirement's ID as a plain string")
                yield argument.value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
