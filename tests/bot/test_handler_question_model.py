"""Model-based test of questions: whatever members say, however long they wait and whenever the daemon restarts, runs
get the same answers as in a plain model, each once."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.testing import Group, a_group
from config.texts import Texts
from services.clock import VirtualClock
from tests.fakes.asking import Asking
from tests.fakes.functions import CITY, Recorder

PATIENCE_SECONDS = 300
DROPPED = Texts().of("en").say("questions.dropped")
ASKED = ("One?", "Two?")
Heard = tuple[str, str, str]
"""Run, kind of answer, and answer."""


class Step(NamedTuple):
    """One event."""

    kind: Literal["fill", "rain", "say", "cancel", "again", "drift", "look", "restart"]
    who: str
    seconds: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["fill", "fill", "rain", "say", "say", "say", "cancel", "again", "drift", "look", "restart"]),
        st.sampled_from(["Ann", "Ann", "Bob", "Cleo"]),
        st.sampled_from([1, 150, 300, 301]),
    ),
    max_size=40,
)


@dataclass(slots=True)
class Waiting:
    """A question to a member."""

    run: str
    """Empty: an argument of another function."""
    expires: int
    answers: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Plain:
    """The model: open questions by member, and the expected answers for runs."""

    now: int = 0
    said: int = 0
    waiting: dict[str, Waiting] = field(default_factory=dict)
    left: list[Waiting] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)

    def asks(self, who: str, run: str) -> None:
        self._leave(self.waiting.get(who))
        self.waiting[who] = Waiting(run, self.now + PATIENCE_SECONDS)

    def answer(self, who: str, text: str) -> list[str]:
        """The bot's replies to words that can only be an answer."""
        asked = self.waiting.get(who)
        if asked is None or asked.expires <= self.now:
            return []
        del self.waiting[who]
        if not asked.run:
            return [DROPPED if text == "cancel" else "done"]
        if text == "cancel":
            self.heard.append((asked.run, "cancelled", ""))
            return ["Put away."]
        self.heard.append((asked.run, "answered", text))
        answers = [*asked.answers, text]
        if len(answers) == len(ASKED):
            return [f"Thanks: {', '.join(answers)}."]
        self.waiting[who] = Waiting(asked.run, self.now + PATIENCE_SECONDS, answers)
        return [ASKED[len(answers)]]

    def look(self) -> None:
        for who, asked in list(self.waiting.items()):
            if asked.expires <= self.now:
                self._leave(self.waiting.pop(who))
        self.heard += [(one.run, "expired", "") for one in self.left]
        self.left.clear()

    def _leave(self, asked: Waiting | None) -> None:
        if asked is not None and asked.run:
            self.left.append(asked)


class Walk:
    """The same steps for the daemon and the model."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._plain = Plain()
        self._clock = VirtualClock()
        self._fill = Asking(questions=ASKED, parameters=CITY, effect="once")
        self._rain = Recorder("rain", CITY, commands=["rain"], ask={"city": "Where?"})
        self._last: tuple[str, str, str] | None = None

    async def run(self, steps: list[Step]) -> None:
        async with AsyncExitStack() as opened:
            group = await opened.enter_async_context(self._daemon())
            for step in steps:
                if step.kind == "restart":
                    await opened.aclose()
                    group = await opened.enter_async_context(self._daemon())
                else:
                    await self._step(group, step)
                self._check()
            # Questions that are still open are kept.
            await self._step(group, Step("drift", "", PATIENCE_SECONDS))
            await self._step(group, Step("look", "", 0))
            self._check()

    def _daemon(self) -> AbstractAsyncContextManager[Group]:
        return a_group([self._fill.spec, self._rain.spec], home=self._home, clock=self._clock)

    async def _step(self, group: Group, step: Step) -> None:
        plain = self._plain
        plain.said += 1
        match step.kind:
            case "fill":
                run = f"run {plain.said}"
                await self._says(group, step.who, f"/fill {run}", [ASKED[0]])
                plain.heard.append((run, "began", ""))
                plain.asks(step.who, run)
            case "rain":
                await self._says(group, step.who, "/rain", ["Where?"])
                plain.asks(step.who, "")
            case "say":
                text = f"word {plain.said}"
                await self._says(group, step.who, text, plain.answer(step.who, text))
            case "cancel":
                await self._says(group, step.who, "cancel", plain.answer(step.who, "cancel"))
            case "again":
                if self._last is not None:
                    who, text, native_id = self._last
                    assert await group.say(who, text, id=native_id) == []
            case "drift":
                await self._clock.advance(step.seconds)
                plain.now += step.seconds
            case _:
                await group.daemon.housekeeping.expire_questions()
                await group.settle()
                plain.look()

    async def _says(self, group: Group, who: str, text: str, expected: list[str]) -> None:
        native_id = f"x{self._plain.said}"
        said = await group.say(who, text, id=native_id)
        # A notice about an older question precedes the newer one.
        assert [one.rpartition(")\n")[2] for one in said] == expected
        self._last = (who, text, native_id)

    def _check(self) -> None:
        told = zip(self._fill.recorder.runs, self._fill.runs, strict=True)
        heard = [(arguments["city"], kind, answer) for arguments, (kind, answer) in told]
        assert in_order(heard) == in_order(self._plain.heard)


def in_order(heard: list[Heard]) -> list[list[Heard]]:
    """Answers received by runs. The order of questions that expired together does not matter."""
    return [sorted(some) for _, some in groupby(heard, lambda one: one if one[1] != "expired" else None)]


@settings(max_examples=12, deadline=None)
@given(STEPS)
def test_runs_hear_what_a_plain_model_says(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Walk(Path(folder)).run(steps))
