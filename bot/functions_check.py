"""What is wrong or doubtful with the functions that settings would give: behind `rollcall check` and `selfcheck`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from bot.scratch import scratch_daemon
from config.diagnostics import Diagnostic
from config.settings import Settings
from function_calls.definition import DefinitionError
from function_calls.spec import FunctionSpec
from services.llm.offline import contested_examples


class Code(StrEnum):
    """What can be found. Closed."""

    UNUSABLE = "functions.unusable"
    UNKNOWN = "functions.unknown"
    NO_DESCRIPTION = "functions.no_description"
    UNDESCRIBED_PARAMETER = "functions.undescribed_parameter"
    RAW_TEXT = "functions.raw_text"
    CONTESTED_EXAMPLE = "functions.contested_example"


async def check_functions(settings: Settings) -> list[Diagnostic]:
    """Every finding, errors first."""
    try:
        async with scratch_daemon(settings) as daemon:
            specs = daemon.registry.specs
            offers = {bot: daemon.registry.of(bot) for bot in settings.bots}
    except DefinitionError as error:
        return [_found("", Code.UNUSABLE, f"{error.where}: {problem}", "error") for problem in error.problems]
    found = _unknown_names(settings, specs)
    for spec in specs:
        found += _lints(spec)
    for bot, functions in offers.items():
        for name, example, winner, score in contested_examples(functions.offer(functions.specs)):
            named = functions.find(name)
            won = f"{winner!r} wins it ({score:.2f})" if winner else "nothing resembles it"
            text = f"bot {bot!r}, function {name!r}: the example {example!r} does not lead there: {won}"
            found.append(_found(named.source if named else "", Code.CONTESTED_EXAMPLE, text))
    return found


def _unknown_names(settings: Settings, specs: Sequence[FunctionSpec]) -> list[Diagnostic]:
    known = {spec.name for spec in specs}
    named: dict[str, str] = {name: f"functions.{name}" for name in settings.functions}
    for key, bot in settings.bots.items():
        named.update({name: f"bots.{key}.functions.{name}" for name in bot.functions})
    for pattern, chat in settings.chats.settings.items():
        named.update({name: f"chats.settings.{pattern}.functions.{name}" for name in chat.functions})
    return [
        _found("", Code.UNKNOWN, f"{place}: there is no function {name!r}; `rollcall functions` lists them")
        for name, place in named.items()
        if name not in known
    ]


def _lints(spec: FunctionSpec) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if not spec.description:
        text = f"function {spec.name!r} has no description: a model can only guess what it does"
        found.append(_found(spec.source, Code.NO_DESCRIPTION, text))
    for name, schema in spec.parameters["properties"].items():
        if not schema.get("description"):
            text = f"function {spec.name!r}: parameter {name!r} has no description"
            found.append(_found(spec.source, Code.UNDESCRIBED_PARAMETER, text))
        if name == "raw_text":
            text = f"function {spec.name!r} takes raw_text: give it typed parameters instead"
            found.append(_found(spec.source, Code.RAW_TEXT, text))
    return found


def _found(source: str, code: Code, message: str, severity: str = "warning") -> Diagnostic:
    file, _, line = source.rpartition(":")
    return Diagnostic(
        file or "functions", int(line) if line.isdigit() else 1, 1, code.value, message,
        "error" if severity == "error" else "warning",
    )  # fmt: skip
