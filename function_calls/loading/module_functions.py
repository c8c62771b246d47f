"""Definitions in modules: functions marked with `@tool_function`, the definitions of `tools()` with defaults of
`tool_info()`, and the module's own filters. Errors are reported with their location and affect no other definition."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from types import ModuleType
from typing import Any

from config.diagnostics import Diagnostic
from function_calls.declaration import declaration_of, error_text, innermost_place, place_of
from function_calls.filters.pre_post import OwnFilters
from function_calls.loading.python_functions import as_spec
from function_calls.loading.source import Reading
from function_calls.schema.definition import DefinitionError, problem_at, problems_of
from function_calls.schema.mappings import FindModule, ModuleInfo, declares, info_of, specs_returned_by
from function_calls.spec import FunctionSpec

_NOTHING = (
    "it gives no function: mark one with @tool_function, or write a function tools() that returns a list of "
    "definitions; begin the file's name with _ if it is only there for others"
)


class ModuleReader:
    """Reads modules; binds services to the parameters of their functions."""

    def __init__(self, services: Mapping[type, object]) -> None:
        self._services = services

    def modules(
        self,
        modules: Sequence[ModuleType],
        place: str,
        find: FindModule | None = None,
        unread: Sequence[Diagnostic] = (),
    ) -> Reading:
        """Definitions of `modules`, which form one unit; the first is its main module. `place`: location of the unit.
        `find`: imports the modules of handlers given by path (default: Python's import). `unread`: diagnostics of
        modules of the unit that could not be imported."""
        found = _Found(modules[0].__name__, {str(module.__file__) for module in modules}, place)
        found.faults += unread
        found.is_whole = not unread
        for module in modules:
            self._read(module, found, find or functools.partial(importlib.import_module, package=module.__package__))
        if not found.says_something and not unread:
            found.add_problem(place, _NOTHING)
            return Reading(faults=tuple(found.faults), is_whole=False, is_empty=True)
        return found.reading()

    def one(self, module: object, place: str) -> Reading:
        """Definitions of an entry point of an installed package: a module, a marked function, or a function that
        returns definitions like `tools()`. Anything else is a problem in the Reading."""
        if isinstance(module, ModuleType):
            return self.modules([module], place)
        found = _Found(str(getattr(module, "__module__", "")), _files_of(module), place)
        if _is_marked(module) and callable(module):
            self._mark(module, found, ModuleInfo())
        elif callable(module):
            _definitions(module, "it", found, ModuleInfo(), importlib.import_module)
        else:
            found.add_problem(place, f"it has to be a module or a function, not {type(module).__name__}")
        return found.reading()

    def _read(self, module: ModuleType, found: _Found, find: FindModule) -> None:
        info = _info(module, found)
        first = len(found.specs)
        public = getattr(module, "__all__", ())
        for name, function in list(vars(module).items()):
            if not _is_marked(function) or not (found.owns(function) or name in public):
                continue
            if found.is_new(function):
                self._mark(function, found, info)
        if declares(module, "tools") and found.is_new(module.tools):
            _definitions(module.tools, "tools()", found, info, find)
        if declares(module, "filters") and found.is_new(module.filters):
            found.says_something = True
            _bind_filters(module, found, first)

    def _mark(self, function: Callable[..., Any], found: _Found, info: ModuleInfo) -> None:
        found.says_something = True
        declared = declaration_of(function)
        name = declared.name if declared else ""
        try:
            found.specs.append(info.lend(as_spec(function, self._services)))
        except DefinitionError as error:
            found.refuse(name, error)
        except Exception as error:  # noqa: BLE001 - types and models are author code; their exceptions become diagnostics
            found.refuse(name, DefinitionError(f"function {name!r} ({place_of(function)})", [_unreadable(error)]))


class _Found:
    """Definitions and diagnostics of a unit, collected while reading it."""

    def __init__(self, unit: str, files: set[str], place: str) -> None:
        self.unit = unit
        """Name of the main module; the module and its submodules belong to the unit."""
        self.files = files
        self.place = place
        self.specs: list[FunctionSpec] = []
        self.faults: list[Diagnostic] = []
        self.broken: set[str] = set()
        self.seen: set[int] = set()
        self.is_whole = True
        self.says_something = False

    def owns(self, function: object) -> bool:
        """Whether it is defined in this unit rather than imported."""
        defined_in = str(getattr(function, "__module__", ""))
        return defined_in == self.unit or defined_in.startswith(f"{self.unit}.")

    def is_new(self, function: object) -> bool:
        """Whether it was not read before under another name."""
        known = id(function) in self.seen
        self.seen.add(id(function))
        return not known

    def add_problem(self, where: str, text: str) -> None:
        """Add a diagnostic at `where`."""
        self.faults.append(problem_at(where, text))

    def refuse(self, name: str, error: DefinitionError) -> None:
        """Add diagnostics for the function `name`, which cannot be used."""
        self.faults += problems_of(error, self.place)
        if name:
            self.broken.add(name)

    def fail(self, what: str, function: object, error: BaseException) -> None:
        """Add diagnostics for `function`, described as `what`, which failed when called."""
        if isinstance(error, DefinitionError):
            self.faults += problems_of(error, place_of(function) if callable(function) else self.place)
            return
        where = innermost_place(error, self.files) or (place_of(function) if callable(function) else "")
        self.add_problem(where if ":" in where else self.place, f"{what} cannot be asked: {error_text(error)}")

    def reading(self) -> Reading:
        """The collected definitions and problems as a Reading."""
        return Reading(tuple(self.specs), tuple(self.faults), frozenset(self.broken), self.is_whole)


def _info(module: ModuleType, found: _Found) -> ModuleInfo:
    try:
        if declares(module, "tool_info"):
            _require_no_parameters(module.tool_info, "tool_info()")
        return info_of(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of author code becomes a diagnostic
        found.fail("tool_info()", module.tool_info, error)
        return ModuleInfo()


def _definitions(tools: Callable[..., object], what: str, found: _Found, info: ModuleInfo, find: FindModule) -> None:
    """Add the definitions that `tools` returns to `found`. Invalid definitions and exceptions of `tools` become
    diagnostics."""
    found.says_something = True
    try:
        _require_no_parameters(tools, what)
        for name, one in specs_returned_by(tools, find):
            if isinstance(one, DefinitionError):
                found.refuse(name, one)
            else:
                found.specs.append(info.lend(one))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of author code becomes a diagnostic
        found.fail(what, tools, error)
        found.is_whole = False


def _bind_filters(module: ModuleType, found: _Found, first: int) -> None:
    """Apply the module's filters to those functions that name them. If the filters cannot be created, functions that
    name any are not used, because a check they rely on would be missing."""
    theirs = found.specs[first:]
    del found.specs[first:]
    try:
        _require_no_parameters(module.filters, "filters()")
        own = OwnFilters.of(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of author code becomes a diagnostic
        found.fail("filters()", module.filters, error)
        for spec in theirs:
            if spec.execution.filters:
                text = "it names filters, and those of its module cannot be made"
                found.refuse(spec.name, DefinitionError(f"function {spec.name!r} ({spec.origin.source})", [text]))
            else:
                found.specs.append(spec)
        return
    for spec in theirs:
        try:
            found.specs.append(own.bound(spec))
        except DefinitionError as error:
            found.refuse(spec.name, error)


def _is_marked(candidate: object) -> bool:
    try:
        return declaration_of(candidate) is not None
    except Exception:  # noqa: BLE001 - proxy objects may raise on attribute access; they are no functions
        return False


def _require_no_parameters(function: Callable[..., object], what: str) -> None:
    """Raise DefinitionError if `function` has required parameters."""
    needed = [
        one.name
        for one in signature(function).parameters.values()
        if one.default is Parameter.empty and one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    if needed:
        text = f"it must not need parameters ({', '.join(needed)}); if it is meant for something else, rename it"
        raise DefinitionError(f"{what} ({place_of(function)})", [text])


def _unreadable(error: BaseException) -> str:
    return f"it cannot be read: {error_text(error)}"


def _files_of(modules: object) -> set[str]:
    code = getattr(modules, "__code__", None)
    return {code.co_filename} if code else set()
