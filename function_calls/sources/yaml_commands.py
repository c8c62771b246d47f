"""Command tools of YAML files with lists of tools and groups. Changes are applied while the daemon runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.diagnostics import Diagnostic, did_you_mean
from config.sections.command_tools import CommandTool, ToolFromPython, ToolGroupSettings
from config.yaml_document import Location, YamlDocument, read_yaml_bytes
from function_calls.command_tools.building import Code, Entry, spec_of
from function_calls.command_tools.callables import BadReference, PythonNames
from function_calls.command_tools.machine import Machine
from function_calls.loading.source import Changes, Publish, Snapshot
from function_calls.schema.definition import problem_at
from function_calls.spec import FunctionSpec, ToolGroup, source_of
from services.storage import LocalFile, Storage, StorageError, storage_at
from services.threads import Threads

_PATTERNS = ("*.yaml", "*.yml")
_LISTS = ("tools", "groups")


@dataclass(slots=True)
class _File:
    """Content of a file when it was last read."""

    etag: str = ""
    helpers: Mapping[Path, str] = field(default_factory=dict)
    """Python files that it refers to, with their etags."""
    specs: dict[str, FunctionSpec] = field(default_factory=dict)
    groups: dict[str, ToolGroup] = field(default_factory=dict)
    faults: list[Diagnostic] = field(default_factory=list)


class YamlCommands:
    """Source for command tools of files; each path is a file, or a folder of files."""

    def __init__(self, name: str, paths: Sequence[Path], machine: Machine, changes: Changes) -> None:
        self.name = name
        self._paths = tuple(paths)
        self._machine = machine
        self._changes = changes
        # Threads, because author code may block, and its SystemExit must not end the process.
        self._threads = Threads()
        self._files: dict[Path, _File] = {}
        self._published: Snapshot | None = None

    async def run(self, publish: Publish) -> None:
        """Publish the tools of all readable files, and again after changes of these or of referenced Python files."""
        while await self._follow(publish):
            continue

    async def _follow(self, publish: Publish) -> bool:
        """Publish after each change of the known files. Returns True if other files must be watched."""
        watched = self._watched()
        changes = self._changes.of(*watched)
        try:
            async for _ in changes:
                snapshot = await self._threads.run(self._read)
                if snapshot != self._published:
                    publish(snapshot)
                    self._published = snapshot
                if self._watched() != watched:
                    return True
        finally:
            if isinstance(changes, AsyncGenerator):
                await changes.aclose()
        return False

    def _watched(self) -> tuple[Path, ...]:
        """The paths, and referenced Python files outside them."""
        helpers = {helper for file in self._files.values() for helper in file.helpers}
        return (*self._paths, *sorted(one for one in helpers if not any(map(one.is_relative_to, self._paths))))

    def _read(self) -> Snapshot:
        faults: list[Diagnostic] = []
        found: dict[Path, _File] = {}
        for path in self._paths:
            try:
                for file, etag, storage, inner in _listed(path):
                    found[file] = self._file(file, etag, storage, inner)
            except StorageError as error:
                faults.append(problem_at(str(path), str(error)))
                # Files below an unreadable path are not considered deleted.
                found |= {file: known for file, known in self._files.items() if file.is_relative_to(path)}
        self._files = found
        files = list(found.values())
        return Snapshot(
            tuple(spec for file in files for spec in file.specs.values()),
            tuple(group for file in files for group in file.groups.values()),
            (*faults, *(one for file in files for one in file.faults)),
        )

    def _file(self, path: Path, etag: str, storage: Storage, inner: str) -> _File:
        """Current content of the file; the same objects if nothing has changed."""
        known = self._files.get(path, _File())
        if known.etag == etag and known.helpers == _etags(known.helpers):
            return known
        try:
            document = read_yaml_bytes(storage.read(inner), storage.place(inner))
        except StorageError as error:
            return _File("", {}, known.specs, known.groups, [problem_at(str(path), str(error))])
        return _Reading(document, path.parent, self._machine, known).file(etag)


class _Reading:
    """Reads one file."""

    def __init__(self, document: YamlDocument, folder: Path, machine: Machine, known: _File) -> None:
        self._document = document
        self._folder = folder
        self._machine = machine
        self._known = known
        self._names = PythonNames(folder)
        self._lines: dict[str, int] = {}

    def file(self, etag: str) -> _File:
        """Tools, groups and problems of the file with this `etag`. Broken entries keep their previous definition."""
        found = _File(etag)
        for index, value in enumerate(self._list("tools", found)):
            entry = Entry(self._document, ("tools", index))
            self._keep(found.specs, self._known.specs, self._tool(entry, value), entry, value)
            found.faults += entry.faults
        for index, value in enumerate(self._list("groups", found)):
            entry = Entry(self._document, ("groups", index))
            self._keep(found.groups, self._known.groups, self._group(entry, value), entry, value)
            found.faults += entry.faults
        found.faults = self._document.faults.in_order() + found.faults
        found.helpers = _etags(self._names.files)
        return found

    def _list(self, key: str, found: _File) -> Sequence[Any]:
        """Entries under `key`. If the file or the list is invalid, the previous definitions are kept."""
        content = self._document.value
        value = content.get(key, []) if isinstance(content, dict) else None
        if key == _LISTS[0]:
            self._check_top(content)
        if isinstance(value, list):
            return value
        if isinstance(content, dict):
            self._complain((key,), Code.BAD_VALUE, f"{key} has to be a list")
        if key == "tools":
            found.specs.update(self._known.specs)
        else:
            found.groups.update(self._known.groups)
        return []

    def _check_top(self, content: object) -> None:
        if not isinstance(content, dict):
            if not self._document.faults:
                self._complain((), Code.BAD_VALUE, "has to be a mapping with a list `tools`, `groups`, or both")
            return
        for key in content:
            if key not in _LISTS:
                near = did_you_mean(key, _LISTS) or f"; there are: {', '.join(_LISTS)}"
                self._complain((key,), Code.UNKNOWN_KEY, f"{key} is not known here{near}")

    def _complain(self, at: Location, code: Code, message: str) -> None:
        place = self._document.key_at(at)
        self._document.faults.append(Diagnostic(self._document.file, place.line, place.column, code.value, message))

    def _keep(self, found: dict[str, Any], known: Mapping[str, Any], made: Any, entry: Entry, value: object) -> None:
        """Add the definition of the entry, or its previous one if the entry is broken."""
        name = value.get("name") if isinstance(value, dict) else None
        if made is not None:
            name = made.name
            if name in found:
                first = source_of(found[name]).rpartition(":")[2]
                entry.add_diagnostic(
                    ["name"], Code.DUPLICATE_NAME, f"{name!r} is already defined in line {first}; keep one"
                )
                return
            found[name] = made
        elif isinstance(name, str) and name in known and name not in found:
            found[name] = known[name]

    def _tool(self, entry: Entry, value: object) -> FunctionSpec | None:
        if isinstance(value, dict) and "module" in value:
            value = self._from_python(entry, value)
        if entry.faults:
            return None
        try:
            tool = CommandTool.model_validate(value)
        except ValidationError as error:
            entry.add_validation_errors(error, CommandTool)
            try:
                tool = CommandTool.model_validate(entry.without_unknown(value, error))
            except ValidationError:
                return None
        if any(place[: len(entry.at)] == entry.at for place in self._document.unknown):
            return None
        return spec_of(entry, tool, self._names, self._folder, self._machine)

    def _from_python(self, entry: Entry, value: Mapping[str, Any]) -> object:
        """The tool that `module` refers to, updated with the entry's other keys."""
        try:
            named = ToolFromPython.model_validate({"module": value["module"]})
            found = self._names.find(named.module)
        except ValidationError as error:
            entry.add_validation_errors(error, ToolFromPython)
            return None
        except BadReference as error:
            entry.add_diagnostic(["module"], Code.BAD_PYTHON, str(error))
            return None
        if not isinstance(found, Mapping):
            entry.add_diagnostic(["module"], Code.BAD_PYTHON, f"{value['module']} is no mapping of the form of a tool")
            return None
        return {**found, **{key: one for key, one in value.items() if key != "module"}}

    def _group(self, entry: Entry, value: object) -> ToolGroup | None:
        try:
            group = ToolGroupSettings.model_validate(value)
        except ValidationError as error:
            entry.add_validation_errors(error, ToolGroupSettings)
            return None
        return ToolGroup(group.name, group.description, group.tools, group.system_prompt, group.bot, entry.where)


def _listed(path: Path) -> Iterator[tuple[Path, str, Storage, str]]:
    """Each file at `path` with its etag, storage and path in it. Raises StorageError if there is nothing at `path`."""
    storage = storage_at(path, _PATTERNS)
    folder = path.parent if isinstance(storage, LocalFile) else path
    listed = storage.list()
    if not listed and not path.exists():
        raise StorageError(f"{path}: there is no such file or folder")
    for inner, etag in listed.items():
        yield folder / inner, etag, storage, inner


def _etags(files: Mapping[Path, str] | Sequence[Path]) -> dict[Path, str]:
    """Current etags of the Python files by path; empty for deleted ones."""
    return {file: next(iter(LocalFile(file).list().values()), "") for file in files}
