"""Functions that external test programs expect of an MCP server, written as a normal file of functions. Texts, images
and other files are messages with attachments; the bot converts them."""

from __future__ import annotations

import asyncio
import os

from pydantic import BaseModel

from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.declaration import tool_function
from function_calls.failures import not_written
from function_calls.ports import TextModel
from function_calls.spec import FunctionResult, Message, ToolError
from services.llm.model import ModelMessage, NoTextReason, TextRequest

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)
SOUND = "data:audio/wav;base64,UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NOTE = "data:text/plain,This%20is%20an%20embedded%20resource%20content."


class Nothing(BaseModel, frozen=True, extra="forbid"):
    """No arguments."""


@tool_function(effect="read")
async def test_simple_text(context: MessageContext, args: Nothing) -> FunctionResult:
    """Say a simple text."""
    return FunctionResult.say("This is a simple text response for testing.")


@tool_function(effect="read")
async def test_image_content(context: MessageContext, args: Nothing) -> FunctionResult:
    """Show an image."""
    return _with(Attachment("pixel.png", "image/png", PIXEL))


@tool_function(effect="read")
async def test_audio_content(context: MessageContext, args: Nothing) -> FunctionResult:
    """Play a sound."""
    return _with(Attachment("sound.wav", "audio/wav", SOUND))


@tool_function(effect="read")
async def test_embedded_resource(context: MessageContext, args: Nothing) -> FunctionResult:
    """Give a small file."""
    return _with(Attachment("note.txt", "text/plain", NOTE))


@tool_function(effect="read")
async def test_multiple_content_types(context: MessageContext, args: Nothing) -> FunctionResult:
    """Say something, show an image and give a small file."""
    files = (Attachment("pixel.png", "image/png", PIXEL), Attachment("note.txt", "text/plain", NOTE))
    return FunctionResult(messages=(Message("Multiple content types test:", attachments=files),))


@tool_function(effect="read")
async def test_error_handling(context: MessageContext, args: Nothing) -> FunctionResult:
    """Fail on purpose."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool_function(effect="read")
async def test_tool_with_progress(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Tell how far it is."""
    for step in ("begun", "half of it", "all of it"):
        await call.status(step)
    return FunctionResult.say("done")


@tool_function(effect="read", timeout_seconds=5)
async def test_tool_with_logging(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Tell what goes on, with time between."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if step != "Tool execution started":
            await asyncio.sleep(0.05)
        await call.status(step)
    return FunctionResult.say("done")


class Asked(BaseModel, frozen=True, extra="forbid"):
    """What is asked."""

    message: str


@tool_function(effect="read")
async def test_elicitation(context: MessageContext, args: Asked, *, call: Call) -> FunctionResult:
    """Ask whoever called."""
    if call.resumed is None:
        return FunctionResult.ask(args.message, resume={"asked": args.message})
    return FunctionResult.say(f"User response: {call.resumed.answer}")


class Prompt(BaseModel, frozen=True, extra="forbid"):
    """What a model is asked."""

    prompt: str


@tool_function(effect="read")
async def test_sampling(context: MessageContext, args: Prompt, *, words: TextModel, call: Call) -> FunctionResult:
    """Ask a model."""
    written = await words.ask(context, call, TextRequest([ModelMessage("user", args.prompt)], most_tokens=100))
    if isinstance(written, NoTextReason):
        return not_written(written, call.profile.texts)
    return FunctionResult.say(f"LLM response: {written.text}")


@tool_function(effect="once")
async def keeps(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Ask in the midst of an effect."""
    return FunctionResult.ask("Go on?") if call.resumed is None else FunctionResult.say(call.resumed.kind)


@tool_function(effect="read")
async def chatty(context: MessageContext, args: Nothing) -> FunctionResult:
    """Print where it should not."""
    print("this is no message of the protocol", flush=True)  # noqa: T201 - printing is tested
    os.write(1, b"neither is this\n")
    return FunctionResult.say("quiet")


@tool_function(effect="once", roles="admin")
async def never_ends(context: MessageContext, args: Nothing) -> FunctionResult:
    """Begin an effect and never end."""
    await asyncio.Event().wait()
    return FunctionResult.say("never")


def _with(file: Attachment) -> FunctionResult:
    return FunctionResult(messages=(Message("", attachments=(file,)),))


class Pair(BaseModel, frozen=True, extra="forbid"):
    """Two texts."""

    arg1: str
    arg2: str


@tool_function(effect="read", examples=("This is a simple prompt for testing.",))
async def test_simple_prompt(context: MessageContext, args: Nothing) -> FunctionResult:
    """Have an example without slots."""
    return FunctionResult.say("done")


@tool_function(effect="read", examples=("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'",))
async def test_prompt_with_arguments(context: MessageContext, args: Pair) -> FunctionResult:
    """Have an example with two slots."""
    return FunctionResult.say("done")


@tool_function(effect="read", name="test_logging_tool")
async def logging_tool(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Tell what goes on."""
    await call.status("at work")
    return FunctionResult.say("done")


@tool_function(effect="read", name="test_input_required_result_elicitation")
async def asks_a_name(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Ask for a name."""
    if call.resumed is None:
        return FunctionResult.ask("What is your name?", resume={})
    return FunctionResult.say(f"Hello, {call.resumed.answer}!")


@tool_function(effect="read", name="test_input_required_result_request_state")
async def asks_with_state(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Ask, and remember something."""
    if call.resumed is None:
        return FunctionResult.ask("Please confirm", resume={"step": 1})
    return FunctionResult.say("state-ok")


@tool_function(effect="read", name="test_input_required_result_tampered_state")
async def asks_with_protected_state(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Ask, and accept no other state."""
    return FunctionResult.ask("Please confirm") if call.resumed is None else FunctionResult.say("state-ok")


@tool_function(effect="read", name="test_input_required_result_multi_round")
async def asks_twice(context: MessageContext, args: Nothing, *, call: Call) -> FunctionResult:
    """Ask twice."""
    if call.resumed is None:
        return FunctionResult.ask("Step 1: What is your name?", resume={"step": 1})
    if call.resumed.number == 1:
        return FunctionResult.ask("Step 2: What is your favorite color?", resume={"step": 2})
    return FunctionResult.say("done")


@tool_function(effect="read", name="test_input_required_result_sampling")
async def asks_a_model(context: MessageContext, args: Nothing, *, words: TextModel, call: Call) -> FunctionResult:
    """Ask the client's model."""
    request = TextRequest([ModelMessage("user", "What is the capital of France?")], most_tokens=100)
    written = await words.ask(context, call, request)
    if isinstance(written, NoTextReason):
        return not_written(written, call.profile.texts)
    return FunctionResult.say(written.text)


@tool_function(effect="read", name="test_input_required_result_capabilities")
async def asks_as_the_client_can(
    context: MessageContext, args: Nothing, *, words: TextModel, call: Call
) -> FunctionResult:
    """Ask what the client supports: its user, else its model."""
    if call.resumed is not None:
        return FunctionResult.say("done")
    if call.callers_model is not None:
        return await asks_a_model(context, args, words=words, call=call)
    return FunctionResult.ask("What is your name?")
