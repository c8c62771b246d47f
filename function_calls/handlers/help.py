"""Help generated from the function specs, so it lists only existing functions."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.schema.commands import allowed, plain_name, usage_line
from function_calls.spec import Activation, FunctionResult, FunctionSpec, OfferedTo
from services.refs import ErrorCode

_PEOPLES_WAYS = frozenset({OfferedTo.COMMAND, OfferedTo.MODEL})
_MODELS_ALONE = frozenset({OfferedTo.MODEL})

_MOST_NAMED = 12
_MOST_IN_WORDS = 6
_BRIEF_CHARS = 380


class HelpArguments(BaseModel, frozen=True):
    """Arguments of `help`."""

    topic: str | None = Field(None, description="A function or command to explain in detail; leave out to list all")


@tool_function(
    name="help",
    description="List what the bot can do here, or explain one function in detail.",
    examples=(
        "help",
        "what can you do",
        "what can i ask you",
        "what can you help me with",
        "which questions can you answer",
        "what are your features",
        "list your commands",
        "how do i use the {topic} command",
        "explain the {topic} command",
        "你能做什么",
        "你会什么",
        "有哪些命令",
        "你有什么功能",
        "{topic} 怎么用",
    ),
    commands=("help", "帮助", "指令"),
    return_direct=True,
)
async def help_(context: MessageContext, args: HelpArguments, *, call: Call) -> FunctionResult:
    """List the functions that this member may call here, or describe one."""
    functions = _for_people(call)
    typed = [spec for spec in functions if _is_typed(spec)]
    if args.topic:
        return _one(args.topic, call)
    head, foot = call.say("help.head", name=call.profile.bot_name), call.say("help.foot")
    names = [spec.name for spec in functions]
    others = [*_in_words(functions, call), *_on_request(call)]
    text = "\n".join([head, *_lines(typed, call), *others, foot])
    return FunctionResult.say(text, data=names, brief=_brief(head, typed, others, foot))


def _brief(head: str, typed: Sequence[FunctionSpec], others: Sequence[str], foot: str) -> str:
    """The list in three lines, with the first word of each command, without duplicates."""
    words = dict.fromkeys(f"/{spec.command.words[0].split()[0]}" for spec in typed)
    listed = shorten(" · ".join([" ".join(words), *others]), _BRIEF_CHARS, placeholder=" …")
    return "\n".join([head, listed, foot])


def _for_people(call: Call) -> list[FunctionSpec]:
    """Functions without those that only timers, programs or other functions call, and without inactive ones that have
    no command."""
    return [spec for spec in call.functions() if spec.access.offered_to & _PEOPLES_WAYS and _is_there(spec, call)]


def _is_there(spec: FunctionSpec, call: Call) -> bool:
    return spec.prompt.activation is Activation.ALWAYS or bool(spec.command.words) or call.is_active(spec)


def _is_typed(spec: FunctionSpec) -> bool:
    return bool(spec.command.words) and OfferedTo.COMMAND in spec.access.offered_to


def _in_words(functions: Sequence[FunctionSpec], call: Call) -> Sequence[str]:
    """A line with the names of functions without a command, limited to the first six. Functions for models only are
    left out, since members do not request them."""
    names = [spec.name for spec in functions if not _is_typed(spec) and spec.access.offered_to != _MODELS_ALONE]
    if not names:
        return []
    more = len(names) - _MOST_IN_WORDS
    told = ", ".join(names[:_MOST_IN_WORDS])
    if more > 0:
        return [call.say("help.in_words_many", names=told, count=more)]
    return [call.say("help.in_words", names=told)]


def _on_request(call: Call) -> Sequence[str]:
    """A line with the functions and groups that can be activated, if any."""
    names = [one.name for one in call.on_request() if one.name not in call.profile.active]
    if not names:
        return []
    more = "…" if len(names) > _MOST_NAMED else ""
    return [call.say("help.on_request", names=", ".join(f"@{name}" for name in names[:_MOST_NAMED]) + more)]


def _lines(functions: Sequence[FunctionSpec], call: Call) -> list[str]:
    """A line per function; functions with a common tag share a line to keep the list short."""
    groups: dict[str, list[FunctionSpec]] = {}
    for spec in functions:
        groups.setdefault(
            min(spec.origin.tags) if spec.origin.tags and spec.command.words else f" {spec.name}", []
        ).append(spec)
    return [_line(group[0]) if len(group) == 1 else _group(tag, group, call) for tag, group in groups.items()]


def _group(tag: str, group: Sequence[FunctionSpec], call: Call) -> str:
    key = f"help.tags.{tag}"
    label = call.say(key) if call.profile.texts.has(key) else tag.capitalize()
    return f"• {label}: {', '.join(f'/{spec.command.words[0]}' for spec in group)}"


def _line(spec: FunctionSpec) -> str:
    return f"• {usage_line(spec)} — {spec.description.split('. ')[0].rstrip('.')}"


def _one(topic: str, call: Call) -> FunctionResult:
    wanted = topic.strip().lstrip("/").casefold()
    for spec in call.functions():
        if spec.access.offered_to.isdisjoint(_PEOPLES_WAYS):
            continue
        if wanted in (spec.name.casefold(), plain_name(spec.name).casefold()) or wanted in spec.command.words:
            return FunctionResult.say(_detail(spec, call), data={"name": spec.name, "parameters": spec.parameters})
    return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("help.unknown", topic=topic))


def _detail(spec: FunctionSpec, call: Call) -> str:
    """Complete description of a function: its command forms from the texts, if any, else its parameters."""
    typed = f"help.typed.{spec.name}"
    if call.profile.texts.has(typed):
        others = ", ".join(f"/{one}" for one in spec.command.words[1:])
        also = [call.say("help.also", commands=others)] if others else []
        return "\n".join([spec.description, *(f"• {line}" for line in call.say(typed).splitlines()), *also])
    lines = [f"{usage_line(spec)} — {spec.description}"]
    required = spec.parameters["required"]
    for name, schema in spec.parameters["properties"].items():
        described = schema.get("description", "")
        rule = allowed(schema, call.profile.texts)
        optional = "" if name in required else f" ({call.say('help.optional')})"
        lines.append(f"  {name}{optional}: {f'{described}; ' if described else ''}{rule}")
    if len(spec.command.words) > 1:
        lines.append(call.say("help.also", commands=", ".join(f"/{one}" for one in spec.command.words[1:])))
    if spec.prompt.examples:
        lines.append(call.say("help.examples", examples="; ".join(spec.prompt.examples[:3])))
    return "\n".join(lines)
