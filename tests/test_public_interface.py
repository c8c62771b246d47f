"""The public interface: the names of `rollcall` with their parameters and attributes, as listed in
tests/public_interface.txt.

python -m tests.test_public_interface --write    write the list after an intended change
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import rollcall

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).parent / "public_interface.txt"
NAMES_ALONE = {"FunctionCallRouter", "FunctionRegistry", "FunctionSpec", "Round", "Turn"}
"""Classes whose attributes are not part of the interface."""
NEVER_MADE = {"Call", "Invocation"}
"""Classes that are only passed to functions and filters."""
PACKAGES = ("rollcall", "bot", "function_calls", "services", "config")


def interface() -> list[str]:
    """A line for each public name, followed by a line for each public attribute of a class."""
    return [line for name in sorted(rollcall.__all__) for line in _lines(name, getattr(rollcall, name))]


def _lines(name: str, value: object) -> Iterator[str]:
    if name in NAMES_ALONE or not (isinstance(value, type) or inspect.isroutine(value)):
        yield name
        return
    yield name + (_parameters(value) if name not in NEVER_MADE and not _is_form(value) else "")
    if not isinstance(value, type):
        return
    fields = [one.name for one in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    for attribute in sorted({*fields, *dir(value)}):
        owner = next((one for one in value.__mro__ if attribute in vars(one)), value)
        if attribute.startswith("_") or owner.__module__ in ("builtins", "enum"):
            continue
        found = getattr(value, attribute, None)
        yield f"  {name}.{attribute}{_parameters(found) if inspect.isroutine(found) else ''}"


def _is_form(value: object) -> bool:
    return isinstance(value, type) and (issubclass(value, enum.Enum) or getattr(value, "_is_protocol", False))


def _parameters(function: Any) -> str:
    signature = inspect.signature(function)
    plain = [
        one.replace(annotation=one.empty, default=one.empty if one.default is one.empty else _DEFAULT)
        for one in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class _Default:
    def __repr__(self) -> str:
        return "…"


_DEFAULT = _Default()


def broken(listed: Sequence[str], now: Sequence[str]) -> list[str]:
    """Listed lines that are missing or different, and public names that are not listed. New attributes are
    compatible."""
    gone = [f"removed or changed: {line.strip()}" for line in listed if line not in now]
    return gone + [f"not listed: {line}" for line in now if line not in listed and not line.startswith(" ")]


def test_public_names_parameters_and_attributes_are_as_listed() -> None:
    problems = broken(LIST.read_text(encoding="utf-8").splitlines(), interface())
    assert problems == [], (
        "if that is meant, run `python -m tests.test_public_interface --write`, review the difference, and name in "
        "CHANGELOG.md what is removed or changed"
    )


@pytest.mark.parametrize(
    ("line", "becomes", "noticed"),
    [
        ("a_message(", None, True),
        ("a_message(", "a_message(text)", True),
        ("  Message.text", None, True),
        ("  Message.text", "  Message.words", True),
        ("  Message.text", "  Message.text\n  Message.words", False),
    ],
)
def test_only_what_breaks_programs_is_a_break(line: str, becomes: str | None, noticed: bool) -> None:
    listed = LIST.read_text(encoding="utf-8").splitlines()
    now: list[str] = []
    for one in listed:
        now += [one] if not one.startswith(line) else becomes.splitlines() if becomes else []
    assert now != listed
    assert bool(broken(listed, now)) == noticed


def test_every_public_name_is_importable_and_listed_by_dir() -> None:
    assert sorted(rollcall.__all__) == sorted(dir(rollcall))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rollcall.__getattr__("nothing")


def test_importing_the_package_imports_neither_the_daemon_nor_clients() -> None:
    program = (
        "import sys, rollcall\n"
        "late = {'bot', 'openai', 'aiohttp', 'alembic', 'sqlalchemy', 'starlette', 'apscheduler'} & set(sys.modules)\n"
        "sys.exit(' '.join(sorted(late)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_package_is_typed_checked_and_in_the_wheel() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    typed = {file.parent.name for file in ROOT.glob("*/py.typed")}
    assert typed == set(PACKAGES) == set(tool["mypy"]["packages"]) == set(tool["importlinter"]["root_packages"])
    assert tool["setuptools"]["packages"]["find"]["include"] == [f"{package}*" for package in PACKAGES]
    assert tool["setuptools"]["package-data"]["*"] == ["py.typed"]


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        LIST.write_text("\n".join(interface()) + "\n", encoding="utf-8")
