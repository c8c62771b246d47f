"""`rollcall functions`: the functions of a bot, as a table, in a provider's spelling, or as a page of documentation."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from bot.cli.options import add_config, settings_or_faults
from bot.scratch import scratch_daemon
from config.diagnostics import Diagnostic
from config.settings import DEFAULT_BOT
from function_calls.definition import DefinitionError
from function_calls.encodings import anthropic_tool, mcp_tool, openai_bare, openai_tool
from function_calls.spec import FunctionSpec
from function_calls.usage import usage_line
from services.refs import Role

_ENCODERS = {"openai": openai_tool, "openai-bare": openai_bare, "anthropic": anthropic_tool, "mcp": mcp_tool}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command."""
    parser = commands.add_parser("functions", help="list the functions, or show one", description=__doc__)
    parser.add_argument("name", nargs="?", help="only this one")
    parser.add_argument("--format", default="table", choices=["table", *_ENCODERS, "markdown"])
    parser.add_argument("--bot", default=DEFAULT_BOT, help="the bot whose functions are meant")
    add_config(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print them. 1: the settings or a function cannot be used, or there is no function of that name."""
    settings = settings_or_faults(options)
    if settings is None:
        return 1
    if options.bot not in settings.bots:
        print(f"there is no bot {options.bot!r}; the settings name {', '.join(settings.bots)}", file=sys.stderr)
        return 1

    async def specs() -> tuple[Sequence[FunctionSpec], Sequence[Diagnostic]]:
        async with scratch_daemon(settings) as daemon:
            return daemon.registry.of(options.bot).specs, daemon.functions.faults

    try:
        found, unusable = asyncio.run(specs())
    except DefinitionError as error:
        print(error, file=sys.stderr)
        return 1
    for one in unusable:
        print(one, file=sys.stderr)
    if options.name:
        found = tuple(spec for spec in found if spec.name == options.name)
        if not found:
            print(f"there is no function {options.name!r}; `rollcall functions` lists them", file=sys.stderr)
            return 1
    print(_rendered(found, options.format))
    return 1 if unusable else 0


def _rendered(specs: Sequence[FunctionSpec], style: str) -> str:
    if style in _ENCODERS:
        return json.dumps([_ENCODERS[style](spec) for spec in specs], indent=2, ensure_ascii=False)
    return _markdown(specs) if style == "markdown" else _table(specs)


def _table(specs: Sequence[FunctionSpec]) -> str:
    rows = [("NAME", "USAGE", "EFFECT", "WHERE", "WHO", "DESCRIPTION")]
    rows += [
        (spec.name, usage_line(spec), spec.effect.value, spec.scope, _who(spec), spec.description) for spec in specs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]) for row in rows
    )


def _markdown(specs: Sequence[FunctionSpec]) -> str:
    """An inventory: what each function takes, gives and changes, who may call it, and where it is defined."""
    lines: list[str] = []
    for spec in specs:
        lines += [f"## {spec.name}", "", spec.description, ""]
        lines += [
            f"- usage: `{usage_line(spec)}`",
            f"- effect: {spec.effect.value}; where: {spec.scope}; who: {_who(spec)}",
        ]
        if spec.commands:
            lines.append(f"- commands: {', '.join(f'`/{word}`' for word in spec.commands)}")
        required = spec.parameters["required"]
        for name, schema in spec.parameters["properties"].items():
            need = "required" if name in required else "optional"
            lines.append(f"- `{name}` ({schema.get('type', 'any')}, {need}): {schema.get('description', '')}")
        if spec.result_schema is not None:
            lines.append(f"- returns: `{json.dumps(spec.result_schema, ensure_ascii=False)}`")
        lines += [f"- example: {example}" for example in spec.examples[:3]]
        lines += [f"- defined in: {spec.source}", ""]
    return "\n".join(lines)


def _who(spec: FunctionSpec) -> str:
    if spec.roles == frozenset(Role):
        return "everybody"
    return ", ".join(role.value for role in Role if role in spec.roles)
