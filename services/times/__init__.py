"""Times as people write them: `Times` reads them, `Reading` is what they mean."""

from services.times.language import TimeLanguage
from services.times.readings import Found, Grain, Kind, Length, Reading
from services.times.repeats import Repeats, Trouble, UnclearTime
from services.times.times import Times

__all__ = [
    "Found",
    "Grain",
    "Kind",
    "Length",
    "Reading",
    "Repeats",
    "TimeLanguage",
    "Times",
    "Trouble",
    "UnclearTime",
]
