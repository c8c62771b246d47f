"""Conditional functions, type tests and conversions."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import read
from function_calls.basic.environment import World
from function_calls.basic.functions.dates import moment_of
from function_calls.basic.functions.declaration import ANY, LanguageFunction, function
from function_calls.basic.functions.numbers import rounded
from function_calls.basic.values import as_number, is_null, kind_of, text_of, truth
from services.refs import JsonValue

_YES = frozenset({"true", "yes", "y", "on", "1", "ok", "sim", "si", "sí", "oui", "ja", "是", "是的", "对", "好", "真"})
_NO = frozenset({"false", "no", "n", "off", "0", "", "não", "nao", "non", "nein", "否", "不", "不是", "不对", "假"})


LOGIC: list[LanguageFunction] = []


@function(LOGIC, "IIF(condition, yes, [no])", 'IIF(3 > 2, "yes", "no")', "yes")
def _iif(condition: JsonValue, one: JsonValue, other: JsonValue = None) -> JsonValue:
    """The second argument if the condition is true, otherwise the third. Both are evaluated."""
    return one if truth(condition) else other


@function(LOGIC, "NVL(value, default)", "NVL(NULL, 5)", 5)
def _nvl(value: JsonValue, instead: JsonValue) -> JsonValue:
    """The value, or the default if it is NULL or empty."""
    return instead if is_null(value) or value == "" else value


@function(LOGIC, "COALESCE(value, …)", 'COALESCE(NULL, "", 7)', 7)
def _coalesce(*values: JsonValue) -> JsonValue:
    """The first value that is not NULL or empty."""
    return next((value for value in values if not is_null(value) and value != ""), None)


@function(LOGIC, "CHOOSE(number, value, …)", 'CHOOSE(2, "a", "b")', "b")
def _choose(place: int, *values: JsonValue) -> JsonValue:
    """The value with this number, counted from 1."""
    return values[place - 1] if 1 <= place <= len(values) else None


@function(LOGIC, "ISNULL(value, [default])", "ISNULL(NULL)", True, also=("isnothing",), takes=(ANY, ANY), fewest=1)
def _is_null(value: JsonValue, *instead: JsonValue) -> JsonValue:
    """Whether the value is NULL or an empty list of rows. With a second argument, the same as NVL."""
    return _nvl(value, instead[0]) if instead else is_null(value)


@function(LOGIC, "ISEMPTY(value)", 'ISEMPTY("")', True)
def _is_empty(value: JsonValue) -> JsonValue:
    """Whether the value is NULL, a text of spaces only, or an empty list or map."""
    return (
        value is None
        or (type(value) in (list, dict) and not value)
        or (type(value) is str and (not value or value.isspace()))
    )


@function(LOGIC, "ISNUMERIC(value)", 'ISNUMERIC("12.5")', True, also=("isnumber",))
def _is_number(value: JsonValue) -> JsonValue:
    """Whether the value is a number or a text that contains one."""
    return type(value) is not bool and as_number(value) is not None


@function(LOGIC, "ISDATE(value)", 'ISDATE("2026-02-30")', False)
def _is_date(world: World, value: JsonValue) -> JsonValue:
    """Whether the value is a text that contains a date."""
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    return moment is not None and moment.form != "time"


def _is_type(name: str, kind: type, what: str, example: str, gives: bool, also: str) -> None:
    """Declare a function that tests for values of one Python type."""
    usage, about = f"{name}(value)", f"Whether the value is {what}."
    function(LOGIC, usage, example, gives, also=(also,), about=about, takes=(ANY,))(lambda value: type(value) is kind)


_is_type("ISARRAY", list, "a list", "ISARRAY([1])", True, "islist")
_is_type("ISOBJECT", dict, "a map", "ISOBJECT([1])", False, "ismap")
_is_type("ISSTRING", str, "a text", 'ISSTRING("a")', True, "istext")
_is_type("ISBOOLEAN", bool, "TRUE or FALSE", "ISBOOLEAN(0)", False, "isbool")


@function(LOGIC, "TYPEOF(value)", "TYPEOF(3)", "number", also=("typename", "vartype"))
def _type(value: JsonValue) -> JsonValue:
    """The type of the value: null, boolean, number, string, array or object."""
    names = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


function(LOGIC, "STR(value)", "STR(3.0)", "3", also=("cstr", "tostring"), about="The value as a text.")(text_of)


@function(LOGIC, "CINT(value)", 'CINT("2.5")', 3, also=("clng", "toint"))
def _cint(value: JsonValue) -> JsonValue:
    """The value as a whole number, rounded."""
    return rounded(_to_number(value), 0)


@function(LOGIC, "CDBL(value)", 'CDBL("1,234.5")', 1234.5, also=("csng", "ccur", "tonumber", "todouble"))
def _to_number(value: JsonValue) -> int | float:
    """The value as a number."""
    number = 0 if value is None else as_number(value)
    if number is None:
        code = RunCode.BAD_VALUE if type(value) is str else RunCode.WRONG_TYPE
        hint = ", found a text" if type(value) is str and value else f", found {kind_of(value)}"
        raise RunError(code, f"expected a number such as 12 or 3.5{hint}")
    return number


@function(LOGIC, "CBOOL(value)", 'CBOOL("no")', False, also=("tobool",))
def _to_boolean(value: JsonValue) -> JsonValue:
    """The value as TRUE or FALSE; texts such as yes, no, on and off are recognized."""
    if type(value) is not str:
        return truth(value)
    word = value.strip().lower()
    if word in _YES or word in _NO:
        return word in _YES
    number = as_number(value)
    if number is None:
        raise RunError(RunCode.BAD_VALUE, "CBOOL needs one of the texts true, false, yes, no, on, off, 1 and 0")
    return bool(number)


@function(LOGIC, "CDATE(value)", 'CDATE("31.12.2026 8:05 PM")', "2026-12-31 20:05:00", also=("todate",))
def _to_date(world: World, value: JsonValue) -> JsonValue:
    """The date or time in ISO form, which sorts correctly as a text."""
    return str(moment_of(world, value, "CDATE"))


@function(LOGIC, "NOTEMPTY(value)", 'NOTEMPTY("a")', True, also=("hasvalue",))
def _notempty(value: JsonValue) -> JsonValue:
    """The opposite of ISEMPTY."""
    return not _is_empty(value)


@function(LOGIC, "SAMETEXT(one, two)", 'SAMETEXT("Ann", "ANN")', True)
def _sametext(one: str, two: str) -> JsonValue:
    """Whether two texts are equal, ignoring case."""
    return one.lower() == two.lower()
