"""What is wrong or doubtful with the functions that settings would give: behind `rollcall check` and `selfcheck`."""

from __future__ import annotations

from collections.abc import Sequence

from bot.function_findings import Code as Code
from bot.function_findings import finding
from bot.function_lints import lints
from bot.function_lints import text_reads as text_reads
from bot.groups_check import check_groups
from bot.programs_check import check_programs
from bot.schedule_plans import ScheduleFault
from bot.scratch import scratch_daemon
from bot.scripts_check import doubts_of
from bot.unknown_names import in_settings, unknown_names
from config.diagnostics import Diagnostic
from config.settings import Settings
from config.yaml_document import YamlDocument
from function_calls.arguments import SchemaArguments
from function_calls.definition import DefinitionError
from function_calls.definition_faults import faults_of
from function_calls.registry import BotFunctions
from function_calls.schema import UnusableSchema
from function_calls.schema_told import told
from function_calls.sources.mcp_servers import TAG
from function_calls.spec import FunctionSpec
from services.llm.offline import contested_examples


async def check_functions(settings: Settings, document: YamlDocument | None = None) -> list[Diagnostic]:
    """Every finding. `document`: the file of the settings, for the places of what it says of functions."""
    try:
        async with scratch_daemon(settings) as daemon:
            specs, groups, unusable = daemon.registry.specs, daemon.registry.groups, daemon.functions.faults
            functions_of = {bot: daemon.registry.of(bot) for bot in settings.bots}
            schedules = daemon.schedules.plans.of(settings.schedules)
    except DefinitionError as error:
        return faults_of(error)
    bad_schemas = {spec: problem for spec in specs if (problem := _schema_problem(spec))}
    found = list(unusable)
    found += [
        finding(spec.source, Code.BAD_SCHEMA, f"function {spec.name!r}: {problem}", "error")
        for spec, problem in bad_schemas.items()
    ]
    # An error: what was to be switched off, kept to some roles or paid for would be on for everybody.
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
    """Why no model can be told the parameters; empty when one can."""
    try:
        SchemaArguments(spec.parameters)
        SchemaArguments(told(spec.parameters))
    except UnusableSchema as error:
        return str(error).splitlines()[0]
    return ""


def _unknown_tags(settings: Settings, specs: Sequence[FunctionSpec], document: YamlDocument | None) -> list[Diagnostic]:
    """Rules for approvals that would wait for nobody's yes."""
    known = {tag for spec in specs for tag in spec.tags}
    for server in settings.mcp.servers:
        known |= {TAG, *server.tags, *(tag for tool in server.tools.values() for tag in tool.tags)}
    return [
        in_settings(document, ("approvals", "required", index, "tags", place), f"no function has the tag {tag!r}")
        for index, rule in enumerate(settings.approvals.required)
        for place, tag in enumerate(rule.tags)
        if tag not in known
    ]


def _of_schedule(fault: ScheduleFault, document: YamlDocument | None) -> Diagnostic:
    """At its place in the file, where there is one."""
    message = f"schedules.{fault.name}.{fault.key}: {fault.message}"
    if document is None:
        return finding("", Code.SCHEDULE, message, fault.severity)
    at = document.value_at(("schedules", fault.name, fault.key))
    return Diagnostic(document.file, at.line, at.column, Code.SCHEDULE.value, message, fault.severity)


def _contested(bot: str, functions: BotFunctions, sound: Sequence[FunctionSpec]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for name, example, winner, score in contested_examples(functions.offer(sound)):
        spec = functions.find(name)
        won = f"{winner!r} wins it ({score:.2f})" if winner else "nothing resembles it"
        text = f"bot {bot!r}, function {name!r}: the example {example!r} does not lead there: {won}"
        found.append(finding(spec.source if spec else "", Code.CONTESTED_EXAMPLE, text))
    return found
