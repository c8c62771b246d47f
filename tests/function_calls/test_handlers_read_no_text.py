"""Static check of handlers: arguments come from the schema, never from the text of the message."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HANDLERS = Path(__file__).resolve().parents[2] / "function_calls" / "handlers"
PLATFORMS = ("bot", "openai", "sqlalchemy", "apscheduler", "tenacity")


def texts_read(source: str) -> list[int]:
    """Lines in which a function reads `.text` of its MessageContext, under any name."""
    lines: list[int] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        contexts = {
            one.arg
            for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            if one.annotation is not None and "MessageContext" in ast.unparse(one.annotation)
        }
        lines += [
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and node.attr == "text"
            and isinstance(node.value, ast.Name)
            and node.value.id in contexts
        ]
    return lines


@pytest.mark.requirement("D13", "D36", "D68")
def test_no_handler_reads_the_text_of_the_message() -> None:
    modules = sorted(HANDLERS.rglob("*.py"))
    assert len(modules) > 15
    assert {str(file): texts_read(file.read_text(encoding="utf-8")) for file in modules} == {
        str(file): [] for file in modules
    }


def test_the_check_finds_a_handler_that_does() -> None:
    source = "async def f(message: MessageContext, args: A) -> B:\n    reply = args.text\n    return g(message.text)\n"
    assert texts_read(source) == [3]


@pytest.mark.requirement("D4", "D35")
def test_no_handler_imports_the_daemon_or_a_library_of_the_services() -> None:
    for file in HANDLERS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in PLATFORMS], file.name


@pytest.mark.requirement("D1")
def test_choosing_and_running_have_no_table_of_patterns_for_messages() -> None:
    router = (HANDLERS.parent / "router.py").read_text(encoding="utf-8")
    registry = (HANDLERS.parent / "registry.py").read_text(encoding="utf-8")
    imported = {
        one.name
        for source in (router, registry)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for one in node.names
    }
    assert "re" not in imported
