"""Calls in prose, for models without function calling: where they stand in an answer, in whichever form.

A call is read from an answer that is nothing but a call, or from a fenced block. What looks like a call and cannot be
read, or stands in the middle of a sentence, makes the answer one faulty call: it goes back to the model, is not shown,
and nothing beside it is run. So does a result that the model made up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from services.json_values import JsonObject
from services.llm.markup import ReadText, Visible, spoken, visible_text
from services.llm.model import Offer, ToolCall
from services.llm.tool_arguments import MAX_ARGUMENT_CHARACTERS
from services.llm.tool_calls import made_id, read_calls
from services.refs import ErrorCode

_OPENING = re.compile(r"^[ \t]*```(?P<language>[\w-]{0,20})\s", re.MULTILINE)
_CLOSING = "```"
_MOST_CLOSINGS = 16

RESULT = "<result function="
"""How a result begins that a model is told."""
Schemas = Mapping[str, JsonObject]
"""The schemas of the functions on offer, by every name that they go by."""


class UnreadableCalls(Exception):
    """What looks like calls cannot be read."""

    def __init__(self, fault: ErrorCode, name: str = "") -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.name = name
        """The function that is meant, where that can be seen."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """A form in which calls are written."""

    languages: frozenset[str]
    """What a fence that holds calls may be called."""
    signs: re.Pattern[str]
    """Finds what looks like a call."""
    is_whole: Callable[[str], bool]
    """Whether a text, with nothing around it, begins like a block of calls."""
    is_complete: Callable[[str], bool]
    """Whether a block is well formed, so that its fence ends here."""
    calls_in: Callable[[str, Schemas], list[JsonObject]]
    """The calls of a block, each with `name` and `arguments`; none when it is no call. Raises UnreadableCalls."""


class _Block(NamedTuple):
    """A part of a text that may hold calls."""

    start: int
    end: int
    inside: str


def reader_of(form: CallForm, offer: Offer | None) -> ReadText:
    """How the text of an answer to a request with `offer` is read. With nothing on offer no call is, and none is shown
    as if it were said."""
    if offer is None or not offer.functions:

        def read_words(content: str, seed: str = "") -> Visible:
            visible = visible_text(content, seed)
            return Visible("", leaked=True) if _has_calls(visible.text, form) else visible

        return read_words
    schemas = {function.original: function.parameters for function in offer.functions}
    schemas.update({function.name: function.parameters for function in offer.functions})

    def read(content: str, seed: str = "") -> Visible:
        text = spoken(content)
        try:
            return _read(text, seed, form, schemas)
        except UnreadableCalls as bad:
            call = ToolCall("", bad.name, None, text[:MAX_ARGUMENT_CHARACTERS], bad.fault)
            return Visible("", leaked=False, calls=(replace(call, id=made_id(seed, 0, call)),))

    return read


def _read(text: str, seed: str, form: CallForm, schemas: Schemas) -> Visible:
    if len(text) > MAX_ARGUMENT_CHARACTERS and form.signs.search(text):
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)
    entries: list[JsonObject] = []
    prose: list[str] = []
    place = 0
    for block in _blocks(text, form):
        found = form.calls_in(block.inside, schemas)
        if found:
            entries += found
            prose.append(text[place : block.start])
            place = block.end
    prose.append(text[place:])
    words = "".join(prose).strip()
    visible = visible_text(words)
    if form.signs.search(words) or RESULT in words or (visible.leaked and not entries):
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)
    return Visible(visible.text, leaked=False, calls=read_calls({"tool_calls": [*entries]}, seed).calls)


def _has_calls(text: str, form: CallForm) -> bool:
    """Whether a block of `text` is one of calls, readable or not."""
    if not form.signs.search(text):
        return False
    try:
        return any(form.calls_in(block.inside, {}) for block in _blocks(text, form))
    except UnreadableCalls:
        return True


def _blocks(text: str, form: CallForm) -> Iterator[_Block]:
    if form.is_whole(text.strip()):
        yield _Block(0, len(text), text.strip())
        return
    place = 0
    while opening := _OPENING.search(text, place):
        end, place = _end_of_block(text, opening.end(), form)
        if opening["language"].lower() in form.languages:
            yield _Block(opening.start(), place, text[opening.end() : end])


def _end_of_block(text: str, start: int, form: CallForm) -> tuple[int, int]:
    """Where the inside of a fenced block ends, and the block itself: at the first closing fence that leaves it well
    formed, since values may hold fences too; else at the first one, or at the end of the text."""
    first, place = -1, start
    for _ in range(_MOST_CLOSINGS):
        place = text.find(_CLOSING, place)
        if place < 0:
            break
        first = place if first < 0 else first
        if form.is_complete(text[start:place]):
            return place, place + len(_CLOSING)
        place += len(_CLOSING)
    return (first, first + len(_CLOSING)) if first >= 0 else (len(text), len(text))
