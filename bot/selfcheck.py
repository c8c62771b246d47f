"""The checklist that every set of functions passes before it serves: run on the wired registry."""

from __future__ import annotations

from bot.functions_check import Code, check_functions
from config.diagnostics import Diagnostic, Position
from config.settings import Settings
from config.yaml_document import YamlDocument
from function_calls.definition_faults import Code as Unfit

_NATIVE_PROTOCOLS = frozenset({"openai", "anthropic", "function"})


async def self_check(settings: Settings, document: YamlDocument | None = None) -> dict[str, list[Diagnostic]]:
    """For each check what it found; all lists empty means good. `document`: the file of the settings, for places."""
    found = await check_functions(settings, document)

    def of(*codes: Code | Unfit) -> list[Diagnostic]:
        return [one for one in found if one.code in codes]

    return {
        "every name and command is taken once, and every definition can be used": of(Unfit.UNUSABLE, Unfit.TAKEN),
        "every schema is valid and can be told to a model": of(Code.BAD_SCHEMA),
        "no handler reads the text of a message": of(Code.READS_TEXT, Code.RAW_TEXT),
        "there is a native protocol with function calling": _without_native_protocol(settings, document),
    }


def _without_native_protocol(settings: Settings, document: YamlDocument | None) -> list[Diagnostic]:
    if not settings.models or any(model.protocol in _NATIVE_PROTOCOLS for model in settings.models):
        return []
    file, at = ("models", Position(1, 1)) if document is None else (document.file, document.key_at(("models",)))
    message = "no model in the settings has function calling: give one the protocol openai, anthropic or function"
    return [Diagnostic(file, at.line, at.column, "models.no_native_protocol", message)]
