"""Time zones of members."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from config.terms import is_timezone
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult
from services.chats.members import MemberZones
from services.refs import ErrorCode, RequestProblem
from services.times.places import Place, Places, zone_label
from services.times.time_formatting import clock

_MOST_CHOICES = 8
_Place = Annotated[
    str | None, Field(description="City or IANA zone to set; `off` for the chat's; absent: show it", max_length=100)
]


@tool_function(
    examples=(
        "set my time zone to {place}",
        "change my timezone to {place}",
        "please save my time zone: {place}",
        "use {place} as my time zone from now on",
        "switch my time zone to {place}",
        "把我的时区设为{place}",
        "把我的时区改成{place}",
        "我的时区应该是{place}",
    ),
    commands=("timezone", "时区"),
    tags=("time", "remind"),
    touches="stays_here",
    effect="idempotent",
)
async def timezone(
    context: MessageContext, place: _Place = None, *, zones: MemberZones, places: Places, call: Call
) -> FunctionResult:
    """Show or set the asker's time zone, which their reminders use"""
    member = context.sender.ref
    query = " ".join((place or "").split())
    if not query:
        own = await zones.of(member)
        return _shown("timezones.yours" if own else "timezones.chats", own or str(call.profile.timezone), places, call)
    if query.casefold() in call.profile.texts.words("timezones.off_words"):
        await zones.clear(member)
        return _shown("timezones.off", str(call.profile.timezone), places, call, is_unchanged=True)
    found = _found(query, places, call)
    if isinstance(found, FunctionResult):
        return found
    undo = call.undo(f"/timezone {await zones.of(member) or 'off'}")
    await zones.set(member, found)
    return _shown("timezones.set", found, places, call, is_unchanged=True, choices=undo)


def _found(query: str, places: Places, call: Call) -> str | FunctionResult:
    """IANA name of the zone, or the question which of several to use. Raises RequestProblem for an unknown place, and
    for one without an IANA zone."""
    zones = {str(one.zone): one for one in places.find(query)}
    if len(zones) > 1:
        return _which(query, zones, call)
    ((name, place),) = zones.items()
    if not isinstance(place.zone, ZoneInfo) or not is_timezone(name):
        raise RequestProblem("timezones.no_zone", ErrorCode.BAD_ARGUMENTS, fields=["place"], place=query)
    return name


def _which(query: str, zones: dict[str, Place], call: Call) -> FunctionResult:
    """Ask which of several zones to use."""
    names = list(zones)[:_MOST_CHOICES]
    text = call.say("timezones.which", place=query, zones=", ".join(names))
    return FunctionResult.say(text, data=names, choices=tuple(Choice(name, f"/timezone {name}") for name in names))


def _shown(
    key: str, zone: str, places: Places, call: Call, *, is_unchanged: bool = False, choices: tuple[Choice, ...] = ()
) -> FunctionResult:
    now = places.now(ZoneInfo(zone))
    text = call.say(key, zone=zone, clock=clock(now.replace(second=0)), offset=zone_label(now))
    if is_unchanged:
        text = f"{text} {call.say('timezones.kept')}"
    data = {"zone": zone, "time": now.isoformat(timespec="minutes")}
    return FunctionResult.say(text, data=data, choices=choices)
