"""Project structure: folders, public modules, and rules of the code base."""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_top_level_folders_are_next_to_pyproject_toml() -> None:
    assert (ROOT / "pyproject.toml").is_file()
    for folder in ("bot", "function_calls", "services", "config", "tests", "logs"):
        assert (ROOT / folder).is_dir(), folder


@pytest.mark.requirement("D17")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("function_calls.spec", "FunctionSpec"),
        ("function_calls.spec", "FunctionResult"),
        ("function_calls.context", "MessageContext"),
        ("function_calls.registry", "FunctionRegistry"),
        ("function_calls.llm", "FunctionCallLLM"),
        ("function_calls.router", "FunctionCallRouter"),
    ],
)
def test_public_classes_are_in_their_documented_modules(module: str, name: str) -> None:
    assert isinstance(getattr(importlib.import_module(module), name), type)


@pytest.mark.requirement("D39")
def test_there_is_no_second_mechanism_or_folder_for_commands() -> None:
    python = [path for path in ROOT.rglob("*.py") if not {".venv", ".foreign"} & {*path.parts}]
    assert not [path for path in python if path.parent.name == "commands"]
    assert not (ROOT / "commands").exists()


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    types: Sequence[ast.expr | None] = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {getattr(caught, "id", "") for caught in types}
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
    return (handler.type is None or bool(names & {"Exception", "BaseException"})) and not raises


def _blind_handlers() -> Counter[str]:
    """Handlers that catch every exception and do not re-raise, as `file::qualified name`."""
    found: Counter[str] = Counter()

    def visit(node: ast.AST, file: str, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            is_named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            if isinstance(child, ast.ExceptHandler) and _catches_everything(child):
                found[f"{file}::{'.'.join(names)}"] += 1
            visit(child, file, (*names, child.name) if is_named else names)

    for folder in ("rollcall", "bot", "function_calls", "services", "config"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            visit(ast.parse(path.read_text()), path.relative_to(ROOT).as_posix(), ())
    return found


BLIND_HANDLERS = {
    "bot/cluster/requests.py::Requests._serve": "a failed request ends nothing but its asker's wait",
    "services/media/documents.py::document_to_json": "readers of documents raise anything; it runs in a child process",
    "bot/platforms/discord/gateway.py::Received.deliver": "an unexpected event must not hold up the later ones",
    "bot/delivery/delivery.py::Delivery._work_off": (
        "an adapter that breaks its contract must not stop delivery to the chat"
    ),
    "bot/engine/embedded.py::EmbeddedEngine._guarded": (
        "what a turn could not convert ends the process with a critical log entry"
    ),
    "bot/platforms/matrix/platform.py::MatrixPlatform._reader": "the event becomes an unreadable one",
    "bot/platforms/matrix/platform.py::MatrixPlatform._follow": (
        "the SDK may raise anything on events of other servers, which must not end the reception"
    ),
    "bot/timers/timer_dispatch.py::Timers._run": "a timer that cannot be dispatched must not block the others",
    "bot/turns/turns.py::Turns._answer_or_explain": "converts the failure of a turn into an answer",
    "function_calls/basic/library/library.py::ScriptLibrary._read": (
        "a compiler error in one script must not remove the others"
    ),
    "function_calls/basic/machine/machine.py::Machine.execute": "converts a keyword's failure into a script error",
    "function_calls/basic/machine/machine.py::Machine._begin": "converts a keyword's failure into a script error",
    "function_calls/basic/machine/machine.py::Machine._answer": "converts a keyword's failure into a script error",
    "function_calls/basic/run/driver.py::Metered.__await__": (
        "throws the exception, cancellation included, into the measured coroutine"
    ),
    "function_calls/command_tools/building.py::_Builder._system_prompt": (
        "an author's code may raise anything: a diagnostic of the file"
    ),
    "bot/platforms/connection.py::Acceptance.take": "an event that no parser expects is set aside for the operator",
    "bot/platforms/connection.py::Connection.keep": "errors of an SDK end the connection, which is made again",
    "bot/platforms/xmpp/stream.py::Stream._incoming": "an exception would end the stream",
    "function_calls/declaration.py::error_text": "the message of an author's exception may itself fail",
    "function_calls/invocation.py::Invoker._once": "converts the failure of a handler into a result",
    "function_calls/invocation.py::Invoker._log_end.log": "logs the failure of a run that nobody awaits any more",
    "function_calls/loading/module_functions.py::ModuleReader._mark": (
        "an author's types may raise anything: a diagnostic of the file"
    ),
    "function_calls/loading/module_functions.py::_info": (
        "an author's code may raise anything: a diagnostic of the file"
    ),
    "function_calls/loading/module_functions.py::_definitions": (
        "an author's code may raise anything: a diagnostic of the file"
    ),
    "function_calls/loading/module_functions.py::_bind_filters": (
        "an author's code may raise anything: a diagnostic of the file"
    ),
    "function_calls/loading/module_functions.py::_is_marked": (
        "a proxy object may raise on attribute access: it is no function"
    ),
    "function_calls/loading/module_loading.py::Edition.load": (
        "an author's module may raise anything on import: a diagnostic of the file"
    ),
    "function_calls/sources/python_modules.py::_Named._load": (
        "an installed module may raise anything on import: a diagnostic"
    ),
    "function_calls/sources/python_modules.py::_Announced.read": (
        "an entry point may raise anything on import: a diagnostic"
    ),
    "services/mcp/connection.py::Connection._run_client": "a failing MCP server is reported as unavailable",
    "services/threads.py::_outcome_of": "transfers the exception to the waiting task",
    "services/timers/scheduler.py::Ticker.every.run": "a failing periodic job must not end its later runs",
}
"""Handlers that may catch every exception, with the reason. A second handler in a function is a separate entry."""


def test_only_listed_handlers_catch_every_exception() -> None:
    found = _blind_handlers()
    assert found.keys() - BLIND_HANDLERS.keys() == set(), "list it with its reason, or catch narrower types"
    assert BLIND_HANDLERS.keys() - found.keys() == set(), "no longer there"
    assert {place: count for place, count in found.items() if count > 1} == {
        "services/threads.py::_outcome_of": 2,
    }
