"""The daemon as a process: time until it is ready, and its memory while idle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from benchmarks.measuring import REPOSITORY, Driver, Effort, Figure, Sample, median, resident_megabytes

_ADDRESS = re.compile(rb"http://127\.0\.0\.1:\d+")
_IDLE_SECONDS = 3.0
_PATIENCE_SECONDS = 60.0
DRIVERS: dict[str, Driver] = {}


def started(idle_seconds: float) -> Sample:
    """Seconds from exec to the first status 200 of /readyz, and the memory after `idle_seconds` more. The web page is
    on."""
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as home:
        environment = {**os.environ, "ROLLCALL_HOME": f"{home}/var", "PYTHONPATH": str(REPOSITORY)}
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ROLLCALL_CONFIG"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "bot", "run", "--port", "0", "--no-console"]
        began = time.perf_counter()
        with subprocess.Popen(
            command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            try:
                address = _ADDRESS.search(process.stdout.readline())
                if address is None:
                    raise RuntimeError("the daemon did not start")
                _wait_until_ready(f"{address[0].decode()}/readyz", began)
                seconds = time.perf_counter() - began
                time.sleep(idle_seconds)
                return {"seconds": seconds, "megabytes": resident_megabytes(process.pid)}
            finally:
                process.terminate()
                process.wait(timeout=30)


def _wait_until_ready(url: str, began: float) -> None:
    while time.perf_counter() - began < _PATIENCE_SECONDS:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                if response.status == 200:
                    return
        except urllib.error.URLError:
            time.sleep(0.01)
    raise RuntimeError(f"the daemon was not ready after {_PATIENCE_SECONDS:.0f} s")


def process_figures(effort: Effort) -> list[Figure]:
    """Start times and idle memory; if there are several rounds, after one start to warm the file cache."""
    idle_seconds = _IDLE_SECONDS * min(1.0, effort.scale)
    if effort.rounds > 1:
        started(0.0)
    samples = [started(idle_seconds) for _ in range(effort.rounds)]
    return [
        Figure("process", "ready after start", "seconds", median(samples, "seconds"), 1.5),
        Figure("process", "idle memory with the web page on", "megabytes", median(samples, "megabytes"), 110.0),
    ]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {"process": process_figures}
