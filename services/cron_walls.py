"""The wall times that a cron expression names, without any zone: what clocks on walls do is no concern of this file."""

from __future__ import annotations

from datetime import datetime

from cronsim import CronSim, CronSimError

_FIELDS = 5
_LONGEST = 200
_MONTH = 3
_MINUTES, _HOURS = 60, 24


class BadCron(ValueError):
    """This is no cron expression of five fields; `no_such_date`: it is, but it names days that no month has."""

    def __init__(self, cron: str, *, no_such_date: bool = False) -> None:
        super().__init__(cron)
        self.no_such_date = no_such_date


class CronWalls:
    """The wall times of one expression, in order. Where the days of the month and the week are both restricted, a day
    has to fit one of them, as everywhere; `L` is the last day, `5L` the last Friday, `1#2` the second Monday."""

    def __init__(self, cron: str) -> None:
        """Raises BadCron."""
        self._sim = _read(cron)
        minutes, hours = cron.split()[:2]
        self.goes_round = (
            minutes.startswith("*")
            or hours.startswith("*")
            or len(self._sim.hours) == _HOURS
            or len(self._sim.minutes) == _MINUTES
        )
        """It counts through the day rather than naming times of it: an hour that comes twice, it fires in twice."""

    def after(self, wall: datetime) -> datetime | None:
        """The first one after `wall`, which is naive; None when there is none for 50 years."""
        self._sim.dt = wall.replace(microsecond=0, fold=0)
        try:
            return next(self._sim, None)
        except (OverflowError, ValueError):
            return None  # the calendar ends with the year 9999


def _read(cron: str) -> CronSim:
    if len(cron) > _LONGEST or len(cron.split()) != _FIELDS:
        raise BadCron(cron)
    start = datetime(2000, 1, 1)  # noqa: DTZ001 - wall times have no zone
    try:
        return CronSim(cron, start)
    except (CronSimError, ValueError) as error:
        fields = cron.split()
        fields[_MONTH] = "*"
        raise BadCron(cron, no_such_date=fields != cron.split() and _is_readable(" ".join(fields), start)) from error


def _is_readable(cron: str, start: datetime) -> bool:
    try:
        CronSim(cron, start)
    except (CronSimError, ValueError):
        return False
    return True
