"""Settings of child processes: sandbox limits, chat folders and the programs of the shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema, model_validator

from config.sections.risky_programs import runs_others
from config.terms import Count, Number, Section, Word, fault, matching


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


class FilesSettings(Section):
    """How much a chat may keep in its folder, below `home`."""

    quota_megabytes: Count = Field(default=50, ge=1, le=1_048_576)
    """All files of one chat together."""
    most_files: Count = Field(default=1000, ge=1, le=100_000)
    """Files and folders of one chat."""
    file_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """The longest file that is read or written."""


_OPTION = r"-NUMBER|-[A-Za-z0-9]=?|--[a-z0-9][a-z0-9-]*=?"
_PROGRAM = r"/[^\s\x00-\x1f\x7f]+"


ProgramOption = Annotated[
    str,
    matching(_OPTION, "has to be an option such as -l or --all, with = behind it if it takes a value, or -NUMBER"),
    WithJsonSchema({"type": "string", "pattern": f"^({_OPTION})$"}),
]
"""An option that a program may be given."""
ProgramPath = Annotated[
    str,
    matching(_PROGRAM, "has to be the absolute path of a program, without spaces"),
    WithJsonSchema({"type": "string", "pattern": f"^{_PROGRAM}$"}),
]
"""Where a program is."""


class ProgramSettings(Section):
    """One program that may be run."""

    path: ProgramPath
    """Where it is: an absolute path, and nothing else of the same name is ever run."""
    subcommand: Annotated[str, Field(max_length=64, pattern=r"^([a-z0-9][a-z0-9-]*)?$")] = ""
    """The word that has to come first, as in `git log`. Empty: none."""
    options: tuple[ProgramOption, ...] = Field(default=(), max_length=200)
    """The options that it may be given; a `=` behind one says that it takes a value. Every other one is refused."""
    most_operands: Count | None = Field(default=None, ge=0, le=1000)
    """So many words that are no options at most. Left out: any number."""
    anywhere: bool = False
    """True: it may be given paths outside the chat's folder. In the sandbox they lead to programs and libraries."""
    runs_programs: bool = False
    """True: it may be listed though it can run other programs, or write where it likes."""

    @model_validator(mode="after")
    def _not_by_accident(self) -> ProgramSettings:
        name = PurePosixPath(self.path).name
        if runs_others(name) and not self.runs_programs:
            raise fault(
                f"{name} can run other programs or write where it likes; leave it out, or say `runs_programs: true` "
                "if that is meant"
            )
        return self


def _program(path: str, *options: str, most_operands: int | None = None) -> ProgramSettings:
    return ProgramSettings(path=path, options=options, most_operands=most_operands)


def shipped_programs() -> dict[str, ProgramSettings]:
    """Programs that read files and write nothing, with the options by which they go on doing so."""
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
        # What a second operand names is written.
        "uniq": _program("/usr/bin/uniq", "-c", "-d", "-u", "-i", "-f=", "-s=", "-w=", most_operands=1),
        "wc": _program("/usr/bin/wc", "-l", "-w", "-c", "-m", "-L"),
    }


class ShellSettings(Section):
    """What shell_exec may run. It is there only where `plugins` names it, and runs nothing without bubblewrap."""

    programs: Annotated[Mapping[Word, ProgramSettings], Field(max_length=200)] = Field(default_factory=shipped_programs)
    """The programs, by the word that stands for each. A list of your own takes the place of the one that is shipped:
    ls, cat, head, tail, grep, sort, uniq and wc, with options that read."""
    timeout_seconds: Number = Field(default=20, gt=0, le=100)
    """The longest that a run may take."""
    output_kilobytes: Count = Field(default=32, ge=1, le=1024)
    """Kept of what a program writes to its output, and as much of its errors."""
    memory_megabytes: Count = Field(default=256, ge=16, le=65_536)
    """The most memory of one run."""
    cpu_seconds: Count = Field(default=10, ge=1, le=100)
    """The most time of processors of one run."""
    processes: Count = Field(default=16, ge=2, le=10_000)
    """The most processes and threads of one run."""
    file_megabytes: Count = Field(default=16, ge=1, le=1024)
    """The longest file that a run may write."""
