"""Python modules from files, loaded in private packages, and again in new ones when the files change."""

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
from function_calls.declaration import shortened, told, where_it_broke
from function_calls.schema.definition import DefinitionError, problem_at
from services.storage import LocalFile, LocalFolder

_INIT = "__init__.py"
_FOR_TESTS = frozenset({"test", "tests", "conftest"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A Python file, or a package with all its Python files."""

    root: Path
    """The file, or the folder of the package."""
    is_package: bool
    etag: tuple[tuple[str, str], ...]
    """Its files with their etags: differs when any of them does. Data beside them is no part of it: a function that
    keeps something there must not have its module imported anew by that."""

    @property
    def name(self) -> str:
        """What its author calls it."""
        return self.root.name if self.is_package else self.root.stem

    @property
    def file(self) -> Path:
        """The file that stands for it."""
        return self.root / _INIT if self.is_package else self.root

    def modules(self) -> Iterator[tuple[str, Path, bool]]:
        """Each module's name below the unit's own (empty: the unit itself), its file, and whether it is a package."""
        if not self.is_package:
            yield "", self.root, False
            return
        for path, _ in self.etag:
            steps = PurePosixPath(path).with_suffix("").parts
            is_package = steps[-1] == "__init__"
            yield ".".join(steps[:-1] if is_package else steps), self.root / path, is_package

    def giving(self) -> Sequence[str]:
        """The modules that are asked for functions, by their names below the unit's own: all but those that begin with
        `_`, and tests."""
        return sorted(name for name, _, _ in self.modules() if not any(map(is_private, name.split("."))))


def version_of(files: Iterable[Path]) -> str:
    """A digest of what stands in `files`, wherever they lie; a file that cannot be read counts as an empty one."""
    digest = hashlib.sha256()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b""
        digest.update(hashlib.sha256(file.name.encode() + b"\0" + content).digest())
    return digest.hexdigest()


def units_at(path: Path) -> list[Unit]:
    """The units of what an operator named, in the order of their names: a file, a package, or a folder of both. Empty
    when there is nothing of that name. Raises StorageError when it cannot be read."""
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
    """Whether a module of that name is left out: one that begins with `_`, and tests."""
    return name.startswith(("_", "test_")) or name in _FOR_TESTS


_EDITION = re.compile(r"rollcall_\w*_[0-9a-f]{12}(\.|$)")
_RESERVED = sys.stdlib_module_names | {"rollcall"}
"""Never looked for beside a file."""
_DAEMONS = frozenset({"bot", "function_calls", "services", "config"})


class _PrivateImports(ast.NodeTransformer):
    """Turns absolute imports of modules beside a file into imports of their private names."""

    def __init__(self, private_name: Callable[[str], str]) -> None:
        """`private_name`: of a module's name; empty where the name is not private."""
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
    """Compiles what is in the file now; a compiled file from before is neither read nor written."""

    digest = ""
    """Of what was compiled."""

    def __init__(self, name: str, path: str, private_name: Callable[[str], str]) -> None:
        super().__init__(name, path)
        self._private_name = private_name

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        self.digest = hashlib.sha256(content).hexdigest()
        tree = _PrivateImports(self._private_name).visit(ast.parse(content, self.path))
        # Typed as code alone, because of the mode.
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code


class _Finder(MetaPathFinder):
    """Lets Python's own import find the modules of editions."""

    def __init__(self) -> None:
        self.editions: dict[str, Edition] = {}
        """By their names."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        edition = self.editions.get(name.partition(".")[0])
        return edition.module_spec(name) if edition is not None else None


def _finder() -> _Finder:
    """The one in Python's list. It stays there: taking one out lets imports of other threads miss the next one."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    own = _Finder()
    sys.meta_path.insert(0, own)
    return own


class Edition:
    """The modules of a unit, as its files are when they are loaded, in a private package. Modules beside the unit are
    imported into the same package when its code imports them, so each edition has its own, and their names hide no
    module of the process and are hidden by none."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        own = re.sub(r"[^a-zA-Z0-9_]", "_", unit.name)
        self.name = f"rollcall_{own}_{uuid.uuid4().hex[:12]}"
        """Of the package. No other edition has it."""
        self._own = f"{self.name}.{own}"
        self._folder = unit.root.absolute().parent
        self._modules = {self._full(name): (file.absolute(), is_package) for name, file, is_package in unit.modules()}
        self._beside: dict[Path, str] = {}
        """The etag of each file that was looked for beside the unit; empty where there was none."""
        self._finder = _finder()
        self._is_free = False

    @property
    def helpers(self) -> frozenset[Path]:
        """The files beside the unit that its code imports."""
        return frozenset(file for file, etag in list(self._beside.items()) if etag)

    @property
    def files(self) -> frozenset[str]:
        """All files of the edition."""
        return frozenset(str(file) for file, _ in self._modules.values()) | {str(file) for file in self.helpers}

    def version(self) -> str:
        """Of the code that was loaded, as its files are now: the same wherever they lie and whenever they were
        written."""
        return version_of((*(file for _, file, _ in self.unit.modules()), *sorted(self.helpers)))

    def is_outdated(self) -> bool:
        """Whether a file beside the unit has changed, gone or come since it was looked for."""
        return any(_etag(file) != etag for file, etag in list(self._beside.items()))

    def module_spec(self, name: str) -> ModuleSpec | None:
        """How to import the module of that full name; None where there is none."""
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

    def _private_name(self, wanted: str, importer: str, package: str) -> str:
        """The full name of the module that code of the module `importer` in `package` imports as `wanted`; empty where
        that is none of the edition. A file never means itself: what has its name is installed."""
        first = wanted.partition(".")[0]
        if first in _RESERVED:
            return ""
        own = importer.split(".")[1]
        places = [package] if first in _DAEMONS and package != self.name else []
        places += [self.name] if first != own else []
        names = (f"{place}.{wanted}" for place in places)
        return next((name for name in names if name != importer and self._file_of(name) is not None), "")

    def _file_of(self, name: str) -> tuple[Path, bool] | None:
        """The file of the module of that full name, and whether it is a package."""
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
            self._beside.setdefault(file, etag)
            if etag:
                return file, is_package
        return None

    def load(self) -> tuple[list[ModuleType], list[Diagnostic]]:
        """The modules that may give functions, and why others of them could not be imported. What they begin, as
        threads, goes on; SystemExit and endless recursion are failures like any."""
        if not self._is_free:
            self._finder.editions[self.name] = self
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
        """The module that an author calls `name` within the unit: `.module`, or after the file's or package's own name,
        or beside it; any other is looked for in the daemon's Python. Raises what importing raises."""
        own = self.unit.name
        package = self._own if self.unit.is_package else self.name
        if name.startswith("."):
            return importlib.import_module(name, package)
        if name == own or name.startswith(f"{own}."):
            return importlib.import_module(self._own + name.removeprefix(own))
        return importlib.import_module(self._private_name(name, self._own, package) or name)

    def free(self) -> None:
        """Nobody needs the modules any more: Python may forget them."""
        self._is_free = True
        self._finder.editions.pop(self.name, None)
        for name in [one for one in list(sys.modules) if one == self.name or one.startswith(f"{self.name}.")]:
            sys.modules.pop(name, None)

    def _full(self, name: str) -> str:
        return f"{self._own}.{name}" if name else self._own

    def _failure(self, name: str, error: BaseException) -> Diagnostic:
        where = where_it_broke(error, self.files) or shortened(str(self._modules[self._full(name)][0]))
        text = "it ends the process while it is imported" if isinstance(error, SystemExit) else "it cannot be imported"
        return problem_at(where, f"{text}: {told(error)}{self._hint(error)}")

    def _hint(self, error: BaseException) -> str:
        """What to do about a file beside it that was looked for."""
        if not isinstance(error, ModuleNotFoundError) or not error.name:
            return ""
        first = error.name.partition(".")[0]
        if self.unit.is_package and (first == self.unit.name or any(one == first for one, _, _ in self.unit.modules())):
            return f"; within a package it is `from .{first if first != self.unit.name else 'module'} import …`"
        return ""


def _etag(file: Path) -> str:
    """Of a file; empty where there is none."""
    return LocalFile(file).list().get(file.name, "")


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


Services = Mapping[type, object]


def bound_services(wanted: Mapping[str, object], services: Services) -> tuple[dict[str, object], list[str]]:
    """The service for each parameter of `wanted`, by its type; and what is wrong with the others."""
    bound: dict[str, object] = {}
    missing: list[str] = []
    for name, kind in wanted.items():
        if isinstance(kind, type) and kind in services:
            bound[name] = services[kind]
        else:
            missing.append(f"there is no service of type {getattr(kind, '__qualname__', kind)} for parameter {name!r}")
    return bound, missing


def untyped(wanted: Mapping[str, object]) -> list[str]:
    """What is wrong with parameters that should be bound and have no type."""
    return [
        f"parameter {name!r} needs a type, so that a service can be found for it"
        for name, kind in wanted.items()
        if kind is None
    ]
