"""Settings of child processes: sandbox limits, chat folders and the programs of the shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, model_validator

from config.sections.risky_programs import runs_others
from config.terms import Count, Number, Section, Word, described_matching, settings_error


class SandboxSettings(Section):
    """Limits of the processes that functions start."""

    isolation: Literal["required", "preferred", "off"] = "preferred"
    """required: all processes run in bubblewrap. preferred: if it is not available, processes that do not depend on it
    run without. off: bubblewrap is not used, and processes that depend on it do not run."""
    unisolated: tuple[Annotated[str, Field(min_length=1, max_length=128)], ...] = Field(default=(), max_length=200)
    """Command tools that may run without a sandbox (`opts.sandbox: off`) although models fill their parameters."""
    at_once: Count = Field(default=16, ge=1, le=1000)
    """Maximum number of concurrent processes, half of them for one member; others wait."""
    timeout_seconds: Number = Field(default=600, gt=0, le=3600)
    """Maximum run time of any process, whatever a function sets."""
    output_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """Maximum size of the output that is kept."""
    memory_megabytes: Count = Field(default=1024, ge=16, le=1_048_576)
    """Memory limit of a process."""
    cpu_seconds: Count = Field(default=300, ge=1, le=3600)
    """CPU time limit of a process."""
    processes: Count = Field(default=256, ge=1, le=100_000)
    """Maximum number of processes and threads per sandbox. Not enforced if the daemon runs as root without a cgroup."""
    file_megabytes: Count = Field(default=256, ge=1, le=1_048_576)
    """Maximum size of a file that a process writes."""


class FilesSettings(Section):
    """Quotas of a chat's folder, which is in `home`."""

    quota_megabytes: Count = Field(default=50, ge=1, le=1_048_576)
    """Total size of a chat's files."""
    most_files: Count = Field(default=1000, ge=1, le=100_000)
    """Maximum number of files and folders per chat."""
    file_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """Maximum size of a file that is read or written."""


_OPTION = r"-NUMBER|-[A-Za-z0-9]=?|--[a-z0-9][a-z0-9-]*=?"
_PROGRAM = r"/[^\s\x00-\x1f\x7f]+"


ProgramOption = Annotated[
    str,
    *described_matching(
        f"({_OPTION})",
        "has to be an option such as -l or --all, with = behind it if it takes a value, or -NUMBER",
    ),
]
"""A permitted option of a program."""
ProgramPath = Annotated[str, *described_matching(_PROGRAM, "has to be the absolute path of a program, without spaces")]
"""Path of a program."""


class ProgramSettings(Section):
    """One permitted program."""

    path: ProgramPath
    """Absolute path of the program; no other one of the same name is run."""
    subcommand: Annotated[str, Field(max_length=64, pattern=r"^([a-z0-9][a-z0-9-]*)?$")] = ""
    """Required first word, as in `git log`. Empty: none."""
    options: tuple[ProgramOption, ...] = Field(default=(), max_length=200)
    """Permitted options; a `=` at the end means that it takes a value. All others are rejected."""
    most_operands: Count | None = Field(default=None, ge=0, le=1000)
    """Maximum number of words that are not options. Missing: no limit."""
    anywhere: bool = False
    """True: paths outside the chat's folder are permitted. In the sandbox these are programs and libraries."""
    runs_programs: bool = False
    """True: permits a program that can run other programs or write to any path."""

    @model_validator(mode="after")
    def _not_by_accident(self) -> ProgramSettings:
        name = PurePosixPath(self.path).name
        if runs_others(name) and not self.runs_programs:
            raise settings_error(
                f"{name} can run other programs or write where it likes; leave it out, or say `runs_programs: true` "
                "if that is meant"
            )
        return self


def _program(path: str, *options: str, most_operands: int | None = None) -> ProgramSettings:
    return ProgramSettings(path=path, options=options, most_operands=most_operands)


def shipped_programs() -> dict[str, ProgramSettings]:
    """Programs by name that only read files, with their options that keep this property."""
    return {
        "ls": _program(
            "/usr/bin/ls", "-a", "-A", "-l", "-h", "-1", "-t", "-r", "-S", "-R", "-F", "-d", "-s", "--all", "--reverse"
        ),
        "cat": _program("/usr/bin/cat", "-n", "-b", "-s", "-A", "-E", "-T", "--number"),
        "head": _program("/usr/bin/head", "-NUMBER", "-n=", "-c=", "-q", "-v", "--lines=", "--bytes="),
        "tail": _program("/usr/bin/tail", "-NUMBER", "-n=", "-c=", "-q", "-v", "--lines=", "--bytes="),
        "grep": _program(
            "/usr/bin/grep",
            *("-i", "-v", "-n", "-c", "-l", "-L", "-o", "-w", "-x", "-E", "-F", "-h", "-H", "-s", "-q", "-r"),
            *("-A=", "-B=", "-C=", "-m=", "-e=", "--ignore-case", "--count", "--recursive"),
        ),
        "sort": _program(
            "/usr/bin/sort", "-n", "-r", "-u", "-f", "-b", "-h", "-V", "-g", "-M", "-d", "-s", "-k=", "-t="
        ),
        # A second operand would be an output file.
        "uniq": _program("/usr/bin/uniq", "-c", "-d", "-u", "-i", "-f=", "-s=", "-w=", most_operands=1),
        "wc": _program("/usr/bin/wc", "-l", "-w", "-c", "-m", "-L"),
    }


class ShellSettings(Section):
    """Programs of shell_exec. It is available only if `plugins` includes it, and needs bubblewrap."""

    programs: Annotated[Mapping[Word, ProgramSettings], Field(max_length=200)] = Field(default_factory=shipped_programs)
    """Programs by command word. A custom list replaces the default: ls, cat, head, tail, grep, sort, uniq and wc, with
    options that only read."""
    timeout_seconds: Number = Field(default=20, gt=0, le=100)
    """Timeout of a run."""
    output_kilobytes: Count = Field(default=32, ge=1, le=1024)
    """Maximum size of standard output, and of standard error, that is kept."""
    memory_megabytes: Count = Field(default=256, ge=16, le=65_536)
    """Memory limit of a run."""
    cpu_seconds: Count = Field(default=10, ge=1, le=100)
    """CPU time limit of a run."""
    processes: Count = Field(default=16, ge=2, le=10_000)
    """Maximum number of processes and threads of a run."""
    file_megabytes: Count = Field(default=16, ge=1, le=1024)
    """Maximum size of a file that a run writes."""
