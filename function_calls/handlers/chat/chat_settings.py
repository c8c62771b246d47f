"""Settings that a chat may change itself, and the texts among them: greetings, triggers and the bot's style. A model is
never offered these."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from config.sections.bots import LONGEST_GREETING, LONGEST_TRIGGER, ChatSettingName
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.failures import refused_by
from function_calls.ports import ChatRules, OwnSettings
from function_calls.profile import layer_text
from function_calls.spec import FunctionResult
from services.patterns import folded
from services.refs import ErrorCode

_SHOWN_CHARS = 200
_MOST_TRIGGERS = 50
_LONGEST_WORD = 50
_LONGEST_PERSONA = 300
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_TRIGGER = re.compile(r'\s*["“”「](?P<quoted>[^"“”」]+)["“”」]\s*(?:→|[-=]>|:|：)?\s*(?P<text>.+)', re.DOTALL)
_PLAIN_TRIGGER = re.compile(r"\s*(?P<quoted>.+?)\s*(?:→|[-=]>)\s*(?P<text>.+)", re.DOTALL)

_admin_command = partial(tool_function, tags="chat", offered_to=["command"], roles="admin", effect="idempotent")
_Text = Annotated[
    Annotated[str, Field(max_length=LONGEST_GREETING)] | None,
    Field(description="The text; off: none; absent: show the current one"),
]
_Rule = Annotated[str | None, Field(description='"word" → text; absent: show all', max_length=2000)]
_Word = Annotated[str, Field(description="The word or phrase", min_length=1, max_length=200)]
_Persona = Annotated[str | None, Field(description="The style; clear: none of its own; absent: show it")]


class SettingsArguments(BaseModel, frozen=True, extra="forbid"):
    name: ChatSettingName | None = Field(default=None, description="The setting; without it all are shown")
    value: str | None = Field(
        default=None, description="Its new value; `default` goes back to what the operator has set", max_length=4000
    )


@_admin_command(commands=("settings", "设置"))
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
        return refused_by(f"chats.changeable: {name}", call.say("settings.not_changeable", name=name))
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


@_admin_command(commands=("welcome", "欢迎语"), line="text", scope="group")
async def welcome(context: MessageContext, text: _Text = None, *, own: OwnSettings, call: Call) -> FunctionResult:
    """Show or set the text for members who join this chat."""
    return await _greeting("welcome", context, text, own, call)


@_admin_command(commands=("goodbye", "告别语"), line="text", scope="group")
async def goodbye(context: MessageContext, text: _Text = None, *, own: OwnSettings, call: Call) -> FunctionResult:
    """Show or set the text for members who leave this chat."""
    return await _greeting("goodbye", context, text, own, call)


async def _greeting(
    name: Literal["welcome", "goodbye"], context: MessageContext, given: str | None, own: OwnSettings, call: Call
) -> FunctionResult:
    text = (given or "").strip()
    values = {
        "new_member": context.sender.name,
        "inviter": call.say("greetings.somebody"),
        "chat": context.chat_title or call.say("greetings.this_chat"),
    }
    if unknown := [one for one in _PLACEHOLDER.findall(text) if one not in values]:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("greetings.unknown", name=unknown[0]), ["text"])
    if text:
        is_off = text.casefold() in call.profile.texts.words("greetings.off_words")
        why_not = await own.put(context.chat, name, "off" if is_off else text, context.sender.ref)
        if why_not is not None:
            return FunctionResult.fail(ErrorCode.REFUSED, call.say("settings.not_changeable", name=name))
    current = next(one.value for one in own.of(context.chat) if one.name == name)
    if current == "off":
        return FunctionResult.say(call.say(f"greetings.no_{name}"))
    preview = _PLACEHOLDER.sub(lambda found: values[found[1]] if found[1] in values else found[0], current)
    return FunctionResult.say(call.say(f"greetings.{name}", preview=preview))


@_admin_command(commands=("trigger", "触发词"), line="rule", scope="group")
async def trigger(context: MessageContext, rule: _Rule = None, *, rules: ChatRules, call: Call) -> FunctionResult:
    """Show the texts with which the bot replies to words in this chat, or add one."""
    known = rules.triggers(context.chat)
    if not (rule or "").strip():
        lines = [call.say("triggers.line", word=word, text=text) for word, text in sorted(known.items())]
        return FunctionResult.say("\n".join([*lines, call.say("triggers.how")]), data=list(known))
    found = _TRIGGER.fullmatch(rule or "") or _PLAIN_TRIGGER.fullmatch(rule or "")
    word = " ".join(folded(found["quoted"]).split()) if found is not None else ""
    text = found["text"].strip() if found is not None else ""
    if not re.search(r"\w", word) or len(word) > _LONGEST_WORD or not 0 < len(text) <= LONGEST_TRIGGER:
        problem = call.say("triggers.unclear", word_chars=_LONGEST_WORD, text_chars=LONGEST_TRIGGER)
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, problem, ["rule"])
    if word not in known and len(known) >= _MOST_TRIGGERS:
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("triggers.too_many", count=_MOST_TRIGGERS))
    await rules.set_trigger(context.chat, word, text, context.sender.ref)
    return FunctionResult.say(call.say("triggers.set", word=word, text=text))


@_admin_command(
    description="Remove a word to which the bot replies in this chat.",
    commands=("trigger delete", "触发词 删除"),
    line="word",
    scope="group",
    ask={"word": "@triggers.ask_word"},
)
async def trigger_delete(context: MessageContext, word: _Word, *, rules: ChatRules, call: Call) -> FunctionResult:
    """Remove the chat's own text for a word. Those of the settings file stay."""
    word = " ".join(folded(word).strip('"“”「」 ').split())
    if word not in rules.triggers(context.chat):
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("triggers.unknown", word=word), ["word"])
    await rules.set_trigger(context.chat, word, None, context.sender.ref)
    if word in rules.triggers(context.chat):
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("triggers.of_settings", word=word))
    return FunctionResult.say(call.say("triggers.removed", word=word))


@_admin_command(commands=("persona", "人设"), line="text")
async def persona(context: MessageContext, text: _Persona = None, *, own: OwnSettings, call: Call) -> FunctionResult:
    """Show or set the bot's style in this chat."""
    text, by = (text or "").strip(), context.sender.ref
    if len(text) > _LONGEST_PERSONA:
        problem = call.say("persona.too_long", most=_LONGEST_PERSONA, count=len(text))
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, problem, ["text"])
    if text:
        is_reset = text.casefold() in call.profile.texts.words("persona.clear_words")
        changed = own.clear(context.chat, "persona", by) if is_reset else own.put(context.chat, "persona", text, by)
        if await changed is not None:
            return FunctionResult.fail(ErrorCode.REFUSED, call.say("settings.not_changeable", name="persona"))
    current = next(one for one in own.of(context.chat) if one.name == "persona")
    if not current.value:
        return FunctionResult.say(call.say("persona.none"))
    return FunctionResult.say(call.say("persona.shown", text=current.value))
