"""Conditional functions, type tests and conversions."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import HINT, read
from function_calls.basic.environment import World
from function_calls.basic.functions.declaration import ANY, TEXT, WHOLE, function, with_aliases
from function_calls.basic.functions.numbers import rounded
from function_calls.basic.values import as_number, is_null, kind_of, text_of, truth
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
            raise RunError(RunCode.BAD_VALUE, "CBOOL needs one of the texts true, false, yes, no, on, off, 1 and 0")
        return bool(number)
    return meant


def _to_number(value: JsonValue) -> int | float:
    number = 0 if value is None else as_number(value)
    if number is None:
        code = RunCode.BAD_VALUE if type(value) is str else RunCode.WRONG_TYPE
        hint = ", found a text" if type(value) is str and value else f", found {kind_of(value)}"
        raise RunError(code, f"expected a number such as 12 or 3.5{hint}")
    return number


def _to_date(world: World, value: JsonValue) -> JsonValue:
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    if moment is None:
        raise RunError(RunCode.BAD_VALUE, f"CDATE needs a date, not {kind_of(value)}; {HINT}")
    return str(moment)


LOGIC = (
    function(
        "IIF(condition, yes, [no])",
        (ANY, ANY, ANY),
        _iif,
        "The second argument if the condition is true, otherwise the third. Both are evaluated.",
        'IIF(3 > 2, "yes", "no")',
        "yes",
        fewest=2,
    ),
    function(
        "NVL(value, default)",
        (ANY, ANY),
        _nvl,
        "The value, or the default if it is NULL or empty.",
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
        "CHOOSE(number, value, …)",
        (WHOLE, ANY),
        _choose,
        "The value with this number, counted from 1.",
        'CHOOSE(2, "a", "b")',
        "b",
        more=True,
    ),
    *with_aliases(
        function(
            "ISNULL(value, [default])",
            (ANY, ANY),
            _is_null,
            "Whether the value is NULL or an empty list of rows. With a second argument, the same as NVL.",
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
        "Whether the value is NULL, a text of spaces only, or an empty list or map.",
        'ISEMPTY("")',
        True,
    ),
    *with_aliases(
        function(
            "ISNUMERIC(value)",
            (ANY,),
            _is_number,
            "Whether the value is a number or a text that contains one.",
            'ISNUMERIC("12.5")',
            True,
        ),
        "isnumber",
    ),
    function(
        "ISDATE(value)",
        (ANY,),
        _is_date,
        "Whether the value is a text that contains a date.",
        'ISDATE("2026-02-30")',
        False,
        world=True,
    ),
    *with_aliases(
        function(
            "ISARRAY(value)",
            (ANY,),
            lambda value: type(value) is list,
            "Whether the value is a list.",
            "ISARRAY([1])",
            True,
        ),
        "islist",
    ),
    *with_aliases(
        function(
            "ISOBJECT(value)",
            (ANY,),
            lambda value: type(value) is dict,
            "Whether the value is a map.",
            "ISOBJECT([1])",
            False,
        ),
        "ismap",
    ),
    *with_aliases(
        function(
            "ISSTRING(value)",
            (ANY,),
            lambda value: type(value) is str,
            "Whether the value is a text.",
            'ISSTRING("a")',
            True,
        ),
        "istext",
    ),
    *with_aliases(
        function(
            "ISBOOLEAN(value)",
            (ANY,),
            lambda value: type(value) is bool,
            "Whether the value is TRUE or FALSE.",
            "ISBOOLEAN(0)",
            False,
        ),
        "isbool",
    ),
    *with_aliases(
        function(
            "TYPEOF(value)",
            (ANY,),
            _type,
            "The type of the value: null, boolean, number, string, array or object.",
            "TYPEOF(3)",
            "number",
        ),
        "typename",
        "vartype",
    ),
    *with_aliases(function("STR(value)", (ANY,), text_of, "The value as a text.", "STR(3.0)", "3"), "cstr", "tostring"),
    *with_aliases(
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
    *with_aliases(
        function("CDBL(value)", (ANY,), _to_number, "The value as a number.", 'CDBL("1,234.5")', 1234.5),
        "csng",
        "ccur",
        "tonumber",
        "todouble",
    ),
    *with_aliases(
        function(
            "CBOOL(value)",
            (ANY,),
            _to_boolean,
            "The value as TRUE or FALSE; texts such as yes, no, on and off are recognized.",
            'CBOOL("no")',
            False,
        ),
        "tobool",
    ),
    *with_aliases(
        function(
            "CDATE(value)",
            (ANY,),
            _to_date,
            "The date or time in ISO form, which sorts correctly as a text.",
            'CDATE("31.12.2026 8:05 PM")',
            "2026-12-31 20:05:00",
            world=True,
        ),
        "todate",
    ),
    *with_aliases(
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
        "Whether two texts are equal, ignoring case.",
        'SAMETEXT("Ann", "ANN")',
        True,
    ),
)
