"""What the parts of a Chinese phrase say, before they are put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

from services.times.chinese_clocks import Clock, DayPart
from services.times.chinese_days import Days
from services.times.chinese_lengths import Amount
from services.times.repeats import Repeats, Trouble


@dataclass(slots=True)
class Phrase:
    """What a phrase says, as far as it has been read."""

    days: Days | None = None
    part: DayPart | None = None
    clocks: list[Clock] = field(default_factory=list)
    zone: tzinfo | None = None
    ahead: Amount | None = None
    """So long from now, or before now where `is_ago`."""
    is_ago: bool = False
    lasts: Amount | None = None
    """So long, not said from when."""
    window: tuple[Amount, bool, bool] | None = None
    """The next so many units, or the last ones where the first is True; whole ones of the calendar where the second
    is."""
    is_now: bool = False
    repeats: Repeats | None = None
    first: Days | None = None
    until: Days | None = None
    until_clock: Clock | None = None
    count: int | None = None
    run: str = ""
    """The unit that `count` was counted in."""
    trouble: Trouble | None = None
    is_onward: bool = False
    end: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it says no time."""
        return not (
            self.days
            or self.part
            or self.clocks
            or self.ahead
            or self.lasts
            or self.window
            or self.is_now
            or self.repeats
            or self.trouble
        ) and not (self.count and self.run)
