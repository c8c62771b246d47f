"""Model-based test of timers: after any sequence of creating, changing, snoozing, pausing and deleting, with any delay
between ticks, each timer fires once, when a plain model says so. Number of steps: `$ROLLCALL_TIMER_STEPS`, default
5,000; if it is set, failures are shrunk, which takes minutes."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from bot.delivery.delivery import Delivery
from bot.intake.gate import GateDecision
from bot.intake.intake import Intake
from bot.platforms.base import Limits
from bot.timers.timer_dispatch import Timers
from config.sections.timers import TimersSettings
from function_calls.context import MessageContext
from services.clock import VirtualClock
from services.fault_points import FaultPoints
from services.refs import ChatRef
from services.store.ids import Ids
from services.store.port import Store, Write
from services.timers.timetable import Timer, TimerKind, Timetable
from services.times.recurrence import BadRule, Calendar, Every, Once, Rule
from tests.fakes.drafts import ANN, a_draft
from tests.fakes.sqlite_store import a_store

STEPS = int(os.environ.get("ROLLCALL_TIMER_STEPS", "5000"))
STEPS_OF_ONE = 100
PHASES = tuple(Phase) if "ROLLCALL_TIMER_STEPS" in os.environ else (Phase.generate,)
START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
MADE_UP_FOR = 12 * 3600
DAY = 86_400
CHATS = [ChatRef("test", "bot", name) for name in ("family", "work", "club")]
DIVISORS = (1, 5, 15, 30)
Value = TypeVar("Value")


@dataclass(slots=True)
class Plain:
    """Times of a timer in seconds from the start, without a calendar."""

    kind: Literal["once", "every", "minutes", "daily"]
    number: int
    since: int
    """Time of the request."""
    count: int | None = None

    def after(self, second: int) -> int | None:
        """First occurrence after `second`."""
        match self.kind:
            case "once":
                return self.number if self.number > second else None
            case "every":
                return self.since + max(1, (second - self.since) // self.number + 1) * self.number
            case "minutes":
                return (second // (self.number * 60) + 1) * self.number * 60
            case "daily":  # the start is at 9:00
                return ((second - self.number) // DAY + 1) * DAY + self.number

    def rule(self) -> Rule:
        """The rule for the bot."""
        match self.kind:
            case "once":
                return Rule(Once((START + timedelta(seconds=self.number)).replace(tzinfo=None)))
            case "every":
                return Rule(Every(self.number, START + timedelta(seconds=self.since)), count=self.count)
            case "minutes":
                return Rule(Calendar(f"*/{self.number} * * * *"), count=self.count)
            case "daily":
                at = START + timedelta(seconds=self.number)
                return Rule(Calendar(f"{at.minute} {at.hour} * * *"), count=self.count)


@dataclass(slots=True)
class Wanted:
    """A timer of the model."""

    timer: Timer
    title: str
    plain: Plain
    next: int | None
    snoozed: int | None = None
    paused: bool = False
    done: int = 0

    def due(self, now: int) -> list[tuple[str, int]]:
        """Messages of a tick at `now`: title and time of the occurrence."""
        said: list[tuple[str, int]] = []
        if self.snoozed is not None and self.snoozed <= now:
            said.append((self.title, self.snoozed))
            self.snoozed = None
        if self.next is not None and self.next <= now:
            latest = self.next
            self.done += 1
            while (later := self._later(latest)) is not None and later <= now:
                latest = later
                self.done += self.plain.count is not None
            if self.plain.kind == "once" or now - latest <= MADE_UP_FOR:
                said.append((self.title, latest))
            self.next = self._later(latest)
        return said

    def _later(self, second: int) -> int | None:
        if self.plain.count is not None and self.done >= self.plain.count:
            return None
        return self.plain.after(second)


@dataclass(slots=True)
class Network:
    """A network that accepts everything immediately."""

    limits: Limits = field(
        default_factory=lambda: Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=1_000_000_000)
    )


class NothingToSend:
    """Replaces delivery: every message counts as delivered."""

    def __init__(self) -> None:
        self.on_given_up: list[object] = []

    def is_here(self, chat: ChatRef) -> bool:
        return True

    def platform(self, chat: ChatRef) -> Network:
        return Network()

    async def delivered(self, chat: ChatRef) -> None:
        return None


class Listening:
    """Replaces the intake: stores claims and records the messages."""

    def __init__(self, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids
        self.said: list[tuple[str, datetime]] = []

    async def fire(
        self, context: MessageContext, claim: Callable[[GateDecision, int], Sequence[Write]], ended: Callable[[], None]
    ) -> GateDecision:
        verdict = GateDecision(addressed=True)
        await self._store.commit(claim(verdict, self._ids.next()))
        assert context.timer is not None
        self.said.append((context.timer.title, context.timer.due_at))
        ended()
        return verdict


steps = 0


class Firing(RuleBasedStateMachine):
    """Timers of three chats."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.opened = AsyncExitStack()
        self.calls = 0
        self.wanted: list[Wanted] = []

    @initialize()
    def begin(self) -> None:
        in_memory = Path("/dev/shm")
        folder = tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None)
        self.opened.callback(folder.cleanup)
        self.clock = VirtualClock(START)
        self.store = self.run(self.opened.enter_async_context(a_store(Path(folder.name), self.clock)))
        self.ids = Ids(self.clock)
        self.start()

    def start(self) -> None:
        """Start a daemon on the stored data."""
        self.timetable = Timetable(self.store, self.clock, self.ids)
        self.listening = Listening(self.store, self.ids)
        self.timers = Timers(
            store=self.store,
            intake=cast("Intake", self.listening),
            delivery=cast("Delivery", NothingToSend()),
            timetable=self.timetable,
            settings=TimersSettings(),
            clock=self.clock,
            ids=self.ids,
            faults=FaultPoints(),
        )
        self.run(self.timers.start(self.clock.now_ms()))

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        return self.loop.run_until_complete(work)

    def key(self) -> str:
        self.calls += 1
        return f"call {self.calls}"

    @property
    def now(self) -> int:
        return int((self.clock.now() - START).total_seconds())

    def plain(self, choice: int, is_counted: bool) -> Plain:
        kinds: tuple[Literal["once", "every", "minutes", "daily"], ...] = ("once", "every", "minutes", "daily")
        kind = kinds[choice % 4]
        number = {
            "once": self.now + 1 + choice * 7 % (2 * DAY),
            "every": 60 + choice * 13 % 5000,
            "minutes": DIVISORS[choice % len(DIVISORS)],
            "daily": choice * 60 % DAY,
        }[kind]
        counted = is_counted and kind != "once"
        return Plain(kind, number, self.now, 1 + choice % 20 if counted else None)

    def one(self, place: int) -> Wanted:
        return self.wanted[place % len(self.wanted)]

    @rule(choice=st.integers(0, 50_000), counted=st.booleans(), twice=st.booleans())
    def create(self, choice: int, counted: bool, twice: bool) -> None:
        plain, title, key = self.plain(choice, counted), f"t{self.calls}", self.key()
        draft = a_draft(title, plain.rule(), chat=CHATS[choice % 3])
        (timer,) = self.run(self.timetable.add([draft], call_key=key, most_per_owner=10_000))
        if twice:
            assert self.run(self.timetable.add([draft], call_key=key, most_per_owner=10_000)) == [timer]
        self.wanted.append(Wanted(timer, title, plain, plain.after(self.now)))

    @precondition(lambda self: self.wanted)
    @rule(place=st.integers(0, 1000))
    def call_it_otherwise(self, place: int) -> None:
        one, one_key = self.one(place), self.key()
        one.title = f"renamed {self.calls}"
        self.run(self.timetable.change(one.timer, call_key=one_key, title=one.title))

    @precondition(lambda self: self.wanted)
    @rule(place=st.integers(0, 1000), choice=st.integers(0, 50_000), counted=st.booleans())
    def move(self, place: int, choice: int, counted: bool) -> None:
        one, plain = self.one(place), self.plain(choice, counted)
        self.run(self.timetable.change(one.timer, call_key=self.key(), rule=plain.rule()))
        one.plain, one.snoozed, one.done = plain, None, 0
        one.next = None if one.paused else plain.after(self.now)

    @precondition(lambda self: self.wanted)
    @rule(place=st.integers(0, 1000), seconds=st.integers(1, 20_000))
    def snooze(self, place: int, seconds: int) -> None:
        one = self.one(place)
        until = START + timedelta(seconds=self.now + seconds)
        self.run(self.timetable.snooze(one.timer, until, call_key=self.key()))
        one.snoozed = self.now + seconds

    @precondition(lambda self: self.wanted)
    @rule(place=st.integers(0, 1000))
    def pause(self, place: int) -> None:
        one = self.one(place)
        is_over = one.next is None and one.snoozed is None and not one.paused
        self.run(self.timetable.pause(one.timer, call_key=self.key()))
        if not is_over:
            one.paused, one.next, one.snoozed = True, None, None

    @precondition(lambda self: any(one.paused for one in self.wanted))
    @rule(place=st.integers(0, 1000))
    def resume(self, place: int) -> None:
        paused = [one for one in self.wanted if one.paused]
        one = paused[place % len(paused)]
        following = one._later(self.now)
        if following is None:
            with pytest.raises(BadRule):
                self.run(self.timetable.resume(one.timer, call_key=self.key()))
            return
        self.run(self.timetable.resume(one.timer, call_key=self.key()))
        one.paused, one.next = False, following

    @precondition(lambda self: self.wanted)
    @rule(place=st.integers(0, 1000))
    def remove(self, place: int) -> None:
        one = self.wanted.pop(place % len(self.wanted))
        self.run(self.timetable.remove([one.timer], by=ANN, call_key=self.key()))
        assert self.run(self.timetable.of_id(one.timer.id)) is None

    @rule(seconds=st.one_of(st.integers(1, 90), st.integers(1, 7200), st.integers(1, 3 * DAY)))
    def wait(self, seconds: int) -> None:
        self.run(self.clock.advance(seconds))
        self.look()

    @rule(seconds=st.integers(0, 2 * DAY))
    def restart(self, seconds: int) -> None:
        self.run(self.timers.close())
        self.run(self.clock.advance(seconds))
        self.start()
        self.look()

    def look(self) -> None:
        """Compare the messages with those of the model."""
        self.listening.said.clear()
        self.run(self._tick())
        said = sorted((title, int((at - START).total_seconds())) for title, at in self.listening.said)
        assert said == sorted(moment for one in self.wanted for moment in one.due(self.now))

    async def _tick(self) -> None:
        await self.timers.tick()
        await self.timers.idle()

    def check_invariants(self, *given: object, **more: object) -> None:
        """Called after each step, which is one action on a timer or a tick after some time."""
        global steps  # noqa: PLW0603 - the one count of all machines
        steps += 1

    def teardown(self) -> None:
        """At the end, the stored occurrences are those of the model."""
        if hasattr(self, "timers"):
            found = {one.id: one for chat in CHATS for one in self.run(self._of(chat))}
            for one in self.wanted:
                kept = found.pop(one.timer.id, None)
                moments = (kept.next_at, kept.snoozed_until) if kept is not None else (None, None)
                assert tuple(map(self._second, moments)) == (one.next, one.snoozed)
            assert found == {}
            self.run(self.timers.close())
        self.run(self.opened.aclose())
        self.loop.close()

    async def _of(self, chat: ChatRef) -> list[Timer]:
        return await self.timetable.of_chat(chat, kind=TimerKind.REMINDER)

    @staticmethod
    def _second(at: datetime | None) -> int | None:
        return None if at is None else int((at - START).total_seconds())


@pytest.mark.requirement("D41")
def test_what_fires_is_what_a_plain_model_says_over_thousands_of_steps() -> None:
    # Some machines stop before their last step.
    machines = 1 + STEPS * 13 // 10 // STEPS_OF_ONE
    run_state_machine_as_test(
        Firing, settings=settings(max_examples=machines, stateful_step_count=STEPS_OF_ONE, phases=PHASES)
    )
    assert steps >= STEPS
