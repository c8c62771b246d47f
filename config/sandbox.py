"""Settings of the sandbox: how processes are kept apart from this machine, and the most that any of them may use."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from config.terms import Count, Number, Section


class SandboxSettings(Section):
    """How the processes that functions start are held."""

    isolation: Literal["required", "preferred", "off"] = "preferred"
    """required: nothing runs but in bubblewrap. preferred: what does not need it runs without where it cannot be had.
    off: bubblewrap is not used, and what needs it does not run."""
    at_once: Count = Field(default=16, ge=1, le=1000)
    """So many processes run at the same time; others wait."""
    timeout_seconds: Number = Field(default=600, gt=0, le=3600)
    """The longest that any process may run, whatever a function allows."""
    output_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """The most that is kept of what one writes."""
    memory_megabytes: Count = Field(default=1024, ge=16, le=1_048_576)
    """The most memory of one."""
    cpu_seconds: Count = Field(default=300, ge=1, le=3600)
    """The most time of processors of one."""
    processes: Count = Field(default=256, ge=1, le=100_000)
    """The most processes and threads that one sandbox may have. Not counted where the daemon runs as root."""
    file_megabytes: Count = Field(default=256, ge=1, le=1_048_576)
    """The longest file that one may write."""
