"""The overview: state of the bot, and plots of the last 24 hours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from bot.platforms.base import Linked
from bot.web.desk.activity import ANSWERED, FAILED, HOUR_MS, Activity, Hour
from bot.web.desk.desk import Desk, Visit
from bot.web.desk.plots import Series, bars, lines
from config.diagnostics import Diagnostic
from config.texts import Phrases
from services.llm.failover import ModelState


class State(NamedTuple):
    """One line of a list of states."""

    name: str
    words: str
    level: str
    """`good`, `warn` or `bad`."""
    link: str = ""
    """Page below the root with more about it."""


class Overview:
    """Pages of the overview."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._activity = Activity(Path(desk.settings.logging.folder))
        self._one_count_at_a_time = asyncio.Lock()

    def routes(self) -> list[Route]:
        """The page, and its two parts that are loaded again."""
        return [
            self._desk.get("", self._page),
            self._desk.get("/overview", self._page),
            self._desk.get("/overview/states", self._states_part),
            self._desk.get("/overview/plots", self._plots_part),
        ]

    async def _page(self, visit: Visit) -> Response:
        plots = await self._plots(visit.texts)
        return visit.page("overview.html", "overview", states=self._states(visit.texts), plots=plots)

    async def _states_part(self, visit: Visit) -> Response:
        return visit.page("states.html", "overview", states=self._states(visit.texts))

    async def _plots_part(self, visit: Visit) -> Response:
        return visit.page("plots.html", "overview", plots=await self._plots(visit.texts))

    def _states(self, texts: Phrases) -> Mapping[str, Sequence[State]]:
        return {
            "networks": self._networks(),
            "models": [State(state.name, *_model_state(state, texts)) for state in self._desk.daemon.model.states()],
            "work": self._work(texts),
            "health": self._health(texts),
        }

    def _networks(self) -> list[State]:
        found = []
        for platform in self._desk.daemon.platforms:
            name = f"{platform.name}:{platform.account}"
            if isinstance(platform, Linked):
                link = platform.link()
                found.append(State(name, link.words, _level(link.is_up)))
            else:
                found.append(State(name, "ok", "good"))
        return found

    def _work(self, texts: Phrases) -> list[State]:
        daemon, say = self._desk.daemon, texts.say
        waiting, overdue = daemon.engine.waiting, daemon.timers.waiting
        dead = sum(daemon.dead_letters.counts.values())
        return [
            State(say("overview.turns_waiting"), str(waiting), _level(waiting < 100, "warn")),
            State(say("overview.turns_running"), str(daemon.engine.running), "good"),
            State(say("overview.questions"), str(daemon.questions.count), "good", "waiting"),
            State(say("overview.timers_overdue"), str(overdue), _level(overdue < 100, "warn")),
            State(say("overview.dead_letters"), str(dead), _level(not dead, "warn"), "waiting#dead"),
        ]

    def _health(self, texts: Phrases) -> list[State]:
        daemon, say = self._desk.daemon, texts.say
        store = daemon.store.health()
        checked = self._desk.local(store.checked_ms)
        backup = daemon.backups.state if daemon.backups.are_scheduled else say("overview.no_backups")
        return [
            State(say("overview.store"), store.problem or f"ok {checked}", _level(store.problem is None)),
            self._faults(say("overview.settings"), daemon.reload.faults, texts, "settings"),
            self._faults(say("overview.functions"), daemon.functions.faults, texts, "sources"),
            State(say("overview.backup"), backup, _level(daemon.backups.are_scheduled, "warn"), "backups"),
        ]

    def _faults(self, name: str, faults: Sequence[Diagnostic], texts: Phrases, link: str) -> State:
        words = texts.say("overview.faults", count=len(faults)) if faults else "ok"
        return State(name, words, _level(not faults), link)

    async def _plots(self, texts: Phrases) -> Sequence[Markup]:
        prices, now_ms = self._desk.settings.budgets.prices, self._desk.clock.now_ms()
        async with self._one_count_at_a_time:
            hours = await self._desk.report(lambda reader: self._activity.by_hour(reader, prices, now_ms))
        labels = [_clock_time(hour, ZoneInfo(self._desk.settings.timezone)) for hour in hours]
        return drawn(list(hours.values()), labels, texts)


def drawn(hours: Sequence[Hour], labels: Sequence[str], texts: Phrases) -> Sequence[Markup]:
    """The plots of these hours; `labels` are their times."""

    def each(value: Callable[[Hour], float]) -> list[float]:
        return [value(hour) for hour in hours]

    say = texts.say
    plots = [
        bars(
            say("overview.messages"),
            labels,
            [
                Series(say("overview.answered"), each(lambda hour: _sum(hour, ANSWERED)), "good"),
                Series(say("overview.failed"), each(lambda hour: _sum(hour, FAILED)), "bad"),
                Series(
                    say("overview.recorded"),
                    each(lambda hour: hour.reasons.total() - _sum(hour, ANSWERED) - _sum(hour, FAILED)),
                    "soft",
                ),
            ],
        ),
        bars(
            say("overview.calls"),
            labels,
            [
                Series(say("overview.ok"), each(lambda hour: hour.outcomes["ok"] + hour.outcomes["asked"]), "good"),
                Series(
                    say("overview.errors"),
                    each(lambda hour: hour.outcomes.total() - hour.outcomes["ok"] - hour.outcomes["asked"]),
                    "bad",
                ),
            ],
        ),
        lines(
            say("overview.latency"),
            labels,
            [
                Series("P50", each(lambda hour: hour.percentile(0.5)), "good"),
                Series("P95", each(lambda hour: hour.percentile(0.95)), "warn"),
            ],
            unit=" ms",
        ),
        bars(say("overview.tokens"), labels, [Series(say("overview.tokens"), each(lambda hour: hour.tokens), "good")]),
    ]
    if any(hour.cost for hour in hours):
        cost = say("overview.cost")
        plots.append(bars(cost, labels, [Series(cost, each(lambda hour: hour.cost), "warn")]))
    return plots


def _model_state(state: ModelState, texts: Phrases) -> tuple[str, str]:
    """Status of a model in words, and its level."""
    words = "ok" if state.problem is None else state.problem.value
    if state.failures:
        words = f"{words}; {texts.say('overview.failures', count=state.failures)}"
    return words, "bad" if state.problem is not None else _level(not state.failures, "warn")


def _sum(hour: Hour, reasons: frozenset[str]) -> int:
    return sum(hour.reasons[reason] for reason in reasons)


def _level(is_good: bool, otherwise: str = "bad") -> str:
    return "good" if is_good else otherwise


def _clock_time(hour: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(hour * HOUR_MS / 1000, UTC).astimezone(zone):%H:%M}"
