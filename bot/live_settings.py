"""The settings in force. Each part of the daemon that can take others while it runs says which, and how it takes them;
what nobody takes waits for the next start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from config.settings import Settings

Use = Callable[[], None]
"""Puts what was prepared in the place of what there is. Does not fail, and takes no time."""
_Read = TypeVar("_Read", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Part:
    """What takes new settings as one."""

    paths: tuple[str, ...]
    prepare: Callable[[Settings], Use]
    files: Callable[[Settings], Sequence[Path]]
    hears_of: Callable[[Settings], object] | None

    def made_of(self, settings: Settings) -> object:
        """What decides whether it takes them anew."""
        read = [_at(settings, path) for path in self.paths] if self.hears_of is None else self.hears_of(settings)
        return read, [etag_of(file) for file in self.files(settings)]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Settings that were read again, and all that is needed to put them in force."""

    settings: Settings
    """Those that will be in force: what waits for the next start is as it was."""
    uses: Sequence[Use]
    made_of: Sequence[object]
    changed: Sequence[str]
    """The settings that will be other than they are, as `section.key`."""
    waiting: Sequence[str]
    """Those that are other in the file, and wait for the next start."""


def _no_files(_settings: Settings) -> Sequence[Path]:
    return ()


class LiveSettings:
    """Who takes which settings. New ones are prepared by all of them before any takes them, so they hold as a whole or
    not at all."""

    def __init__(self, settings: Settings) -> None:
        self.now = settings
        """In force."""
        self._parts: list[_Part] = []
        self._waiting: set[str] = set()
        self._made_of: list[object] = []
        self._names = _names(settings)

    def take(
        self,
        *paths: str,
        prepare: Callable[[Settings], Use],
        files: Callable[[Settings], Sequence[Path]] = _no_files,
        hears_of: Callable[[Settings], object] | None = None,
    ) -> None:
        """What `paths` (a section, or `section.key`) say is taken by what `prepare` gives. It is called in a thread,
        when something there has changed, or what `hears_of` gives instead, or one of the `files` that these settings
        name; it raises DefinitionError for what cannot be used."""
        part = _Part(paths, prepare, files, hears_of)
        self._parts.append(part)
        self._made_of.append(part.made_of(self.now))

    def leave(self, *paths: str) -> None:
        """These wait for the next start, although they are within what is taken."""
        self._waiting.update(paths)

    @property
    def paths(self) -> Collection[str]:
        """What is taken while the daemon runs."""
        return {path for part in self._parts for path in part.paths}

    @property
    def left(self) -> Collection[str]:
        """What of it waits all the same."""
        return frozenset(self._waiting)

    def files(self) -> list[Path]:
        """The files that settings in force are made of, beside their own."""
        return [file for part in self._parts for file in part.files(self.now)]

    def replacement(self, fresh: Settings) -> Replacement:
        """What `fresh` changes. Takes its time; raises DefinitionError for what cannot be used."""
        settings = _merged(self.now, fresh, "", self.paths, self._waiting)
        waiting = list(_differences(settings, fresh, ""))
        if _names(fresh) != self._names:
            # The platforms know them from the start on.
            waiting += ["bots.*.aliases", "bots.*.name"]
        made_of = [part.made_of(settings) for part in self._parts]
        uses = [
            part.prepare(settings)
            for part, before, now in zip(self._parts, self._made_of, made_of, strict=True)
            if before != now
        ]
        return Replacement(settings, uses, made_of, sorted(_differences(self.now, settings, "")), sorted(waiting))

    def put(self, replacement: Replacement, reach: Callable[[], object]) -> None:
        """From now on the new settings hold. `reach` is called in the midst."""
        self.now, self._made_of = replacement.settings, list(replacement.made_of)
        for number, use in enumerate(replacement.uses):
            if number == 1 or len(replacement.uses) == 1:
                reach()
            use()


def etag_of(file: Path) -> tuple[int, ...]:
    """Another one whenever the content of `file` is another; empty when there is none."""
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
    """`fresh` where it is live, else `before`."""
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
    """The paths of what is not the same in both."""
    for name in type(one).model_fields:
        left, right = getattr(one, name), getattr(other, name)
        if left == right:
            continue
        if isinstance(left, BaseModel) and isinstance(right, BaseModel) and type(left) is type(right):
            yield from _differences(left, right, f"{at}{name}.")
        else:
            yield f"{at}{name}"


def _names(settings: Settings) -> set[str]:
    """The words that address a bot."""
    return {name for bot in settings.bots.values() for name in (bot.name, *bot.aliases)}
