"""Instructions of filters that a script puts together: see `filter_texts.py`. The parts of a text are a list; a text in
it is the author's, a list in it holds a value, and behind it how that is said where it is no text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from function_calls.basic.measuring import check_length
from function_calls.basic.running import Running
from function_calls.basic.values import text_of
from services.json_values import JsonValue

Stack = list[JsonValue]


def _parts(run: Running, stack: Stack, kinds: JsonValue) -> None:
    """What the values on the stack are parts of. `a`: its author's; `v`: a value; `p`: a variable, and above it the
    parts that were kept beside it."""
    count = len(kinds) + kinds.count("p")
    given = iter(stack[len(stack) - count :])
    parts: list[JsonValue] = []
    for kind in kinds:
        value = next(given)
        kept = next(given) if kind == "p" else None
        if kind == "a":
            parts.append(text_of(value))
        elif type(kept) is list and _written(kept) == text_of(value):
            parts += kept
        else:
            parts.append([value] if type(value) is str else [value, text_of(value)])
    del stack[len(stack) - count :]
    check_length(len(_written(parts)), "the text")
    stack.append(parts)
    run.memory.made_inside(parts)


def _text_of_parts(run: Running, stack: Stack, _: JsonValue) -> None:
    text = _written(stack.pop())
    stack.append(text)
    run.memory.made(text)


def _filter(run: Running, stack: Stack, _: JsonValue) -> None:
    """What a keyword is given of parts: the text as it is where nothing in them is a value, or nothing the author's."""
    parts = stack.pop()
    values = [part for part in parts if type(part) is list]
    own = "".join(part for part in parts if type(part) is str)
    if values and own.strip():
        stack.append(["filter", *parts])
        return
    stack.append(values[0][0] if len(values) == 1 and not own else _written(parts))


def _filter_of_whole(run: Running, stack: Stack, _: JsonValue) -> None:
    """The same of a variable, below its parts."""
    parts, value = stack.pop(), stack.pop()
    is_made = len(parts) > 1 and any(type(part) is str and part.strip() for part in parts)
    stack.append(["filter", *parts] if is_made and any(type(part) is list for part in parts) else value)


def _id(run: Running, stack: Stack, _: JsonValue) -> None:
    """A text that is the id of a row, whatever it holds."""
    if type(stack[-1]) is str:
        stack[-1] = ["id", stack[-1]]


def _written(parts: JsonValue) -> str:
    return "".join(part if type(part) is str else part[-1] for part in parts)


FILTERS: Mapping[str, Callable[[Running, Stack, JsonValue], None]] = MappingProxyType(
    {
        "parts": _parts,
        "text_of_parts": _text_of_parts,
        "filter": _filter,
        "filter_of_whole": _filter_of_whole,
        "id": _id,
    }
)
"""By what an instruction is called."""
