"""Counters and gauges of the daemon in the Prometheus text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from services.refs import ReasonCode

if TYPE_CHECKING:
    from prometheus_client.core import Metric


_BUCKETS_US = (1_000, 5_000, 20_000, 100_000, 500_000, 2_000_000, 10_000_000, 60_000_000)


_MOST_NAMES = 1_000
_OTHERS = "(others)"
"""Label of all functions after the first thousand, so that reloads and sources cannot make series without limit."""


class _Runs:
    """Runs of one function, or turns with one outcome."""

    __slots__ = ("buckets", "microseconds", "outcomes")

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.buckets = [0] * (len(_BUCKETS_US) + 1)
        self.microseconds = 0

    def add(self, duration_us: int) -> None:
        self.microseconds += duration_us
        self.buckets[bisect_left(_BUCKETS_US, duration_us)] += 1


class Metrics:
    """Counters; gauges are read on each scrape."""

    def __init__(self) -> None:
        self._runs: dict[str, _Runs] = {}
        self._turns: dict[str, _Runs] = {}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._labelled_gauges: dict[str, tuple[str, str, Callable[[], Mapping[str, float]]]] = {}
        self._counters: dict[str, tuple[str, str, Callable[[], Mapping[str, float]]]] = {}

    def called(self, function: str, outcome: str, duration_us: int) -> None:
        """Count a run of a function."""
        runs = self._runs.get(function)
        if runs is None:
            runs = self._runs.setdefault(function if len(self._runs) < _MOST_NAMES else _OTHERS, _Runs())
        runs.add(duration_us)
        runs.outcomes[outcome] = runs.outcomes.get(outcome, 0) + 1

    def turn_ended(self, reason: ReasonCode, duration_us: int) -> None:
        """Count an ended turn; `duration_us`: since its message was accepted."""
        self._turns.setdefault(str(reason), _Runs()).add(duration_us)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Register a gauge whose value is read by `read`; `text` is its help."""
        self._gauges[name] = (text, read)

    def gauges(self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Register a gauge with a label; `read` returns values by label value."""
        self._labelled_gauges[name] = (text, label, read)

    def counter(self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Register a counter with a label; `read` returns counts by label value."""
        self._counters[name] = (text, label, read)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        # Imported here: only a daemon with a web server renders metrics.
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families with their current values; called by prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        calls = CounterMetricFamily("rollcall_calls", "Runs of functions", labels=["function", "outcome"])
        for function, runs in self._runs.items():
            for outcome, count in runs.outcomes.items():
                calls.add_metric([function, outcome], count)
        yield calls
        yield _durations("rollcall_call_seconds", "How long runs took", "function", self._runs)
        turns = CounterMetricFamily("rollcall_turns", "Turns that ended", labels=["reason"])
        for reason, ended in self._turns.items():
            turns.add_metric([reason], sum(ended.buckets))
        yield turns
        yield _durations("rollcall_turn_seconds", "Time from a message to the end of its turn", "reason", self._turns)
        for name, (text, label, read) in self._counters.items():
            family = CounterMetricFamily(name, text, labels=[label])
            for value, counted in read().items():
                family.add_metric([value], counted)
            yield family
        for name, (text, label, read_values) in self._labelled_gauges.items():
            values = GaugeMetricFamily(name, text, labels=[label])
            for value, measured in read_values().items():
                values.add_metric([value], measured)
            yield values
        for name, (text, read_gauge) in self._gauges.items():
            yield GaugeMetricFamily(name, text, value=read_gauge())


def _durations(name: str, text: str, label: str, measured: Mapping[str, _Runs]) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    durations = HistogramMetricFamily(name, text, labels=[label])
    bounds = [*(str(bound / 1e6) for bound in _BUCKETS_US), "+Inf"]
    for value, runs in measured.items():
        buckets = [(bound, float(count)) for bound, count in zip(bounds, accumulate(runs.buckets), strict=True)]
        durations.add_metric([value], buckets, runs.microseconds / 1e6)
    return durations
