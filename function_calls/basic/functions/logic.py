"""Conditional functions, type tests and conversions."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.functions.declaring import ANY, TEXT, WHOLE, also, function
from function_calls.basic.functions.numbers import rounded
from function_calls.basic.moments import HINT, read
from function_calls.basic.values import as_number, is_null, kind_of, text_of, truth
from function_calls.basic.world import World
from services.refs import JsonValue

_YES = frozenset({"true", "yes", "y", "on", "1", "ok", "sim", "si", "sí", "oui", "ja", "是", "是的", "对", "好", "真"})
_NO = frozenset({"false", "no", "n", "off", "0", "", "não", "nao", "non", "nein", "否", "不", "不是", "不对", "假"})


def yes_or_no(text: str) -> bool | None:
    """Parse a yes or no in several languages; None if it is neither."""
    word = text.strip().lower()
    return True if word in _YES else (False if word in _NO else None)


def _iif(condition: JsonValue, one: JsonValue, other: JsonValue = None) -> JsonValue:
    return one if truth(condition) else other


def _nvl(value: JsonValue, instead: JsonValue) -> JsonValue:
    return instead if is_null(value) or value == "" else value


def _coalesce(*values: JsonValue) -> JsonValue:
    return next((value for value in values if not is_null(value) and value != ""), None)


def _choose(place: int, *values: JsonValue) -> JsonValue:
    return values[place - 1] if 1 <= place <= len(values) else None


def _is_null(value: JsonValue, *instead: JsonValue) -> JsonValue:
    """With two arguments the same as NVL, as in SQL."""
    return _nvl(value, instead[0]) if instead else is_null(value)


def _is_empty(value: JsonValue) -> JsonValue:
    return (
        value is None
        or (type(value) in (list, dict) and not value)
        or (type(value) is str and (not value or value.isspace()))
    )


def _type(value: JsonValue) -> JsonValue:
    names = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _is_number(value: JsonValue) -> JsonValue:
    return type(value) is not bool and as_number(value) is not None


def _is_date(world: World, value: JsonValue) -> JsonValue:
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    return moment is not None and moment.form != "time"


def _to_boolean(value: JsonValue) -> JsonValue:
    if type(value) is not str:
        return truth(value)
    meant = yes_or_no(value)
    if meant is None:
        number = as_number(value)
        if number is None:
            raise RunError(
                RunCode.BAD_VALUE, "CBOOL knows true, false, yes, no, on, off, 1 and 0; the text is none of them"
            )
        return bool(number)
    return meant


def _to_number(value: JsonValue) -> int | float:
    number = 0 if value is None else as_number(value)
    if number is None:
        code = RunCode.BAD_VALUE if type(value) is str else RunCode.WRONG_TYPE
        hint = ": this text is none" if type(value) is str and value else f", not {kind_of(value)}"
        raise RunError(code, f"a number is needed here, such as 12 or 3.5{hint}")
    return number


def _to_date(world: World, value: JsonValue) -> JsonValue:
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    if moment is None:
        raise RunError(RunCode.BAD_VALUE, f"CDATE needs a date, not {kind_of(value)}; {HINT}")
    return str(moment)


LOGIC = (
    function(
        "IIF(condition, one, [other])",
        (ANY, ANY, ANY),
        _iif,
        "The one where the condition holds, else the other. Both are worked out.",
        'IIF(3 > 2, "yes", "no")',
        "yes",
        fewest=2,
    ),
    function(
        "NVL(value, instead)",
        (ANY, ANY),
        _nvl,
        "The value, or the other one where it is NULL or empty.",
        "NVL(NULL, 5)",
        5,
    ),
    function(
        "COALESCE(value, …)",
        (ANY,),
        _coalesce,
        "The first value that is not NULL or empty.",
        'COALESCE(NULL, "", 7)',
        7,
        more=True,
    ),
    function(
        "CHOOSE(place, value, …)",
        (WHOLE, ANY),
        _choose,
        "The value at this place, from 1.",
        'CHOOSE(2, "a", "b")',
        "b",
        more=True,
    ),
    *also(
        function(
            "ISNULL(value, [instead])",
            (ANY, ANY),
            _is_null,
            "Whether it is NULL, or a search that found nothing. With a second value it is NVL.",
            "ISNULL(NULL)",
            True,
            fewest=1,
        ),
        "isnothing",
    ),
    function(
        "ISEMPTY(value)",
        (ANY,),
        _is_empty,
        "Whether it is NULL, a text without anything but blanks, an empty list or map.",
        'ISEMPTY("")',
        True,
    ),
    *also(
        function(
            "ISNUMERIC(value)", (ANY,), _is_number, "Whether it is or writes a number.", 'ISNUMERIC("12.5")', True
        ),
        "isnumber",
    ),
    function("ISDATE(value)", (ANY,), _is_date, "Whether it writes a date.", 'ISDATE("2026-02-30")', False, world=True),
    *also(
        function(
            "ISARRAY(value)", (ANY,), lambda value: type(value) is list, "Whether it is a list.", "ISARRAY([1])", True
        ),
        "islist",
    ),
    *also(
        function(
            "ISOBJECT(value)", (ANY,), lambda value: type(value) is dict, "Whether it is a map.", "ISOBJECT([1])", False
        ),
        "ismap",
    ),
    *also(
        function(
            "ISSTRING(value)", (ANY,), lambda value: type(value) is str, "Whether it is a text.", 'ISSTRING("a")', True
        ),
        "istext",
    ),
    *also(
        function(
            "ISBOOLEAN(value)",
            (ANY,),
            lambda value: type(value) is bool,
            "Whether it is TRUE or FALSE.",
            "ISBOOLEAN(0)",
            False,
        ),
        "isbool",
    ),
    *also(
        function(
            "TYPEOF(value)", (ANY,), _type, "null, boolean, number, string, array or object.", "TYPEOF(3)", "number"
        ),
        "typename",
        "vartype",
    ),
    *also(function("STR(value)", (ANY,), text_of, "The value as a text.", "STR(3.0)", "3"), "cstr", "tostring"),
    *also(
        function(
            "CINT(value)",
            (ANY,),
            lambda value: rounded(_to_number(value), 0),
            "The value as a whole number, rounded.",
            'CINT("2.5")',
            3,
        ),
        "clng",
        "toint",
    ),
    *also(
        function("CDBL(value)", (ANY,), _to_number, "The value as a number.", 'CDBL("1,234.5")', 1234.5),
        "csng",
        "ccur",
        "tonumber",
        "todouble",
    ),
    *also(
        function(
            "CBOOL(value)",
            (ANY,),
            _to_boolean,
            "The value as TRUE or FALSE; texts as people mean them.",
            'CBOOL("no")',
            False,
        ),
        "tobool",
    ),
    *also(
        function(
            "CDATE(value)",
            (ANY,),
            _to_date,
            "The date or time in the form that sorts.",
            'CDATE("31.12.2026 8:05 PM")',
            "2026-12-31 20:05:00",
            world=True,
        ),
        "todate",
    ),
    *also(
        function(
            "NOTEMPTY(value)",
            (ANY,),
            lambda value: not _is_empty(value),
            "The opposite of ISEMPTY.",
            'NOTEMPTY("a")',
            True,
        ),
        "hasvalue",
    ),
    function(
        "SAMETEXT(one, two)",
        (TEXT, TEXT),
        lambda one, two: one.lower() == two.lower(),
        "Whether they are the same but for capitals.",
        'SAMETEXT("Ann", "ANN")',
        True,
    ),
)
