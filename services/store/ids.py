"""Generator of row ids: increasing, and made without a round trip to the database."""

from __future__ import annotations

from services.clock import Clock

_EPOCH_MS = 1_735_689_600_000  # 2025-01-01 UTC
_SEQUENCE_BITS = 14
_NODE_BITS = 8
_MS_SHIFT = _SEQUENCE_BITS + _NODE_BITS
_LAST = (1 << _SEQUENCE_BITS) - 1


def first_id_at(ms: int) -> int:
    """The lowest id possible at that time, in milliseconds since 1970 UTC; rows with lower ids are older."""
    return max(0, ms - _EPOCH_MS) << _MS_SHIFT


def generated_ms(id: int) -> int:
    """When `id` was generated, in milliseconds since 1970 UTC, by the clock at that time."""
    return (id >> _MS_SHIFT) + _EPOCH_MS


class Ids:
    """Generates positive 63-bit ids: 41 bits of milliseconds, 8 of node, 14 of sequence. They are unique and increasing
    within a node, even if the clock goes back."""

    def __init__(self, clock: Clock, node: int = 0) -> None:
        self._clock = clock
        self._node = node << _SEQUENCE_BITS
        self._ms = 0
        self._sequence = 0

    def advance_past(self, newest: int) -> None:
        """Generate only ids above `newest` from now on; a lower `newest` has no effect. It may come from an earlier
        process whose clock was ahead."""
        if newest >= (self._ms << _MS_SHIFT) | self._node | self._sequence:
            # In the same millisecond, the ids of a node with a higher number are above all ids of this one.
            self._ms, self._sequence = (newest >> _MS_SHIFT) + 1, 0

    def next(self) -> int:
        """The next id. More than 16,384 ids in a millisecond take numbers of the next one."""
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
