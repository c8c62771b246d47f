"""What a word directly before a value is mistaken for: a function without its parentheses, an IF that gives a value, a
statement of another language."""

from __future__ import annotations

from function_calls.basic.brackets import before
from function_calls.basic.codes import Code, Fault
from function_calls.basic.foreign import foreign_phrase, told_of, words_at
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind

_BEGINS_VALUE = (Kind.TEXT, Kind.NUMBER, Kind.WORD)
_NO_VALUES = frozenset(
    ("AND", "OR", "NOT", "THEN", "ELSE", "TO", "IN", "IS", "AS", "STEP", "MOD", "LIKE", "WITH", "BY")
)
_LONGEST_SHOWN = 30


def better_told(cursor: Cursor, fault: Fault, reading: Reading) -> Fault:
    """What is wrong at the cursor, in words that help; `fault` itself where the word before the cursor says no more."""
    if fault.code is not Code.SYNTAX or fault.at != cursor.now.at:
        return fault
    return mistaken_word(cursor, reading) or fault


def mistaken_word(cursor: Cursor, reading: Reading) -> Fault | None:
    """What the word before the cursor was mistaken for, if a value stands at the cursor."""
    if not cursor.index or cursor.now.kind not in _BEGINS_VALUE or cursor.now.value in _NO_VALUES:
        return None
    word = before(cursor)
    if word.kind is not Kind.WORD or word.text.lower() in reading.variables:
        return None
    if word.value == "IF":
        if cursor.ahead(-2).value == "END":
            return None
        return Fault(word.at, Code.SYNTAX, "IF gives no value; write IIF(condition, value, otherwise)")
    if (most := reading.functions.get(word.text.lower(), (0, 0))[1]) != 0:
        shown = cursor.now.text.splitlines()[0]
        shown = shown if len(shown) <= _LONGEST_SHOWN and most == 1 else "…"
        name = str(word.value)
        return Fault(word.at, Code.SYNTAX, f"{name} takes its values in parentheses: {name}({shown})")
    for back in (1, 2):
        # MERGE PDF is read as the keyword MERGE first, and fails behind its second word.
        first = cursor.ahead(-back)
        if back > cursor.index or first.kind is not Kind.WORD:
            break
        cursor.index -= back
        words = words_at(cursor)
        cursor.index += back
        phrase = foreign_phrase(words, reading.keywords)
        if len(phrase.split()) >= back:
            return Fault(first.at, Code.UNKNOWN_STATEMENT, told_of(phrase))
    return None
