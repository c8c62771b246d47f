"""Programs that command tools and servers of tools start and this machine does not have. A warning: another machine
may be the one that runs the daemon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.function_findings import Code, finding
from bot.unknown_names import in_settings
from config.diagnostics import Diagnostic
from config.settings import Settings
from config.yaml_document import YamlDocument
from function_calls.command_tools.definition import Definition, Step
from function_calls.command_tools.handler import CommandToolHandler
from function_calls.command_tools.words import Variable
from function_calls.spec import FunctionSpec
from services.processes import CannotStart
from services.programs import program


def check_programs(
    settings: Settings, specs: Iterable[FunctionSpec], document: YamlDocument | None
) -> list[Diagnostic]:
    """A warning for each, at its tool or its place in the settings."""
    found = [
        finding(spec.source, Code.NO_PROGRAM, f"function {spec.name!r}: {problem}")
        for spec in specs
        for problem in _problems_of_tool(spec)
    ]
    for index, server in enumerate(settings.mcp.servers):
        problem = _problem(server.command[0]) if server.command else ""
        if problem:
            at = ("mcp", "servers", index, "command")
            found.append(in_settings(document, at, problem, severity="warning", code=Code.NO_PROGRAM.value))
    return found


def _problems_of_tool(spec: FunctionSpec) -> list[str]:
    handler = getattr(spec.handler, "__self__", None)
    if not isinstance(handler, CommandToolHandler):
        return []
    names = [_program_of(step) for step in _steps(handler.tool)]
    return list(dict.fromkeys(filter(None, map(_problem, filter(None, names)))))


def _steps(tool: Definition) -> Iterator[Step]:
    yield from tool.steps
    if tool.on_exit is not None:
        yield tool.on_exit


def _program_of(step: Step) -> str:
    """Empty where arguments decide it, or there is none."""
    parts = step.words[0].parts if step.words else ()
    return "" if any(isinstance(part, Variable) for part in parts) else "".join(map(str, parts))


def _problem(name: str) -> str:
    try:
        program(name)
    except CannotStart as error:
        return f"{error}; it cannot run on this machine"
    return ""
