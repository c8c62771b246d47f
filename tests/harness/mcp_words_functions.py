"""Functions that request texts from a model, written as a normal file of functions."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.failures import not_written
from function_calls.ports import TextModel
from function_calls.spec import FunctionResult
from services.llm.model import ModelMessage, NoTextReason, TextRequest


class About(BaseModel, frozen=True, extra="forbid"):
    """What about."""

    text: str = "cats"
    times: int = 1


@tool_function(effect="read")
async def writes(context: MessageContext, args: About, *, words: TextModel, call: Call) -> FunctionResult:
    """Let a model write, so often."""
    said = []
    for number in range(args.times):
        wanted = TextRequest(
            [
                ModelMessage("system", "Be short."),
                ModelMessage("user", "Hello."),
                ModelMessage("assistant", "Hi."),
                ModelMessage("user", f"{args.text} {number}"),
            ],
            timeout_seconds=20,
            most_tokens=50,
        )
        written = await words.ask(context, call, wanted)
        if isinstance(written, NoTextReason):
            return not_written(written, call.profile.texts)
        said.append([written.text, written.is_callers])
    return FunctionResult.say("written", data=said)


@tool_function(effect="read")
async def writes_two_at_once(context: MessageContext, args: About, *, words: TextModel, call: Call) -> FunctionResult:
    """Let a model write two things at the same time."""
    both = [words.ask(context, call, TextRequest([ModelMessage("user", one)])) for one in ("one", "two")]
    return FunctionResult.say("written", data=[str(getattr(one, "text", one)) for one in await asyncio.gather(*both)])


@tool_function(effect="read", touches="reads_outside")
async def reads(context: MessageContext, args: About) -> FunctionResult:
    """Read what others wrote."""
    return FunctionResult.say("the past of the chat")


@tool_function(effect="read", touches="reads_outside")
async def reads_and_writes(context: MessageContext, args: About, *, call: Call) -> FunctionResult:
    """Read what others wrote, and pass it on to a function that lets a model write."""
    return await call.invoke("writes", {"text": "the past of the chat"})


@tool_function(effect="read")
async def writes_what_was_read(context: MessageContext, args: About, *, call: Call) -> FunctionResult:
    """Let one function read and another one write."""
    read = await call.invoke("reads", {})
    return await call.invoke("writes", {"text": read.reply})


@tool_function(effect="once")
async def writes_and_asks(context: MessageContext, args: About, *, words: TextModel, call: Call) -> FunctionResult:
    """Let a model write a question, and ask it."""
    if call.resumed is not None:
        return FunctionResult.say(f"{call.resumed.kind} {call.resumed.answer}")
    written = await words.ask(context, call, TextRequest([ModelMessage("user", "A question?")]))
    return FunctionResult.ask(written.text if not isinstance(written, NoTextReason) else "nothing")
