"""Diagnosis and control of the chat: reasons of outcomes, ids, and stop."""

from __future__ import annotations

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import ChatActions, Explanation, Explanations
from function_calls.profile import reason_text
from function_calls.schema.commands import role_name, spoken_name
from function_calls.spec import FunctionResult
from services.refs import ErrorCode


class WhyArguments(BaseModel, frozen=True):
    count: int = Field(1, ge=1, le=10, description="How many of the last messages to explain")
    back: int | None = Field(None, ge=1, le=200, description="Only the message this many positions back")
    id: str | None = Field(None, max_length=200, description="Only the message with this id of the chat network")


@tool_function(
    description="Explain why the bot answered, or did not answer, the last messages of this chat.",
    examples=(
        "why didn't you answer",
        "why did you not reply to me",
        "explain why you said nothing",
        "why did you ignore me",
        "tell me why you stayed silent",
        "为什么不回答",
        "你为什么没有回复",
    ),
    commands=("why", "为什么"),
    tags="chat",
    touches="reads_outside",
    return_direct=True,
)
async def why(context: MessageContext, args: WhyArguments, *, explanations: Explanations, call: Call) -> FunctionResult:
    """Explain the message with that id or position, else the replied-to message, else the latest ones."""
    native_id = args.id or (context.reply_to.native_id if context.reply_to is not None and args.back is None else "")
    if native_id:
        found = list(await explanations.of(context.chat, native_id, context.sender.ref if context.private else None))
    elif args.back is not None:
        one = await explanations.back(context.chat, context.key.native_id, args.back)
        found = [] if one is None else [one]
    else:
        found = list(await explanations.last(context.chat, context.key.native_id, args.count))
    if not found and args.id:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("why.no_such", id=args.id))
    if not found:
        return FunctionResult.say(call.say("why.nothing"))
    return FunctionResult.say("\n".join(_explained(one, call) for one in found))


def _explained(one: Explanation, call: Call) -> str:
    at = one.at.astimezone(call.profile.timezone)
    reason = reason_text(call.profile.texts, one.reason, _known_as(one.detail, call))
    return call.say("why.line", at=f"{at:%H:%M}", name=one.sender_name, text=one.text, reason=reason)


def _known_as(detail: str, call: Call) -> str:
    """`detail` with display names of the functions that this member may call."""
    names = {spec.name: spoken_name(spec, call.profile.texts.language) for spec in call.functions()}
    if detail.startswith("@"):
        sentence, _, name = detail.partition(" ")
        return f"{sentence} {names.get(name, name)}"
    return ", ".join(names.get(part, part) for part in detail.split(", "))


@tool_function(name="id", commands=("id",), tags="chat", offered_to=["command", "api"])
async def show_id(context: MessageContext, *, call: Call) -> FunctionResult:
    """Show the ids of this chat and of the asker, as settings need them."""
    return FunctionResult.say(
        call.say(
            "id.shown",
            chat=context.chat.key,
            member=context.sender.ref.key,
            role=role_name(context.sender.role, call.profile.texts),
            bot=context.bot,
        ),
        data={"chat": context.chat.key, "member": context.sender.ref.key, "role": context.sender.role.value},
    )


@tool_function(
    description="Stop the answer that the bot is working on in this chat.",
    commands=("stop", "停", "停止"),
    tags="chat",
    offered_to=["command", "api"],
    effect="idempotent",
    immediate=True,
)
async def stop(context: MessageContext, *, actions: ChatActions, call: Call) -> FunctionResult:
    """End the active turn (for moderators and above, of any member), or withdraw the sender's open question."""
    if await actions.stop(context.chat, context.sender.ref, context.sender.role):
        # The stopped turn sends the message.
        return FunctionResult()
    if await actions.withdraw_question(context.chat, context.sender.ref):
        return FunctionResult.say(call.say("stop.asked"))
    return FunctionResult.say(call.say("stop.nothing"))
