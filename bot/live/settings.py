"""Current settings and their reload: a valid file is applied as a whole."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel

from config.diagnostics import Diagnostic
from config.loader import SettingsInvalid
from config.settings import Settings
from config.terms import secrets_in
from function_calls.loading.source import Changes
from function_calls.schema.definition import DefinitionError, problems_of
from services.fault_points import FaultPoints
from services.redaction import names_a_secret

Use = Callable[[], None]
"""Applies a prepared change. Does not fail or block."""
_Read = TypeVar("_Read", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the daemon that applies its settings as a unit."""

    paths: tuple[str, ...]
    prepare: Callable[[Settings], Use]
    files: Callable[[Settings], Sequence[Path]]
    depends_on: Callable[[Settings], object] | None

    def fingerprint(self, settings: Settings) -> object:
        """The values that decide whether the part has to apply new settings."""
        read = [_at(settings, path) for path in self.paths] if self.depends_on is None else self.depends_on(settings)
        return read, [etag_of(file) for file in self.files(settings)]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Prepared settings from a reload."""

    settings: Settings
    """The settings to apply; those that wait for the next start have their old values."""
    uses: Sequence[Use]
    fingerprints: Sequence[object]
    changed: Sequence[str]
    """The settings that will change, as `section.key`."""
    waiting: Sequence[str]
    """Settings that have changed in the file and wait for the next start."""


def _no_files(_settings: Settings) -> Sequence[Path]:
    return ()


class LiveSettings:
    """The parts that apply settings at run time. All prepare new settings before any applies them, so that a reload is
    atomic."""

    def __init__(self, settings: Settings) -> None:
        self.now = settings
        """The current settings."""
        self._parts: list[_Part] = []
        self._waiting: set[str] = set()
        self._fingerprints: list[object] = []
        self._names = _names(settings)

    def register(
        self,
        *paths: str,
        prepare: Callable[[Settings], Use],
        files: Callable[[Settings], Sequence[Path]] = _no_files,
        depends_on: Callable[[Settings], object] | None = None,
    ) -> None:
        """Register a part for `paths` (a section, or `section.key`). `prepare` is called in a thread when the settings
        at `paths`, the value of `depends_on` (if set, instead of `paths`), or one of the `files` has changed. It
        returns the callback that applies the settings, or raises DefinitionError."""
        part = _Part(paths, prepare, files, depends_on)
        self._parts.append(part)
        self._fingerprints.append(part.fingerprint(self.now))

    def mark_restart_only(self, *paths: str) -> None:
        """Mark paths that wait for the next start although their section is registered."""
        self._waiting.update(paths)

    @property
    def paths(self) -> Collection[str]:
        """The paths that are applied at run time."""
        return {path for part in self._parts for path in part.paths}

    @property
    def restart_only(self) -> Collection[str]:
        """The paths within them that wait for the next start."""
        return frozenset(self._waiting)

    def files(self) -> list[Path]:
        """The other files that the current settings refer to."""
        return [file for part in self._parts for file in part.files(self.now)]

    def replacement(self, fresh: Settings) -> Replacement:
        """The prepared change to `fresh`. May block; raises DefinitionError for settings that cannot be used."""
        known = _with_names_of(self.now, fresh)
        settings = _merged(self.now, known, "", self.paths, self._waiting)
        waiting = list(_differences(settings, known, ""))
        if known is not fresh or _names(fresh) != self._names:
            # Platforms get the names at the start only.
            waiting += ["bots.*.aliases", "bots.*.name"]
        fingerprints = [part.fingerprint(settings) for part in self._parts]
        uses = [
            part.prepare(settings)
            for part, before, now in zip(self._parts, self._fingerprints, fingerprints, strict=True)
            if before != now
        ]
        return Replacement(settings, uses, fingerprints, sorted(_differences(self.now, settings, "")), sorted(waiting))

    def put(self, replacement: Replacement, reach: Callable[[], object]) -> None:
        """Apply the new settings. `reach` is called midway, for tests of interruptions."""
        self.now, self._fingerprints = replacement.settings, list(replacement.fingerprints)
        for number, use in enumerate(replacement.uses):
            if number == 1 or len(replacement.uses) == 1:
                reach()
            use()


def etag_of(file: Path) -> tuple[int, ...]:
    """Identifies the content of `file`: changes whenever the file does; empty if it does not exist."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def _at(settings: Settings, path: str) -> object:
    value: Any = settings
    for step in path.split("."):
        value = getattr(value, step)
    return value


def _merged(before: _Read, fresh: _Read, at: str, live: Collection[str], waiting: Collection[str]) -> _Read:
    """Copy of `before` with the values of `fresh` at live paths; paths in `waiting` keep their value. `at` is the
    prefix of the paths."""
    update: dict[str, object] = {}
    for name in type(before).model_fields:
        path = f"{at}{name}"
        old, new = getattr(before, name), getattr(fresh, name)
        if path in waiting or old == new:
            continue
        is_live = any(path == one or path.startswith(f"{one}.") for one in live)
        is_partly = any(one.startswith(f"{path}.") for one in (waiting if is_live else live))
        if is_partly and isinstance(old, BaseModel) and isinstance(new, BaseModel):
            update[name] = _merged(old, new, f"{path}.", live, waiting)
        elif is_live:
            update[name] = new
    return before.model_copy(update=update) if update else before


