"""Measurement: CPU time of separate new processes that alternate, and medians over rounds."""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

REPOSITORY = Path(__file__).resolve().parent.parent
DRIVER_CORE = 0
STUB_CORE = 1
_LONGEST_SECONDS = 300

Case = TypeVar("Case")
Sample = Mapping[str, float]
"""Measurements of one driver in one round, by name."""


@dataclass(frozen=True, slots=True)
class Load:
    """Parameters of a driver."""

    count: int = 1000
    """Number of messages."""
    functions: int = 20
    """Number of registered functions."""
    chats: int = 1
    """Number of concurrent chats."""
    url: str = ""
    """URL of the provider stub."""


Driver = Callable[[Load], Awaitable[Sample]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure and its limit."""

    name: str
    figure: str
    """Description of the measured value."""
    unit: str
    """`us` of CPU time, `ratio` of CPU time to the floor, `seconds`, `megabytes`, `bytes` or `errors`."""
    value: float
    limit: float
    floor_us: float | None = None
    """CPU time of the floor in the same run."""

    @property
    def told(self) -> float:
        """The rounded value, as printed."""
        return round(self.value, 3)

    @property
    def holds(self) -> bool:
        """Whether the printed value is within its limit; a printed 1.5 never exceeds a limit of 1.5."""
        return self.told <= self.limit

    def line(self) -> str:
        """The figure as one JSON line."""
        floor = None if self.floor_us is None else round(self.floor_us, 2)
        facts = {"name": self.name, self.unit: self.told, "floor_us": floor}
        return json.dumps({**facts, "figure": self.figure, "limit": self.limit, "holds": self.holds})


def cpu_seconds() -> float:
    """User and system time of all threads of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_megabytes() -> float:
    """Peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_megabytes(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def pin(core: int) -> None:
    """Restrict this process to one core, if there are several."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)]})


async def timed(
    count: int, prepare: Callable[[int], Case], once: Callable[[Case], Awaitable[object]], *, batches: int = 1
) -> Sample:
    """CPU time of `once(case)`: the median over `batches` of `count` calls each, after a warm-up of a tenth. There are
    at most as many batches as calls in a batch. `prepare(number)` creates the case of each call before the measurement
    starts."""
    for number in range(max(1, count // 10)):
        await once(prepare(-number - 1))
    costs: list[float] = []
    for batch in range(min(batches, count)):
        cases = [prepare(batch * count + number) for number in range(count)]
        gc.collect()
        before = cpu_seconds()
        for case in cases:
            await once(case)
        costs.append((cpu_seconds() - before) / count)
    return {"cpu_us": statistics.median(costs) * 1e6}


def in_process(driver: str, load: Load) -> Sample:
    """Sample of `driver` (`module.name`) from a new process on the drivers' core."""
    command = [sys.executable, "-m", "benchmarks", "--driver", driver, "--load", json.dumps(asdict(load))]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"{driver} failed: {done.stderr.strip()[-2000:]}")
    sample: Sample = json.loads(done.stdout.strip().splitlines()[-1])
    return sample


@dataclass(frozen=True, slots=True)
class Effort:
    """Number of rounds, scale of the loads, and how to run a driver."""

    rounds: int = 5
    scale: float = 1.0
    sample: Callable[[str, Load], Sample] = in_process
    """Runs a driver. Only a separate process gives correct measurements."""

    def count(self, usual: int) -> int:
        """`usual` messages, scaled."""
        return max(2, int(usual * self.scale))

    def functions(self, usual: int) -> int:
        """`usual` registered functions, scaled, but at least the twenty that most drivers have."""
        return min(usual, max(20, self.count(usual)))


def rounds(drivers: Mapping[str, tuple[str, Load]], effort: Effort) -> dict[str, list[Sample]]:
    """Samples of every driver by its label. Each driver runs once per round, one after the other."""
    samples: dict[str, list[Sample]] = {label: [] for label in drivers}
    for _ in range(effort.rounds):
        for label, (driver, load) in drivers.items():
            samples[label].append(effort.sample(driver, load))
    return samples


def median(samples: Sequence[Sample], fact: str = "cpu_us") -> float:
    """Median of a measurement over the rounds."""
    return statistics.median(sample[fact] for sample in samples)


def ratio(samples: Sequence[Sample], floor: Sequence[Sample]) -> float:
    """Median over the rounds of CPU time divided by that of the floor in the same round."""
    pairs = zip(samples, floor, strict=True)
    return statistics.median(one["cpu_us"] / base["cpu_us"] for one, base in pairs)


def at(load: Load, url: str) -> Load:
    """`load` against the stub at `url`."""
    return replace(load, url=url)
