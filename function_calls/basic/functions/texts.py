"""Text functions. Character positions count from 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.functions.declaration import ANY, TEXT, Group, LanguageFunction, function
from function_calls.basic.value_sizes import MOST_ITEMS, check_count, check_length
from function_calls.basic.values import as_number, is_in, kind_of, order, text_of
from services.refs import JsonValue

_WORD_START = re.compile(r"(?:^|(?<=[\s(\"“-]))\w")


def _padded(text: str, width: int, fill: str, *, left: bool) -> JsonValue:
    check_length(width, "the padded text")
    fill = fill[:1] or " "
    return text.rjust(width, fill) if left else text.ljust(width, fill)


def _lower(text: str) -> str:
    check_length(len(text) * (1 if text.isascii() else 3), "the text")
    return text.lower()


def _upper(text: str) -> str:
    check_length(len(text) * (1 if text.isascii() else 3), "the text")
    return text.upper()


TEXTS: list[LanguageFunction] = []


def _changed(
    name: str, change: Callable[[str], str], about: str, example: str, gives: str, also: Sequence[str] = ()
) -> None:
    function(TEXTS, f"{name}(text)", example, gives, also=also, about=about, takes=(TEXT,))(change)


@function(TEXTS, "LEFT(text, count)", 'LEFT("hello", 2)', "he")
def _left(text: str, count: int) -> JsonValue:
    """The first characters."""
    return text[: max(count, 0)]


@function(TEXTS, "RIGHT(text, count)", 'RIGHT("hello", 2)', "lo")
def _right(text: str, count: int) -> JsonValue:
    """The last characters."""
    return text[max(len(text) - max(count, 0), 0) :]


@function(TEXTS, "MID(text, start, [count])", 'MID("hello", 2, 3)', "ell", also=("substr",))
def _mid(text: str, start: int, count: int | None = None) -> JsonValue:
    """The characters from a position, counted from 1, on; without a count, up to the end."""
    if start < 1:
        raise RunError(RunCode.BAD_VALUE, "MID: the start must be at least 1")
    end = len(text) if count is None else start - 1 + max(count, 0)
    return text[start - 1 : end]


@function(TEXTS, "INSTR([start], text, part)", 'INSTR("hello", "l")', 3, takes=(ANY, ANY, ANY), fewest=2)
def _instr(*values: JsonValue) -> JsonValue:
    """The position of the part, counted from 1; 0 if the text does not contain it. Case-sensitive.

    INSTR([start,] text, part): position of `part` from 1, or 0 if it is absent; the start is also accepted as the
    last argument. Raises RunError for lists and maps, and for a start that is not a number."""
    if any(type(value) in (list, dict) for value in values):
        raise RunError(RunCode.WRONG_TYPE, "INSTR searches a text; use INDEXOF for lists")
    if len(values) < 3:
        return text_of(values[0]).find(text_of(values[1])) + 1
    first, last = as_number(values[0]), as_number(values[2])
    if first is not None and (last is None or type(values[0]) is not str):
        start, text, part = first, values[1], values[2]
    elif last is not None:
        text, part, start = values[0], values[1], last
    else:
        raise RunError(RunCode.WRONG_TYPE, f"INSTR: the start must be a number, not {kind_of(values[0])}")
    return text_of(text).find(text_of(part), max(int(start) - 1, 0)) + 1


@function(TEXTS, "INSTRREV(text, part, [start])", 'INSTRREV("hello", "l")', 4)
def _instrrev(text: str, part: str, start: int | None = None) -> JsonValue:
    """The last position of the part, counted from 1; 0 if the text does not contain it."""
    return text.rfind(part, 0, len(text) if start is None else max(start, 0)) + 1


@function(TEXTS, "REPLACE(text, part, replacement)", 'REPLACE("1.234.567", ".", "")', "1234567")
def _replace(text: str, part: str, by: str) -> JsonValue:
    """The text with every occurrence of the part replaced. Case-sensitive."""
    if not part:
        return text
    check_length(len(text) + text.count(part) * max(len(by) - len(part), 0), "the result of REPLACE")
    return text.replace(part, by)


@function(TEXTS, "SPLIT(text, [separator], [limit])", 'SPLIT("2+2", "+")', ["2", "2"])
def _split(text: str, mark: str | None = None, most: int | None = None) -> JsonValue:
    """The list of parts between separators; without a separator, of words; with an empty one, of characters."""
    cuts = -1 if most is None or most < 1 else most - 1
    if mark is None:
        words = text.split(None, cuts if cuts >= 0 else MOST_ITEMS)
        check_count(len(words), "the result of SPLIT")
        return words
    if not mark:
        check_count(len(text), "the result of SPLIT")
        return list(text)
    if cuts < 0:
        check_count(text.count(mark) + 1, "the result of SPLIT")
    check_count(cuts, "the result of SPLIT")
    return text.split(mark, cuts) if text else []


@function(TEXTS, "LINES(text)", 'LINES("a\\nb")', ["a", "b"])
def _lines(text: str) -> JsonValue:
    """The list of lines of a text."""
    check_count(text.count("\n") + text.count("\r") + 1, "the result of LINES")
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n") if text else []


@function(TEXTS, "JOIN(list, [mark])", 'JOIN(["a", "b"], "-")', "a-b")
def joined_text(items: list[JsonValue], mark: str = ", ") -> JsonValue:
    """The items as one text with a separator between them; the default is a comma and a space."""
    texts, length = [], 0
    for item in items:
        text = text_of(item)
        length += len(text) + len(mark)
        check_length(length, "the result of JOIN")
        texts.append(text)
    return mark.join(texts)


@function(TEXTS, "CONCAT(value, …)", 'CONCAT("a", 1, "b")', "a1b")
def _concat(*values: JsonValue) -> JsonValue:
    """All values joined to one text."""
    return joined_text(list(values), "")


@function(TEXTS, "LEN(value)", 'LEN("hello")', 5, also=("length", "size"))
def _len(value: JsonValue) -> JsonValue:
    """The number of characters of a text, or of items of a list."""
    return len(value) if type(value) in (list, dict) else len(text_of(value))


_changed("LOWER", _lower, "The text in lower case.", 'LOWER("Hi")', "hi", also=("lcase", "tolower"))
_changed("UPPER", _upper, "In capitals.", 'UPPER("Hi")', "HI", also=("ucase", "toupper"))
_changed("TRIM", str.strip, "The text without spaces at both ends.", 'TRIM("  a b ")', "a b")
_changed("LTRIM", str.lstrip, "The text without spaces at the start.", 'LTRIM("  a ")', "a ")
_changed("RTRIM", str.rstrip, "The text without spaces at the end.", 'RTRIM("  a ")', "  a")


@function(TEXTS, "REPEAT(text, count)", 'REPEAT("ab", 3)', "ababab")
def _repeat(text: str, count: int) -> JsonValue:
    """The text repeated."""
    check_length(len(text) * max(count, 0), "the result of REPEAT")
    return text * max(count, 0)


@function(TEXTS, "STRING(count, character)", 'STRING(3, "*")', "***")
def _string(one: JsonValue, two: JsonValue) -> JsonValue:
    """The first character of the text, repeated.

    STRING(count, text), or STRING(text, count) if only the second argument is a number: the first character `count`
    times. Raises RunError if neither is a number, or the text is a list or a map."""
    count, text = (one, two) if as_number(one) is not None else (two, one)
    number = as_number(count)
    if number is None or type(text) in (list, dict):
        raise RunError(RunCode.WRONG_TYPE, 'STRING needs a number and a text: STRING(3, "-")')
    return _repeat(text_of(text)[:1], int(number))


@function(TEXTS, "SPACE(count)", "SPACE(3)", "   ")
def _space(count: int) -> JsonValue:
    """A number of spaces."""
    return _repeat(" ", count)


@function(TEXTS, "REVERSE(value)", 'REVERSE("abc")', "cba")
def _reverse(value: JsonValue) -> JsonValue:
    """The list or text in reverse order."""
    if type(value) is dict:
        raise RunError(RunCode.WRONG_TYPE, "REVERSE needs a list or a text, not a map")
    return value[::-1] if type(value) is list else text_of(value)[::-1]


@function(TEXTS, "CHR(number)", "CHR(65)", "A", also=("chrw",))
def _chr(number: int) -> JsonValue:
    """The character with this Unicode code point."""
    if not 1 <= number <= 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise RunError(RunCode.BAD_VALUE, f"CHR: there is no character {number}")
    return chr(number)


@function(TEXTS, "ASC(text)", 'ASC("A")', 65, also=("ascw",))
def _asc(text: str) -> JsonValue:
    """The Unicode code point of the first character."""
    if not text:
        raise RunError(RunCode.BAD_VALUE, "ASC needs a character, and the text is empty")
    return ord(text[0])


@function(TEXTS, "STARTSWITH(text, part)", 'STARTSWITH("hello", "he")', True)
def _startswith(text: str, part: str) -> JsonValue:
    """Whether the text starts with the other text. Case-sensitive."""
    return text.startswith(part)


@function(TEXTS, "ENDSWITH(text, part)", 'ENDSWITH("hello", "lo")', True)
def _endswith(text: str, part: str) -> JsonValue:
    """Whether the text ends with the other text. Case-sensitive."""
    return text.endswith(part)


@function(TEXTS, "CONTAINS(group, value)", 'CONTAINS("hello", "ell")', True, also=("includes",))
def _contains(group: Group, value: JsonValue) -> JsonValue:
    """Whether a text contains this part, a list this item, or a map this key."""
    return is_in(value, group)


@function(TEXTS, "PROPER(text)", 'PROPER("ANN smith")', "Ann Smith", also=("title",))
def _proper(text: str) -> JsonValue:
    """The text with the first letter of every word in upper case.

    Capitalize each word. `str.title` would turn "don't" into "Don'T"."""
    return _WORD_START.sub(lambda found: found.group().upper(), text.lower())


@function(TEXTS, "CAPITALIZE(text)", 'CAPITALIZE("hi Bob")', "Hi Bob")
def _capitalize(text: str) -> JsonValue:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


@function(TEXTS, "LPAD(text, width, [fill])", 'LPAD(7, 3, "0")', "007", also=("padleft",))
def _lpad(text: str, width: int, fill: str = " ") -> JsonValue:
    """The text padded at the left to a width; longer texts are unchanged."""
    return _padded(text, width, fill, left=True)


@function(TEXTS, "RPAD(text, width, [fill])", 'RPAD("ab", 4, ".")', "ab..", also=("padright",))
def _rpad(text: str, width: int, fill: str = " ") -> JsonValue:
    """The text padded at the right to a width; longer texts are unchanged."""
    return _padded(text, width, fill, left=False)


@function(TEXTS, "STRCOMP(one, two)", 'STRCOMP("a", "b")', -1)
def _strcomp(one: str, two: str) -> JsonValue:
    """-1 if the first text sorts before the second, 1 if after it, 0 if they are equal."""
    return order(one, two)


@function(TEXTS, "NEWLINE()", 'SPLIT("a\\nb", NEWLINE())', ["a", "b"], also=("vbcrlf", "vbnewline", "vblf", "crlf"))
def _newline() -> JsonValue:
    """A line break."""
    return "\n"


@function(TEXTS, "TAB()", "ASC(TAB())", 9, also=("vbtab",))
def _tab() -> JsonValue:
    """A tab."""
    return "\t"
