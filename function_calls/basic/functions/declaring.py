"""How a function of the language is declared: what it takes, in which kinds, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.measuring import LARGEST, shallow_size, too_large
from function_calls.basic.moments import HINT, read
from function_calls.basic.values import as_number, kind_of, text_of
from function_calls.basic.world import World
from services.refs import JsonValue

EXAMPLE_NOW = "2026-11-20 22:15:00"
"""The moment at which the examples hold, a Friday evening."""
_NTH = ("first", "second", "third", "fourth", "fifth", "sixth")
_UNFIT = object()
_LARGEST_WHOLE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LanguageFunction:
    """A function that belongs to the language."""

    name: str
    """In lower case."""
    fewest: int
    most: int | None
    """Arguments; None: any number."""
    run: Callable[[World, Sequence[JsonValue]], JsonValue]
    """Raises RunError and nothing else. Changes no argument."""
    usage: str
    """How it is written, `LEFT(text, count)`."""
    about: str
    """What it gives, one sentence for authors."""
    example: str
    """A call, as it would stand in a script."""
    gives: JsonValue
    """What the example gives, at EXAMPLE_NOW in an English chat."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be."""

    words: str
    """For messages: `a number`."""
    read: Callable[[World, JsonValue], Any]
    """What the function receives, or `_UNFIT`."""
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
    """A row set stands for its first row, as with members."""
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
    """The function whose name stands at the start of its usage. It takes at least `fewest` of these kinds (all), with
    `more` any number of the last one. `do` gets them as read, behind the world where it wants that, and raises RunError
    alone."""
    name = usage.split("(", 1)[0]
    least = len(takes) if fewest is None else fewest
    most = None if more else len(takes)

    def run(at: World, arguments: Sequence[JsonValue]) -> JsonValue:
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise RunError(RunCode.WRONG_TYPE, f"{name} is written {usage}")
        values = [
            _read(name, takes, takes[min(place, len(takes) - 1)], at, place, value)
            for place, value in enumerate(arguments)
        ]
        result = do(at, *values) if world else do(*values)
        if shallow_size(result) > LARGEST:
            raise too_large(f"what {name} gives")
        return result

    return LanguageFunction(name.lower(), least, most, run, usage, about, example, gives)


def also(first: LanguageFunction, *names: str) -> tuple[LanguageFunction, ...]:
    """The function, and the same under other names."""
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
    which = f" as its {_NTH[place]} value" if len(words) > 1 and place < len(_NTH) else ""
    code = RunCode.BAD_VALUE if type(value) is str and kind is DATE else RunCode.WRONG_TYPE
    raise RunError(code, f"{name} needs {needs}, not {kind_of(value)}{which}{kind.hint}")
