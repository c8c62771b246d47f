"""Times as people write them: `Times` reads them, `Reading` is what they mean."""

from services.times.reader import Times
from services.times.words.readings import (
    Found,
    Grain,
    Kind,
    Length,
    Reading,
    Repeats,
    TimeLanguage,
    Trouble,
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
    "Times",
    "Trouble",
    "UnclearTime",
]
