"""Tokenizer: words, numbers and signs with their positions."""

from __future__ import annotations

from services.patterns import lazy_pattern
from services.text_index import NUMBERS, SCALES
from services.times.words.lexicon import ONES, ORDINALS, TENS

_TOKEN = lazy_pattern(r"[0-9]+|[^\W\d_]+(?:['’](?:clock|s\b))?|[^\s]")
_SUFFIXES = frozenset(("st", "nd", "rd", "th"))
_MOST_DIGITS = 14
NUMBER, ORDINAL, WORD, SIGN, END = "n", "o", "w", "s", "$"


class Line:
    """Tokens of a text, from 0 to `size`, followed by END tokens. Number words are numbers."""

    __slots__ = ("ends", "kinds", "size", "starts", "text", "values", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.kinds: list[str] = []
        self.words: list[str] = []
        """Lower case, without `'s`; digits for numbers in digits."""
        self.values: list[int] = []
        """Values of numbers and ordinals."""
        self.starts: list[int] = []
        self.ends: list[int] = []
        raw = [(found[0].lower().replace("’", "'"), found.start(), found.end()) for found in _TOKEN.finditer(text)]
        index = 0
        while index < len(raw):
            index = self._take(raw, index)
        self.size = len(self.words)
        for _ in range(4):
            self._add(END, "", 0, len(text), len(text))

    def glued(self, index: int) -> bool:
        """Whether the token at `index` directly follows the previous one, without a gap."""
        return 0 < index < self.size and self.ends[index - 1] == self.starts[index]

    def is_digits(self, index: int) -> bool:
        """Whether the token at `index` is a number in digits, not in words."""
        return self.kinds[index] == NUMBER and self.words[index].isdigit()

    def _add(self, kind: str, word: str, value: int, start: int, end: int) -> None:
        self.kinds.append(kind)
        self.words.append(word)
        self.values.append(value)
        self.starts.append(start)
        self.ends.append(end)

    def _take(self, raw: list[tuple[str, int, int]], index: int) -> int:
        """Add the item at `index` of `raw` and return the next index."""
        word, start, end = raw[index]
        first = word[0]
        if "0" <= first <= "9":
            if len(word) > _MOST_DIGITS:
                self._add(SIGN, word, 0, start, end)
                return index + 1
            after = raw[index + 1] if index + 1 < len(raw) else ("", 0, 0)
            if after[0] in _SUFFIXES and after[1] == end:
                self._add(ORDINAL, word, int(word), start, after[2])
                return index + 2
            self._add(NUMBER, word, int(word), start, end)
            return index + 1
        if word in NUMBERS or word in SCALES:
            value, is_ordinal, after_number = _spelled(raw, index)
            self._add(ORDINAL if is_ordinal else NUMBER, word, value, start, raw[after_number - 1][2])
            return after_number
        if word in ORDINALS and word != "second":
            self._add(ORDINAL, word, ORDINALS[word], start, end)
            return index + 1
        if first.isalpha():
            self._add(WORD, word[:-2] if word.endswith("'s") else word, 0, start, end)
        else:
            self._add(SIGN, word, 0, start, end)
        return index + 1


def _spelled(raw: list[tuple[str, int, int]], index: int) -> tuple[int, bool, int]:
    """Value of the number words at `index`, whether it is an ordinal, and its end. Separate numbers (`six thirty`) are
    not merged."""
    total, part, used = 0, 0, index
    while used < len(raw):
        word = raw[used][0]
        joined = used
        if used > index and word in ("-", "and") and used + 1 < len(raw):
            if word == "and" and not (part >= 100 and part % 100 == 0) and not (total and not part):
                break
            joined, word = used + 1, raw[used + 1][0]
        if word in ORDINALS and used > index and _fits(part, ORDINALS[word]) and _is_last(raw, joined, word):
            return total + part + ORDINALS[word], True, joined + 1
        if word in NUMBERS and (used == index or _fits(part, NUMBERS[word])):
            part += NUMBERS[word]
        elif word == "hundred" and part < 100:
            part = (part or 1) * 100
        elif word in SCALES and word != "hundred" and part:
            total, part = total + part * SCALES[word], 0
        else:
            break
        used = joined + 1
    return total + part, False, max(used, index + 1)


def _fits(part: int, more: int) -> bool:
    """Whether `more` continues the number `part`: twenty + one, hundred + twelve."""
    if part in TENS.values():
        return more in ONES.values()
    return (
        part == 0 or (part >= 100 and part % 100 == 0 and more < 100) or (part >= 120 and part % 10 == 0 and more < 10)
    )


def _is_last(raw: list[tuple[str, int, int]], index: int, word: str) -> bool:
    """Whether the ordinal `word` can end a number here; `second` after tens is an ordinal (the twenty second), never a
    unit."""
    return word != "seconds" and index < len(raw)
