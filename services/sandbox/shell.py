"""Programs that a chat may run: command line splitting, the operator's policy, and execution."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from config.sections.processes import ProgramSettings, ShellSettings
from config.sections.risky_programs import runs_others
from services.patterns import is_visible
from services.refs import ChatRef, MemberRef
from services.sandbox.processes import Command, Finished
from services.sandbox.sandbox import Isolation, Sandbox, limits_of
from services.sandbox.workspace import Workspaces
from services.threads import Threads

_NUMBER = "-NUMBER"


class PolicyProblem(StrEnum):
    """Reason why the policy rejects a command; texts under `shell.problem.…`."""

    PROGRAM = "program"
    SUBCOMMAND = "subcommand"
    OPTION = "option"
    VALUE = "value"
    OPERANDS = "operands"
    OUTSIDE = "outside"
    ABSENT = "absent"
    RUNS_OTHERS = "runs_others"


class CommandError(Exception):
    """A command does not run; `values` fill the placeholders of the text of `problem`."""

    def __init__(self, problem: StrEnum, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values


class NotAllowed(CommandError):
    """The policy rejects the command."""


def allowed(words: Sequence[str], programs: Mapping[str, ProgramSettings]) -> tuple[str, ...]:
    """Argument list for `words`, starting with the program's configured path. Raises NotAllowed if the program, a
    subcommand, an option or an operand is not permitted by `programs`."""
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
    """Raises NotAllowed if the program file is missing, or runs other programs without permission to. Links are
    resolved first, so a link to a shell counts as a shell."""
    path = Path(settings.path)
    if not path.is_file():
        raise NotAllowed(PolicyProblem.ABSENT, program=name)
    if runs_others(path.resolve().name) and not settings.runs_programs:
        raise NotAllowed(PolicyProblem.RUNS_OTHERS, program=name)


class _Reader:
    """Parses arguments like getopt, except that abbreviated long options are rejected."""

    def __init__(self, name: str, settings: ProgramSettings) -> None:
        self._name = name
        self._settings = settings
        self._operands = 0

    def read(self, arguments: Sequence[str]) -> None:
        """Check all arguments. Raises NotAllowed for the first option, value or operand that is not permitted."""
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
        """Raises NotAllowed for an absolute path and for `..`, unless the program may access paths anywhere: any
        argument may be a path."""
        if not self._settings.anywhere and (text.startswith("/") or ".." in text.split("/")):
            raise NotAllowed(PolicyProblem.OUTSIDE, path=text)


MOST_CHARS = 1000
_QUOTES = frozenset("'\"")
_OF_A_SHELL = frozenset(";&|<>$`*?[](){}~#!\\")
_OF_A_SHELL_IN_DOUBLE_QUOTES = frozenset("$`\\!")


class LineProblem(StrEnum):
    """Reason why a line is not a valid command; texts under `shell.problem.…`."""

    BLANK = "blank"
    TOO_LONG = "too_long"
    UNSEEN = "unseen"
    SHELL = "shell"
    QUOTE = "quote"


class NoCommand(CommandError):
    """The line is not a valid command."""


_WORD = re.compile(r"""'([^']*)'(?![^ ])|"([^"]*)"(?![^ ])|([^ '"][^ ]*)""")
"""A word in single quotes, in double quotes, or without quotes; a space or the end follows."""


def words_of(line: str) -> tuple[str, ...]:
    """Split `line` at spaces; a whole word may be in single or double quotes. Raises NoCommand for a blank line, more
    than 1,000 characters, invisible characters, unbalanced quotes, or a character that a shell would interpret at that
    place."""
    if len(line) > MOST_CHARS:
        raise NoCommand(LineProblem.TOO_LONG, most=MOST_CHARS)
    if not is_visible(line):
        raise NoCommand(LineProblem.UNSEEN)
    words: list[str] = []
    rest = line.lstrip(" ")
    while rest:
        found = _WORD.match(rest)
        if found is None:
            raise NoCommand(LineProblem.QUOTE)
        _, double, plain = found.groups()
        if double is not None:
            _refuse(double, _OF_A_SHELL_IN_DOUBLE_QUOTES)
        if plain is not None:
            _refuse(plain, _OF_A_SHELL)
            if not _QUOTES.isdisjoint(plain):
                raise NoCommand(LineProblem.QUOTE)
        words.append(next(word for word in found.groups() if word is not None))
        rest = rest[found.end() :].lstrip(" ")
    if not words:
        raise NoCommand(LineProblem.BLANK)
    return tuple(words)


def _refuse(text: str, signs: frozenset[str]) -> None:
    sign = next((one for one in text if one in signs), None)
    if sign is not None:
        raise NoCommand(LineProblem.SHELL, sign=sign)


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of `Shell.run`."""

    program: str
    """As written in the command."""
    finished: Finished
    timeout_seconds: float
    """The timeout that applied."""


class Shell:
    """Runs permitted programs in the workspaces of chats, for `shell_exec`."""

    def __init__(self, sandbox: Sandbox, workspaces: Workspaces, settings: ShellSettings | None = None) -> None:
        self._sandbox = sandbox
        self._workspaces = workspaces
        self._settings = settings or ShellSettings()

    def use(self, settings: ShellSettings) -> None:
        """Apply `settings` from the next run on."""
        self._settings = settings

    async def run(self, chat: ChatRef, member: MemberRef, line: str, threads: Threads) -> Ran:
        """Run the command `line` of `member` in the workspace of `chat`. Always isolated. Raises NoCommand, NotAllowed,
        WorkspaceError, NotIsolated and CannotStart, all before anything runs."""
        settings = self._settings
        words = words_of(line)
        argv = await threads.run(allowed, words, settings.programs)
        folder = await threads.run(self._workspaces.of(chat).made)
        command = Command(argv, folder=folder, owner=member.key)
        finished = await self._sandbox.run(command, limits_of(settings), Isolation.REQUIRED)
        return Ran(words[0], finished, settings.timeout_seconds)
