"""Functions of texts. Characters are counted as people count them, from 1."""

from __future__ import annotations

import re

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.comparing import is_in, order
from function_calls.basic.conversions import as_number, text_of
from function_calls.basic.functions.declaring import ANY, GROUP, TEXT, WHOLE, also, function
from function_calls.basic.measuring import check_length
from services.json_values import JsonValue

_WORD_START = re.compile(r"(?:^|(?<=[\s(\"“-]))\w")


def _len(value: JsonValue) -> JsonValue:
    return len(value) if type(value) in (list, dict) else len(text_of(value))


def _repeat(text: str, count: int) -> JsonValue:
    check_length(len(text) * max(count, 0), "the text that REPEAT makes")
    return text * max(count, 0)


def _string(one: JsonValue, two: JsonValue) -> JsonValue:
    """STRING(count, text), and STRING(text, count) where only that can be meant."""
    count, text = (one, two) if as_number(one) is not None else (two, one)
    number = as_number(count)
    if number is None or type(text) in (list, dict):
        raise RunFault(RunCode.WRONG_TYPE, 'STRING needs a number and a text: STRING(3, "-")')
    return _repeat(text_of(text)[:1], int(number))


def _space(count: int) -> JsonValue:
    return _repeat(" ", count)


def _reverse(value: JsonValue) -> JsonValue:
    if type(value) is dict:
        raise RunFault(RunCode.WRONG_TYPE, "REVERSE needs a list or a text, not a map")
    return value[::-1] if type(value) is list else text_of(value)[::-1]


def _chr(number: int) -> JsonValue:
    if not 1 <= number <= 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise RunFault(RunCode.BAD_VALUE, f"CHR knows no character {number}")
    return chr(number)


def _asc(text: str) -> JsonValue:
    if not text:
        raise RunFault(RunCode.BAD_VALUE, "ASC needs a character, and the text is empty")
    return ord(text[0])


def _contains(group: JsonValue, value: JsonValue) -> JsonValue:
    return is_in(value, group)


def _proper(text: str) -> JsonValue:
    """Word by word and no regular title case, which makes Don'T of don't."""
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
    *also(
        function(
            "LEN(value)", (ANY,), _len, "How many characters a text has, or how many items a list.", 'LEN("hello")', 5
        ),
        "length",
        "size",
    ),
    *also(
        function(
            "LOWER(text)", (TEXT,), lambda text: _case(text, upper=False), "In small letters.", 'LOWER("Hi")', "hi"
        ),
        "lcase",
        "tolower",
    ),
    *also(
        function("UPPER(text)", (TEXT,), lambda text: _case(text, upper=True), "In capitals.", 'UPPER("Hi")', "HI"),
        "ucase",
        "toupper",
    ),
    function("TRIM(text)", (TEXT,), lambda text: text.strip(), "Without blanks at both ends.", 'TRIM("  a b ")', "a b"),
    function("LTRIM(text)", (TEXT,), lambda text: text.lstrip(), "Without blanks at the start.", 'LTRIM("  a ")', "a "),
    function("RTRIM(text)", (TEXT,), lambda text: text.rstrip(), "Without blanks at the end.", 'RTRIM("  a ")', "  a"),
    function("REPEAT(text, count)", (TEXT, WHOLE), _repeat, "The text so many times.", 'REPEAT("ab", 3)', "ababab"),
    function("STRING(count, character)", (ANY, ANY), _string, "So many times the character.", 'STRING(3, "*")', "***"),
    function("SPACE(count)", (WHOLE,), _space, "So many blanks.", "SPACE(3)", "   "),
    function("REVERSE(value)", (ANY,), _reverse, "The list or text from behind.", 'REVERSE("abc")', "cba"),
    *also(
        function("CHR(number)", (WHOLE,), _chr, "The character of this number in Unicode.", "CHR(65)", "A"),
        "chrw",
    ),
    *also(
        function("ASC(text)", (TEXT,), _asc, "The number of the first character in Unicode.", 'ASC("A")', 65),
        "ascw",
    ),
    function(
        "STARTSWITH(text, part)",
        (TEXT, TEXT),
        lambda text, part: text.startswith(part),
        "Whether the text begins so. Capitals matter.",
        'STARTSWITH("hello", "he")',
        True,
    ),
    function(
        "ENDSWITH(text, part)",
        (TEXT, TEXT),
        lambda text, part: text.endswith(part),
        "Whether the text ends so. Capitals matter.",
        'ENDSWITH("hello", "lo")',
        True,
    ),
    *also(
        function(
            "CONTAINS(group, value)",
            (GROUP, ANY),
            _contains,
            "Whether a text has this part, a list this item, a map this key.",
            'CONTAINS("hello", "ell")',
            True,
        ),
        "includes",
    ),
    *also(
        function("PROPER(text)", (TEXT,), _proper, "Every word with a capital.", 'PROPER("ANN smith")', "Ann Smith"),
        "title",
    ),
    function(
        "CAPITALIZE(text)", (TEXT,), _capitalize, "The first letter as a capital.", 'CAPITALIZE("hi Bob")', "Hi Bob"
    ),
    *also(
        function(
            "LPAD(text, width, [fill])",
            (TEXT, WHOLE, TEXT),
            lambda text, width, fill=" ": _padded(text, width, fill, left=True),
            "So wide at least, filled up at the left.",
            'LPAD(7, 3, "0")',
            "007",
            fewest=2,
        ),
        "padleft",
    ),
    *also(
        function(
            "RPAD(text, width, [fill])",
            (TEXT, WHOLE, TEXT),
            lambda text, width, fill=" ": _padded(text, width, fill, left=False),
            "So wide at least, filled up at the right.",
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
        "-1 where the first comes before the second, 1 where it comes behind, else 0.",
        'STRCOMP("a", "b")',
        -1,
    ),
    *also(
        function("NEWLINE()", (), _newline, "The end of a line.", 'SPLIT("a\\nb", NEWLINE())', ["a", "b"]),
        "vbcrlf",
        "vbnewline",
        "vblf",
        "crlf",
    ),
    *also(function("TAB()", (), lambda: "\t", "A tab.", "ASC(TAB())", 9), "vbtab"),
)
