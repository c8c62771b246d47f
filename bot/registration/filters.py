"""Filters built from the settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bot.live.settings import etag_of
from config.sections.filters import (
    CallFilterSettings,
    ClassifierFilter,
    FiltersSettings,
    ModuleFilter,
    OneFilter,
    PythonFilter,
    RoundFilterSettings,
    TurnFilterSettings,
)
from function_calls.filters import Filters
from function_calls.filters.builtin import (
    blacklist,
    classifier,
    harm,
    limits,
    logged_calls,
    logged_rounds,
    logged_turns,
    memory,
    redaction,
)
from function_calls.filters.call import CallFilter
from function_calls.filters.pre_post import call_filter, round_filter, steps_of
from function_calls.filters.round import RoundFilter
from function_calls.filters.turn import TurnFilter
from function_calls.loading.module_loading import imported
from function_calls.ports import ChatWriter
from function_calls.schema.definition import DefinitionError, is_at_line
from services.clock import Clock, Deadlines
from services.redaction import Redactor
from services.store.port import Store

_Settings = TypeVar("_Settings", TurnFilterSettings, RoundFilterSettings, CallFilterSettings)
_Filter = TypeVar("_Filter")
_Made = tuple[object, Any]
"""The settings and file versions of a filter, and the filter."""


def files_of(settings: FiltersSettings) -> list[Path]:
    """The Python files of the filters."""
    every = (*settings.turn, *settings.round, *settings.call, *settings.named.values())
    return [file for one in every for file in _files(one)]


def _files(settings: OneFilter) -> list[Path]:
    options = settings.chosen[1]
    return [options.file] if isinstance(options, PythonFilter | ModuleFilter | ClassifierFilter) else []


class FilterFactory:
    """Builds filters from settings and caches them."""

    def __init__(self, store: Store, clock: Clock, deadlines: Deadlines, redact: Redactor, writer: ChatWriter) -> None:
        """`writer` asks models on behalf of the filter `harm`."""
        self._writer = writer
        self._store = store
        self._clock = clock
        self._deadlines = deadlines
        self._redact = redact
        self._made: dict[str, _Made] = {}

    def build(self, settings: FiltersSettings) -> Filters:
        """All filters of `settings`, in order. A filter with unchanged settings and file is reused.
        Raises DefinitionError for a Python file that cannot be used."""
        before, self._made = self._made, {}
        try:
            return self._built(settings, before)
        except BaseException:
            self._made = before
            raise

    def _built(self, settings: FiltersSettings, before: Mapping[str, _Made]) -> Filters:
        def one(make: Callable[[_Settings, str], _Filter], settings: _Settings, at: str) -> _Filter:
            made_of = (settings, [etag_of(file) for file in _files(settings)])
            known = before.get(at)
            try:
                filter_ = make(settings, at) if known is None or known[0] != made_of else known[1]
            except DefinitionError as error:
                if is_at_line(error.where):
                    raise
                raise DefinitionError(at, [f"{error.where}: {one}" for one in error.problems]) from None
            self._made[at] = (made_of, filter_)
            return filter_

        return Filters(
            turn=[one(self._turn, each, f"filters.turn[{place}]") for place, each in enumerate(settings.turn)],
            round=[one(self._round, each, f"filters.round[{place}]") for place, each in enumerate(settings.round)],
            call=[one(self._call, each, f"filters.call[{place}]") for place, each in enumerate(settings.call)],
            named={name: one(self._call, each, f"filters.named.{name}") for name, each in settings.named.items()},
        )

    def _turn(self, settings: TurnFilterSettings, at: str) -> TurnFilter:
        name = settings.chosen[0]
        if settings.logging is not None:
            return logged_turns(settings.logging.level, self._clock)
        if settings.blacklist is not None:
            return blacklist(settings.blacklist.words, f"{at}.{name}", reply=settings.blacklist.reply)
        if settings.classifier is not None:
            return self._classifier(settings.classifier, f"{at}.{name}")
        if settings.memory is not None:
            return memory(self._store, settings.memory.minutes, self._clock)
        assert settings.python is not None
        filter_: TurnFilter = _from_file(settings.python.file, settings.python.function, takes=3)
        return filter_

    def _classifier(self, options: ClassifierFilter, setting: str) -> TurnFilter:
        classify = _from_file(options.file, options.function, takes=1)
        seconds, reply = options.timeout_seconds, options.reply
        return classifier(classify, setting, seconds, self._deadlines, self._clock, reply=reply)

    def _round(self, settings: RoundFilterSettings, at: str) -> RoundFilter:
        if settings.logging is not None:
            return logged_rounds(settings.logging.level, self._clock)
        if settings.module is not None:
            return round_filter(steps_of(imported(settings.module.file)))
        assert settings.python is not None
        filter_: RoundFilter = _from_file(settings.python.file, settings.python.function, takes=2)
        return filter_

    def _call(self, settings: CallFilterSettings, at: str) -> CallFilter:
        if settings.logging is not None:
            return logged_calls(settings.logging.level, self._clock)
        if settings.limits is not None:
            return limits(settings.limits, f"{at}.limits", self._store, self._clock)
        if settings.redaction is not None:
            return redaction(settings.redaction, self._redact)
        if settings.harm is not None:
            return harm(self._writer, settings.harm, f"{at}.harm")
        if settings.module is not None:
            return call_filter(steps_of(imported(settings.module.file)))
        assert settings.python is not None
        filter_: CallFilter = _from_file(settings.python.file, settings.python.function, takes=2)
        return filter_


def _from_file(file: Path, name: str, *, takes: int) -> Callable[..., Any]:
    """The async function `name` of `file`. Raises DefinitionError if it cannot be imported, is not async, or does not
    take `takes` parameters."""
    found = getattr(imported(file), name, None)
    if not inspect.iscoroutinefunction(found):
        raise DefinitionError(str(file), [f"it has no `async def {name}`"])
    parameters = inspect.signature(found).parameters.values()
    needed = [one for one in parameters if one.default is one.empty]
    if len(needed) != takes:
        raise DefinitionError(str(file), [f"`{name}` has to take {takes} parameters"])
    return found
