"""Shell settings: programs on the list, and those that need an explicit setting."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from config.sections.processes import shipped_programs
from config.sections.risky_programs import runs_others
from config.settings import Settings


def with_program(**program: Any) -> Settings:
    return Settings.model_validate({"shell": {"programs": {"tool": program}}})


@pytest.mark.parametrize(
    "path",
    [
        *("/bin/sh", "/bin/bash", "/usr/bin/env", "/usr/bin/xargs", "/usr/bin/python3", "/usr/bin/python3.11"),
        *("/usr/bin/perl5.36.0", "/usr/bin/awk", "/usr/bin/find", "/usr/bin/tar", "/usr/bin/git", "/usr/bin/sed"),
        *("/usr/bin/vim", "/usr/bin/less", "/usr/bin/timeout", "/usr/bin/tee", "/usr/bin/x86_64-linux-gnu-gcc-12"),
    ],
)
@pytest.mark.requirement("E43")
def test_what_runs_other_programs_gets_onto_the_list_only_where_that_is_said(path: str) -> None:
    with pytest.raises(ValidationError, match="runs_programs: true"):
        with_program(path=path)
    assert with_program(path=path, runs_programs=True).shell.programs["tool"].path == path


@pytest.mark.parametrize(
    "program",
    [
        {"path": "ls"},
        {"path": "./ls"},
        {"path": "/usr/bin/my tool"},
        {"path": "/usr/bin/ls", "options": ["l"]},
        {"path": "/usr/bin/ls", "options": ["-la"]},
        {"path": "/usr/bin/ls", "options": ["--sort=name"]},
        {"path": "/usr/bin/ls", "subcommand": "-c"},
        {"path": "/usr/bin/ls", "arguments": []},
        {},
    ],
)
def test_what_is_no_program_is_a_fault(program: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        with_program(**program)


def test_what_is_shipped_is_there_and_harmless() -> None:
    programs = shipped_programs()
    assert set(programs) == {"ls", "cat", "head", "tail", "grep", "sort", "uniq", "wc"}
    assert not any(one.runs_programs or one.anywhere or runs_others(name) for name, one in programs.items())


def test_a_list_of_ones_own_takes_the_place_of_the_shipped_one() -> None:
    assert set(with_program(path="/usr/bin/ls").shell.programs) == {"tool"}
