"""Notices in the operators' chat: problems after an edit and their resolution, at most once an hour for a recurring
problem, and each dead letter once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from bot.chats.chats import Chats
from bot.delivery.delivery import Delivery
from bot.delivery.outgoing import OutboundMessage
from bot.engine.embedded import Job
from bot.intake.intake import Intake
from bot.intake.notices import Notices
from config.diagnostics import Diagnostic
from config.sections.bots import OperatorsSettings
from config.texts import Phrases
from function_calls.schema.definition import Code
from services.clock import Clock
from services.patterns import visible_line
from services.redaction import Redactor
from services.refs import ChatRef
from services.store.chats import outcomes
from services.store.chats.outcomes import DeadKind
from services.store.port import Store, StoreError
from services.timers.timetable import Timetable

_GATHER_SECONDS = 1.0
"""An edit may save several files, and some editors save twice."""
_QUIET_SECONDS = 60.0
"""Minimum between two messages."""
_REPEAT_SECONDS = 3600.0
"""Minimum before the same problem is reported again, even if it was resolved meanwhile."""
_MOST_AT_A_PLACE = 3
"""Maximum of reports on one place in that time, whatever the problem."""
_MOST_LINES = 5
_LINE_CHARS = 200
_log = structlog.get_logger("operators")


class _Problem(NamedTuple):
    """Identity of a problem."""

    what: str
    file: str
    line: int
    code: str
    words: str

    @classmethod
    def of(cls, what: str, found: Diagnostic) -> _Problem:
        # The reason why a server is unreachable varies between attempts.
        words = "" if found.code == Code.UNREACHABLE else found.message
        return cls(what, found.file, found.line, found.code, words)

    @property
    def place(self) -> tuple[str, ...]:
        """Location and kind of the problem."""
        return self.what, self.file, str(self.line), self.code


@dataclass(eq=False, repr=False)
class OperatorNotices:
    """Compares the current problems with those reported last."""

    settings: OperatorsSettings
    notices: Notices
    chats: Chats
    store: Store
    clock: Clock
    redact: Redactor
    still_serves: Callable[[str], bool]
    """Whether functions of a file are still in use."""
    is_active: Callable[[], bool] = lambda: True
    """Whether this process reports problems; in a cluster, one does."""

    def __post_init__(self) -> None:
        self._watched: dict[str, Callable[[], Sequence[Diagnostic]]] = {}
        self._known: frozenset[_Problem] = frozenset()
        self._notified: list[tuple[float, _Problem]] = []
        self._is_well = True
        self._notified_at = -_QUIET_SECONDS
        self._has_changed = False
        self._dead: list[tuple[str, int, str]] = []
        self._task: asyncio.Task[None] | None = None
        self._later: asyncio.Task[None] | None = None

    def watch(self, what: str, faults: Callable[[], Sequence[Diagnostic]]) -> None:
        """Register a source of problems; `what` names it in the texts."""
        self._watched[what] = faults

    def use(self, settings: OperatorsSettings) -> None:
        """Apply new settings. A new chat gets the current problems."""
        if settings.chat != self.settings.chat:
            self._known, self._notified, self._is_well = frozenset(), [], True
        self.settings = settings
        self.changed()

    def died(self, kind: str, id_: int, chat: str) -> None:
        """Report a new dead letter of that kind once. Ignored without an operators' chat, and for a message to that
        chat."""
        if self.settings.chat is None or (chat == self.settings.chat and kind == DeadKind.MESSAGE):
            # A message that the operators' chat did not accept cannot be reported there.
            return
        self._dead.append((kind, id_, chat))
        self.changed()

    def changed(self) -> None:
        """Report changed problems in the background."""
        self._has_changed = True
        if self.settings.chat is not None and self._task is None and self.is_active():
            self._task = asyncio.get_running_loop().create_task(self._notify())

    async def close(self) -> None:
        """Stop reporting: cancel the tasks and wait for their end. Pending notices are not sent."""
        for task in (self._task, self._later):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _notify(self) -> None:
        try:
            while self._has_changed:
                quiet = self._notified_at + _QUIET_SECONDS - self.clock.monotonic()
                await self.clock.sleep(max(_GATHER_SECONDS, quiet))
                self._has_changed = False
                self._say_what_changed()
        finally:
            self._task = None

    def _say_what_changed(self) -> None:
        if self.settings.chat is None:
            return
        chat = ChatRef.parse(self.settings.chat)
        texts = self.chats.profile(chat).texts
        if self._dead:
            self._say(chat, self._dead_in_words(texts))
            self._dead.clear()
        now = {_Problem.of(what, one): (what, one) for what, faults in self._watched.items() for one in faults()}
        self._notified = [one for one in self._notified if self._cooldown_seconds(one[0]) > 0]
        held = {fault: self._held_seconds(fault) for fault in now if fault not in self._known}
        fresh = [fault for fault, seconds in held.items() if seconds <= 0]
        self._known = frozenset(fault for fault in now if held.get(fault, 0.0) <= 0)
        if fresh:
            self._notified += [(self.clock.monotonic(), fault) for fault in fresh]
            self._is_well = False
            self._say(chat, self._in_words([now[fault] for fault in fresh], texts))
        elif not now and not self._is_well:
            self._is_well = True
            self._say(chat, texts.say("operators.well"))
        if len(fresh) < len(held):
            self._look_later(min(seconds for seconds in held.values() if seconds > 0))

    def _held_seconds(self, fault: _Problem) -> float:
        """Seconds until the problem may be reported, given earlier reports on it and its place."""
        since = [at for at, reported in self._notified if reported == fault]
        there = sorted({at for at, reported in self._notified if reported.place == fault.place})
        if len(there) >= _MOST_AT_A_PLACE:
            since.append(there[-_MOST_AT_A_PLACE])
        return max(map(self._cooldown_seconds, since), default=0.0)

    def _cooldown_seconds(self, reported_at: float) -> float:
        return reported_at + _REPEAT_SECONDS - self.clock.monotonic()

    def _look_later(self, seconds: float) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().create_task(self._change_in(seconds))

    async def _change_in(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self.changed()

    def _dead_in_words(self, texts: Phrases) -> str:
        lines = [visible_line(texts.say(f"operators.dead_{kind}", id=id_, chat=at)) for kind, id_, at in self._dead]
        return texts.say("operators.dead_letters", lines=_first_lines(lines, texts))

    def _in_words(self, found: Sequence[tuple[str, Diagnostic]], texts: Phrases) -> str:
        parts: list[str] = []
        for what in self._watched:
            lines = [self._line(one) for kind, one in found if kind == what]
            if lines:
                parts.append(texts.say(f"operators.{what}_broke", lines=_first_lines(lines, texts)))
            if any(kind == what and self.still_serves(one.file) for kind, one in found):
                parts[-1] += f"\n{texts.say('operators.serves_on')}"
        return "\n\n".join(parts)

    def _line(self, found: Diagnostic) -> str:
        line = visible_line(self.redact(f"{found.place}: {' '.join(found.message.split())}"))
        return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"

    def _say(self, chat: ChatRef, text: str) -> None:
        if self.chats.of(chat).allowed_by is None or not self.notices.reaches(chat):
            _log.error("operators_cannot_be_told", chat=chat.key, setting="operators.chat")
            return
        self._notified_at = self.clock.monotonic()
        write, outbound = self.notices.notice(chat, text)
        try:
            self.store.post([write])
        except StoreError as problem:
            _log.error("operators_cannot_be_told", chat=chat.key, problem=str(problem))
            return
        self.notices.send([outbound])


def _first_lines(lines: Sequence[str], texts: Phrases) -> str:
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *([texts.say("operators.more", count=more)] if more > 0 else [])])


@dataclass(eq=False, repr=False)
class DeadLetters:
    """Counts and reports everything that is given up."""

    store: Store
    intake: Intake
    delivery: Delivery
    timetable: Timetable
    notices: OperatorNotices
    clock: Clock

    def __post_init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Number of dead letters by kind."""

    def turn(self, job: Job) -> None:
        """Record a turn that was given up."""
        self._died(DeadKind.TURN, job.turn_id, job.context.chat.key)

    def message(self, outbound: OutboundMessage, problem: str) -> None:
        """Record a message that was given up."""
        self._died(DeadKind.MESSAGE, outbound.row_id, outbound.outgoing.chat.key)

    def moment(self, chat: str, occurrence_id: int) -> None:
        """Record a rejected occurrence of a timer."""
        self._died(DeadKind.TIMER, occurrence_id, chat)

    def _died(self, kind: DeadKind, id_: int, chat: str) -> None:
        self.counts[kind.value] += 1
        self.notices.died(kind.value, id_, chat)

    async def start(self) -> None:
        """Start the retries that operators requested, and count the rest. Raises StoreError."""
        await self.intake.take_up_retried()
        await self.delivery.take_up()
        counted = await self.store.read(outcomes.COUNTS)
        self.counts = Counter({row["kind"]: row["count"] for row in counted})

    async def look(self) -> None:
        """The same after a change by a command. Raises StoreError."""
        self.timetable.expect(self.clock.now_ms())
        await self.start()
