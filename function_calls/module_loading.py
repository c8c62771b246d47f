"""Python modules out of files, as often as the files change: each time under new names, so that what is in use goes on
undisturbed until it is replaced, and nothing of a broken change stays behind."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import uuid
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from config.diagnostics import Diagnostic
from function_calls.definition import DefinitionError
from function_calls.definition_faults import fault
from function_calls.python_units import Unit, units_at
from function_calls.source_places import shortened, told, where_it_broke

_EDITION = re.compile(r"rollcall_\w*_[0-9a-f]{12}(\.|$)")


class _FromBytes(SourceFileLoader):
    """Compiles what is in the file now; a compiled file from before is neither read nor written."""

    digest = ""
    """Of what was compiled."""

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        self.digest = hashlib.sha256(content).hexdigest()
        # Typed as code alone, because of the mode.
        code: CodeType = compile(content, self.path, "exec", dont_inherit=True)
        return code


class _Finder(MetaPathFinder):
    """Lets Python's own import find modules by the names that they were given here."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[Path, bool]] = {}
        """The file of each name, and whether it is a package."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = self.files.get(name)
        if found is None:
            return None
        file, is_package = found
        folders = [str(file.parent)] if is_package else None
        loader = _FromBytes(name, str(file))
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=folders)


def _finder() -> _Finder:
    """The one in Python's list. It stays there: taking one out lets imports of other threads miss the next one."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    own = _Finder()
    sys.meta_path.insert(0, own)
    return own


class Edition:
    """The modules of a unit, as its files are when they are loaded."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.name = f"rollcall_{re.sub(r'[^a-zA-Z0-9_]', '_', unit.name)}_{uuid.uuid4().hex[:12]}"
        """Of its first module. No other edition has it."""
        self._modules = {self._full(name): (file.absolute(), is_package) for name, file, is_package in unit.modules()}
        self.files = frozenset(str(file) for file, _ in self._modules.values())
        self._finder = _finder()
        self._is_free = False

    def load(self) -> tuple[list[ModuleType], list[Diagnostic]]:
        """The modules that may give functions, and why others of them could not be imported. What they begin, as
        threads, goes on; SystemExit and endless recursion are failures like any."""
        if not self._is_free:
            self._finder.files |= self._modules
        loaded: list[ModuleType] = []
        failed: list[Diagnostic] = []
        for name in self.unit.giving():
            try:
                loaded.append(importlib.import_module(self._full(name)))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - authors' code may raise anything; it becomes a value
                failed.append(self._failure(name, error))
                if not name:
                    break
        return loaded, failed

    def find(self, name: str) -> ModuleType:
        """The module that an author calls `name` within the unit: `.module`, or after the file's or package's own name;
        any other is looked for in the daemon's Python. Raises what importing raises."""
        own = self.unit.name
        if name.startswith("."):
            return importlib.import_module(name, self.name)
        if name == own or name.startswith(f"{own}."):
            return importlib.import_module(self.name + name.removeprefix(own))
        return importlib.import_module(name)

    def free(self) -> None:
        """Nobody needs the modules any more: Python may forget them."""
        self._is_free = True
        for name in self._modules:
            self._finder.files.pop(name, None)
        for name in [one for one in list(sys.modules) if one == self.name or one.startswith(f"{self.name}.")]:
            sys.modules.pop(name, None)

    def _full(self, name: str) -> str:
        return f"{self.name}.{name}" if name else self.name

    def _failure(self, name: str, error: BaseException) -> Diagnostic:
        where = where_it_broke(error, self.files) or shortened(str(self._modules[self._full(name)][0]))
        text = "it ends the process while it is imported" if isinstance(error, SystemExit) else "it cannot be imported"
        return fault(where, f"{text}: {told(error)}{self._hint(error)}")

    def _hint(self, error: BaseException) -> str:
        """What to do about a file beside it that was looked for."""
        if not isinstance(error, ModuleNotFoundError) or not error.name:
            return ""
        first = error.name.partition(".")[0]
        if self.unit.is_package and (first == self.unit.name or any(one == first for one, _, _ in self.unit.modules())):
            return f"; within a package it is `from .{first if first != self.unit.name else 'module'} import …`"
        if (self.unit.root.parent / f"{first}.py").is_file():
            return (
                f"; to share {first}.py, put both files into a folder with an __init__.py, a package, where it is "
                f"`from .{first} import …`"
            )
        return ""


def digest_of(module: ModuleType) -> str:
    """Of what the file of a module of an edition was when it was imported."""
    loader = module.__loader__
    return loader.digest if isinstance(loader, _FromBytes) else ""


def is_of_an_edition(module: str) -> bool:
    """Whether that is the name of a module that was imported here, of which the next start knows nothing."""
    return _EDITION.match(module) is not None


def imported(file: Path) -> ModuleType:
    """The module in `file`, which stays. Raises DefinitionError when it cannot be imported."""
    units = units_at(file)
    if len(units) != 1:
        raise DefinitionError(str(file), ["there is no such file"])
    loaded, failed = Edition(units[0]).load()
    if not loaded:
        raise DefinitionError(f"{failed[0].file}:{failed[0].line}", [failed[0].message])
    return loaded[0]
