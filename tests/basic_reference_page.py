"""docs/basic-reference.md: all statements, keywords and functions of scripts.

    python -m tests.basic_reference_page            check that the page is up to date
    python -m tests.basic_reference_page --write    generate it

Usage, description and effect are taken from the declarations of keywords and functions. Descriptions of the language's
statements, and the examples of keywords, are in docs/basic-reference.yaml; tests/docs/test_basic_reference_page.py runs
every example.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ruamel.yaml import YAML

from bot.registration.basic_scripts import built_in_keyword_modules
from function_calls.basic.functions import EXAMPLE_NOW, SUBJECTS, LanguageFunction
from function_calls.basic.keywords import KeywordDeclaration, keyword_declaration
from function_calls.basic.language.form_parts import usage_of
from function_calls.basic.language.forms import form_of
from function_calls.basic.values import joined
from services.refs import JsonValue

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "basic-reference.yaml"
PAGE = ROOT / "docs" / "basic-reference.md"
EFFECTS = {
    "read": "changes nothing",
    "idempotent": "done twice it is as done once",
    "once": "happens once, and is never repeated by itself",
}
TOUCHES = {
    "stays_here": "stays in this chat",
    "reaches_out": "reaches beyond the chat's own things",
    "reads_outside": "brings in words of others",
    "sends_out": "hands on what it is given",
}
_MANY = re.compile(r"(?:[A-Z]+\|){8,}[A-Z]+")
_SAME = re.compile(r"The same as (\w+)\.")

INTRODUCTION = f"""\
# Statements, keywords and functions of BASIC scripts

<!-- Made by `python -m tests.basic_reference_page --write` from the program and basic-reference.yaml. -->

[basic.md](basic.md) teaches the language; this page has all of it. In the forms, `[ ]` may be left out and `|` divides
what may stand there. In the examples, `' →` is what the chat hears and `' ←` what the member answers. Everything that
has a value may stand on the right of `=`, in `${{…}}` and as an argument, with its values in parentheses where that is
clearer: `FIND("people", "age > 30")`. Each example is run by a test. Keywords of your own are the affair of
[basic-keywords.md](basic-keywords.md).

The examples of functions hold on {EXAMPLE_NOW}.
"""


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword on the page."""

    name: str
    """First words of its first form."""
    subject: str
    declaration: KeywordDeclaration

    @property
    def forms(self) -> list[str]:
        """Usages of the keyword; the kinds of answers are shortened to one word."""
        return [_MANY.sub("kind", usage_of(form_of(form))) for form in self.declaration.forms]

    @property
    def kinds(self) -> list[str]:
        """The kinds of answers, if the list is too long for the usage."""
        usages = [usage_of(form_of(form)) for form in self.declaration.forms]
        return next((found[0].split("|") for usage in usages if (found := _MANY.search(usage))), [])


def keywords() -> list[Keyword]:
    """All built-in keywords, in the order of their modules."""
    return [one for module in built_in_keyword_modules() for one in _of(module)]


def read_examples(path: Path = EXAMPLES) -> dict[str, Any]:
    """The statements, and the example of each keyword by its name."""
    examples: dict[str, Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return examples


def faults(examples: Mapping[str, Any]) -> list[str]:
    """Missing examples, and examples without a keyword."""
    names = {one.name for one in keywords()}
    given = set(examples["keywords"])
    return [
        *(f"docs/basic-reference.yaml has no example of {name}" for name in sorted(names - given)),
        *(f"docs/basic-reference.yaml has an example of {name}, which is no keyword" for name in sorted(given - names)),
    ]


def render(examples: Mapping[str, Any]) -> str:
    """The generated page."""
    parts = [INTRODUCTION, "## Statements of the language\n"]
    for one in examples["statements"]:
        parts += [
            f"### {one['title']}\n",
            _text(one["forms"].splitlines()),
            f"{one['about']}\n",
            _basic(one["example"]),
        ]
    parts.append("## Keywords\n")
    for keyword in keywords():
        parts += _keyword(keyword, examples["keywords"][keyword.name])
    parts.append("## Functions\n")
    for subject, functions in SUBJECTS.items():
        parts += [f"### {subject}\n", _table(functions)]
    return "\n".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Write the page with `--write`, else compare it. Returns 1 for errors or an outdated page, else 0."""
    examples = read_examples()
    if complaints := faults(examples):
        sys.stderr.write("\n".join(complaints) + "\n")
        return 1
    page = render(examples)
    if "--write" in arguments:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.stderr.write("docs/basic-reference.md is stale: python -m tests.basic_reference_page --write\n")
        return 1
    return 0


def shown(value: JsonValue) -> str:
    """A value as a script prints it; texts are quoted."""
    if isinstance(value, str):
        return '"' + value.replace("\n", "\\n") + '"'
    return "nothing" if value is None else str(joined(value, ""))


def _of(module: ModuleType) -> Iterator[Keyword]:
    for function in vars(module).values():
        declaration = keyword_declaration(function)
        if declaration is not None and function.__module__ == module.__name__:
            yield Keyword(form_of(declaration.forms[0]).name, (module.__doc__ or "").split("\n")[0], declaration)


def _keyword(keyword: Keyword, example: str) -> list[str]:
    declaration = keyword.declaration
    effect = "; ".join([EFFECTS[declaration.effect], *(TOUCHES[touch] for touch in declaration.touches)])
    kinds = [f"Kinds: {', '.join(keyword.kinds)}.\n"] if keyword.kinds else []
    about = f"{declaration.description}\n"
    return [f"### {keyword.name}\n", _text(keyword.forms), about, *kinds, f"*{effect}*\n", _basic(example)]


def _text(forms: Sequence[str]) -> str:
    return "```text\n" + "\n".join(forms) + "\n```\n"


def _basic(example: str) -> str:
    return f"```basic\n{example.rstrip()}\n```\n"


def _table(functions: Sequence[LanguageFunction]) -> str:
    """Table of functions; aliases are in the row of the first name."""
    others: dict[str, list[str]] = {}
    for one in functions:
        if same := _SAME.fullmatch(one.about):
            others.setdefault(same[1].lower(), []).append(one.name.upper())
    rows = ["| function | gives | example |", "|---|---|---|"]
    for one in functions:
        if (same := _SAME.fullmatch(one.about)) and same[1].lower() in {other.name for other in functions}:
            continue
        also = f" Also {', '.join(f'`{name}`' for name in others[one.name])}." if one.name in others else ""
        about = f"{one.about}{also}"
        rows.append(f"| `{_cell(one.usage)}` | {_cell(about)} | `{_cell(one.example)}` → `{_cell(shown(one.gives))}` |")
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("\n", "\\n").replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
