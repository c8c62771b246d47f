"""Current time and date, here and in other places."""

from __future__ import annotations

from datetime import date, datetime, tzinfo
from typing import Annotated

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.refs import ErrorCode, RequestProblem
from services.times.places import Place, Places, UnknownPlace, zone_label

_PLACE = "City, country, IANA zone or abbreviation; absent: here"

_Place = Annotated[str | None, Field(description=_PLACE, max_length=100)]


class ConvertArguments(BaseModel, frozen=True, extra="forbid"):
    time: str = Field(description="Time of day, e.g. '15:30' or '3 pm'; a date may precede it", max_length=40)
    from_place: str | None = Field(default=None, description=f"Where it is that time. {_PLACE}", max_length=100)
    to_place: str | None = Field(default=None, description=f"Where to convert to. {_PLACE}", max_length=100)


@tool_function(
    description="Current time in a place, and its time zone",
    examples=(
        "what time is it",
        "what time is it in {place}",
        "what's the time in {place} right now",
        "tell me the current time in {place}",
        "what is the local time in {place}",
        "what time zone is {place} in",
        "which timezone does {place} use",
        "do you know what time it is over in {place}",
        "现在几点",
        "{place}现在几点",
        "{place}现在是什么时间",
        "{place}在哪个时区",
    ),
    commands=("time", "时间", "几点"),
    tags="time",
    effect="read",
)
async def time_in(context: MessageContext, place: _Place = None, *, places: Places, call: Call) -> FunctionResult:
    """Return the time in a place, in all its zones if there are several."""
    found = _find(place, places, call)
    times = [(location, places.now(location.zone)) for location in found]
    data = [
        {"place": location.name, "zone": str(location.zone), "time": moment.isoformat(timespec="minutes")}
        for location, moment in times
    ]
    if len(times) == 1:
        return FunctionResult.say(_now_line("time.now_in", *times[0], call), data=data[0])
    lines = [call.say("time.several_zones", place=place)]
    lines += [_now_line("time.now_in_one", location, moment, call) for location, moment in times]
    return FunctionResult.say("\n".join(lines), data={"several_zones": data})


@tool_function(
    examples=(
        "what day is it today",
        "what's today's date",
        "tell me the date please",
        "which day of the week is it",
        "what is the date in {place}",
        "what day is it in {place} now",
        "今天几号",
        "今天星期几",
        "{place}今天是几号",
        "今天的日期是什么",
    ),
    commands=("date", "日期"),
    tags="time",
    effect="read",
)
async def date_in(context: MessageContext, place: _Place = None, *, places: Places, call: Call) -> FunctionResult:
    """Today's date and day of the week, here or in a place"""
    days: dict[date, Place] = {}
    for location in _find(place, places, call):
        days.setdefault(places.now(location.zone).date(), location)
    lines = [call.say("time.date_in", place=location.name, date=_date(day, call)) for day, location in days.items()]
    return FunctionResult.say("\n".join(lines), data=[day.isoformat() for day in days])


@tool_function(
    examples=(
        "what is {time} {from_place} time in {to_place}",
        "when it is {time} in {from_place} what time is it in {to_place}",
        "convert {time} from {from_place} to {to_place} time",
        "if it's {time} in {from_place}, what time is it in {to_place}",
        "what time will it be in {to_place} when it's {time} here",
        "{time} {from_place} time in {to_place} time",
        "{from_place}{time}是{to_place}几点",
        "{from_place}时间{time}换算成{to_place}时间",
        "当{from_place}是{time}的时候，{to_place}几点",
    ),
    commands=("convert_time", "时间换算"),
    tags="time",
    effect="read",
    ask={"time": "@time.ask_time"},
)
async def time_convert(
    context: MessageContext, args: ConvertArguments, *, places: Places, call: Call
) -> FunctionResult:
    """Convert a time of day from one place's time zone to another's"""
    source = _one(args.from_place, "from_place", places, call)
    target = _one(args.to_place, "to_place", places, call)
    converted = places.convert(args.time, source.zone, target.zone)
    key = {-1: "time.converted_day_before", 1: "time.converted_next_day"}.get(converted.days_later, "time.converted")
    text = call.say(
        key,
        time=f"{converted.source:%H:%M}",
        from_place=source.name,
        result=f"{converted.target:%H:%M}",
        to_place=target.name,
    )
    if converted.skipped:
        text += " " + call.say("time.skipped", time=args.time, place=source.name)
    elif converted.repeated:
        text += " " + call.say("time.repeated", place=source.name)
    moments = {"from": converted.source.isoformat(), "to": converted.target.isoformat()}
    return FunctionResult.say(text, data=moments)


def _find(name: str | None, places: Places, call: Call) -> tuple[Place, ...]:
    """Places with that name; by default the chat's own. Raises UnknownPlace."""
    if not name or not name.strip() or name.strip().casefold() in call.profile.texts.words("time.here_words"):
        return (_here(call.profile.timezone),)
    return places.find(name)


def _one(name: str | None, field: str, places: Places, call: Call) -> Place:
    """The place with that name. Raises RequestProblem, about the argument `field`, if there are several or none."""
    try:
        found = _find(name, places, call)
    except UnknownPlace as problem:
        problem.fields = [field]
        raise
    if len(found) > 1:
        names = ", ".join(place.name for place in found)
        raise RequestProblem("time.which_zone", ErrorCode.BAD_ARGUMENTS, fields=[field], place=name, names=names)
    return found[0]


def _here(zone: tzinfo) -> Place:
    return Place(str(zone).rsplit("/", 1)[-1].replace("_", " "), zone)


def _now_line(key: str, place: Place, moment: datetime, call: Call) -> str:
    return call.say(key, place=place.name, clock=f"{moment:%H:%M}", date=_date(moment, call), zone=zone_label(moment))


def _date(day: date, call: Call) -> str:
    words = call.profile.texts.words
    return call.say(
        "time.date",
        weekday=words("time.weekdays")[day.weekday()],
        day=day.day,
        month=words("time.months")[day.month - 1],
        year=day.year,
    )
