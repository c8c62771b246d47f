"""Filters of turns, rounds and calls.

`turn`, `round` and `call` define the protocols for authors; `builtin` has the filters that settings can name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from function_calls.filters.call import CallFilter
from function_calls.filters.round import RoundFilter
from function_calls.filters.turn import TurnFilter


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a daemon, each list in order from the outermost to the innermost."""

    turn: Sequence[TurnFilter] = ()
    round: Sequence[RoundFilter] = ()
    call: Sequence[CallFilter] = ()
    named: Mapping[str, CallFilter] = field(default_factory=dict)
    """Filters that functions name; they run inside the `call` filters, around the runs of those functions only."""
