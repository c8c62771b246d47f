"""Loading of Python files into private packages, with reloading into new packages after changes."""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path, PurePosixPath
from types import CodeType, ModuleType

from config.diagnostics import Diagnostic
from function_calls.declaration import error_text, innermost_place, shortened
from function_calls.schema.definition import DefinitionError, problem_at
from services.storage import LocalFile, LocalFolder

_INIT = "__init__.py"
_FOR_TESTS = frozenset({"test", "tests", "conftest"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A Python file, or a package with all its Python files."""

    root: Path
    """The file, or the package's folder."""
    is_package: bool
    etag: tuple[tuple[str, str], ...]
    """Relative paths of its Python files with their etags. Data files are excluded, so that a function that stores data
    next to its code does not cause a reload."""

    @property
    def name(self) -> str:
        """Name of the file or package, as authors use it."""
        return self.root.name if self.is_package else self.root.stem

    @property
    def file(self) -> Path:
        """The file, or the package's `__init__.py`."""
        return self.root / _INIT if self.is_package else self.root

    def modules(self) -> Iterator[tuple[str, Path, bool]]:
        """For each module: its name relative to the unit (empty for the unit itself), its file, and whether it is a
        package."""
        if not self.is_package:
            yield "", self.root, False
            return
        for path, _ in self.etag:
            steps = PurePosixPath(path).with_suffix("").parts
            is_package = steps[-1] == "__init__"
            yield ".".join(steps[:-1] if is_package else steps), self.root / path, is_package

    def public_modules(self) -> Sequence[str]:
        """Names, relative to the unit, of the modules to search for functions: all except private ones and tests."""
        return sorted(name for name, _, _ in self.modules() if not any(map(is_private, name.split("."))))


def version_of(files: Iterable[Path]) -> str:
    """Digest of the contents of `files`, independent of their folders. Unreadable files count as empty."""
    digest = hashlib.sha256()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b""
        digest.update(hashlib.sha256(file.name.encode() + b"\0" + content).digest())
    return digest.hexdigest()


def units_at(path: Path) -> list[Unit]:
    """Units at a path from the settings, by name: a file, a package, or a folder of both. Empty if the path does not
    exist. Raises StorageError if it cannot be read."""
    if not path.is_dir():
        return [Unit(path, False, tuple(LocalFile(path).list().items()))] if path.exists() else []
    if (path / _INIT).is_file():
        return [_package(path)]
    files = LocalFolder(path, ["*.py"]).list()
    found = [
        Unit(path / name, False, ((name, etag),)) for name, etag in files.items() if not is_private(Path(name).stem)
    ]
    found += [
        _package(folder)
        for folder in path.iterdir()
        if not is_private(folder.name) and not folder.name.startswith(".") and (folder / _INIT).is_file()
    ]
    return sorted(found, key=lambda unit: unit.root.name)


def _package(folder: Path) -> Unit:
    return Unit(folder, True, tuple(LocalFolder(folder, ["*.py"], is_deep=True, without=(".",)).list().items()))


def is_private(name: str) -> bool:
    """Whether a module of that name is ignored: names that begin with `_`, and tests."""
    return name.startswith(("_", "test_")) or name in _FOR_TESTS


_EDITION = re.compile(r"rollcall_\w*_[0-9a-f]{12}(\.|$)")
_RESERVED = sys.stdlib_module_names | {"rollcall"}
"""Modules that are never searched for next to a file."""
_DAEMONS = frozenset({"bot", "function_calls", "services", "config"})


class _PrivateImports(ast.NodeTransformer):
    """Rewrites absolute imports of modules next to a file to their private names."""

    def __init__(self, private_name: Callable[[str], str]) -> None:
        """`private_name` maps a module name to its private name, or to an empty string."""
        self._private_name = private_name

    def visit_Import(self, node: ast.Import) -> ast.Import:
        names: list[ast.alias] = []
        for alias in node.names:
            private = self._private_name(alias.name)
            first, dot, rest = alias.name.partition(".")
            if not private:
                names.append(alias)
            elif alias.asname or not rest:
                names.append(ast.alias(private, alias.asname or first))
            else:
                # `import a.b` imports a.b and binds a.
                names += [ast.alias(private, first), ast.alias(private.removesuffix(dot + rest), first)]
        node.names = [ast.copy_location(alias, node) for alias in names]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level == 0 and node.module:
            node.module = self._private_name(node.module) or node.module
        return node


class _FromBytes(SourceFileLoader):
    """Compiles the current content of a file, without reading or writing bytecode files."""

    digest = ""
    """Digest of the compiled content."""

    def __init__(self, name: str, path: str, private_name: Callable[[str], str]) -> None:
        super().__init__(name, path)
        self._private_name = private_name

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        self.digest = hashlib.sha256(content).hexdigest()
        tree = _PrivateImports(self._private_name).visit(ast.parse(content, self.path))
        # The annotation is needed because the return type of compile() depends on the mode.
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code


class _Finder(MetaPathFinder):
    """Import hook for the modules of editions."""

    def __init__(self) -> None:
        self.editions: dict[str, Edition] = {}
        """Loaded editions by package name."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        edition = self.editions.get(name.partition(".")[0])
        return edition.module_spec(name) if edition is not None else None


def _finder() -> _Finder:
    """The finder in `sys.meta_path`. Never removed, because concurrent imports in other threads would skip an entry."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    own = _Finder()
    sys.meta_path.insert(0, own)
    return own


class Edition:
    """A unit loaded in its current state into a private package. Modules next to the unit are imported into the same
    package, so each edition has separate copies, without name conflicts with other modules of the process."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        own = re.sub(r"[^a-zA-Z0-9_]", "_", unit.name)
        self.name = f"rollcall_{own}_{uuid.uuid4().hex[:12]}"
        """Unique name of the package."""
        self._own = f"{self.name}.{own}"
        self._folder = unit.root.absolute().parent
        self._modules = {self._full(name): (file.absolute(), is_package) for name, file, is_package in unit.modules()}
        self._helpers_seen: dict[Path, str] = {}
        """Etags of the files that were looked up next to the unit; empty for missing files."""
        self._finder = _finder()
        self._is_free = False

    @property
    def helpers(self) -> frozenset[Path]:
        """Files next to the unit that its code imports."""
        return frozenset(file for file, etag in list(self._helpers_seen.items()) if etag)

    @property
    def files(self) -> frozenset[str]:
        """All files of the edition."""
        return frozenset(str(file) for file, _ in self._modules.values()) | {str(file) for file in self.helpers}

    def version(self) -> str:
        """Digest of the current content of the loaded files, independent of their location and modification times."""
        return version_of((*(file for _, file, _ in self.unit.modules()), *sorted(self.helpers)))

    def is_outdated(self) -> bool:
        """Whether a file next to the unit was changed, deleted or created since it was looked up."""
        return any(_etag(file) != etag for file, etag in list(self._helpers_seen.items()))

    def module_spec(self, name: str) -> ModuleSpec | None:
        """Import spec of the module with that full name; None if the edition has no such file."""
        if name == self.name:
            return ModuleSpec(name, None, is_package=True)
        found = self._file_of(name)
        if found is None:
            return None
        file, is_package = found
        package = name if is_package else name.rpartition(".")[0]
        loader = _FromBytes(name, str(file), lambda wanted: self._private_name(wanted, name, package))
        folders = [str(file.parent)] if is_package else None
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=folders)

    def _private_name(self, module_name: str, importer: str, package: str) -> str:
        """Full name of the module that `importer` in `package` imports as `module_name`, or empty if it is outside the
        edition. A file never imports itself: its own name refers to an installed module."""
        first = module_name.partition(".")[0]
        if first in _RESERVED:
            return ""
        own = importer.split(".")[1]
        places = [package] if first in _DAEMONS and package != self.name else []
        places += [self.name] if first != own else []
        names = (f"{place}.{module_name}" for place in places)
        return next((name for name in names if name != importer and self._file_of(name) is not None), "")

    def _file_of(self, name: str) -> tuple[Path, bool] | None:
        """File of the module with that full name, and whether it is a package; None if there is no such file."""
        if name in self._modules:
            return self._modules[name]
        parent, _, last = name.rpartition(".")
        folder = self._folder
        if parent != self.name:
            found = self._file_of(parent)
            if found is None or not found[1]:
                return None
            folder = found[0].parent
        for file, is_package in ((folder / last / _INIT, True), (folder / f"{last}.py", False)):
            etag = _etag(file)
            self._helpers_seen.setdefault(file, etag)
            if etag:
                return file, is_package
        return None

    def load(self) -> tuple[list[ModuleType], list[Diagnostic]]:
        """Import the modules that may define functions. Returns them and diagnostics of failed imports, including
        SystemExit and infinite recursion. Threads started by the code continue."""
        if not self._is_free:
            self._finder.editions[self.name] = self
        loaded: list[ModuleType] = []
        failed: list[Diagnostic] = []
        for name in self.unit.public_modules():
            try:
                loaded.append(importlib.import_module(self._full(name)))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of author code becomes a diagnostic
                failed.append(self._failure(name, error))
                if not name:
                    break
        return loaded, failed

    def find(self, name: str) -> ModuleType:
        """Module that authors refer to as `name`: `.module` within the unit, a path from the unit's own name, or a
        module next to the unit; otherwise an installed module. Raises the errors of the import."""
        own = self.unit.name
        package = self._own if self.unit.is_package else self.name
        if name.startswith("."):
            return importlib.import_module(name, package)
        if name == own or name.startswith(f"{own}."):
            return importlib.import_module(self._own + name.removeprefix(own))
        return importlib.import_module(self._private_name(name, self._own, package) or name)

    def free(self) -> None:
        """Unload the modules: remove them from `sys.modules`, and their edition from the finder."""
        self._is_free = True
        self._finder.editions.pop(self.name, None)
        for name in [one for one in list(sys.modules) if one == self.name or one.startswith(f"{self.name}.")]:
            sys.modules.pop(name, None)

    def _full(self, name: str) -> str:
        return f"{self._own}.{name}" if name else self._own

    def _failure(self, name: str, error: BaseException) -> Diagnostic:
        where = innermost_place(error, self.files) or shortened(str(self._modules[self._full(name)][0]))
        text = "it ends the process while it is imported" if isinstance(error, SystemExit) else "it cannot be imported"
        return problem_at(where, f"{text}: {error_text(error)}{self._hint(error)}")

    def _hint(self, error: BaseException) -> str:
        """Advice for a failed import of a neighbouring file, to be appended to the error; empty for other errors."""
        if not isinstance(error, ModuleNotFoundError) or not error.name:
            return ""
        first = error.name.partition(".")[0]
        if self.unit.is_package and (first == self.unit.name or any(one == first for one, _, _ in self.unit.modules())):
            return f"; within a package it is `from .{first if first != self.unit.name else 'module'} import …`"
        return ""


def _etag(file: Path) -> str:
    """Etag of a file; empty if it does not exist."""
    return LocalFile(file).list().get(file.name, "")


def digest_of(module: ModuleType) -> str:
    """Digest of a module's file when it was imported; empty for modules outside editions."""
    loader = module.__loader__
    return loader.digest if isinstance(loader, _FromBytes) else ""


def is_of_an_edition(module: str) -> bool:
    """Whether `module` is the name of a module in an edition, which changes with every start."""
    return _EDITION.match(module) is not None


def imported(file: Path) -> ModuleType:
    """Import `file` permanently and return the module. Raises DefinitionError if there is no such file, or the import
    fails."""
    units = units_at(file)
    if len(units) != 1:
        raise DefinitionError(str(file), ["there is no such file"])
    loaded, failed = Edition(units[0]).load()
    if not loaded:
        raise DefinitionError(f"{failed[0].file}:{failed[0].line}", [failed[0].message])
    return loaded[0]


Services = Mapping[type, object]


def bound_services(parameters: Mapping[str, object], services: Services) -> tuple[dict[str, object], list[str]]:
    """The service for each parameter of `parameters` by type, and problems with the others."""
    bound: dict[str, object] = {}
    missing: list[str] = []
    for name, kind in parameters.items():
        if isinstance(kind, type) and kind in services:
            bound[name] = services[kind]
        else:
            missing.append(f"there is no service of type {getattr(kind, '__qualname__', kind)} for parameter {name!r}")
    return bound, missing


def untyped(parameters: Mapping[str, object]) -> list[str]:
    """Descriptions of problems, one for each parameter without a type."""
    return [
        f"parameter {name!r} needs a type, so that a service can be found for it"
        for name, kind in parameters.items()
        if kind is None
    ]
