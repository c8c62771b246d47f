"""Function sources: runs them and publishes their functions to the registry, with diagnostics for unusable ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import structlog

from config.diagnostics import Diagnostic
from function_calls.loading.source import FunctionSource, Snapshot
from function_calls.registry import FunctionRegistry
from function_calls.schema.definition import problem_at
from function_calls.spec import FunctionSpec

_FIRST_SECONDS = 10.0
"""Timeout of the start for the first snapshot of a source; later ones are applied when they come."""
_log = structlog.get_logger("functions")


class ConfiguredSource(NamedTuple):
    """A source to run."""

    source: FunctionSource
    made_of: object
    """The inputs of the source, such as its settings. A running source of the same name is kept while this is equal."""


@dataclass(slots=True, eq=False)
class _Running:
    """A source in operation."""

    configured: ConfiguredSource
    task: asyncio.Task[None] | None = None
    published: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False, repr=False)
class FunctionSources:
    """All sources, each in its own task. Their order decides which one gets a name that two define."""

    sources: InitVar[Sequence[ConfiguredSource]]
    registry: FunctionRegistry
    problems_of: Callable[[FunctionSpec], Sequence[str]]
    """Why a valid function cannot run in this daemon; empty if it can."""
    placed: Callable[[Sequence[Diagnostic]], Sequence[Diagnostic]] = tuple
    """Adds places in the settings file."""
    logs: bool = True
    """Log unusable functions, and changes at run time."""

    def __post_init__(self, sources: Sequence[ConfiguredSource]) -> None:
        self._running = {one.source.name: _Running(one) for one in sources}
        self._snapshots: dict[str, Snapshot] = {}
        self._broken: dict[str, Diagnostic] = {}
        self._unusable: dict[str, tuple[Diagnostic, ...]] = {}
        self._rejected: tuple[Diagnostic, ...] = ()
        self._on_change: list[Callable[[], None]] = []
        self._ended: set[asyncio.Task[None]] = set()
        self._is_started = False
        self.registry.arrange(list(self._running))

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """Current problems, source by source, then rejected definitions."""
        found: list[Diagnostic] = []
        for name in self._running:
            found += self._unusable.get(name, ())
            if name in self._broken:
                found.append(self._broken[name])
        return (*found, *self._rejected)

    @property
    def have_published(self) -> bool:
        """Whether every running source has published a snapshot or ended."""
        return all(
            one.published.is_set() or (one.task is not None and one.task.done()) for one in self._running.values()
        )

    def on_change(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of the registry or of `faults`."""
        self._on_change.append(callback)

    async def start(self) -> None:
        """Start all sources, and wait up to ten seconds for their first snapshots. Raises DefinitionError for functions
        given in code that cannot be used."""
        self._is_started = True
        for running in self._running.values():
            self._begin(running)
        await self.wait_published()

    def use(self, sources: Sequence[ConfiguredSource]) -> None:
        """Replace the sources, in this order. A removed source loses its functions; those of a changed one stay until
        its next snapshot."""
        before, faults = self._running, self.faults
        self._running = {}
        for configured in sources:
            name = configured.source.name
            known = before.pop(name, None)
            if known is not None and known.configured.made_of == configured.made_of:
                self._running[name] = known
                continue
            if known is not None:
                self._end(known)
            running = self._running[name] = _Running(configured)
            if self._is_started:
                self._begin(running)
        for name, removed in before.items():
            self._end(removed)
            self._snapshots.pop(name, None)
            self._unusable.pop(name, None)
            self._broken.pop(name, None)
        self._rejected = tuple(self.registry.arrange(list(self._running)))
        self._note(faults)

    def recheck(self) -> None:
        """Check again which functions can run in this daemon."""
        faults = self.faults
        for name in self._running:
            self._publish(name)
        self._note(faults)

    def revive(self) -> None:
        """Restart the sources that crashed; the others are unchanged."""
        for name in list(self._broken):
            running = self._running[name] = _Running(self._running[name].configured)
            self._begin(running)

    async def close(self) -> None:
        """Stop all sources and wait for their end."""
        for running in self._running.values():
            self._end(running)
        if self._ended:
            await asyncio.wait(self._ended)

    def _begin(self, running: _Running) -> None:
        running.task = asyncio.create_task(self._run(running), name=running.configured.source.name)
        running.task.add_done_callback(lambda task: self._is_over(running, task))

    def _end(self, running: _Running) -> None:
        task = running.task
        if task is not None:
            task.cancel()
            self._ended.add(task)
            task.add_done_callback(self._ended.discard)

    async def _run(self, running: _Running) -> None:
        name = running.configured.source.name

        def publish(snapshot: Snapshot) -> None:
            # A source that was replaced meanwhile may no longer publish.
            if self._running.get(name) is running:
                faults, before = self.faults, self._snapshots.get(name)
                self._snapshots[name] = snapshot
                self._broken.pop(name, None)
                self._publish(name)
                self._note(faults)
                running.published.set()
                if before is not None and self.logs:
                    _log_changes(before.specs, snapshot.specs)

        await running.configured.source.run(publish)

    async def wait_published(self) -> None:
        """Wait up to ten seconds for the first snapshot of every source. Raises DefinitionError like `start`."""
        waits = [asyncio.create_task(self._first_snapshot(running)) for running in self._running.values()]
        try:
            _, late = await asyncio.wait(waits, timeout=_FIRST_SECONDS) if waits else (set(), set())
        finally:
            for wait in waits:
                wait.cancel()
        for wait in waits:
            if wait.done() and not wait.cancelled():
                wait.result()
        if late:
            silent = [name for name, running in self._running.items() if not running.published.is_set()]
            _log.warning("sources_slow", sources=silent, waited_seconds=_FIRST_SECONDS)

    async def _first_snapshot(self, running: _Running) -> None:
        """Return after the source's first snapshot; raises the exception that ended it before."""
        assert running.task is not None
        published = asyncio.create_task(running.published.wait())
        try:
            await asyncio.wait([published, running.task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            published.cancel()
        if not running.published.is_set() and running.task.done():
            running.task.result()

    def _is_over(self, running: _Running, task: asyncio.Task[None]) -> None:
        """Record the crash of a source. Its functions stay as they are; before the first snapshot, `start` raises."""
        error = None if task.cancelled() else task.exception()
        name = task.get_name()
        if error is None or self._running.get(name) is not running:
            return
        _log.critical("source_ended", source=name, exc_info=error)
        text = (
            f"source {name!r} broke down and is not read again before SIGHUP, a change of its settings or the next "
            f"start: {type(error).__name__}"
        )
        self._broken[name] = problem_at("", text)
        self._notify()

    def _publish(self, name: str) -> None:
        """Publish the functions of the source's last snapshot that can run here; the others become problems. Does
        nothing without a snapshot."""
        snapshot = self._snapshots.get(name)
        if snapshot is None:
            return
        usable: list[FunctionSpec] = []
        faults = list(snapshot.faults)
        for spec in snapshot.specs:
            problems = self.problems_of(spec)
            faults += [problem_at(spec.origin.source, f"function {spec.name!r}: {problem}") for problem in problems]
            if not problems:
                usable.append(spec)
        self._rejected = tuple(self.registry.publish(name, usable, snapshot.groups))
        self._unusable[name] = tuple(self.placed(faults))

    def _note(self, before: Sequence[Diagnostic]) -> None:
        """Log new and resolved problems, and call the callbacks."""
        known, now = set(before), self.faults
        if self.logs:
            for one in now:
                if one not in known:
                    _log.error("function_unusable", problem=str(one))
            for one in known.difference(now):
                _log.info("function_mended", was=str(one))
        self._notify()

    def _notify(self) -> None:
        for callback in self._on_change:
            callback()


def _log_changes(before: Iterable[FunctionSpec], now: Iterable[FunctionSpec]) -> None:
    """Log the functions that were added, changed and removed, file by file. All functions of a file that was read again
    count as changed."""
    old, new = _by_file(before), _by_file(now)
    for file in sorted({*old, *new}):
        earlier, later = old.get(file, {}), new.get(file, {})
        changed = [name for name in later if name in earlier and later[name] is not earlier[name]]
        if changed or earlier.keys() != later.keys():
            _log.info(
                "functions_changed",
                file=file,
                added=[name for name in later if name not in earlier],
                changed=changed,
                removed=[name for name in earlier if name not in later],
            )


def _by_file(specs: Iterable[FunctionSpec]) -> dict[str, dict[str, FunctionSpec]]:
    """The functions of Python files and tool files by name. Scripts are excluded, since their library logs them."""
    files: dict[str, dict[str, FunctionSpec]] = {}
    for spec in specs:
        file, _, line = spec.origin.source.rpartition(":")
        if line.isdecimal() and not file.endswith(".bas"):
            files.setdefault(file, {})[spec.name] = spec
    return files
