"""Which programs may be run with which options; the rest is refused, whatever it might do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from config.risky_programs import runs_others
from config.shell import ProgramSettings

_NUMBER = "-NUMBER"


class PolicyProblem(StrEnum):
    """Why a command may not be run; `shell.problem.…` says it."""

    PROGRAM = "program"
    SUBCOMMAND = "subcommand"
    OPTION = "option"
    VALUE = "value"
    OPERANDS = "operands"
    OUTSIDE = "outside"
    ABSENT = "absent"
    RUNS_OTHERS = "runs_others"


class NotAllowed(Exception):
    """The command may not be run; `values` are for the sentence that says so."""

    def __init__(self, problem: PolicyProblem, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values


def allowed(words: Sequence[str], programs: Mapping[str, ProgramSettings]) -> tuple[str, ...]:
    """The argument list for `words`, with the program's own path in front. Raises NotAllowed."""
    name = words[0]
    settings = programs.get(name) or next((one for one in programs.values() if one.path == name), None)
    if settings is None:
        raise NotAllowed(PolicyProblem.PROGRAM, program=name, programs=", ".join(programs))
    _check_file(name, settings)
    arguments = words[1:]
    if settings.subcommand:
        if not arguments or arguments[0] != settings.subcommand:
            raise NotAllowed(PolicyProblem.SUBCOMMAND, program=name, subcommand=settings.subcommand)
        arguments = arguments[1:]
    _Reader(name, settings).read(arguments)
    return (settings.path, *words[1:])


def _check_file(name: str, settings: ProgramSettings) -> None:
    """What the path leads to is what runs, so a link to a shell is a shell."""
    path = Path(settings.path)
    if not path.is_file():
        raise NotAllowed(PolicyProblem.ABSENT, program=name)
    if runs_others(path.resolve().name) and not settings.runs_programs:
        raise NotAllowed(PolicyProblem.RUNS_OTHERS, program=name)


class _Reader:
    """Reads arguments as getopt does, but for shortened names of options, which are other words here."""

    def __init__(self, name: str, settings: ProgramSettings) -> None:
        self._name = name
        self._settings = settings
        self._operands = 0

    def read(self, arguments: Sequence[str]) -> None:
        """Raises NotAllowed for the first argument that may not be given."""
        rest = iter(arguments)
        for argument in rest:
            if argument == "--":
                for operand in rest:
                    self._operand(operand)
            elif argument.startswith("--"):
                self._long(argument, rest)
            elif argument.startswith("-") and argument != "-":
                self._short(argument, rest)
            else:
                self._operand(argument)

    def _long(self, argument: str, rest: Iterator[str]) -> None:
        name, equals, value = argument.partition("=")
        if f"{name}=" in self._settings.options:
            self._value(name, value if equals else next(rest, None))
        elif name not in self._settings.options or equals:
            raise NotAllowed(PolicyProblem.OPTION, program=self._name, option=name)

    def _short(self, argument: str, rest: Iterator[str]) -> None:
        if argument[1:].isdecimal() and argument.isascii() and _NUMBER in self._settings.options:
            return
        for place, letter in enumerate(argument[1:], start=2):
            option = f"-{letter}"
            if f"{option}=" in self._settings.options:
                self._value(option, argument[place:] or next(rest, None))
                return
            if option not in self._settings.options:
                raise NotAllowed(PolicyProblem.OPTION, program=self._name, option=option)

    def _value(self, option: str, value: str | None) -> None:
        if value is None:
            raise NotAllowed(PolicyProblem.VALUE, program=self._name, option=option)
        self._check_path(value)

    def _operand(self, operand: str) -> None:
        self._operands += 1
        most = self._settings.most_operands
        if most is not None and self._operands > most:
            raise NotAllowed(PolicyProblem.OPERANDS, program=self._name, most=most)
        self._check_path(operand)

    def _check_path(self, text: str) -> None:
        """Any word may be a path to the program, so each has to stay in the folder."""
        if not self._settings.anywhere and (text.startswith("/") or ".." in text.split("/")):
            raise NotAllowed(PolicyProblem.OUTSIDE, path=text)
