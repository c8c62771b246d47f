"""Filters of turns, rounds and calls.

`turn`, `round` and `call` are for authors; `builtin` has those that the settings name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from function_calls.filters.call import CallFilter
from function_calls.filters.round import RoundFilter
from function_calls.filters.turn import TurnFilter


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a daemon: each list in its order, the outermost first."""

    turn: Sequence[TurnFilter] = ()
    round: Sequence[RoundFilter] = ()
    call: Sequence[CallFilter] = ()
    named: Mapping[str, CallFilter] = field(default_factory=dict)
    """Around the runs of the functions that name them, inside those for all."""
