"""What is wrong or doubtful with the functions that settings would give: behind `rollcall check` and `selfcheck`."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Sequence
from enum import StrEnum
from pathlib import Path

from bot.schedule_plans import ScheduleFault
from bot.scratch import scratch_daemon
from config.diagnostics import Diagnostic, Severity
from config.settings import Settings
from config.yaml_document import YamlDocument
from function_calls.arguments import SchemaArguments
from function_calls.definition import DefinitionError
from function_calls.definition_faults import fault, faults_of
from function_calls.encodings import openai_tool
from function_calls.registry import BotFunctions
from function_calls.schema import UnusableSchema
from function_calls.sources.mcp_servers import TAG, prefix_of
from function_calls.spec import FunctionSpec
from services.llm.offline import contested_examples


class Code(StrEnum):
    """What can be found. Closed."""

    BAD_SCHEMA = "functions.bad_schema"
    UNKNOWN = "functions.unknown"
    NO_DESCRIPTION = "functions.no_description"
    UNDESCRIBED_PARAMETER = "functions.undescribed_parameter"
    RAW_TEXT = "functions.raw_text"
    READS_TEXT = "functions.reads_text"
    CONTESTED_EXAMPLE = "functions.contested_example"
    SCHEDULE = "functions.schedule"


async def check_functions(settings: Settings, document: YamlDocument | None = None) -> list[Diagnostic]:
    """Every finding. `document`: the file of the settings, for the places of what it says of functions."""
    try:
        async with scratch_daemon(settings) as daemon:
            specs, unusable = daemon.registry.specs, daemon.functions.faults
            functions_of = {bot: daemon.registry.of(bot) for bot in settings.bots}
            schedules = daemon.schedules.plans.of(settings.schedules)
    except DefinitionError as error:
        return faults_of(error)
    bad_schemas = {spec: problem for spec in specs if (problem := _schema_problem(spec))}
    found = list(unusable)
    found += [
        _finding(spec.source, Code.BAD_SCHEMA, f"function {spec.name!r}: {problem}", "error")
        for spec, problem in bad_schemas.items()
    ]
    found += _unknown_names(settings, specs)
    found += _unknown_tags(settings, specs)
    found += [_of_schedule(fault, document) for fault in schedules.faults]
    for spec in specs:
        found += _lints(spec)
    found += _text_readers(specs)
    for bot, functions in functions_of.items():
        sound = [spec for spec in functions.specs if spec not in bad_schemas]
        found += _contested(bot, functions, sound)
    return found


def text_reads(source: str) -> list[int]:
    """The lines in which a function reads `.text` of its first parameter, a MessageContext."""
    lines: list[int] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef) or not function.args.args:
            continue
        context = function.args.args[0]
        if not isinstance(context.annotation, ast.Name) or context.annotation.id != "MessageContext":
            continue
        lines += [
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and node.attr == "text"
            and isinstance(node.value, ast.Name)
            and node.value.id == context.arg
        ]
    return lines


def _schema_problem(spec: FunctionSpec) -> str:
    """Why no model can be told the parameters; empty when one can."""
    try:
        SchemaArguments(openai_tool(spec)["function"]["parameters"])
    except UnusableSchema as error:
        return str(error).splitlines()[0]
    return ""


def _unknown_names(settings: Settings, specs: Sequence[FunctionSpec]) -> list[Diagnostic]:
    known = {spec.name for spec in specs}
    named = [(name, f"functions.{name}") for name in settings.functions]
    named += [(name, "router.pinned") for name in settings.router.pinned]
    named += [(name, f"budgets.functions.{name}") for name in settings.budgets.functions]
    for key, bot in settings.bots.items():
        named += [(name, f"bots.{key}.functions.{name}") for name in bot.functions]
    for pattern, chat in settings.chats.settings.items():
        named += [(name, f"chats.settings.{pattern}.functions.{name}") for name in chat.functions]
    for index, rule in enumerate(settings.approvals.required):
        named += [(name, f"approvals.required[{index}].functions") for name in rule.functions]
    unseen = _prefixes_of_unseen_servers(settings, known)
    # An error: what was to be switched off, kept to some roles or paid for would be on for everybody.
    return [
        _finding("", Code.UNKNOWN, f"{place}: there is no function {name!r}{_near(name, known)}", "error")
        for name, place in named
        if name not in known and not name.startswith(unseen)
    ]


def _prefixes_of_unseen_servers(settings: Settings, known: Collection[str]) -> tuple[str, ...]:
    """What the functions of servers begin with that were never asked for their tools: nobody can say which they are."""
    prefixes = [prefix_of(one.name) for one in settings.mcp.servers]
    return tuple(prefix for prefix in prefixes if not any(name.startswith(prefix) for name in known))


def _unknown_tags(settings: Settings, specs: Sequence[FunctionSpec]) -> list[Diagnostic]:
    """Rules for approvals that would wait for nobody's yes."""
    known = {tag for spec in specs for tag in spec.tags}
    for server in settings.mcp.servers:
        known |= {TAG, *server.tags, *(tag for tool in server.tools.values() for tag in tool.tags)}
    return [
        _finding("", Code.UNKNOWN, f"approvals.required[{index}].tags: no function has the tag {tag!r}", "error")
        for index, rule in enumerate(settings.approvals.required)
        for tag in rule.tags
        if tag not in known
    ]