def _differences(one: BaseModel, other: BaseModel, at: str) -> Iterator[str]:
    """Yield the dotted paths of values that differ, with the prefix `at`."""
    for name in type(one).model_fields:
        left, right = getattr(one, name), getattr(other, name)
        if left == right:
            continue
        if isinstance(left, BaseModel) and isinstance(right, BaseModel) and type(left) is type(right):
            yield from _differences(left, right, f"{at}{name}.")
        else:
            yield f"{at}{name}"


def _with_names_of(before: Settings, fresh: Settings) -> Settings:
    """`fresh` with the names and aliases that its bots have in `before`; the same object if they are equal."""
    bots = {
        key: bot.model_copy(update={"name": before.bots[key].name, "aliases": before.bots[key].aliases})
        if key in before.bots
        else bot
        for key, bot in fresh.bots.items()
    }
    return fresh if bots == fresh.bots else fresh.model_copy(update={"bots": bots})


def _names(settings: Settings) -> set[str]:
    """The names that address a bot."""
    return {name for bot in settings.bots.values() for name in (bot.name, *bot.aliases)}


_log = structlog.get_logger("reload")


class Reload:
    """Reloads the settings."""

    def __init__(
        self, live: LiveSettings, read: Callable[[], Settings] | None = None, faults: FaultPoints | None = None
    ) -> None:
        """`read` reads the settings from the file and raises SettingsInvalid. None: they never change."""
        self._live = live
        self._read = read or (lambda: live.now)
        self._reach = (faults or FaultPoints()).reach
        self._one_at_a_time = asyncio.Lock()
        self._waiting: Sequence[str] = []
        self._on_change: list[Callable[[], None]] = []
        self.faults: tuple[Diagnostic, ...] = ()
        """Problems of the current file; empty if it is applied."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of `faults`."""
        self._on_change.append(callback)

    async def follow(self, file: Path, changes: Changes) -> None:
        """Reload whenever `file`, or a file that the settings refer to, changes; until cancelled or until `changes`
        ends."""
        while True:
            files = [file, *self._live.files()]
            async with aclosing(changes.of(*files)) as events:
                async for _ in events:
                    await self.now(is_asked_for=False)
                    if [file, *self._live.files()] != files:
                        break
                else:
                    return

    async def now(self, *, is_asked_for: bool = True) -> bool:
        """Reload the settings; returns whether they are valid. Changes that wait for a restart are logged.
        `is_asked_for`: log the result even if nothing has changed."""
        async with self._one_at_a_time:
            try:
                replacement = await asyncio.to_thread(self._prepared)
            except SettingsInvalid as error:
                return self._rejected(error.diagnostics.errors, is_asked_for=is_asked_for)
            except DefinitionError as error:
                return self._rejected(problems_of(error), is_asked_for=is_asked_for)
            has_changed = bool(replacement.uses or self.faults or replacement.waiting != self._waiting)
            self._live.put(replacement, lambda: self._reach("reload.during_swap"))
            self._waiting = replacement.waiting
            if has_changed or is_asked_for:
                _log.info(
                    "settings_reloaded",
                    changed=list(replacement.changed),
                    from_the_next_start=list(replacement.waiting),
                )
            self._set_faults(())
            return True

    def _prepared(self) -> Replacement:
        return self._live.replacement(self._read())

    def _rejected(self, faults: Sequence[Diagnostic], *, is_asked_for: bool) -> bool:
        """Log and keep the problems; the current settings stay. Returns False. Repeated problems are logged only if
        `is_asked_for`."""
        if is_asked_for or tuple(faults) != self.faults:
            _log.error("settings_invalid", faults=[str(one) for one in faults])
            _log.error("settings_not_reloaded", kept="the current settings")
        self._set_faults(tuple(faults))
        return False

    def _set_faults(self, faults: tuple[Diagnostic, ...]) -> None:
        if faults == self.faults:
            return
        self.faults = faults
        for callback in self._on_change:
            callback()


def environment_secrets() -> list[str]:
    """Values of environment variables whose names name a secret."""
    return [value for name, value in os.environ.items() if names_a_secret(name) and len(value) >= _SECRET_CHARS]


_SECRET_CHARS = 12
"""Shorter values may be words."""


def secrets_of(settings: Settings) -> list[str]:
    """All secret values of the settings, for redaction in logs."""
    scripts = [
        str(value)
        for one in settings.bots.values()
        for name, value in one.parameters.items()
        if isinstance(value, str | int) and names_a_secret(name)
    ]
    return [*secrets_in(settings), *scripts]
