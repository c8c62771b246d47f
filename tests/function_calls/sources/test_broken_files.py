"""Broken Python files: their diagnostics, and the functions that stay available."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from function_calls.filters.call import Invocation, Proceed
from function_calls.spec import FunctionResult
from tests.function_calls.routing import Routing
from tests.function_calls.sources.watching import (
    HEAD,
    given_by,
    marked,
    modules_of,
    names,
    places,
    write,
)

# -- broken files


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("x = 1\ndef (\n", 2, "it cannot be imported: SyntaxError: "),
        ("import json\njson.loads('{')\n", 2, "it cannot be imported: JSONDecodeError: "),
        ("def f():\n    raise RuntimeError('boom')\nf()\n", 2, "RuntimeError: boom"),
        ("import no_such_module\n", 1, "No module named 'no_such_module'"),
        ("import sys\n\nsys.exit(3)\n", 3, "it ends the process while it is imported: SystemExit: 3"),
        ("def f():\n    f()\nf()\n", 2, "RecursionError"),
        ("x = '\0'\n", 1, "it cannot be imported"),
        ("", 1, "it gives no function: mark one with @tool_function, or write a function tools()"),
        ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd\n", 3, "imported: Odd"),
        ("class P:\n    def __getattr__(self, name): raise RuntimeError\np = P()\n", 1, "it gives no function"),
        ("tools = 5\n", 1, "it gives no function"),
        (
            "def tools(context):\n    return []\n",
            1,
            "it must not need parameters (context); if it is meant",
        ),
        (
            "\nasync def tools():\n    return []\n",
            2,
            "it has to return a list of definitions, not coroutine; leave out",
        ),
        ("def tools():\n    return 5\n", 1, "it has to return a list of definitions, not int"),
        ("def tools():\n    x = 1\n    return x['a']\n", 3, "tools() cannot be asked: TypeError"),
        ("def tools():\n    raise SystemExit(1)\n", 2, "tools() cannot be asked: SystemExit: 1"),
        ("def tools():\n    return ['act']\n", 1, "definition 1"),
        ("def tools():\n    return [{'name': 'act'}]\n", 1, "function 'act'"),
        ("def tools():\n    return []\ndef tool_info():\n    return 5\n", 3, "it has to return a mapping, not int"),
        ("def tools():\n    return []\ndef tool_info():\n    return {'tags': [5]}\n", 3, "tags: has to be a text"),
        ("def tools():\n    return []\ndef tool_info():\n    return {'description': 5}\n", 3, "description: has to be"),
    ],
)
@pytest.mark.requirement("E28", "E1", "E2")
async def test_a_broken_file_is_named_with_its_line_and_hides_no_other(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    write(tmp_path, "good.py", marked("good"))
    (tmp_path / "broken.py").write_bytes(text.encode())
    snapshot = await given_by(tmp_path)
    assert names(snapshot) == ["good"]
    [found] = snapshot.faults
    assert (found.file, found.line, found.severity) == (str(tmp_path / "broken.py"), line, "error")
    assert problem in found.message
    assert modules_of(tmp_path / "broken.py") == [] or "cannot be imported" not in found.message


async def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    [found] = (await given_by(tmp_path / "nowhere.py")).faults
    assert (found.file, found.message) == (
        str(tmp_path / "nowhere.py"),
        f"{tmp_path / 'nowhere.py'}: there is no such file or folder",
    )


@pytest.mark.requirement("E1", "E47", "E48")
async def test_a_wrong_definition_is_named_with_the_line_of_its_handler_and_its_siblings_serve(tmp_path: Path) -> None:
    write(
        tmp_path,
        "own.py",
        marked("greet")
        + "@tool_function(rolles='admin')\nasync def wrong(context: MessageContext) -> str:\n    return ''\n"
        + """
class Odd:
    pass

@tool_function(description='Has an odd model.')
async def odd(context: MessageContext, args: Odd) -> str:
    return ''

def act(args):
    return "done"

def tools():
    return [
        {"name": "good", "handler": act},
        {"name": "late", "handler": act, "timeout": "soon"},
        {"name": "misspelt", "handler": act, "paramters": {}},
        {"name": "nowhere", "handler": "no_such_module:f"},
        {"name": "deadly", "handler": "tests.function_calls.sources.ends_the_process:f"},
        {"name": "schema", "handler": act, "parameters": {"type": "object", "properties": 5}},
        {"handler": act},
        5,
    ]
""",
    )
    snapshot = await given_by(tmp_path)
    assert names(snapshot) == ["greet", "good"]
    assert places(snapshot) == [f"own.py:{line}" for line in (7, 14, 18, 18, 21, 21, 18, 21, 21)]
    said = [fault.message for fault in snapshot.faults]
    expected = [
        "rolles",
        "pydantic model",
        "timeout",
        "'parameters'",
        "no_such_module",
        "SystemExit",
        "schema",
        "name is",
    ]
    for message, word in zip(said, [*expected, "not int"], strict=True):
        assert word in message


async def test_a_file_of_a_package_that_looks_for_its_neighbour_is_told_how(tmp_path: Path) -> None:
    write(tmp_path, "pack/__init__.py", "")
    write(tmp_path, "pack/one.py", "import two\n")
    write(tmp_path, "pack/two.py", marked("two"))
    snapshot = await given_by(tmp_path)
    [fault] = snapshot.faults
    assert "within a package it is `from .two import …`" in fault.message
    assert names(snapshot) == ["two"]


async def test_the_traceback_of_a_run_shows_the_lines_of_the_file(tmp_path: Path) -> None:
    text = "@tool_function(description='Breaks.')\ndef act(c: MessageContext) -> str:\n    raise KeyError(1)  # here\n"
    write(tmp_path, "own.py", HEAD + text)
    [spec] = (await given_by(tmp_path)).specs
    shown: list[str] = []

    async def show(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        try:
            return await proceed(invocation)
        except KeyError as error:
            shown.extend(traceback.format_exception(error))
            raise

    await Routing(spec, filters=[show]).invoke("act")
    assert f'File "{tmp_path / "own.py"}", line 6' in "".join(shown)
    assert "# here" in "".join(shown)
