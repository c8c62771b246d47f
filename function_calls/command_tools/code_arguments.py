"""Detects command words that a program reads as code, which must not contain values, and the end of a command's
options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from config.sections.risky_programs import Program, words_of
from function_calls.command_tools.word_templates import Template

_VALUE = "\0"
"""Placeholder for a variable; NUL occurs in no other word."""
_END = "--"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def code_with_variables(words: Sequence[Template], *, dash_allowed: bool = False) -> int | None:
    """Index of the first word with variables that a program in `words` reads as code or runs, or None. The program may
    be started by another one. `dash_allowed`: values may be options."""
    texts = [_text(word) for word in words]
    for place, text in enumerate(texts):
        program = _program(text)
        if program is not None:
            found = _Reading(texts, place, program, dash_allowed=dash_allowed).code()
            if found is not None:
                return found
    return None


def end_of_options(words: Sequence[Template]) -> int:
    """Index after the `--` that ends the options of the program itself, not of a program that starts it. `len(words)`
    if there is no such `--`."""
    texts = [_text(word) for word in words]
    place, program = 0, _program(texts[0]) if texts else None
    while program is not None:
        reading = _Reading(texts, place, program)
        reading.code()
        if reading.started is None and (program.starts is not None or program.hands_on or program.no_end):
            return len(texts)
        if reading.started is None or reading.started >= len(texts):
            break
        place = reading.started
        if _VALUE in texts[place]:
            return len(texts)
        program = _program(texts[place])
    return texts.index(_END, place) + 1 if _END in texts[place:] else len(texts)


class _Reading:
    """Parser of the words after a program's name."""

    def __init__(self, words: Sequence[str], place: int, program: Program, *, dash_allowed: bool = False) -> None:
        self.started: int | None = None
        """Index of the program that it starts."""
        self._words = words
        self._place = place + 1
        self._program = program
        self._dash_allowed = dash_allowed
        self._operands = 0
        self._is_over = False
        """No more options follow."""
        self._has_ended = False
        """A `--` has ended the options."""
        self._is_flagged = False
        self._is_given = False
        """An option has supplied the code or its file."""
        self._is_code_from_here = False
        """A word of `code_after` has occurred."""
        self._may_be_value = False
        """The next word may be the value of the option before it."""

    def code(self) -> int | None:
        """Index of the first word of code that contains a value, or None."""
        words, program = self._words, self._program
        while self._place < len(words):
            place, word = self._place, words[self._place]
            self._place += 1
            if program.hands_on and word == _END:
                self.started = self._place
                return None
            if word in program.starts_after and not self._has_ended:
                self.started = self._place
                found = self._next()
            elif word in program.code_words and not word.startswith("-"):
                found = self._next()
            elif self._is_option(word):
                found = self._option(place, word)
            else:
                found = self._operand(place, word)
            if found is not None:
                return found
            if self.started is not None and not program.starts_after:
                return None
        return None

    def _is_option(self, word: str) -> bool:
        if self._is_over:
            return self._program.code_anywhere and not self._has_ended and word.startswith(_END)
        return len(word) > 1 and (word[0] == "-" or (self._program.plus and word[0] == "+"))

    def _next(self) -> int | None:
        """Consume the next word, which is code. Returns its index if it contains a value, else None."""
        self._place += 1
        return self._place - 1 if self._holds_value(self._place - 1) else None

    def _holds_value(self, place: int) -> bool:
        return place < len(self._words) and _VALUE in self._words[place]

    def _skip(self) -> None:
        """Skip the next word, which is a value; a word that looks like an option is still checked."""
        if self._place < len(self._words) and not self._words[self._place].startswith("-"):
            self._place += 1

    def _operand(self, place: int, word: str) -> int | None:
        program = self._program
        if not self._is_over and self._dash_allowed and word.startswith(_VALUE):
            return place
        if program.assigns and _ASSIGNMENT.match(word):
            return None
        if self._is_code_from_here and _VALUE in word and not self._may_be_value:
            return place
        self._is_code_from_here = self._is_code_from_here or word in program.code_after
        if program.rest is not None and self._operands >= program.rest:
            return next((one for one in range(place, len(self._words)) if _VALUE in self._words[one]), None)
        is_code = (self._is_flagged or (program.first and not self._is_given)) and self._operands == 0
        is_program = self._operands == program.starts
        if (is_code or is_program) and _VALUE in word:
            return place
        if self._may_be_value:
            self._may_be_value = False
            return None
        if is_program:
            self.started = place
            return None
        self._operands += 1
        if program.starts is None and program.stops and not program.hands_on:
            self._is_over = True
            if not program.code_anywhere:
                self._place = len(self._words)
        return None

    def _option(self, place: int, word: str) -> int | None:
        program = self._program
        self._may_be_value = False
        if word == _END:
            self._is_over = self._has_ended = not program.no_end
            return None
        name, equals, value = word.partition("=")
        if word.startswith("--") or name in program.code_words or name in program.takes_words:
            return self._long(place, name, value if equals else None)
        if word[0] == "+":
            return place if _VALUE in word else None
        return self._short(place, word)

    def _long(self, place: int, name: str, value: str | None) -> int | None:
        program = self._program
        if _VALUE in name:
            return place
        if self._has_code(name):
            self._is_given = True
            if value is None:
                return self._next()
            return place if _VALUE in value else None
        self._is_given = self._is_given or name == "--file"
        if value is None:
            if name in program.takes_words:
                self._skip()
            self._may_be_value = program.takes is None and name not in program.takes_words
        return None

    def _has_code(self, name: str) -> bool:
        """Whether a long option takes code. Unambiguous abbreviations count, and ambiguous ones if accepted."""
        program = self._program
        if name in program.code_words or name in program.takes_words:
            return name in program.code_words
        is_short_for = name.startswith("--") and any(one.startswith(name) for one in program.code_words)
        return is_short_for and not program.code_anywhere

    def _short(self, place: int, word: str) -> int | None:
        program = self._program
        for index, letter in enumerate(word[1:], start=2):
            rest = word[index:]
            if letter == _VALUE:
                return place
            if letter in program.code:
                self._is_given = True
                if _VALUE in rest:
                    return place
                # The word after `-pe` is the code of the last letter.
                if not rest:
                    return self._next()
                return place + 1 if rest.isalpha() and self._holds_value(place + 1) else None
            if letter in program.script:
                found = self._next() if not rest else place if _VALUE in rest else None
                self._place = len(self._words)
                return found
            if letter == program.flag:
                self._is_flagged = True
            elif program.takes is not None and letter in program.takes:
                self._is_given = self._is_given or letter == "f"
                if not rest:
                    self._skip()
                return None
        self._may_be_value = program.takes is None
        return None


def _text(word: Template) -> str:
    return "".join(part if isinstance(part, str) else _VALUE for part in word.parts)


def _program(word: str) -> Program | None:
    return None if _VALUE in word or word.startswith("-") else words_of(PurePosixPath(word).name)
