"""Words of blocks that are misspelt: `WHIEL`, `ENDFI`, `THNE`. Each is told, and taken for what is nearly meant, so
that the block stands and nothing more is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from function_calls.basic.codes import Code, Fault
from function_calls.basic.survey import is_assignment
from function_calls.basic.tokens import Kind, Token

_ENDS = (
    "ENDIF", "ENDFOR", "ENDWHILE", "ENDSELECT", "ENDSWITCH", "ENDWITH", "ENDSUB", "ENDFUNCTION", "WEND", "LOOP", "NEXT",
)  # fmt: skip
_OPENERS = ("IF", "FOR", "FOREACH", "WHILE", "SELECT", "SWITCH", "WITH", "SUB", "FUNCTION", "DO")
_DIVIDERS = ("ELSE", "ELSEIF", "CASE", "DEFAULT")
_MEANT = (*_OPENERS, *_DIVIDERS, *_ENDS)
_ENDED = ("IF", "FOR", "WHILE", "SELECT", "SWITCH", "WITH", "SUB", "FUNCTION")
"""What stands behind END."""
_SHORTEST, _LONGEST = 2, 12
_CONDITIONS = frozenset(("IF", "ELSEIF"))
_NO_VALUES = frozenset(("AND", "OR", "NOT", "IN", "IS", "LIKE", "MOD", "IF", "ELSEIF", "CONTAINS"))
_MOST = 20
"""Of one script; whoever misspells more has been told enough."""
_ENDS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "WHILE": ("WEND", "ENDWHILE", "WHILE"),
        "DO": ("LOOP",),
        "SELECT": ("ENDSELECT", "SELECT"),
        "SWITCH": ("ENDSWITCH", "SWITCH"),
        "WITH": ("ENDWITH", "WITH"),
        "SUB": ("ENDSUB", "SUB"),
        "FUNCTION": ("ENDFUNCTION", "FUNCTION"),
    }
)
"""A word behind the opener that makes it likely."""


def mended(tokens: Sequence[Token], knows: Callable[[Token], bool]) -> tuple[list[Token], list[Fault]]:
    """The tokens with the right words, and a fault for each wrong one. `knows`: whether a word means something."""
    found = _Mending(tokens, knows)
    found.run()
    return found.tokens, found.faults


class _Mending:
    __slots__ = ("_knows", "_words", "faults", "tokens")

    def __init__(self, tokens: Sequence[Token], knows: Callable[[Token], bool]) -> None:
        self.tokens = list(tokens)
        self.faults: list[Fault] = []
        self._knows = knows
        self._words = {token.value for token in tokens if token.kind is Kind.WORD}

    def run(self) -> None:
        begins = True
        for index, token in enumerate(self.tokens):
            if len(self.faults) >= _MOST:
                return
            if begins and token.kind is Kind.WORD:
                self._begins(index, token)
                begins = False
            elif token.kind is not Kind.NUMBER:
                begins = token.kind is Kind.LINE

    def _begins(self, index: int, token: Token) -> None:
        """A statement begins here."""
        if token.value == "END":
            self._behind_end(index + 1)
        elif token.value in _CONDITIONS or (token.value == "ELSE" and self.tokens[index + 1].value == "IF"):
            self._then(index + 1)
        elif not self._knows(token) and not is_assignment(self.tokens, index):
            if _is_near(str(token.value), "END") and self.tokens[index + 1].value in _ENDED:
                self._mend(index, "END", f"END {self.tokens[index + 1].value}")
                return
            for word in _MEANT:
                if _is_near(str(token.value), word) and self._fits(index, word):
                    shown = f"END {word[3:]}" if word.startswith("END") else word
                    self._mend(index, word, shown)
                    if word in _CONDITIONS:
                        self._then(index + 1)
                    return

    def _behind_end(self, index: int) -> None:
        token = self.tokens[index]
        if token.kind is not Kind.WORD or token.value in _ENDED or self.tokens[index + 1].kind is Kind.SYMBOL:
            return
        for word in _ENDED:
            if _is_near(str(token.value), word) and word in self._words:
                self._mend(index, word, f"END {word}", index - 1)
                return

    def _then(self, index: int) -> None:
        """Behind the word of a condition: mend the THEN of the line if it is misspelt."""
        wrong = 0
        while (token := self.tokens[index]).kind not in (Kind.LINE, Kind.END):
            if token.value == "THEN":
                return
            before = self.tokens[index - 1]
            is_behind_value = before.kind in (Kind.NUMBER, Kind.TEXT, Kind.WORD) or before.text in (")", "]")
            if not wrong and token.kind is Kind.WORD and is_behind_value and before.value not in _NO_VALUES:
                wrong = index if _is_near(str(token.value), "THEN") else 0
            index += 1
        if wrong:
            self._mend(wrong, "THEN", "THEN")

    def _mend(self, index: int, word: str, shown: str, at: int = -1) -> None:
        token = self.tokens[index]
        first = self.tokens[at if at >= 0 else index]
        written = f"{first.value} {token.value}" if first is not token else str(token.value)
        message = f"there is no statement {written}; did you mean {shown}?"
        if word == "THEN":
            message = f"THEN is missing, where `{token.text}` stands; did you mean THEN?"
        self.faults.append(Fault(first.at, Code.UNKNOWN_STATEMENT, message))
        self.tokens[index] = token._replace(text=word, value=word)

    def _fits(self, index: int, word: str) -> bool:
        """Whether what follows can stand behind `word`."""
        following = self.tokens[index + 1]
        is_alone = following.kind in (Kind.LINE, Kind.END)
        if word in _OPENERS and word != "DO":
            return not is_alone and self._opens(index, word)
        match word:
            case "NEXT":
                return is_alone or (
                    following.kind is Kind.WORD and self.tokens[index + 2].kind in (Kind.LINE, Kind.END)
                )
            case "LOOP":
                return is_alone or following.value in ("WHILE", "UNTIL")
            case "DO":
                return (is_alone or following.value in ("WHILE", "UNTIL")) and "LOOP" in self._words
            case "ELSE":
                return (is_alone or following.value == "IF") and "IF" in self._words
            case "ELSEIF":
                return self._has_then(index)
            case "CASE" | "DEFAULT":
                return is_alone is (word == "DEFAULT") and bool({"SELECT", "SWITCH"} & self._words)
            case _:
                return is_alone

    def _opens(self, index: int, word: str) -> bool:
        """Whether a block that begins with `word` can go on as this line does."""
        following = self.tokens[index + 1]
        if word == "IF":
            return self._has_then(index)
        if word in ("FOR", "FOREACH"):
            behind = self.tokens[index + 2]
            is_counting = following.kind is Kind.WORD and (behind.text == "=" or behind.value == "IN")
            return is_counting or following.value == "EACH"
        if word in ("SUB", "FUNCTION", "WITH") and following.kind is not Kind.WORD:
            return False
        return (word == "SELECT" and following.value == "CASE") or self._has_end(word)

    def _has_end(self, word: str) -> bool:
        return any(one in self._words for one in _ENDS_OF[word])

    def _has_then(self, index: int) -> bool:
        while (token := self.tokens[index]).kind not in (Kind.LINE, Kind.END):
            if token.value == "THEN":
                return True
            index += 1
        return False


def _is_near(written: str, word: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two are exchanged."""
    if not _SHORTEST <= len(written) <= _LONGEST or abs(len(written) - len(word)) > 1 or written == word:
        return False
    same = 0
    while same < min(len(written), len(word)) and written[same] == word[same]:
        same += 1
    left, right = written[same:], word[same:]
    if left[1:] == right[1:] or left[1:] == right or left == right[1:]:
        return True
    return left[:2] == right[1::-1] and left[2:] == right[2:]
