"""Moderation of a group on its network: remove, ban and silence members, pin messages, invite."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import Measure, Members, Moderation, ModerationOutcome, ModerationRequest
from function_calls.spec import FunctionResult, ToolError
from services.chats.members import KnownMember, KnownMembers, SeveralMembers, UnknownMember, called
from services.clock import Clock
from services.refs import ErrorCode, MemberRef
from services.times import Times
from services.times.reader import end_of
from services.times.time_formatting import moment

_SILENCE = timedelta(hours=1)
_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(days=28)
_Member = Annotated[str, Field(description="Name of the member", min_length=1, max_length=200)]
_Until = Annotated[
    str | None, Field(max_length=100, description="How long, or until when: 30 minutes, until 18:00; absent: one hour")
]
_Invited = Annotated[
    str | None, Field(description="Id of the member in the network; absent: give a link", max_length=300)
]
_CODES = {
    ModerationOutcome.NOT_PERMITTED: ErrorCode.REFUSED,
    ModerationOutcome.UNSUPPORTED: ErrorCode.REFUSED,
    ModerationOutcome.NOT_REACHED: ErrorCode.TRANSIENT,
    ModerationOutcome.UNKNOWN: ErrorCode.UNKNOWN_OUTCOME,
}

_measure = partial(
    tool_function,
    tags=("chat", "moderation"),
    touches=("reaches_out", "affects_members"),
    scope="group",
    offered_to=["command", "model"],
    roles="admin",
    effect="once",
    timeout_seconds=40,
)


@_measure(
    examples=(
        "kick {member}",
        "kick {member} out of the group",
        "remove {member} from this group",
        "throw {member} out",
        "please kick {member} out",
        "把{member}踢出群",
        "踢掉{member}",
    ),
    commands=("kick", "踢出"),
    line="member",
    ask={"member": "@moderation.ask_member"},
)
async def kick(
    context: MessageContext,
    member: _Member,
    *,
    moderation: Moderation,
    members: Members,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Remove a member from this group; they may come back"""
    target = await _target(context, member, members, known, call)
    return await _applied(context, Measure.KICK, target, moderation, call)


@_measure(
    examples=(
        "ban {member}",
        "ban {member} from this group",
        "ban {member} for good",
        "block {member} from the group",
        "please ban {member} here",
        "封禁{member}",
        "把{member}拉黑出群",
    ),
    commands=("ban", "封禁"),
    line="member",
    ask={"member": "@moderation.ask_member"},
)
async def ban(
    context: MessageContext,
    member: _Member,
    *,
    moderation: Moderation,
    members: Members,
    known: KnownMembers,
    call: Call,
) -> FunctionResult:
    """Ban a member from this group, so that they cannot come back"""
    target = await _target(context, member, members, known, call)
    return await _applied(context, Measure.BAN, target, moderation, call)


@_measure(
    description="Forbid a member to write in this group for a time",
    examples=(
        "silence {member} for {until}",
        "silence {member}",
        "mute the member {member} for {until}",
        "don't let {member} write for {until}",
        "time out {member} for {until}",
        "禁言{member}{until}",
        "把{member}禁言{until}",
    ),
    commands=("silence", "禁言"),
    ask={"member": "@moderation.ask_member"},
)
async def silence(
    context: MessageContext,
    member: _Member,
    until: _Until = None,
    *,
    moderation: Moderation,
    members: Members,
    known: KnownMembers,
    times: Times,
    clock: Clock,
    call: Call,
) -> FunctionResult:
    """Silence a member, by default for one hour, at most for 28 days."""
    zone, now, texts = call.profile.timezone, clock.now(), call.profile.texts
    name, until = (member, until) if until else _split(member, now.astimezone(zone), times)
    end = end_of(until, now.astimezone(zone), times, _SILENCE)
    if end is None or not now + _SHORTEST <= end <= now + _LONGEST:
        text = call.say("moderation.unclear", duration=until)
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["until"])
    target, seconds = await _target(context, name, members, known, call), round((end - now).total_seconds())
    until = moment(end, zone, now, texts)
    return await _applied(context, Measure.SILENCE, target, moderation, call, until=until, seconds=seconds)


