"""Row ids of our own: no read-back from the database, and rising in the order they were taken."""

from __future__ import annotations

from services.clock import Clock

_EPOCH_MS = 1_735_689_600_000  # 2025-01-01 UTC
_SEQUENCE_BITS = 14
_NODE_BITS = 8
_MS_SHIFT = _SEQUENCE_BITS + _NODE_BITS
_LAST = (1 << _SEQUENCE_BITS) - 1


def first_id_at(ms: int) -> int:
    """The lowest id that may be taken at that instant, in milliseconds since 1970 UTC: rows of older ids are older."""
    return max(0, ms - _EPOCH_MS) << _MS_SHIFT


def taken_ms(id: int) -> int:
    """When `id` was taken, in milliseconds since 1970 UTC, by the clock of then."""
    return (id >> _MS_SHIFT) + _EPOCH_MS


class Ids:
    """Positive 63-bit ids: 41 bits of milliseconds, 8 of node, 14 of sequence. Unique and rising within a node,
    even when the clock goes back."""

    def __init__(self, clock: Clock, node: int = 0) -> None:
        self._clock = clock
        self._node = node << _SEQUENCE_BITS
        self._ms = 0
        self._sequence = 0

    def go_on_after(self, newest: int) -> None:
        """Give only ids above `newest` from now on: those of an earlier process, whose clock may have been ahead."""
        ms, sequence = newest >> _MS_SHIFT, newest & _LAST
        if (ms, sequence) > (self._ms, self._sequence):
            self._ms, self._sequence = ms, sequence

    def next(self) -> int:
        """The next id. More than 16,384 in a millisecond borrow from the next one."""
        ms = self._clock.now_ms() - _EPOCH_MS
        if ms > self._ms:
            self._ms = ms
            self._sequence = 0
        else:
            self._sequence += 1
            if self._sequence > _LAST:
                self._ms += 1
                self._sequence = 0
        return (self._ms << _MS_SHIFT) | self._node | self._sequence
