"""Run benchmarks on this machine. Prints one JSON line per figure, with its limit.

python -m benchmarks [NAME …] [--rounds 5] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
from collections.abc import Callable, Sequence

from benchmarks.measuring import DRIVER_CORE, Effort, Load, Sample, in_process, pin

# Imported on demand, so that a driver process does not load modules that would count in its measurement.
BENCHMARKS = {
    "command_lookup": "commands",
    "command_invoke": "commands",
    "command_turn": "commands",
    "routed_turn": "routed",
    "provider_turn": "provider",
    "many_functions": "provider",
    "crowd": "provider",
    "process": "process",
    "flood": "flood",
    "timers": "timers",
    "first_request": "routed",
    "argument_check": "arguments",
    "basic_scripts": "basic_scripts",
}


def main(arguments: Sequence[str] | None = None, sample: Callable[[str, Load], Sample] = in_process) -> int:
    """Run the benchmarks named on the command line; `sample` runs a driver. Returns 1 if a figure exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}; none: all")
    parser.add_argument("--rounds", type=int, default=5, help="how often each driver runs")
    parser.add_argument("--scale", type=float, default=1.0, help="how many messages, against the usual number")
    parser.add_argument("--driver", help=argparse.SUPPRESS)
    parser.add_argument("--load", default="{}", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.driver:
        return _drive(options.driver, Load(**json.loads(options.load)))
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    effort = Effort(options.rounds, options.scale, sample)
    all_hold = True
    for name in options.names or BENCHMARKS:
        module = importlib.import_module(f"benchmarks.{BENCHMARKS[name]}")
        for figure in module.FIGURES[name](effort):
            print(figure.line(), flush=True)
            all_hold = all_hold and figure.holds
    return 0 if all_hold else 1


def run_driver(driver: str, load: Load) -> Sample:
    """Sample of `driver` (`module.name`), measured in this process."""
    module, _, name = driver.partition(".")
    sample: Sample = asyncio.run(importlib.import_module(f"benchmarks.{module}").DRIVERS[name](load))
    return sample


def _drive(driver: str, load: Load) -> int:
    """Run one driver in this process and print its sample as JSON."""
    pin(DRIVER_CORE)
    sample = run_driver(driver, load)
    print(json.dumps(dict(sample)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
