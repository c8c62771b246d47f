"""Times in words.

`Times` parses sentences in the installed languages; recurrence and time zones. Used by handlers, timers and BASIC.
"""

from services.times.reader import Times
from services.times.words.readings import (
    Found,
    Grain,
    Kind,
    Length,
    Reading,
    Repeats,
    TimeLanguage,
    TimeProblem,
    UnclearTime,
)

__all__ = [
    "Found",
    "Grain",
    "Kind",
    "Length",
    "Reading",
    "Repeats",
    "TimeLanguage",
    "TimeProblem",
    "Times",
    "UnclearTime",
]
