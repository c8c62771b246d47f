"""How everything here is measured: CPU of whole processes, fresh ones that take turns; medians over rounds."""

from __future__ import annotations

import gc
import json
import os
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
"""What one driver measured in one round."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a driver is to do."""

    count: int = 1000
    """How many messages."""
    functions: int = 20
    """How many functions are registered."""
    chats: int = 1
    """How many chats speak at the same time."""
    url: str = ""
    """Where the stub of a provider is."""


Driver = Callable[[Load], Awaitable[Sample]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure beside its limit."""

    name: str
    figure: str
    """What was measured, in words."""
    unit: str
    """`us` of CPU, `ratio` of CPU to the floor's, `seconds`, `megabytes`, `bytes` or `errors`."""
    value: float
    limit: float
    floor_us: float | None = None
    """CPU of the floor in the same run."""

    @property
    def told(self) -> float:
        """The value as it is told."""
        return round(self.value, 3)

    @property
    def holds(self) -> bool:
        """Whether the value is within its limit, as it is told: nobody is to read that 1.5 is more than 1.5."""
        return self.told <= self.limit

    def line(self) -> str:
        """The figure as one line of JSON."""
        floor = None if self.floor_us is None else round(self.floor_us, 2)
        facts = {"name": self.name, self.unit: self.told, "floor_us": floor}
        return json.dumps({**facts, "figure": self.figure, "limit": self.limit, "holds": self.holds})


def cpu_seconds() -> float:
    """User and system time of all threads of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_megabytes() -> float:
    """The most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def pin(core: int) -> None:
    """Keep this process on one core, where there are several."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)]})


async def timed(
    count: int, prepare: Callable[[int], Case], once: Callable[[Case], Awaitable[object]], *, batches: int = 1
) -> Sample:
    """The CPU of one `once(case)`: the median over `batches` of `count` calls each, after a tenth to warm up; never
    more batches than a batch has calls. The cases are what `prepare(number)` gives for a new number each; they are made
    before the clock starts."""
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
    """The sample of `driver` (`module.name`) from a fresh process on the drivers' core."""
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
    """How thoroughly to measure."""

    rounds: int = 5
    scale: float = 1.0
    sample: Callable[[str, Load], Sample] = in_process
    """Where a driver runs. Only a process of its own is measured rightly."""

    def count(self, usual: int) -> int:
        """`usual` messages, scaled."""
        return max(2, int(usual * self.scale))

    def functions(self, usual: int) -> int:
        """`usual` registered functions, scaled down to the twenty that nearly every driver has."""
        return min(usual, max(20, self.count(usual)))


def rounds(drivers: Mapping[str, tuple[str, Load]], effort: Effort) -> dict[str, list[Sample]]:
    """The samples of every driver under its label: in each round each runs once, one after the other."""
    samples: dict[str, list[Sample]] = {label: [] for label in drivers}
    for _ in range(effort.rounds):
        for label, (driver, load) in drivers.items():
            samples[label].append(effort.sample(driver, load))
    return samples


def median(samples: Sequence[Sample], fact: str = "cpu_us") -> float:
    """The median of one fact over the rounds."""
    return statistics.median(sample[fact] for sample in samples)


def ratio(samples: Sequence[Sample], floor: Sequence[Sample]) -> float:
    """The median over the rounds of the CPU against that of the floor in the same round."""
    pairs = zip(samples, floor, strict=True)
    return statistics.median(one["cpu_us"] / base["cpu_us"] for one, base in pairs)


def at(load: Load, url: str) -> Load:
    """`load` against the stub at `url`."""
    return replace(load, url=url)
