"""The BASIC scripts of the settings: their keywords, their compiler, and the source that publishes them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import function_calls.script_keywords
from config.basic import BasicSettings
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.forms import Forms, form_of
from function_calls.basic.functions import ARITIES
from function_calls.basic.keywords import keyword_declaration

WORK = Path("work")
"""Below `home`: what was compiled, bot by bot."""


def keyword_modules() -> list[ModuleType]:
    """Every module of function_calls.script_keywords, in the order of their names."""
    package = function_calls.script_keywords
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def spellings_of(modules: Sequence[ModuleType]) -> tuple[str, ...]:
    """The forms of the keywords of these modules, as they are declared: all that is needed to read a script."""
    return tuple(
        form
        for module in modules
        for function in vars(module).values()
        if (declaration := keyword_declaration(function)) is not None
        for form in declaration.forms
    )


def compiler_of(settings: BasicSettings, spellings: Sequence[str]) -> BasicCompiler:
    """The compiler for scripts that may use these keywords. Raises BadForm."""
    forms = Forms(form_of(one) for one in spellings)
    return BasicCompiler(forms, ARITIES, settings.source_kilobytes * 1024, tuple(spellings))