@_measure(
    examples=(
        "pin this message",
        "pin this",
        "please pin that message",
        "pin that one here",
        "put this message at the top",
        "置顶这条消息",
        "把这条置顶",
    ),
    commands=("pin", "置顶"),
)
async def pin(context: MessageContext, *, moderation: Moderation, call: Call) -> FunctionResult:
    """Pin the message that the asker replies to"""
    if context.reply_to is None:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("moderation.no_message"))
    return await _applied(context, Measure.PIN, None, moderation, call, message_id=context.reply_to.native_id)


@_measure(
    examples=(
        "give me an invitation to this group",
        "make a link to join this group",
        "create an invitation link",
        "invite {member} to this group",
        "I need a link for a new member",
        "生成入群邀请链接",
        "邀请{member}进群",
    ),
    commands=("invite", "邀请"),
    line="member",
)
async def invite(
    context: MessageContext, member: _Invited = None, *, moderation: Moderation, call: Call
) -> FunctionResult:
    """Invite somebody to this group, or give a link by which one person can join it"""
    native, chat = (member or "").strip(), context.chat
    invited = KnownMember(MemberRef(chat.platform, chat.account, native), native) if native else None
    return await _applied(context, Measure.INVITE if invited else Measure.LINK, invited, moderation, call)


def _split(line: str, now: datetime, times: Times) -> tuple[str, str]:
    """Name and time of a command line such as `Ann 30 minutes`; the time is empty if there is none."""
    words = line.split()
    for count in range(1, len(words)):
        if end_of(" ".join(words[count:]), now, times, _SILENCE) is not None:
            return " ".join(words[:count]), " ".join(words[count:])
    return line, ""


async def _target(context: MessageContext, name: str, members: Members, known: KnownMembers, call: Call) -> KnownMember:
    """The member of that name, if the asker may act on them: another one, with a lower role on the network and in the
    settings, both as of now. Raises ToolError."""
    everyone = await known.of(context.chat)
    named = context.mentions if name.startswith("@") and len(context.mentions) == 1 else ()
    try:
        found = next((one for one in everyone if one.ref in named or name in (one.ref.key, one.ref.native)), None)
        found = found or called(name, everyone, context.mentions, as_mention=True)
    except SeveralMembers as several:
        text = call.say("moderation.several", name=several.name, names=", ".join(several.names))
        raise ToolError(text, ErrorCode.BAD_ARGUMENTS) from None
    except UnknownMember as unknown:
        raise ToolError(call.say("moderation.unknown_member", name=unknown.name), ErrorCode.NOT_FOUND) from None
    own, theirs = await members.role(context.chat, context.sender.ref), await members.role(context.chat, found.ref)
    if own is None or theirs is None:
        raise ToolError(call.say("moderation.role_unknown", name=found.name), ErrorCode.REFUSED)
    if found.ref == context.sender.ref or theirs.rank >= own.rank:
        raise ToolError(call.say("moderation.not_below", name=found.name), ErrorCode.REFUSED)
    return found


async def _applied(
    context: MessageContext,
    measure: Measure,
    member: KnownMember | None,
    moderation: Moderation,
    call: Call,
    *,
    until: str = "",
    seconds: int = 0,
    message_id: str = "",
) -> FunctionResult:
    """Take the measure, and report its outcome as the network has confirmed it."""
    name, ref = (member.name, member.ref) if member else ("", None)
    done = await moderation.moderate(ModerationRequest(context.chat, measure, ref, seconds, message_id))
    if done.outcome is ModerationOutcome.DONE:
        text = call.say(f"moderation.done.{measure}", name=name, moment=until, link=done.link)
        return FunctionResult.say(text, data={"done": True})
    text = call.say(f"moderation.{done.outcome}", what=call.say(f"moderation.what.{measure}"))
    return FunctionResult.fail(_CODES[done.outcome], text)
