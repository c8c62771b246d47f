"""Text functions. Character positions count from 1."""

from __future__ import annotations

import re

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.functions.declaration import ANY, GROUP, LIST, TEXT, WHOLE, function, with_aliases
from function_calls.basic.value_sizes import MOST_ITEMS, check_count, check_length
from function_calls.basic.values import as_number, is_in, kind_of, order, text_of
from services.refs import JsonValue

_WORD_START = re.compile(r"(?:^|(?<=[\s(\"“-]))\w")


def _len(value: JsonValue) -> JsonValue:
    return len(value) if type(value) in (list, dict) else len(text_of(value))


def _repeat(text: str, count: int) -> JsonValue:
    check_length(len(text) * max(count, 0), "the result of REPEAT")
    return text * max(count, 0)


def _string(one: JsonValue, two: JsonValue) -> JsonValue:
    """STRING(count, text), or STRING(text, count) if only the second argument is a number: the first character `count`
    times. Raises RunError if neither is a number, or the text is a list or a map."""
    count, text = (one, two) if as_number(one) is not None else (two, one)
    number = as_number(count)
    if number is None or type(text) in (list, dict):
        raise RunError(RunCode.WRONG_TYPE, 'STRING needs a number and a text: STRING(3, "-")')
    return _repeat(text_of(text)[:1], int(number))


def _space(count: int) -> JsonValue:
    return _repeat(" ", count)


def _reverse(value: JsonValue) -> JsonValue:
    if type(value) is dict:
        raise RunError(RunCode.WRONG_TYPE, "REVERSE needs a list or a text, not a map")
    return value[::-1] if type(value) is list else text_of(value)[::-1]


def _chr(number: int) -> JsonValue:
    if not 1 <= number <= 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise RunError(RunCode.BAD_VALUE, f"CHR: there is no character {number}")
    return chr(number)


def _asc(text: str) -> JsonValue:
    if not text:
        raise RunError(RunCode.BAD_VALUE, "ASC needs a character, and the text is empty")
    return ord(text[0])


def _contains(group: JsonValue, value: JsonValue) -> JsonValue:
    return is_in(value, group)


def _proper(text: str) -> JsonValue:
    """Capitalize each word. `str.title` would turn "don't" into "Don'T"."""
    return _WORD_START.sub(lambda found: found.group().upper(), text.lower())


def _capitalize(text: str) -> JsonValue:
    return text[:1].upper() + text[1:]


def _padded(text: str, width: int, fill: str, *, left: bool) -> JsonValue:
    check_length(width, "the padded text")
    fill = fill[:1] or " "
    return text.rjust(width, fill) if left else text.ljust(width, fill)


def _case(text: str, *, upper: bool) -> JsonValue:
    check_length(len(text) * (1 if text.isascii() else 3), "the text")
    return text.upper() if upper else text.lower()


def _strcomp(one: str, two: str) -> JsonValue:
    return order(one, two)


def _newline() -> JsonValue:
    return "\n"


