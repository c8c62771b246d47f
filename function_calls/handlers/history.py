"""What the bot remembers of a chat."""

from __future__ import annotations

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.chat_past import ChatPast


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
async def clear_messages(ctx: MessageContext, *, past: ChatPast, call: Call) -> FunctionResult:
    """Forget what was said until the message that wants it, and the summaries of it."""
    count = await past.forget(ctx.chat, ctx.sent_at, ctx.sender.ref)
    return FunctionResult.say(call.say("history.forgotten" if count else "history.nothing", count=count), data=count)
