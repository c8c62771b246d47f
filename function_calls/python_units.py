"""Python files and packages in folders: what is imported together, and the names of its modules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

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

    def version(self) -> str:
        """Of its code, as its files are now: the same wherever they lie and whenever they were written."""
        return version_of(file for _, file, _ in self.modules())

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