TEXTS = (
    *with_aliases(
        function(
            "LEN(value)", (ANY,), _len, "The number of characters of a text, or of items of a list.", 'LEN("hello")', 5
        ),
        "length",
        "size",
    ),
    *with_aliases(
        function(
            "LOWER(text)",
            (TEXT,),
            lambda text: _case(text, upper=False),
            "The text in lower case.",
            'LOWER("Hi")',
            "hi",
        ),
        "lcase",
        "tolower",
    ),
    *with_aliases(
        function("UPPER(text)", (TEXT,), lambda text: _case(text, upper=True), "In capitals.", 'UPPER("Hi")', "HI"),
        "ucase",
        "toupper",
    ),
    function(
        "TRIM(text)",
        (TEXT,),
        lambda text: text.strip(),
        "The text without spaces at both ends.",
        'TRIM("  a b ")',
        "a b",
    ),
    function(
        "LTRIM(text)",
        (TEXT,),
        lambda text: text.lstrip(),
        "The text without spaces at the start.",
        'LTRIM("  a ")',
        "a ",
    ),
    function(
        "RTRIM(text)",
        (TEXT,),
        lambda text: text.rstrip(),
        "The text without spaces at the end.",
        'RTRIM("  a ")',
        "  a",
    ),
    function("REPEAT(text, count)", (TEXT, WHOLE), _repeat, "The text repeated.", 'REPEAT("ab", 3)', "ababab"),
    function(
        "STRING(count, character)",
        (ANY, ANY),
        _string,
        "The first character of the text, repeated.",
        'STRING(3, "*")',
        "***",
    ),
    function("SPACE(count)", (WHOLE,), _space, "A number of spaces.", "SPACE(3)", "   "),
    function("REVERSE(value)", (ANY,), _reverse, "The list or text in reverse order.", 'REVERSE("abc")', "cba"),
    *with_aliases(
        function("CHR(number)", (WHOLE,), _chr, "The character with this Unicode code point.", "CHR(65)", "A"),
        "chrw",
    ),
    *with_aliases(
        function("ASC(text)", (TEXT,), _asc, "The Unicode code point of the first character.", 'ASC("A")', 65),
        "ascw",
    ),
    function(
        "STARTSWITH(text, part)",
        (TEXT, TEXT),
        lambda text, part: text.startswith(part),
        "Whether the text starts with the other text. Case-sensitive.",
        'STARTSWITH("hello", "he")',
        True,
    ),
    function(
        "ENDSWITH(text, part)",
        (TEXT, TEXT),
        lambda text, part: text.endswith(part),
        "Whether the text ends with the other text. Case-sensitive.",
        'ENDSWITH("hello", "lo")',
        True,
    ),
    *with_aliases(
        function(
            "CONTAINS(group, value)",
            (GROUP, ANY),
            _contains,
            "Whether a text contains this part, a list this item, or a map this key.",
            'CONTAINS("hello", "ell")',
            True,
        ),
        "includes",
    ),
    *with_aliases(
        function(
            "PROPER(text)",
            (TEXT,),
            _proper,
            "The text with the first letter of every word in upper case.",
            'PROPER("ANN smith")',
            "Ann Smith",
        ),
        "title",
    ),
    function(
        "CAPITALIZE(text)",
        (TEXT,),
        _capitalize,
        "The text with its first letter in upper case.",
        'CAPITALIZE("hi Bob")',
        "Hi Bob",
    ),
    *with_aliases(
        function(
            "LPAD(text, width, [fill])",
            (TEXT, WHOLE, TEXT),
            lambda text, width, fill=" ": _padded(text, width, fill, left=True),
            "The text padded at the left to a width; longer texts are unchanged.",
            'LPAD(7, 3, "0")',
            "007",
            fewest=2,
        ),
        "padleft",
    ),
    *with_aliases(
        function(
            "RPAD(text, width, [fill])",
            (TEXT, WHOLE, TEXT),
            lambda text, width, fill=" ": _padded(text, width, fill, left=False),
            "The text padded at the right to a width; longer texts are unchanged.",
            'RPAD("ab", 4, ".")',
            "ab..",
            fewest=2,
        ),
        "padright",
    ),
    function(
        "STRCOMP(one, two)",
        (TEXT, TEXT),
        _strcomp,
        "-1 if the first text sorts before the second, 1 if after it, 0 if they are equal.",
        'STRCOMP("a", "b")',
        -1,
    ),
    *with_aliases(
        function("NEWLINE()", (), _newline, "A line break.", 'SPLIT("a\\nb", NEWLINE())', ["a", "b"]),
        "vbcrlf",
        "vbnewline",
        "vblf",
        "crlf",
    ),
    *with_aliases(function("TAB()", (), lambda: "\t", "A tab.", "ASC(TAB())", 9), "vbtab"),
)