def _of_schedule(fault: ScheduleFault, document: YamlDocument | None) -> Diagnostic:
    """At its place in the file, where there is one."""
    message = f"schedules.{fault.name}.{fault.key}: {fault.message}"
    if document is None:
        return _finding("", Code.SCHEDULE, message, fault.severity)
    at = document.value_at(("schedules", fault.name, fault.key))
    return Diagnostic(document.file, at.line, at.column, Code.SCHEDULE.value, message, fault.severity)


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `rollcall functions` lists them"


def _lints(spec: FunctionSpec) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if not spec.description:
        text = f"function {spec.name!r} has no description: a model can only guess what it does"
        found.append(_finding(spec.source, Code.NO_DESCRIPTION, text))
    for name, schema in spec.parameters["properties"].items():
        if not schema.get("description"):
            text = f"function {spec.name!r}: parameter {name!r} has no description"
            found.append(_finding(spec.source, Code.UNDESCRIBED_PARAMETER, text))
        if name == "raw_text":
            text = f"function {spec.name!r} takes raw_text: give it typed parameters instead"
            found.append(_finding(spec.source, Code.RAW_TEXT, text))
    return found


def _text_readers(specs: Sequence[FunctionSpec]) -> list[Diagnostic]:
    """Handlers that find out for themselves what was meant."""
    files = dict.fromkeys(Path(spec.source.rpartition(":")[0]) for spec in specs)
    return [
        _finding(
            f"{file}:{line}", Code.READS_TEXT, "a handler reads the text of the message: give it parameters instead"
        )
        for file in files
        if file.suffix == ".py" and file.is_file()
        for line in text_reads(file.read_text(encoding="utf-8"))
    ]


def _contested(bot: str, functions: BotFunctions, sound: Sequence[FunctionSpec]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for name, example, winner, score in contested_examples(functions.offer(sound)):
        spec = functions.find(name)
        won = f"{winner!r} wins it ({score:.2f})" if winner else "nothing resembles it"
        text = f"bot {bot!r}, function {name!r}: the example {example!r} does not lead there: {won}"
        found.append(_finding(spec.source if spec else "", Code.CONTESTED_EXAMPLE, text))
    return found


def _finding(source: str, code: Code, message: str, severity: Severity = "warning") -> Diagnostic:
    """At `source`, which is a file with a line, a file, or empty."""
    return fault(source, message, code, severity)
