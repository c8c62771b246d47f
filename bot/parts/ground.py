"""What all parts of the daemon stand on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.chats import Chats
from bot.given import Given
from bot.metrics import Metrics
from bot.secret_values import secrets_of
from bot.shadow_records import FILE as SHADOW_LOG
from config.settings import Settings
from config.texts import Texts
from function_calls.registry import FunctionRegistry
from services.call_log import JsonLines
from services.clock import Clock
from services.deadlines import Deadlines
from services.fault_points import FaultPoints
from services.redaction import Redactor
from services.store.ids import Ids
from services.store.port import Store


@dataclass(frozen=True, slots=True)
class Ground:
    """The settings as they were at the start, time, the store, and what knows nothing of the other parts."""

    settings: Settings
    given: Given
    store: Store
    ids: Ids
    epoch: int
    """Of this process: what it has under way is told by it from what an earlier one left."""
    texts: Texts
    clock: Clock
    deadlines: Deadlines
    faults: FaultPoints
    chats: Chats
    registry: FunctionRegistry
    """Empty until the sources have spoken."""
    redact: Redactor
    metrics: Metrics
    call_log: JsonLines
    model_log: JsonLines
    shadow_log: JsonLines


def ground_of(settings: Settings, store: Store, ids: Ids, texts: Texts, given: Given) -> Ground:
    """On `store`, with what is given."""
    return Ground(
        settings=settings,
        given=given,
        store=store,
        ids=ids,
        epoch=ids.next(),
        texts=texts,
        clock=given.clock,
        deadlines=given.deadlines or Deadlines(given.clock),
        faults=given.faults,
        chats=Chats(settings, texts),
        registry=FunctionRegistry(),
        redact=Redactor(secrets_of(settings)),
        metrics=Metrics(),
        call_log=_lines(settings, "function_calls.jsonl"),
        model_log=_lines(settings, "model_requests.jsonl"),
        shadow_log=_lines(settings, SHADOW_LOG),
    )


def _lines(settings: Settings, name: str) -> JsonLines:
    """A log of its own beside the daemon's."""
    return JsonLines(
        Path(settings.logging.folder) / name,
        max_bytes=settings.logging.max_megabytes * 1_000_000,
        keep_files=settings.logging.keep_files,
    )
