"""Memory: how much all values of a run hold together, reckoned as cheaply as it can be.

Values are never changed, so many may share their parts; a stored state does not share, and walking a value walks each
part wherever it stands. So values count as if nothing was shared. What is made is added to `held`, at once and however
long it is: of a list or map its own slots, and in full what is put into it. So no value that is alive is larger than
`held`, and nothing can grow by doubling itself unseen. What is let go is not seen: when `held` has grown past the
limit, everything is measured, and counting goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.limits import Limits
from function_calls.basic.measuring import DEEPEST, shallow_size
from function_calls.basic.values import size_of
from services.json_values import JsonValue

_BYTES_COPIED = 13
_BYTES_WALKED = 10
_CHARACTERS_READ = 8
_CHARACTERS_TRIED = 3
_ITEMS_LOOKED_AT = 3
_PAIRS_TRIED = 8
_ITEMS_ORDERED = 5
_BYTES_OF_ITEM = 5
"""Shifts: so many bytes or items take about as long as one instruction does, as powers of two."""
_LONG_TEXT = 1024


class Memory:
    """What a run holds, at the most, and what making it took."""

    __slots__ = ("_above", "_limit", "_most_steps", "_roots", "held", "work")

    def __init__(self, limits: Limits, roots: Callable[[], Iterator[JsonValue]], held: int = 0, above: int = 0) -> None:
        self._limit = limit = limits.memory_bytes
        self._most_steps = limits.steps
        self._roots = roots
        self._above = max(limit, above)
        self.held = held
        """Bytes; never fewer than the largest value has."""
        self.work = 0
        """Steps that making and walking was worth, since somebody set it to 0."""

    @property
    def above(self) -> int:
        """All is measured when `held` has come above this."""
        return self._above

    def made(self, value: JsonValue) -> None:
        """`value` is new, and the run holds it now: a text, or a list or map whose items it had before. Raises RunFault
        (MEMORY)."""
        size = shallow_size(value)
        self.work += size >> _BYTES_COPIED
        self.held += size
        if self.held > self._above:
            self._measure_all()

    def made_inside(self, value: JsonValue) -> None:
        """`value` is new, the run holds it now, and nobody knows what is in it. Raises RunFault (MEMORY)."""
        if type(value) is list or type(value) is dict:
            self._walk(value)
        elif type(value) is str:
            self.made(value)

    def put(self, value: JsonValue, deep: int = 1) -> None:
        """`value` stands in another one now, `deep` levels below its top. Raises RunFault (MEMORY)."""
        if type(value) is list or type(value) is dict:
            self._walk(value)
            deep += _depth(value)
        elif type(value) is str:
            self.held += len(value)
        if deep > DEEPEST:
            raise RunFault(RunCode.MEMORY, f"lists and maps stand more than {DEEPEST} deep within one another")

    def looked_at(self, values: Sequence[JsonValue]) -> None:
        """All that stands in `values` is looked at once, and where there are both a list or map and a long text, maybe
        the text for each of the items. Raises RunFault (STEPS) for what cannot be done within any steps."""
        characters = items = 0
        for value in values:
            kind = type(value)
            if kind is str:
                characters += len(value)
            elif kind is list or kind is dict:
                items += len(value)
        self.work += (characters >> _CHARACTERS_READ) + (items >> _ITEMS_LOOKED_AT)
        if items and characters > _LONG_TEXT:
            self.work += items * characters >> _PAIRS_TRIED
            if self.work > self._most_steps:
                raise RunFault(RunCode.STEPS, "so long a text and so many items are too much for one step")

    def ordered(self, values: Sequence[JsonValue]) -> None:
        """All items of the lists in `values`, however deep, are put into an order: n·log n steps for n of them."""
        count = sum(size_of(one, self._limit) >> _BYTES_OF_ITEM for one in values if type(one) in (list, dict))
        self.work += count * count.bit_length() >> _ITEMS_ORDERED

    def tried(self, text: JsonValue, keys: int = 0) -> None:
        """Each character of the text is tried against a pattern, or so many keys against a name."""
        self.work += (len(text) >> _CHARACTERS_TRIED if type(text) is str else 0) + (keys >> _ITEMS_LOOKED_AT)

    def compared(self, value: JsonValue) -> None:
        """`value` is walked to its last item, if it has any. Raises RunFault (MEMORY) where there is no end to that."""
        if type(value) is list or type(value) is dict:
            self.work += size_of(value, self._limit) >> _BYTES_WALKED

    def check_stop(self, values: int) -> None:
        """The run is about to stop with so many values, and may be stored: it may hold no more than it may. Raises
        RunFault (MEMORY)."""
        if self.held * values > self._limit:
            self._measure_all()

    def _walk(self, value: JsonValue) -> None:
        size = size_of(value, self._limit + 1)
        if size > self._limit:
            raise self._full()
        self.work += size >> _BYTES_WALKED
        self.held += size
        if self.held > self._above:
            self._measure_all()

    def _measure_all(self) -> None:
        total = 0
        for value in self._roots():
            total += size_of(value, self._limit) if type(value) is list or type(value) is dict else shallow_size(value)
            if total > self._limit:
                raise self._full()
        self.work += total >> _BYTES_WALKED
        self.held = total
        # With hardly any room left, measuring must not come at every step.
        self._above = max(self._limit, total + (self._limit >> 3))

    def _full(self) -> RunFault:
        return RunFault(
            RunCode.MEMORY, f"what the script keeps in its variables is larger than {_amount(self._limit)} in all"
        )


def _amount(count: int) -> str:
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} kB"


def _depth(value: JsonValue) -> int:
    """How many lists and maps stand within one another, of what is known to be no more than DEEPEST."""
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            item
            for container in level
            for item in (container if type(container) is list else container.values())
            if type(item) is list or type(item) is dict
        ]
    return depth
