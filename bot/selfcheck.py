"""The checklist that every set of functions passes before it serves: run on the wired registry."""

from __future__ import annotations

import ast
from pathlib import Path

from bot.functions import built_in_modules
from bot.functions_check import Code, check_functions
from bot.scratch import scratch_daemon
from config.diagnostics import Diagnostic
from config.settings import Settings
from function_calls.arguments import SchemaArguments
from function_calls.definition import DefinitionError
from function_calls.encodings import openai_tool
from function_calls.schema import UnusableSchema


async def self_check(settings: Settings) -> dict[str, list[Diagnostic]]:
    """For each check what it found; all lists empty means good."""
    found = await check_functions(settings)
    unusable = [one for one in found if one.code == Code.UNUSABLE]
    return {
        "every name and command is taken once, and every definition can be used": unusable,
        "every schema is valid and can be told to a model": [] if unusable else await _bad_schemas(settings),
        "no handler reads the text of a message": [
            *_text_readers(),
            *(one for one in found if one.code == Code.RAW_TEXT),
        ],
        "there is a native protocol with function calling": _protocols(settings),
    }


async def _bad_schemas(settings: Settings) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    try:
        async with scratch_daemon(settings) as daemon:
            for spec in daemon.registry.specs:
                try:
                    SchemaArguments(openai_tool(spec)["function"]["parameters"])
                except UnusableSchema as error:
                    found.append(Diagnostic(spec.source, 1, 1, Code.UNUSABLE.value, f"function {spec.name!r}: {error}"))
    except DefinitionError as error:
        found.append(Diagnostic("functions", 1, 1, Code.UNUSABLE.value, str(error)))
    return found


def _text_readers() -> list[Diagnostic]:
    """Handlers of ours that read `.text` of their context."""
    found: list[Diagnostic] = []
    for module in built_in_modules():
        file = Path(str(module.__file__))
        for line in text_reads(file.read_text(encoding="utf-8")):
            found.append(Diagnostic(file.name, line, 1, Code.RAW_TEXT.value, "a handler reads the message's text"))
    return found


def text_reads(source: str) -> list[int]:
    """The lines in which a function reads `.text` of its first parameter."""
    lines: list[int] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef) or not function.args.args:
            continue
        context = function.args.args[0].arg
        annotation = function.args.args[0].annotation
        if not isinstance(annotation, ast.Name) or annotation.id != "MessageContext":
            continue
        lines += [
            node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and node.attr == "text"
            and isinstance(node.value, ast.Name)
            and node.value.id == context
        ]
    return lines


def _protocols(settings: Settings) -> list[Diagnostic]:
    native = {"openai"}
    if not settings.models or any(model.protocol in native for model in settings.models):
        return []
    return [Diagnostic("models", 1, 1, "models.no_native_protocol", "no model in the settings has function calling")]
