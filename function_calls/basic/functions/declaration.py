"""Declaration of a built-in function: parameter kinds, documentation and argument checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import HINT, read
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


def function(
    usage: str,
    takes: Sequence[Kind],
    do: Callable[..., JsonValue],
    about: str,
    example: str,
    gives: JsonValue,
    *,
    fewest: int | None = None,
    more: bool = False,
    world: bool = False,
) -> LanguageFunction:
    """Declare a built-in function named as `usage` begins. It takes at least `fewest` arguments of the kinds `takes`
    (default: all); with `more` the last kind may repeat. `do` receives the converted arguments, after the world if
    `world` is set, and may raise only RunError."""
    name = usage.split("(", 1)[0]
    least = len(takes) if fewest is None else fewest
    most = None if more else len(takes)

    def run(at: World, arguments: Sequence[JsonValue]) -> JsonValue:
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise RunError(RunCode.WRONG_TYPE, f"wrong number of arguments; write {usage}")
        values = [
            _read(name, takes, takes[min(place, len(takes) - 1)], at, place, value)
            for place, value in enumerate(arguments)
        ]
        result = do(at, *values) if world else do(*values)
        if shallow_size(result) > LARGEST:
            raise too_large(f"the result of {name}")
        return result

    return LanguageFunction(name.lower(), least, most, run, usage, about, example, gives)


def with_aliases(first: LanguageFunction, *names: str) -> tuple[LanguageFunction, ...]:
    """Return the function, and a copy of it for each alias; the copies are documented as `The same as …`."""
    shown = first.name.upper()
    return first, *(
        LanguageFunction(
            name.lower(),
            first.fewest,
            first.most,
            first.run,
            first.usage.replace(shown, name.upper(), 1),
            f"The same as {shown}.",
            first.example.replace(shown, name.upper(), 1),
            first.gives,
        )
        for name in names
    )


def _read(name: str, takes: Sequence[Kind], kind: Kind, world: World, place: int, value: JsonValue) -> Any:
    read = kind.read(world, value)
    if read is not _UNFIT:
        return read
    words = [each.words for each in takes]
    needs = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    which = f" as its {_NTH[place]} argument" if len(words) > 1 and place < len(_NTH) else ""
    code = RunCode.BAD_VALUE if type(value) is str and kind is DATE else RunCode.WRONG_TYPE
    raise RunError(code, f"{name} needs {needs}, not {kind_of(value)}{which}{kind.hint}")
