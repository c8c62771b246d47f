"""How often the interpreter looks for garbage that counting references does not find.

As it is set by default it looks again for each few turns that begin, and finds them all alive: with two thousand turns
that wait for a model this took half of all time.
"""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000
_YOUNG_BEFORE_MIDDLE = 20
_MIDDLE_BEFORE_OLD = 50


def collect_seldom() -> None:
    """Look after every 50,000 new objects. It holds for the whole process, so whoever owns the process calls it."""
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_BEFORE_MIDDLE, _MIDDLE_BEFORE_OLD)
