"""Errors and warnings about functions, groups, programs and schedules of given settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from bot.checks.scratch import scratch_daemon
from bot.checks.scripts_check import doubts_of
from bot.registration.functions import built_in_plugins, plugins_of
from bot.registration.unknown_names import in_settings, unknown_names
from bot.timers.schedules import ScheduleProblem
from config.diagnostics import Diagnostic, Severity, did_you_mean
from config.settings import Settings
from config.yaml_document import YamlDocument
from function_calls.command_tools.run import CommandToolHandler
from function_calls.command_tools.word_templates import Definition, Step, Variable
from function_calls.registry import BotFunctions
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.definition import DefinitionError, problem_at, problems_of
from function_calls.schema.model_schema import schema_for_model
from function_calls.schema.schema import UnusableSchema
from function_calls.sources.mcp_servers import TAG
from function_calls.spec import Activation, FunctionSpec, OfferedTo, ToolGroup, Touch
from services.llm.offline.offline import contested_examples
from services.refs import Effect
from services.sandbox.processes import CannotStart, program
from services.text_index import is_unspaced


class Code(StrEnum):
    """Codes of diagnostics, a closed list."""

    BAD_SCHEMA = "functions.bad_schema"
    UNKNOWN = "functions.unknown"
    SCHEDULE = "functions.schedule"
    CONTESTED_EXAMPLE = "functions.contested_example"
    READS_TEXT = "functions.reads_text"
    RAW_TEXT = "functions.raw_text"
    NO_DESCRIPTION = "functions.no_description"
    THIN_DESCRIPTION = "functions.thin_description"
    UNDESCRIBED_PARAMETER = "functions.undescribed_parameter"
    UNCLEAR_PARAMETER = "functions.unclear_parameter"
    NO_EXAMPLES = "functions.no_examples"
    NO_TAGS = "functions.no_tags"
    NO_TIMEOUT = "functions.no_timeout"
    REFUSED_NAME = "functions.refused_name"
    NO_PROGRAM = "functions.no_program"
    GROUP_MEMBER = "functions.group_member"


def finding(source: str, code: Code, message: str, severity: Severity = "warning") -> Diagnostic:
    """A diagnostic at `source`: a file with a line, a file, or empty."""
    return problem_at(source, message, code, severity)


_WORD = re.compile(r"[^\W\d_]+|\d+")
_ARTICLES = frozenset({"a", "an", "the", "this", "its"})
_FEWEST_WORDS = 3
_FEWEST_SIGNS = 4
"""Minimum for a script without spaces."""
_PORTABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Parameter names that every provider accepts."""
_HAS_OPTIONS = frozenset({".py", ".yaml", ".yml"})
"""Suffixes of files whose functions support every option."""


def lints(specs: Sequence[FunctionSpec], functions_of: Mapping[str, BotFunctions]) -> list[Diagnostic]:
    """All warnings about `specs`. `functions_of`: the functions of each bot, for the names that models see."""
    ours = [spec for spec in specs if _file_of(spec).is_file()]
    found: list[Diagnostic] = []
    for spec in ours:
        found += [finding(spec.origin.source, code, f"function {spec.name!r}{text}") for code, text in _about(spec)]
    found += _refused_names(ours, functions_of)
    found += _text_readers(ours)
    return found


def text_reads(source: str) -> list[int]:
    """Line numbers where a function reads `.text` of its first parameter, a MessageContext. Raises SyntaxError for
    invalid source."""
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


def _file_of(spec: FunctionSpec) -> Path:
    return Path(spec.origin.source.rpartition(":")[0] or ".")


def _about(spec: FunctionSpec) -> Iterator[tuple[Code, str]]:
    if not spec.description:
        yield Code.NO_DESCRIPTION, " has no description: models know nothing else about it"
    elif spec.access.offered_to and (_is_thin(spec.description) or _repeats_name(spec.description, spec.name)):
        problem = f": the description {spec.description!r} hardly says more than the name"
        yield Code.THIN_DESCRIPTION, f"{problem}; say what it does and when to use it"
    for name, schema in spec.parameters["properties"].items():
        yield from _about_parameter(name, schema if isinstance(schema, dict) else {})
    if _file_of(spec).suffix in _HAS_OPTIONS:
        yield from _about_options(spec)


