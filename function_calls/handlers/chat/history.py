"""Search and delete the recorded messages of a chat, and show and delete the notes of its scripts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import ChatNotes
from function_calls.spec import FunctionResult
from services.chats.members import KnownMembers, SeveralMembers, UnknownMember, called
from services.chats.message_history import MessageHistory, Period, spoken_period
from services.clock import Clock
from services.patterns import one_line, visible_line
from services.refs import ErrorCode
from services.times import Times


@tool_function(
    description="Forget the message history of this chat, for everybody",
    examples=(
        "forget everything that was said in this chat",
        "clear the history of this chat",
        "delete the chat history",
        "wipe your memory of this conversation",
        "erase all messages that you remember from this group",
        "清除聊天记录",
        "清除这个群的历史消息",
        "忘记群里说过的话",
    ),
    commands=("clearmessages", "forget history", "清除历史"),
    tags="chat",
    scope="group",
    roles="moderator",
    effect="idempotent",
    confirm="@history.confirm",
)
async def clear_messages(context: MessageContext, *, past: MessageHistory, call: Call) -> FunctionResult:
    """Delete the messages before the request, and their summaries."""
    count = await past.forget(context.chat, context.sent_at, context.sender.ref)
    return FunctionResult.say(call.say("history.forgotten" if count else "history.nothing", count=count), data=count)


_FOUND_CHARS = 200


@tool_function(
    name="history",
    description="Search the earlier messages of this chat, by words, member and period; shows who wrote them",
    examples=(
        "who mentioned {words} in this chat",
        "search the chat history for {words}",
        "find the messages about {words}",
        "what did {member} say about {words}",
        "find what {member} wrote {period}",
        "when did we talk about {words}",
        "搜索聊天记录里的{words}",
        "查一下{member}说过的{words}",
        "在聊天记录里找{words}",
    ),
    commands=("history", "聊天记录"),
    positional=("words",),
    tags=("chat", "find_out"),
    touches="reads_outside",
    effect="read",
)
async def search_history(
    context: MessageContext,
    words: Annotated[str, Field(description="Words that the messages contain, all of them", max_length=100)] = "",
    member: Annotated[str, Field(description="Only messages of this member", max_length=100)] = "",
    period: Annotated[
        str, Field(description="When, in words: yesterday evening, last week, since Monday, 3 to 5 May", max_length=60)
    ] = "",
    count: Annotated[int, Field(description="How many messages, the latest", ge=1, le=30)] = 10,
    *,
    past: MessageHistory,
    known: KnownMembers,
    times: Times,
    clock: Clock,
    call: Call,
) -> FunctionResult:
    """Show the latest messages that fit, oldest first, with their times in the chat's zone."""
    span, sender = Period(), None
    if period.strip():
        found = spoken_period(period, clock.now(), call.profile.timezone, times)
        if found is None:
            text = call.say("summary.bad_period", period=period)
            return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["period"])
        span, count = found, min(count, found.count or count)
    if member.strip().casefold() in call.profile.texts.words("history.me_words"):
        sender = context.sender.ref
    elif member.strip():
        try:
            sender = called(member, await known.of(context.chat), context.mentions, as_mention=True).ref
        except (UnknownMember, SeveralMembers) as error:
            text = call.say("history.unknown_member", name=error.name)
            return FunctionResult.fail(ErrorCode.NOT_FOUND, text, ["member"])
    excerpt = await past.search(context.chat, words, span, count, context.key.native_id, sender)
    if not excerpt.lines:
        return FunctionResult.say(call.say("history.none_found"), data={"messages": 0})
    lines = [call.say("history.head")]
    for line in excerpt.lines:
        at = datetime.fromtimestamp(line.at_ms / 1000, call.profile.timezone)
        text, name = one_line(line.text, _FOUND_CHARS), visible_line(line.name)
        lines.append(call.say("history.line", time=f"{at:%Y-%m-%d %H:%M}", name=name, text=text))
    lines += [call.say("history.more", count=len(excerpt.lines))] if excerpt.is_cut else []
    return FunctionResult.say("\n".join(lines), data={"messages": len(excerpt.lines), "more": excerpt.is_cut})


_SHOWN_CHARS = 300


class NameArguments(BaseModel, frozen=True):
    name: str = Field(default="", description="The note's name, as /notes shows it; empty: all of them", max_length=200)


@tool_function(
    name="notes",
    commands=("notes", "备注"),
    tags="chat",
    touches="reads_outside",
    offered_to=["command", "api"],
    roles="admin",
)
async def show_notes(context: MessageContext, *, notes: ChatNotes, call: Call) -> FunctionResult:
    """Show what scripts have noted for models in this chat."""
    found = notes.of(context.chat, context.bot)
    if not found:
        return FunctionResult.say(call.say("notes.none"), data=[])
    lines = [
        call.say(
            "notes.instruction" if one.is_instruction else "notes.line",
            name=visible_line(one.name),
            words=_short(visible_line(one.words)),
            script=one.script,
        )
        for one in found
    ]
    text = "\n".join([call.say("notes.head"), *lines, call.say("notes.foot")])
    return FunctionResult.say(
        text, data=[{"name": one.name, "words": one.words, "script": one.script} for one in found]
    )


@tool_function(
    name="notes_clear",
    commands=("notes clear", "备注 清除"),
    tags="chat",
    offered_to=["command", "api"],
    roles="admin",
    effect="idempotent",
    line="name",
)
async def clear_notes(context: MessageContext, args: NameArguments, *, notes: ChatNotes, call: Call) -> FunctionResult:
    """Take back what scripts have noted for models in this chat: one note by its name, or all of them."""
    name = args.name.strip().casefold()
    names = [
        one.name for one in notes.of(context.chat, context.bot) if not name or visible_line(one.name).casefold() == name
    ]
    if not names:
        if not name:
            return FunctionResult.say(call.say("notes.none"), data=[])
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("notes.unknown", name=args.name.strip()), ["name"])
    await notes.clear(context.chat, context.bot, names)
    return FunctionResult.say(call.say("notes.cleared", names=", ".join(map(visible_line, names))), data=names)


def _short(words: str) -> str:
    return words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS]}…"
