"""Loading, checking and calling of the Python callables that command tools refer to."""

from __future__ import annotations

import importlib
import inspect
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from function_calls.declaration import error_text
from function_calls.loading.module_loading import Edition, Unit, digest_of, is_of_an_edition, version_of
from services.threads import Threads


class BadReference(ValueError):
    """Python code that cannot be found or used; the message has the reason, for operators."""


class PythonNames:
    """Resolves the Python references of a file of tools, importing each module once. Modules in files next to the tools
    are loaded separately by each PythonNames, so that edits take effect, and unloaded with it; tools must therefore
    keep a reference to it. Modules of packages are imported only once per process."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: start of relative paths; None if there are no relative paths."""
        self._folder = folder
        self._modules: dict[Path, ModuleType | BadReference] = {}
        self.digests: dict[str, str] = {}
        """Digests of the loaded files and their imported neighbours, by path."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Requested files in order of first use, then the files that they import."""
        return tuple(dict.fromkeys((*self._modules, *map(Path, self.digests))))

    def find(self, reference: object) -> Any:
        """Resolve `package.module:name` or `./file.py:name`; a callable is returned as it is. Raises BadReference if it
        does not exist or cannot be imported."""
        if not isinstance(reference, str):
            return reference
        place, _, name = reference.rpartition(":")
        found: Any = self._from_file(place) if place.endswith(".py") and "/" in place else _from_package(place)
        for step in name.split("."):
            if not hasattr(found, step):
                raise BadReference(f"{place} has no {name}")
            found = getattr(found, step)
        return found

    def function(self, reference: object, takes: int) -> Callable[..., Any]:
        """Callable for `reference`. Raises BadReference if it is not found, not callable, or does not accept `takes`
        arguments."""
        found = self.find(reference)
        if not callable(found):
            raise BadReference(f"{name_of(reference)} cannot be called")
        function: Callable[..., Any] = found
        try:
            inspect.signature(function).bind(*[None] * takes)
        except TypeError:
            count = "one argument" if takes == 1 else f"{takes} arguments"
            raise BadReference(f"{name_of(reference)} has to take {count}") from None
        except ValueError:
            return function  # a builtin without a signature
        return function

    def _from_file(self, place: str) -> ModuleType:
        if self._folder is None and not Path(place).is_absolute():
            raise BadReference(f"{place} is not in a file")
        file = ((self._folder or Path()) / place).resolve()
        if file not in self._modules:
            self._modules[file] = self._imported(file)
        found = self._modules[file]
        if isinstance(found, BadReference):
            raise BadReference(str(found))
        return found

    def _imported(self, file: Path) -> ModuleType | BadReference:
        """The module in `file`, or the reason why it cannot be loaded. Cached too, so broken code runs only once."""
        if not file.is_file():
            return BadReference(f"{file} is no Python file that is there")
        edition = Edition(Unit(file, False, ()))
        loaded, failed = edition.load()
        if not loaded:
            edition.free()
            return BadReference(f"{failed[0].file}:{failed[0].line}: {failed[0].message}")
        weakref.finalize(self, edition.free).atexit = False
        self.digests[str(file)] = digest_of(loaded[0])
        self.digests |= {str(helper): version_of([helper]) for helper in sorted(edition.helpers)}
        return loaded[0]


def name_of(reference: object) -> str:
    """Display name of a callable, stable across restarts."""
    if isinstance(reference, str):
        return reference
    place = Path(file_of(reference)).name or str(getattr(reference, "__module__", "?"))
    return f"{place}:{getattr(reference, '__qualname__', type(reference).__qualname__)}"


async def called(function: Callable[..., Any], threads: Threads, *arguments: Any) -> Any:
    """Result of `function`: awaited if it is async, otherwise run in a thread because it may block. Exceptions of the
    function pass."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    value = function(*arguments) if is_async else await threads.run(function, *arguments)
    return await value if inspect.isawaitable(value) else value


def file_of(reference: object) -> str:
    """File next to the tools that defines a callable, even if its module is unloaded; empty for others."""
    module = str(getattr(reference, "__module__", ""))
    if not is_of_an_edition(module):
        return ""
    names = getattr(reference, "__globals__", {})
    if names.get("__name__") != module:
        names = vars(sys.modules[module]) if module in sys.modules else {}
    return str(names.get("__file__", ""))


def _from_package(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise BadReference(f"{place} cannot be imported: {error_text(error)}") from error