def _about_parameter(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[Code, str]]:
    description = schema.get("description")
    if not description:
        yield Code.UNDESCRIBED_PARAMETER, f": parameter {name!r} has no description"
    elif _repeats_name(str(description), name):
        yield Code.THIN_DESCRIPTION, f": the description of parameter {name!r} only repeats its name"
    if len(name) == 1:
        yield Code.UNCLEAR_PARAMETER, f": parameter {name!r} needs a descriptive name"
    if not _PORTABLE_NAME.fullmatch(name):
        text = f": some providers reject every request with a parameter named {name!r}"
        yield Code.REFUSED_NAME, f"{text}; use at most 64 of A-Z, a-z, 0-9, _, . and -"
    if name == "raw_text":
        yield Code.RAW_TEXT, " has a parameter raw_text: use typed parameters instead"


def _about_options(spec: FunctionSpec) -> Iterator[tuple[Code, str]]:
    by_itself = OfferedTo.MODEL in spec.access.offered_to and spec.prompt.activation is Activation.ALWAYS
    # A missing description is reported first.
    if by_itself and spec.description and not spec.prompt.examples:
        text = " has no examples: they are needed to find it among many functions"
        yield Code.NO_EXAMPLES, f"{text}, and by the offline model"
    if spec.execution.effect is not Effect.READ and not spec.origin.tags:
        yield Code.NO_TAGS, " has an effect and no tags: rules for approvals find functions by their tags"
    if "timeout_seconds" not in spec.origin.declared and (
        spec.execution.effect is Effect.ONCE or Touch.SENDS_OUT in spec.execution.touches
    ):
        then = "the outcome is then unknown" if spec.execution.effect is Effect.ONCE else "the request may take longer"
        seconds = f"{spec.execution.timeout_seconds:g} seconds"
        text = f" has no timeout of its own: it is stopped after {seconds}, and {then}; set timeout_seconds"
        yield Code.NO_TIMEOUT, text


def _is_thin(description: str) -> bool:
    if any(map(is_unspaced, description)):
        return len(description) < _FEWEST_SIGNS
    return len(_WORD.findall(description)) < _FEWEST_WORDS


def _repeats_name(description: str, name: str) -> bool:
    words = {word.casefold() for word in _WORD.findall(description)} - _ARTICLES
    return words <= {word.casefold() for word in _WORD.findall(_split(name))}


