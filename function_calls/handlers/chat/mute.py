"""Mute the bot in a chat for a time."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import Mutes
from function_calls.spec import FunctionResult
from services.clock import Clock
from services.refs import ErrorCode
from services.times import Times
from services.times.reader import end_of
from services.times.time_formatting import distance, moment

_DEFAULT = timedelta(hours=1)
_LONGEST = timedelta(days=7)
_changes = partial(
    tool_function, tags="chat", touches="stays_here", scope="group", roles="moderator", effect="idempotent"
)
_Until = Annotated[
    str | None, Field(max_length=100, description="How long, or until when: an hour, until 18:00; absent: one hour")
]


@_changes(
    description="Stop the bot from talking in this chat for a time; commands and reminders still work",
    examples=(
        "be quiet for {until}",
        "mute yourself for {until}",
        "stop talking for {until}",
        "please be silent {until}",
        "shut up for {until}",
        "安静一小时",
        "安静一个小时",
        "安静{until}",
        "请安静{until}",
        "闭嘴{until}",
    ),
    commands=("mute", "静音"),
    line="until",
)
async def mute(
    context: MessageContext, until: _Until = None, *, mutes: Mutes, times: Times, clock: Clock, call: Call
) -> FunctionResult:
    """Mute the bot, by default for one hour, at most for a week."""
    zone, now, texts = call.profile.timezone, clock.now(), call.profile.texts
    end = end_of(until, now.astimezone(zone), times, _DEFAULT)
    if end is None or not now < end <= now + _LONGEST:
        text = call.say("quiet.unclear", duration=until or "")
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["until"])
    await mutes.mute(context.chat, end, context.sender.ref)
    text = call.say("quiet.muted", moment=moment(end, zone, now, texts), distance=distance(end, now, texts))
    return FunctionResult.say(text, data={"until": end.isoformat()})


@_changes(
    examples=(
        "you may speak again",
        "you can talk again",
        "unmute yourself",
        "stop being quiet",
        "speak again please",
        "你可以说话了",
        "取消静音",
    ),
    commands=("unmute", "取消静音"),
)
async def unmute(context: MessageContext, *, mutes: Mutes, call: Call) -> FunctionResult:
    """Let the bot talk in this chat again, after it was muted"""
    was_muted = await mutes.unmute(context.chat, context.sender.ref)
    return FunctionResult.say(call.say("quiet.unmuted" if was_muted else "quiet.was_not_muted"))
