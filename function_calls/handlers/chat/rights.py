"""Roles of members, and reusable approvals of a chat."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import Members
from function_calls.schema.commands import role_name, spoken_name
from function_calls.spec import FunctionResult
from services.chats.grants import Grants
from services.chats.members import KnownMembers
from services.clock import Clock
from services.refs import ErrorCode, Role
from services.times.time_formatting import moment


class GrantArguments(BaseModel, frozen=True):
    code: str = Field(description="The grant's code, as /grants shows it", min_length=1, max_length=20)


@tool_function(
    description="Show who has which role in this chat, and what the asker may do.",
    commands=("roles", "权限"),
    tags="chat",
    offered_to=["command", "api"],
)
async def roles(context: MessageContext, *, members: Members, call: Call) -> FunctionResult:
    """Show current roles according to the platform and the settings. Chats cannot assign roles."""
    known = await members.role(context.chat, context.sender.ref)
    role = known or context.sender.role
    lines = [call.say("roles.yours", role=role_name(role, call.profile.texts))]
    more = [
        spoken_name(spec, call.profile.texts.language)
        for spec in call.functions()
        if Role.MEMBER not in spec.access.roles and spec.command.words and spec.is_set_up(context.bot)
    ]
    if more:
        lines.append(call.say("roles.you_may", commands=", ".join(more)))
    others = [one for one in await members.speakers(context.chat) if one.role not in (None, Role.MEMBER)]
    lines += [call.say("roles.line", name=one.name, role=role_name(one.role, call.profile.texts)) for one in others]
    lines.append(call.say("roles.how"))
    return FunctionResult.say("\n".join(lines), data={"role": role.value, "others": [one.name for one in others]})


@tool_function(
    name="members",
    description="List the members who have written in this group and when they last did, also those who are silent now",
    examples=(
        "who is in this group",
        "list the members of this group",
        "show the members of this group",
        "who has not said anything lately",
        "who has been silent here",
        "群里有哪些人",
        "谁很久没说话了",
    ),
    commands=("members", "成员"),
    tags="chat",
    scope="group",
    touches="reads_outside",
    effect="read",
)
async def show_members(context: MessageContext, *, known: KnownMembers, clock: Clock, call: Call) -> FunctionResult:
    """List the known members with the time of their latest message, latest first."""
    found, now, zone = await known.of(context.chat), clock.now(), call.profile.timezone
    lines = [
        call.say("roles.last_message", name=one.name, moment=moment(at, zone, now, call.profile.texts))
        for one in found
        for at in [datetime.fromtimestamp(one.last_ms / 1000, UTC)]
    ]
    lines.append(call.say("roles.others_unknown"))
    return FunctionResult.say("\n".join(lines), data=[one.name for one in found])


@tool_function(name="grants", commands=("grants", "授权"), tags="chat", offered_to=["command", "api"])
async def show_grants(context: MessageContext, *, grants: Grants, clock: Clock, call: Call) -> FunctionResult:
    """Show what this chat allows without asking."""
    found = await grants.of(context.chat)
    if not found:
        return FunctionResult.say(call.say("grants.none"), data=[])
    lines = [
        call.say(
            "grants.line",
            code=one.code,
            function=one.function,
            arguments=f" ({one.arguments})" if one.arguments else "",
            name=one.granted_by,
            days=(clock.now_ms() - one.granted_ms) // 86_400_000,
        )
        for one in found
    ]
    text = "\n".join([call.say("grants.head"), *lines, call.say("grants.foot")])
    return FunctionResult.say(text, data=[one.code for one in found])


@tool_function(
    name="grants_revoke",
    commands=("grants revoke", "授权 撤销"),
    tags="chat",
    offered_to=["command", "api"],
    roles="admin",
    effect="idempotent",
    ask={"code": "@grants.ask_code"},
)
async def revoke_grant(context: MessageContext, args: GrantArguments, *, grants: Grants, call: Call) -> FunctionResult:
    """Take back what this chat allows without asking."""
    revoked = await grants.revoke(context.chat, args.code, context.sender.ref)
    if revoked is None:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("grants.unknown", code=args.code), ["code"])
    return FunctionResult.say(call.say("grants.revoked", code=revoked.code, function=revoked.function))
