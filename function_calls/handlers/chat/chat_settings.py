"""Settings that a chat may change itself: show, change and reset them."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, Field

from config.sections.bots import ChatSettingName
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import OwnSettings
from function_calls.profile import layer_text
from function_calls.spec import FunctionResult
from services.refs import ErrorCode

_SHOWN_CHARS = 200


class SettingsArguments(BaseModel, frozen=True, extra="forbid"):
    name: ChatSettingName | None = Field(default=None, description="The setting; without it all are shown")
    value: str | None = Field(
        default=None, description="Its new value; `default` goes back to what the operator has set", max_length=4000
    )


@tool_function(
    commands=("settings", "设置"),
    tags="chat",
    offered_to=["command"],
    roles="admin",
    effect="idempotent",
)
async def settings(context: MessageContext, args: SettingsArguments, *, own: OwnSettings, call: Call) -> FunctionResult:
    """Show the settings of this chat and where each comes from, or change one."""
    name, value = args.name, (args.value or "").strip()
    if name is None:
        return _shown(context, own, call) if not value else _unknown(value, own, context, call)
    if not value:
        return _shown(context, own, call, only=name)
    is_reset = value.casefold() in call.profile.texts.words("settings.reset_words")
    by = context.sender.ref
    why_not = await (own.clear(context.chat, name, by) if is_reset else own.put(context.chat, name, value, by))
    if why_not == "not_changeable":
        text = call.say("settings.not_changeable", name=name)
        return replace(
            FunctionResult.fail(ErrorCode.REFUSED, text), metadata={"refused_by": f"chats.changeable: {name}"}
        )
    if why_not is not None:
        choices = next(", ".join(one.choices) for one in own.of(context.chat) if one.name == name)
        allowed = call.say(f"settings.allowed.{name}", choices=choices)
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("settings.bad_value", name=name, allowed=allowed))
    return _shown(context, own, call, only=name)


def _shown(context: MessageContext, own: OwnSettings, call: Call, only: str = "") -> FunctionResult:
    lines: list[str] = []
    for one in own.of(context.chat):
        if only and one.name != only:
            continue
        value = one.value if len(one.value) <= _SHOWN_CHARS else f"{one.value[:_SHOWN_CHARS]}…"
        fixed = "" if one.changeable else call.say("settings.fixed")
        if one.choices and one.changeable:
            fixed = call.say("settings.choices", choices=", ".join(one.choices))
        layer = layer_text(call.profile.texts, one.layer)
        lines.append(call.say("settings.line", name=one.name, value=value or "–", layer=layer, fixed=fixed))
    if not only:
        lines.append(call.say("settings.how"))
    return FunctionResult.say("\n".join(lines))


def _unknown(name: str, own: OwnSettings, context: MessageContext, call: Call) -> FunctionResult:
    names = ", ".join(one.name for one in own.of(context.chat))
    text = call.say("settings.unknown", name=name.split()[0][:60], names=names)
    return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text)
