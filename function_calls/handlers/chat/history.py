"""Show and delete the recorded messages of a chat and the notes of its scripts."""

from __future__ import annotations

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import ChatNotes
from function_calls.spec import FunctionResult
from services.chats.message_history import MessageHistory
from services.patterns import visible_line
from services.refs import ErrorCode


@tool_function(
    name="clear_messages",
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


_SHOWN_CHARS = 300


class NameArguments(BaseModel, frozen=True):
    """Arguments of `notes_clear`."""

    name: str = Field(default="", description="The note's name, as /notes shows it; empty: all of them", max_length=200)


@tool_function(
    name="notes",
    description="Show what scripts have noted for models in this chat.",
    commands=("notes", "备注"),
    tags="chat",
    touches="reads_outside",
    offered_to=["command", "api"],
    roles="admin",
)
async def show_notes(context: MessageContext, *, notes: ChatNotes, call: Call) -> FunctionResult:
    """Show all notes, oldest first."""
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
    description="Take back what scripts have noted for models in this chat: one note by its name, or all of them.",
    commands=("notes clear", "备注 清除"),
    tags="chat",
    offered_to=["command", "api"],
    roles="admin",
    effect="idempotent",
    line="name",
)
async def clear_notes(context: MessageContext, args: NameArguments, *, notes: ChatNotes, call: Call) -> FunctionResult:
    """Delete notes."""
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