def _split(name: str) -> str:
    """`camelCase` as two words; other separators are not letters."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)


def _refused_names(specs: Sequence[FunctionSpec], functions_of: Mapping[str, BotFunctions]) -> Iterator[Diagnostic]:
    for spec in specs:
        offered = {
            functions.offered_name(spec.name)
            for functions in functions_of.values()
            if functions.find(spec.name) is spec and functions.offered_name(spec.name) != spec.name
        }
        if offered:
            shown = " or ".join(map(repr, sorted(offered)))
            text = f"function {spec.name!r}: providers reject this name, so it is offered to models as {shown}"
            yield finding(spec.origin.source, Code.REFUSED_NAME, text)


def _text_readers(specs: Sequence[FunctionSpec]) -> Iterator[Diagnostic]:
    """Handlers that parse the message text instead of taking parameters."""
    for file in dict.fromkeys(map(_file_of, specs)):
        if file.suffix != ".py":
            continue
        for line in text_reads(file.read_text(encoding="utf-8")):
            text = "a handler reads the text of the message: use parameters instead"
            yield finding(f"{file}:{line}", Code.READS_TEXT, text)


def check_groups(groups: Iterable[ToolGroup], specs: Iterable[FunctionSpec]) -> list[Diagnostic]:
    """A warning for each listed function that the bots of its group do not have."""
    everything = list(specs)
    found: list[Diagnostic] = []
    for group in groups:
        known = [
            one.name for one in everything if one.access.bot is None or group.bot is None or one.access.bot == group.bot
        ]
        for name in group.functions:
            if name in known:
                continue
            text = f"group {group.name!r}: there is no function {name!r}{did_you_mean(name, known)}"
            found.append(finding(group.source, Code.GROUP_MEMBER, text))
    return found


def check_programs(
    settings: Settings, specs: Iterable[FunctionSpec], document: YamlDocument | None
) -> list[Diagnostic]:
    """A warning for each program that cannot be started, at its tool or its place in the settings."""
    found = [
        finding(spec.origin.source, Code.NO_PROGRAM, f"function {spec.name!r}: {problem}")
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
    """The program of a step; empty if it is missing or depends on arguments."""
    parts = step.words[0].parts if step.words else ()
    return "" if any(isinstance(part, Variable) for part in parts) else "".join(map(str, parts))


def _problem(name: str) -> str:
    try:
        program(name)
    except CannotStart as error:
        return f"{error}; it cannot run on this machine"
    return ""


async def check_functions(settings: Settings, document: YamlDocument | None = None) -> list[Diagnostic]:
    """All diagnostics on functions. `document`: the settings file, for the places of names in it."""
    try:
        async with scratch_daemon(settings) as daemon:
            specs, groups, unusable = daemon.registry.specs, daemon.registry.groups, daemon.functions.faults
            functions_of = {bot: daemon.registry.of(bot) for bot in settings.bots}
            schedules = daemon.settings_schedules.plans.of(settings.schedules)
    except DefinitionError as error:
        return problems_of(error)
    bad_schemas = {spec: problem for spec in specs if (problem := _schema_problem(spec))}
    found = list(unusable)
    found += [
        finding(spec.origin.source, Code.BAD_SCHEMA, f"function {spec.name!r}: {problem}", "error")
        for spec, problem in bad_schemas.items()
    ]
    # An error: a function meant to be disabled, restricted or budgeted would be available to everybody.
    found += [in_settings(document, *one) for one in unknown_names(settings, specs)]
    found += _unknown_tags(settings, specs, document)
    found += [_of_schedule(fault, document) for fault in schedules.faults]
    found += doubts_of(settings)
    found += lints(specs, functions_of)
    found += check_groups(groups, specs)
    found += check_programs(settings, specs, document)
    for bot, functions in functions_of.items():
        sound = [spec for spec in functions.specs if spec not in bad_schemas]
        found += _contested(bot, functions, sound)
    return found


def _schema_problem(spec: FunctionSpec) -> str:
    """Why the parameters cannot be sent to models; empty if they can."""
    try:
        SchemaArguments(spec.parameters)
        SchemaArguments(schema_for_model(spec.parameters))
    except UnusableSchema as error:
        return str(error).splitlines()[0]
    return ""


def _unknown_tags(settings: Settings, specs: Sequence[FunctionSpec], document: YamlDocument | None) -> list[Diagnostic]:
    """Approval rules with unknown tags, which would never require an approval."""
    known = {tag for spec in specs for tag in spec.origin.tags}
    for server in settings.mcp.servers:
        known |= {TAG, *server.tags, *(tag for tool in server.tools.values() for tag in tool.tags)}
    return [
        in_settings(document, ("approvals", "required", index, "tags", place), f"no function has the tag {tag!r}")
        for index, rule in enumerate(settings.approvals.required)
        for place, tag in enumerate(rule.tags)
        if tag not in known
    ]


def _of_schedule(fault: ScheduleProblem, document: YamlDocument | None) -> Diagnostic:
    """The diagnostic, at its place in the file if there is a file."""
    message = f"schedules.{fault.name}.{fault.key}: {fault.message}"
    if document is None:
        return finding("", Code.SCHEDULE, message, fault.severity)
    at = document.value_at(("schedules", fault.name, fault.key))
    return Diagnostic(document.file, at.line, at.column, Code.SCHEDULE.value, message, fault.severity)


def _contested(bot: str, functions: BotFunctions, sound: Sequence[FunctionSpec]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for name, example, winner, score in contested_examples(functions.offer(sound)):
        spec = functions.find(name)
        won = f"matches {winner!r} instead ({score:.2f})" if winner else "matches no function"
        text = f"bot {bot!r}, function {name!r}: the example {example!r} {won}"
        found.append(finding(spec.origin.source if spec else "", Code.CONTESTED_EXAMPLE, text))
    return found


class ProcessUse(NamedTuple):
    """Functions that start processes."""

    name: str
    """The setting that adds them."""
    needs_sandbox: bool
    """Whether its functions refuse to run without isolation."""


def processes_of(settings: Settings) -> Sequence[ProcessUse]:
    """All functions that start processes. For command tools, each tool file declares whether it needs the sandbox."""
    is_required = settings.sandbox.isolation == "required"
    built_in = built_in_plugins()
    found: list[ProcessUse] = []
    if settings.sources.commands:
        found.append(ProcessUse("sources.commands", is_required))
    if any(plugin.module == built_in["shell"] for plugin in plugins_of(settings, built_in)):
        found.append(ProcessUse("the plugin shell", needs_sandbox=True))
    for server in settings.mcp.servers:
        if server.command and (is_required or server.sandbox != "off"):
            found.append(ProcessUse(f"mcp.servers {server.name}", is_required or server.sandbox == "required"))
    return found