def _left(text: str, count: int) -> JsonValue:
    return text[: max(count, 0)]


def _right(text: str, count: int) -> JsonValue:
    return text[max(len(text) - max(count, 0), 0) :]


def _mid(text: str, start: int, count: int | None = None) -> JsonValue:
    if start < 1:
        raise RunError(RunCode.BAD_VALUE, "MID: the start must be at least 1")
    end = len(text) if count is None else start - 1 + max(count, 0)
    return text[start - 1 : end]


def _instr(*values: JsonValue) -> JsonValue:
    """INSTR([start,] text, part): position of `part` from 1, or 0 if it is absent; the start is also accepted as the
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


def _instrrev(text: str, part: str, start: int | None = None) -> JsonValue:
    return text.rfind(part, 0, len(text) if start is None else max(start, 0)) + 1


def _replace(text: str, part: str, by: str) -> JsonValue:
    if not part:
        return text
    check_length(len(text) + text.count(part) * max(len(by) - len(part), 0), "the result of REPLACE")
    return text.replace(part, by)


def _split(text: str, mark: str | None = None, most: int | None = None) -> JsonValue:
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


def _lines(text: str) -> JsonValue:
    check_count(text.count("\n") + text.count("\r") + 1, "the result of LINES")
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n") if text else []


def _join(items: list[JsonValue], mark: str = ", ") -> JsonValue:
    texts, length = [], 0
    for item in items:
        text = text_of(item)
        length += len(text) + len(mark)
        check_length(length, "the result of JOIN")
        texts.append(text)
    return mark.join(texts)


def _concat(*values: JsonValue) -> JsonValue:
    return _join(list(values), "")


TEXT_PARTS = (
    function("LEFT(text, count)", (TEXT, WHOLE), _left, "The first characters.", 'LEFT("hello", 2)', "he"),
    function("RIGHT(text, count)", (TEXT, WHOLE), _right, "The last characters.", 'RIGHT("hello", 2)', "lo"),
    *with_aliases(
        function(
            "MID(text, start, [count])",
            (TEXT, WHOLE, WHOLE),
            _mid,
            "The characters from a position, counted from 1, on; without a count, up to the end.",
            'MID("hello", 2, 3)',
            "ell",
            fewest=2,
        ),
        "substr",
    ),
    function(
        "INSTR([start], text, part)",
        (ANY, ANY, ANY),
        _instr,
        "The position of the part, counted from 1; 0 if the text does not contain it. Case-sensitive.",
        'INSTR("hello", "l")',
        3,
        fewest=2,
    ),
    function(
        "INSTRREV(text, part, [start])",
        (TEXT, TEXT, WHOLE),
        _instrrev,
        "The last position of the part, counted from 1; 0 if the text does not contain it.",
        'INSTRREV("hello", "l")',
        4,
        fewest=2,
    ),
    function(
        "REPLACE(text, part, replacement)",
        (TEXT, TEXT, TEXT),
        _replace,
        "The text with every occurrence of the part replaced. Case-sensitive.",
        'REPLACE("1.234.567", ".", "")',
        "1234567",
    ),
    function(
        "SPLIT(text, [separator], [limit])",
        (TEXT, TEXT, WHOLE),
        _split,
        "The list of parts between separators; without a separator, of words; with an empty one, of characters.",
        'SPLIT("2+2", "+")',
        ["2", "2"],
        fewest=1,
    ),
    function("LINES(text)", (TEXT,), _lines, "The list of lines of a text.", 'LINES("a\\nb")', ["a", "b"]),
    function(
        "JOIN(list, [mark])",
        (LIST, TEXT),
        _join,
        "The items as one text with a separator between them; the default is a comma and a space.",
        'JOIN(["a", "b"], "-")',
        "a-b",
        fewest=1,
    ),
    function(
        "CONCAT(value, …)", (ANY,), _concat, "All values joined to one text.", 'CONCAT("a", 1, "b")', "a1b", more=True
    ),
)
