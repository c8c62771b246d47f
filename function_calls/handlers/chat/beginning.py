"""Start function of a chat: admins can run it again."""

from __future__ import annotations

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import StartFunctions
from function_calls.spec import FunctionResult


@tool_function(
    commands=("begin again", "重新开始"), tags="chat", offered_to=["command", "api"], roles="admin", effect="idempotent"
)
async def begin_again(context: MessageContext, *, beginnings: StartFunctions, call: Call) -> FunctionResult:
    """Restart this chat: the script start.bas runs again before the next answer."""
    if not await beginnings.rerun(context.chat, context.bot):
        return FunctionResult.say(call.say("beginning.none"))
    return FunctionResult.say(call.say("beginning.again"))
