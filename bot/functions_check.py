"""What is wrong or doubtful with the functions that settings would give: behind `rollcall check` and `selfcheck`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from bot.function_findings import Code as Code
from bot.function_findings import finding
from bot.function_lints import lints
from bot.function_lints import text_reads as text_reads
from bot.groups_check import check_groups
from bot.schedule_plans import ScheduleFault
from bot.scratch import scratch_daemon
from config.diagnostics import Diagnostic
from config.settings import Settings
from config.yaml_document import Location, YamlDocument
from function_calls.arguments import SchemaArguments
from function_calls.definition import DefinitionError
from function_calls.definition_faults import faults_of
from function_calls.registry import BotFunctions
from function_calls.schema import UnusableSchema
from function_calls.schema_told import told
from function_calls.sources.mcp_servers import TAG, prefix_of
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
    found += _unknown_names(settings, specs, document)
    found += _unknown_tags(settings, specs, document)
    found += [_of_schedule(fault, document) for fault in schedules.faults]
    found += lints(specs, functions_of)
    found += check_groups(groups, specs)
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


def _unknown_names(
    settings: Settings, specs: Sequence[FunctionSpec], document: YamlDocument | None
) -> list[Diagnostic]:
    known = {spec.name for spec in specs}
    named: list[tuple[str, Location]] = [(name, ("functions", name)) for name in settings.functions]
    named += [(name, ("router", "pinned", index)) for index, name in enumerate(settings.router.pinned)]
    named += [(name, ("budgets", "functions", name)) for name in settings.budgets.functions]
    for key, bot in settings.bots.items():
        named += [(name, ("bots", key, "functions", name)) for name in bot.functions]
    for pattern, chat in settings.chats.settings.items():
        named += [(name, ("chats", "settings", pattern, "functions", name)) for name in chat.functions]
    for index, rule in enumerate(settings.approvals.required):
        named += [
            (name, ("approvals", "required", index, "functions", place)) for place, name in enumerate(rule.functions)
        ]
    tags = {tag for spec in specs for tag in spec.tags}
    for index, client in enumerate(settings.mcp.serve.clients):
        # There a tag stands for all functions that have it.
        at: Location = ("mcp", "serve", "clients", index, "functions")
        named += [(name, (*at, place)) for place, name in enumerate(client.functions) if name not in tags]
    unseen = _prefixes_of_unseen_servers(settings, known)
    # An error: what was to be switched off, kept to some roles or paid for would be on for everybody.
    return [
        _in_settings(document, location, f"there is no function {name!r}{_near(name, known)}")
        for name, location in named
        if name not in known and not name.startswith(unseen)
    ]


def _prefixes_of_unseen_servers(settings: Settings, known: Collection[str]) -> tuple[str, ...]:
    """What the functions of servers begin with that were never asked for their tools: nobody can say which they are."""
    prefixes = [prefix_of(one.name) for one in settings.mcp.servers]
    return tuple(prefix for prefix in prefixes if not any(name.startswith(prefix) for name in known))


def _unknown_tags(settings: Settings, specs: Sequence[FunctionSpec], document: YamlDocument | None) -> list[Diagnostic]:
    """Rules for approvals that would wait for nobody's yes."""
    known = {tag for spec in specs for tag in spec.tags}
    for server in settings.mcp.servers:
        known |= {TAG, *server.tags, *(tag for tool in server.tools.values() for tag in tool.tags)}
    return [
        _in_settings(document, ("approvals", "required", index, "tags", place), f"no function has the tag {tag!r}")
        for index, rule in enumerate(settings.approvals.required)
        for place, tag in enumerate(rule.tags)
        if tag not in known
    ]


def _in_settings(document: YamlDocument | None, location: Location, message: str) -> Diagnostic:
    """An error at its place in the file, where there is one."""
    # A name in a list is told by its list.
    keys = location[:-1] if isinstance(location[-1], int) else location
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")
    if document is None:
        return finding("", Code.UNKNOWN, f"{where}: {message}", "error")
    at = document.key_at(location)
    return Diagnostic(document.file, at.line, at.column, Code.UNKNOWN.value, f"{where}: {message}", "error")


def _of_schedule(fault: ScheduleFault, document: YamlDocument | None) -> Diagnostic:
    """At its place in the file, where there is one."""
    message = f"schedules.{fault.name}.{fault.key}: {fault.message}"
    if document is None:
        return finding("", Code.SCHEDULE, message, fault.severity)
    at = document.value_at(("schedules", fault.name, fault.key))
    return Diagnostic(document.file, at.line, at.column, Code.SCHEDULE.value, message, fault.severity)


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `rollcall functions` lists them"


def _contested(bot: str, functions: BotFunctions, sound: Sequence[FunctionSpec]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for name, example, winner, score in contested_examples(functions.offer(sound)):
        spec = functions.find(name)
        won = f"{winner!r} wins it ({score:.2f})" if winner else "nothing resembles it"
        text = f"bot {bot!r}, function {name!r}: the example {example!r} does not lead there: {won}"
        found.append(finding(spec.source if spec else "", Code.CONTESTED_EXAMPLE, text))
    return found
