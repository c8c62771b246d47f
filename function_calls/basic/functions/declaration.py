"""Declaration of a built-in function: parameter kinds, documentation and argument checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from inspect import Parameter, signature
from operator import or_
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import HINT, Moment, read
from function_calls.basic.environment import World
from function_calls.basic.value_sizes import LARGEST, shallow_size, too_large
from function_calls.basic.values import as_number, kind_of, text_of
from services.refs import JsonValue

EXAMPLE_NOW = "2026-11-20 22:15:00"
"""Current time in the examples, a Friday evening."""
_NTH = ("first", "second", "third", "fourth", "fifth", "sixth")
_UNFIT = object()
_LARGEST_WHOLE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LanguageFunction:
    """A built-in function of the language."""

    name: str
    """In lower case."""
    fewest: int
    most: int | None
    """Maximum number of arguments; None is unlimited."""
    run: Callable[[World, Sequence[JsonValue]], JsonValue]
    """Raises only RunError. Does not change its arguments."""
    usage: str
    """Signature for documentation, such as `LEFT(text, count)`."""
    about: str
    """Description of the result for authors, in one sentence."""
    example: str
    """A sample call."""
    gives: JsonValue
    """Result of the example, at EXAMPLE_NOW in an English chat."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Type of a parameter, with its conversion."""

    words: str
    """Name in messages, such as `a number`."""
    read: Callable[[World, JsonValue], Any]
    """Converts an argument; returns `_UNFIT` if it has the wrong type."""
    hint: str = ""


def _text(world: World, value: JsonValue) -> Any:
    return _UNFIT if type(value) in (list, dict) else text_of(value)


def _number(world: World, value: JsonValue) -> Any:
    number = 0 if value is None else as_number(value)
    return _UNFIT if number is None else number


def _whole(world: World, value: JsonValue) -> Any:
    number = _number(world, value)
    return number if number is _UNFIT else max(-_LARGEST_WHOLE, min(int(number), _LARGEST_WHOLE))


def _list(world: World, value: JsonValue) -> Any:
    return [] if value is None else (value if type(value) is list else _UNFIT)


def _map(world: World, value: JsonValue) -> Any:
    """Convert an argument to a map: a row set to its first row, as in member access, NULL and the empty list to an
    empty map; _UNFIT for other values."""
    if type(value) is list and value and type(value[0]) is dict:
        return value[0]
    return {} if value is None or value == [] else (value if type(value) is dict else _UNFIT)


def _group(world: World, value: JsonValue) -> Any:
    return [] if value is None else (value if type(value) in (list, dict, str) else _UNFIT)


def _series(world: World, value: JsonValue) -> Any:
    return [] if value is None else (value if type(value) in (list, str) else _UNFIT)


def _date(world: World, value: JsonValue) -> Any:
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    return _UNFIT if moment is None else moment


ANY = Kind("a value", lambda world, value: value)
TEXT = Kind("a text", _text)
NUMBER = Kind("a number", _number)
WHOLE = Kind("a number", _whole)
LIST = Kind("a list", _list)
MAP = Kind("a map", _map)
GROUP = Kind("a list, a map or a text", _group)
SERIES = Kind("a list or a text", _series)
DATE = Kind("a date", _date, f"; {HINT}")
Group = list[Any] | dict[str, Any] | str
Series = list[Any] | str
Function = TypeVar("Function", bound=Callable[..., JsonValue])
_KINDS: Mapping[object, Kind] = {
    JsonValue: ANY,
    str: TEXT,
    int: WHOLE,
    int | float: NUMBER,
    list[Any]: LIST,
    dict[str, Any]: MAP,
    Group: GROUP,
    Series: SERIES,
    Moment: DATE,
}
"""Kind of a parameter by its annotation."""


def function(
    subject: list[LanguageFunction],
    usage: str,
    example: str,
    gives: JsonValue,
    *,
    also: Sequence[str] = (),
    about: str = "",
    takes: Sequence[Kind] = (),
    fewest: int | None = None,
) -> Callable[[Function], Function]:
    """Add a built-in function named as `usage` begins to `subject`, and its aliases `also`. It receives the converted
    arguments, after the world if its first parameter is a World, and may raise only RunError. Kinds and numbers of
    arguments follow from its annotations, unless it declares the kinds that it `takes` and the `fewest` arguments
    (default: all). `about` defaults to the docstring's first paragraph."""

    def declare(do: Function) -> Function:
        name = usage.split("(", 1)[0]
        hints = get_type_hints(do)
        parameters = list(signature(do).parameters.values())
        has_world = bool(parameters) and hints.get(parameters[0].name) is World
        parameters = parameters[has_world:]
        kinds = takes or [_kind_of(hints[one.name]) for one in parameters]
        least = sum(one.default is one.empty for one in parameters)
        if takes:
            least = len(takes) if fewest is None else fewest
        most = None if not takes and parameters and parameters[-1].kind is Parameter.VAR_POSITIONAL else len(kinds)

        def run(at: World, arguments: Sequence[JsonValue]) -> JsonValue:
            if len(arguments) < least or (most is not None and len(arguments) > most):
                raise RunError(RunCode.WRONG_TYPE, f"wrong number of arguments; write {usage}")
            values = [
                _read(name, kinds, kinds[min(place, len(kinds) - 1)], at, place, value)
                for place, value in enumerate(arguments)
            ]
            result = do(at, *values) if has_world else do(*values)
            if shallow_size(result) > LARGEST:
                raise too_large(f"the result of {name}")
            return result

        text = about or " ".join((do.__doc__ or "").split("\n\n", 1)[0].split())
        first = LanguageFunction(name.lower(), least, most, run, usage, text, example, gives)
        subject.append(first)
        subject.extend(
            replace(
                first,
                name=alias,
                usage=usage.replace(name, alias.upper(), 1),
                about=f"The same as {name}.",
                example=example.replace(name, alias.upper(), 1),
            )
            for alias in also
        )
        return do

    return declare


def _kind_of(annotation: Any) -> Kind:
    """The kind of an annotated parameter; a parameter that may also be None is optional."""
    kinds = [one for one in get_args(annotation) if one is not NoneType]
    return _KINDS[reduce(or_, kinds) if NoneType in get_args(annotation) else annotation]


def _read(name: str, takes: Sequence[Kind], kind: Kind, world: World, place: int, value: JsonValue) -> Any:
    read = kind.read(world, value)
    if read is not _UNFIT:
        return read
    words = [each.words for each in takes]
    needs = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    which = f" as its {_NTH[place]} argument" if len(words) > 1 and place < len(_NTH) else ""
    code = RunCode.BAD_VALUE if type(value) is str and kind is DATE else RunCode.WRONG_TYPE
    raise RunError(code, f"{name} needs {needs}, not {kind_of(value)}{which}{kind.hint}")
