"""Functions that find and take parts of texts, and put them together. Characters are counted from 1."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import as_number, kind_of, text_of
from function_calls.basic.functions.declaring import ANY, LIST, TEXT, WHOLE, also, function
from function_calls.basic.measuring import MOST_ITEMS, check_count, check_length
from services.json_values import JsonValue


def _left(text: str, count: int) -> JsonValue:
    return text[: max(count, 0)]


def _right(text: str, count: int) -> JsonValue:
    return text[max(len(text) - max(count, 0), 0) :]


def _mid(text: str, start: int, count: int | None = None) -> JsonValue:
    if start < 1:
        raise RunFault(RunCode.BAD_VALUE, "MID counts the characters from 1")
    end = len(text) if count is None else start - 1 + max(count, 0)
    return text[start - 1 : end]


def _instr(*values: JsonValue) -> JsonValue:
    """INSTR([start,] text, part), and with the start last, as many write it."""
    if any(type(value) in (list, dict) for value in values):
        raise RunFault(RunCode.WRONG_TYPE, "INSTR looks for a text in a text; for lists there is INDEXOF")
    if len(values) < 3:
        return text_of(values[0]).find(text_of(values[1])) + 1
    first, last = as_number(values[0]), as_number(values[2])
    if first is not None and (last is None or type(values[0]) is not str):
        start, text, part = first, values[1], values[2]
    elif last is not None:
        text, part, start = values[0], values[1], last
    else:
        raise RunFault(RunCode.WRONG_TYPE, f"INSTR starts at a number, not at {kind_of(values[0])}")
    return text_of(text).find(text_of(part), max(int(start) - 1, 0)) + 1


def _instrrev(text: str, part: str, start: int | None = None) -> JsonValue:
    return text.rfind(part, 0, len(text) if start is None else max(start, 0)) + 1


def _replace(text: str, part: str, by: str) -> JsonValue:
    if not part:
        return text
    check_length(len(text) + text.count(part) * max(len(by) - len(part), 0), "the text that REPLACE makes")
    return text.replace(part, by)


def _split(text: str, mark: str | None = None, most: int | None = None) -> JsonValue:
    cuts = -1 if most is None or most < 1 else most - 1
    if mark is None:
        words = text.split(None, cuts if cuts >= 0 else MOST_ITEMS)
        check_count(len(words), "what SPLIT makes")
        return words
    if not mark:
        check_count(len(text), "what SPLIT makes")
        return list(text)
    if cuts < 0:
        check_count(text.count(mark) + 1, "what SPLIT makes")
    check_count(cuts, "what SPLIT makes")
    return text.split(mark, cuts) if text else []


def _lines(text: str) -> JsonValue:
    check_count(text.count("\n") + text.count("\r") + 1, "what LINES makes")
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n") if text else []


def _join(items: list[JsonValue], mark: str = ", ") -> JsonValue:
    texts, length = [], 0
    for item in items:
        text = text_of(item)
        length += len(text) + len(mark)
        check_length(length, "the text that JOIN makes")
        texts.append(text)
    return mark.join(texts)


def _concat(*values: JsonValue) -> JsonValue:
    return _join(list(values), "")


TEXT_PARTS = (
    function("LEFT(text, count)", (TEXT, WHOLE), _left, "The first characters.", 'LEFT("hello", 2)', "he"),
    function("RIGHT(text, count)", (TEXT, WHOLE), _right, "The last characters.", 'RIGHT("hello", 2)', "lo"),
    *also(
        function(
            "MID(text, start, [count])",
            (TEXT, WHOLE, WHOLE),
            _mid,
            "Characters from this one on, counted from 1; without a count all of them.",
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
        "Where the part begins, counted from 1; 0 where it is not. Capitals matter.",
        'INSTR("hello", "l")',
        3,
        fewest=2,
    ),
    function(
        "INSTRREV(text, part, [start])",
        (TEXT, TEXT, WHOLE),
        _instrrev,
        "Where the part begins for the last time, counted from 1; 0 where it is not.",
        'INSTRREV("hello", "l")',
        4,
        fewest=2,
    ),
    function(
        "REPLACE(text, part, by)",
        (TEXT, TEXT, TEXT),
        _replace,
        "With every such part replaced. Capitals matter.",
        'REPLACE("1.234.567", ".", "")',
        "1234567",
    ),
    function(
        "SPLIT(text, [mark], [most])",
        (TEXT, TEXT, WHOLE),
        _split,
        "The list of parts between the marks; without a mark, of words. An empty mark gives the characters.",
        'SPLIT("2+2", "+")',
        ["2", "2"],
        fewest=1,
    ),
    function("LINES(text)", (TEXT,), _lines, "The list of lines.", 'LINES("a\\nb")', ["a", "b"]),
    function(
        "JOIN(list, [mark])",
        (LIST, TEXT),
        _join,
        "The items as one text, with this between them; a comma and a blank unless said otherwise.",
        'JOIN(["a", "b"], "-")',
        "a-b",
        fewest=1,
    ),
    function("CONCAT(value, …)", (ANY,), _concat, "All values as one text.", 'CONCAT("a", 1, "b")', "a1b", more=True),
)
