"""The daemon on a machine whose wall clock is set forward and back at run time, with libfaketime. Elapsed time and the
monotonic clock are real."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness.real_daemon import FAKETIME, RealDaemon, a_real_daemon

FUNCTIONS = '''
import time
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.clock import Clock
from services.times.recurrence import Once, Rule
from services.timers.timetable import Draft, TimerKind, Timetable


class Plan(BaseModel, frozen=True):
    seconds: int
    text: str


class Said(BaseModel, frozen=True):
    text: str


@tool_function(commands=("later",), effect="idempotent")
async def later(context: MessageContext, args: Plan, *, call: Call, timetable: Timetable, clock: Clock) -> str:
    """Say something later."""
    at = clock.now() + timedelta(seconds=args.seconds)
    rule = Rule(Once(at.replace(tzinfo=None)))
    owner = (context.sender.ref, context.sender.name)
    draft = Draft(
        TimerKind.REMINDER, context.bot, context.chat, context.is_group, None, *owner, (), "planned",
        {"text": args.text},
        args.text, rule, "UTC",
    )
    await timetable.add([draft], call_key=call.key, most_per_owner=100)
    return f"{args.text} is due at {at.timestamp()}"


@tool_function(offered_to=("timer",), effect="once")
async def planned(context: MessageContext, args: Said) -> str:
    """Say what was planned."""
    return f"{args.text} came at {time.monotonic()}"


@tool_function(commands=("wonder",), effect="once")
async def wonder(context: MessageContext, args: Said, *, call: Call) -> FunctionResult:
    """Ask a question, and note when nobody answers it."""
    if call.resumed is None:
        return FunctionResult.ask(f"{args.text}?")
    with Path(__file__).with_suffix(".txt").open("a") as file:
        file.write(f"{args.text} {call.resumed.kind} {time.monotonic()}\\n")
    return FunctionResult.say("Thanks.")
'''
NO_MODEL = "http://127.0.0.1:9/v1"
MINUTE = 60.0
TEN_YEARS = 10 * 365 * 1440 * MINUTE
SOON_SECONDS = 2.0
"""Maximum delay of a reminder or an expiry."""
PATIENCE_SECONDS = 15.0
QUESTION_SECONDS = 10.0
EXPIRY_LOOK_SECONDS = 30.0


class WallClock:
    """The daemon's wall clock: the machine's with an offset."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._history: list[tuple[float, float]] = []
        self._offset = 0.0
        self.set(0.0)

    def set(self, offset: float) -> None:
        """Set the offset from the machine's time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset:+.0f}\n")
        fresh.replace(self._file)
        self._offset = offset
        self._history.append((time.monotonic(), time.time() + offset))

    def step(self, seconds: float) -> None:
        """Change the offset, forward or back."""
        self.set(self._offset + seconds)

    def reaches(self, instant: float, after: float) -> float:
        """Monotonic time when it first shows `instant` or later, not before `after`."""
        ends = [at for at, _ in self._history[1:]] + [float("inf")]
        for (at, shown), end in zip(self._history, ends, strict=True):
            found = max(at, at + instant - shown, after)
            if found < end:
                return found
        raise AssertionError("the last stretch has no end")


class Reminders:
    """Reminders of the family, and their times."""

    def __init__(self, daemon: RealDaemon, wall: WallClock) -> None:
        self._daemon = daemon
        self._wall = wall
        self._asked: dict[str, tuple[float, float]] = {}

    async def plan(self, text: str, seconds: float) -> None:
        """Create a reminder in `seconds` by the wall clock."""
        asked_at = time.monotonic()
        await self._daemon.say("family", text, f"/later {seconds:.0f} {text}")
        due = await self._told(f"{text} is due at ")
        self._asked[text] = asked_at, due

    async def lateness(self, text: str, *, after: float = 0.0) -> float:
        """Seconds between the reminder's wall time and its delivery, not counting those before `after`."""
        asked_at, due = self._asked[text]
        return await self._told(f"{text} came at ") - self._wall.reaches(due, max(asked_at, after))

    async def came(self, text: str) -> bool:
        return any(f"{text} came at " in one for one in await self._daemon.texts("family"))

    async def _told(self, words: str) -> float:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    for one in await self._daemon.texts("family"):
                        _, found, number = one.partition(words)
                        if found:
                            return float(number)
                    await asyncio.sleep(0.05)
        return float("inf")


async def until_held(daemon: RealDaemon) -> None:
    """Wait until the log says that reminders are held back."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if b"timers_held" in daemon.log.read_bytes():
                return
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not FAKETIME, reason="there is no libfaketime here: install the package faketime")
async def test_steps_of_the_wall_clock_and_pauses_delay_no_reminder_and_no_expiry(tmp_path: Path) -> None:
    (tmp_path / "planning.py").write_text(FUNCTIONS)
    more = f"sources: {{python: [{tmp_path}/planning.py]}}\nquestions: {{expires_seconds: {QUESTION_SECONDS:.0f}}}\n"
    wall = WallClock(tmp_path / "clock")
    late: dict[str, float] = {}
    async with a_real_daemon(tmp_path, NO_MODEL, more, wall_clock=tmp_path / "clock") as daemon:
        reminders = Reminders(daemon, wall)

        async def comes(text: str, seconds: float) -> None:
            await reminders.plan(text, seconds)
            late[text] = await reminders.lateness(text)

        await reminders.plan("in an hour", 60 * MINUTE)
        await comes("before any step", 2)

        await reminders.plan("passed by", 45)
        await daemon.say("work", "q1", "/wonder kept")
        assert await daemon.said("work", 1) == ["kept?"]
        wall.step(+MINUTE)
        late["passed by"] = await reminders.lateness("passed by")
        await daemon.say("work", "q2", "An answer")
        answer = (await daemon.said("work", 2))[1]

        await daemon.say("work", "q3", "/wonder left")
        left_at = time.monotonic()
        wall.step(-MINUTE)
        await comes("after a minute back", 2)
        wall.step(-30 * MINUTE)
        await comes("after half an hour back", 2)
        wall.step(+30 * MINUTE)
        await comes("after half an hour ahead", 2)

        await reminders.plan("during a pause", 4)
        daemon.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(20)
        daemon.process.send_signal(signal.SIGCONT)
        resumed = time.monotonic()
        late["during a pause"] = await reminders.lateness("during a pause", after=resumed)

        # The monotonic clock stops while a machine is suspended.
        await reminders.plan("while suspended", 20 * MINUTE)
        daemon.process.send_signal(signal.SIGSTOP)
        wall.step(+30 * MINUTE)
        daemon.process.send_signal(signal.SIGCONT)
        late["while suspended"] = await reminders.lateness("while suspended")
        await comes("after that", 2)

        wall.step(+TEN_YEARS)
        await until_held(daemon)
        wall.step(-TEN_YEARS)
        await comes("after ten years ahead and back", 2)
        assert not await reminders.came("in an hour")
        notes = (tmp_path / "planning.txt").read_text().splitlines()
    assert answer == "Thanks."
    assert {text: seconds for text, seconds in late.items() if not -0.1 <= seconds <= SOON_SECONDS} == {}
    _, expired = notes
    assert expired.startswith("left expired ")
    expired_after = float(expired.split()[2]) - left_at
    assert QUESTION_SECONDS - 0.5 <= expired_after <= QUESTION_SECONDS + EXPIRY_LOOK_SECONDS + SOON_SECONDS
