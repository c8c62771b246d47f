"""Python that command tools name: found, checked for what it takes, and called where it does not hold up others."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from services.threads import Threads

OWN_MODULES = "rollcall_commands."
"""What the names of modules begin with that were read from files beside the tools."""


class BadReference(ValueError):
    """Python that cannot be found or used; says why, for operators."""


class PythonNames:
    """Finds what a file of tools names in Python, each module once. Those in files beside it are read anew for every
    PythonNames, so that an edit counts; modules of packages stay as they were first imported."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: where relative files begin; None where there are none."""
        self._folder = folder
        self._modules: dict[Path, ModuleType] = {}
        self.digests: dict[str, str] = {}
        """Of the files that were read, by their paths."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that were read, in the order in which they were first named."""
        return tuple(self._modules)

    def find(self, reference: object) -> Any:
        """What `package.module:name` or `./file.py:name` means, or the callable itself. Raises BadReference."""
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
        """The same, when it can be called with so many arguments. Raises BadReference."""
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
            return function  # a builtin does not tell
        return function

    def _from_file(self, place: str) -> ModuleType:
        if self._folder is None and not Path(place).is_absolute():
            raise BadReference(f"{place} stands beside no file")
        file = ((self._folder or Path()) / place).resolve()
        if file not in self._modules:
            self._modules[file], self.digests[str(file)] = _imported(file)
        return self._modules[file]


def name_of(reference: object) -> str:
    """What people are told of a callable, and the same after a restart."""
    if isinstance(reference, str):
        return reference
    module = str(getattr(reference, "__module__", "?"))
    file = getattr(sys.modules.get(module), "__file__", None)
    place = Path(file).name if file and module.startswith(OWN_MODULES) else module
    return f"{place}:{getattr(reference, '__qualname__', type(reference).__qualname__)}"


async def called(function: Callable[..., Any], threads: Threads, *arguments: Any) -> Any:
    """What `function` returns or raises: awaited when it is async, in a thread when it may block."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    value = function(*arguments) if is_async else await threads.run(function, *arguments)
    return await value if inspect.isawaitable(value) else value


def _from_package(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except Exception as error:
        raise BadReference(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _imported(file: Path) -> tuple[ModuleType, str]:
    """The module in `file`, and a digest of what it was made of."""
    found = importlib.util.spec_from_file_location(f"{OWN_MODULES}{file.stem}_{abs(hash(str(file))):x}", file)
    if found is None or not file.is_file():
        raise BadReference(f"{file} is no Python file that is there")
    module = importlib.util.module_from_spec(found)
    # Dataclasses, pydantic and get_type_hints look names up in the module that defines them.
    sys.modules[module.__name__] = module
    try:
        content = file.read_bytes()
        # Read anew, whatever was compiled before: two edits within a second have the same cached form.
        exec(compile(content, str(file), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - as an import would
    except Exception as error:
        sys.modules.pop(module.__name__, None)
        raise BadReference(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    return module, hashlib.sha256(content).hexdigest()
