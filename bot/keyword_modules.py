"""The modules of keywords for scripts: those of the package, and those that the operator names."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import function_calls.script_keywords
from function_calls.definition import DefinitionError
from function_calls.module_loading import Edition
from function_calls.python_units import is_private, units_at
from function_calls.source_places import last_place, told
from services.storage import StorageError

SETTING = "sources.basic_keywords"
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def built_in_keyword_modules() -> list[ModuleType]:
    """Every module of function_calls.script_keywords, in the order of their names."""
    package = function_calls.script_keywords
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__) if not is_private(found.name))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def own_keyword_modules(named: Sequence[str]) -> list[ModuleType]:
    """The modules that the settings name: a file or package by its path, or an installed module by its dotted name.
    They are imported as they are now and stay. Raises DefinitionError, which names all that cannot be."""
    modules: list[ModuleType] = []
    problems: list[str] = []
    for place, one in enumerate(named):
        try:
            modules += _imported(one)
        except DefinitionError as error:
            problems += [f"{SETTING}[{place}]: {problem}" for problem in error.problems]
    if problems:
        raise DefinitionError("keywords of scripts", problems)
    return modules


def _imported(named: str) -> Iterable[ModuleType]:
    path = Path(named).expanduser()
    if _is_path(named, path):
        return _of_path(path)
    try:
        return [importlib.import_module(named)]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an author's code may raise anything; it becomes a value
        place = last_place(error, __file__)
        raise DefinitionError(
            named, [f"{named} cannot be imported: {told(error)}{f' ({place})' if place else ''}"]
        ) from None


def _is_path(named: str, path: Path) -> bool:
    return _DOTTED.fullmatch(named) is None or named.endswith(".py") or path.exists()


def _of_path(path: Path) -> list[ModuleType]:
    try:
        units = units_at(path)
    except (StorageError, OSError) as error:
        raise DefinitionError(str(path), [f"{path} cannot be read: {error}"]) from None
    if not units:
        raise DefinitionError(str(path), [f"{path}: there is no Python file"])
    modules: list[ModuleType] = []
    problems: list[str] = []
    for unit in units:
        loaded, failed = Edition(unit).load()
        modules += loaded
        problems += [f"{one.message} ({one.file}:{one.line})" for one in failed]
    if problems:
        raise DefinitionError(str(path), problems)
    return modules
