"""Limits of the kernel for a process: set by the process itself just before it becomes the program, so that the program
runs with them from its first instruction and nothing of ours runs between fork and exec."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from services.processes import Limits

_OPEN_FILES = 256
PRLIMIT = "/usr/bin/prlimit"

_SET_AND_BECOME = """
import os, resource, sys
names, argv = sys.argv[1].split(), sys.argv[2:]
for name, value in (pair.split("=") for pair in names):
    kind = getattr(resource, "RLIMIT_" + name)
    most = resource.getrlimit(kind)[1]
    value = int(value) if most == resource.RLIM_INFINITY else min(int(value), most)
    resource.setrlimit(kind, (value, value))
try:
    os.execv(argv[0], argv)
except OSError as error:
    sys.exit(f"{argv[0]}: {error.strerror}")
"""


def by_prlimit(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` begun by prlimit(1), which the sandbox has inside. There processes are counted for the sandbox alone."""
    values = {**_values(limits), "NPROC": limits.processes}
    return [PRLIMIT, *(f"--{name.lower()}={value}" for name, value in values.items()), "--", *argv]


def by_python(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` begun by a Python that does nothing else, for where there is no sandbox. Processes are not counted: the
    kernel would count all that this machine's user has."""
    named = " ".join(f"{name}={value}" for name, value in _values(limits).items())
    return [sys.executable, "-I", "-S", "-c", _SET_AND_BECOME, named, *argv]


def _values(limits: Limits) -> dict[str, int]:
    return {
        "AS": limits.memory_bytes,
        "CPU": limits.cpu_seconds,
        "FSIZE": limits.file_bytes,
        "NOFILE": _OPEN_FILES,
        "CORE": 0,
    }
