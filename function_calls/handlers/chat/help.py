"""Help generated from the function specs, so it lists only existing functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import shorten

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.schema.commands import (
    HEADINGS,
    about,
    allowed,
    by_heading,
    example_sentences,
    plain_name,
    short_about,
    spoken_name,
    usage_line,
)
from function_calls.spec import Activation, Choice, FunctionResult, FunctionSpec, OfferedTo
from services.refs import ErrorCode, JsonObject
from services.text_index import is_unspaced

_PEOPLES_WAYS = frozenset({OfferedTo.COMMAND, OfferedTo.MODEL})
_MODELS_ALONE = frozenset({OfferedTo.MODEL})

_MOST_NAMED = 12
_MOST_LINES = 25
_FEWEST_EXAMPLES, _MOST_EXAMPLES = 2, 3
_BRIEF_CHARS = 380
_SLOT = re.compile(r"\{(\w+)\}")
_KINDS = {"date": "date", "date-time": "datetime", "time": "hour", "email": "email", "uri": "url", "uuid": "uuid"}
"""Format of JSON Schema → its entry of `arguments.kinds` in the texts."""


class HelpArguments(BaseModel, frozen=True):
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
    tags="chat",
    return_direct=True,
)
async def help_(context: MessageContext, args: HelpArguments, *, call: Call) -> FunctionResult:
    """List the headings with examples, the functions of one heading, or one function in detail. Functions that this
    member may not call here, or that are not set up, are not listed."""
    functions = [spec for spec in call.functions() if _is_for_people(spec, call) and spec.is_set_up(context.bot)]
    headings = by_heading(functions, call.profile.texts)
    if args.topic:
        heading = _heading_called(args.topic, call)
        return _page(heading, headings[heading], call) if heading else _one(args.topic, context, call)
    used = [heading for heading, listed in headings.items() if listed or (heading == "more" and _on_request(call))]
    lines = [
        call.say(
            "help.heading", title=_title(heading, call), examples=" · ".join(_shown(heading, headings[heading], call))
        )
        for heading in used
    ]
    head = call.say("help.head" if context.is_group else "help.head_private", name=call.profile.bot_name)
    firsts = " · ".join(f"{_title(one, call)}: {_called(headings[one][0], call)}" for one in used if headings[one])
    return FunctionResult.say(
        "\n".join([head, *(f"• {line}" for line in lines), call.say("help.foot")]),
        data=[spec.name for spec in functions],
        choices=tuple(
            Choice(_title(one, call), call.say("help.press", heading=_title(one, call).lower()), stays=True)
            for one in used
        ),
        brief="\n".join([head, shorten(firsts, _BRIEF_CHARS, placeholder=" …")]),
    )


def _is_for_people(spec: FunctionSpec, call: Call) -> bool:
    """Whether members can request the function: with a command, or in words if it is active here. Built-in functions
    without a command repeat another one for models."""
    if _is_typed(spec) or spec.origin.built_in:
        return _is_typed(spec)
    ways = spec.access.offered_to
    is_active = spec.prompt.activation is Activation.ALWAYS or call.is_active(spec)
    return is_active and OfferedTo.MODEL in ways and ways != _MODELS_ALONE


def _is_typed(spec: FunctionSpec) -> bool:
    return bool(spec.command.words) and OfferedTo.COMMAND in spec.access.offered_to


def _title(heading: str, call: Call) -> str:
    return call.say(f"help.headings.{heading}")


def _heading_called(topic: str, call: Call) -> str:
    """Heading with that title, in the chat's language or in English; empty if there is none."""
    wanted = " ".join(topic.casefold().split())
    return next((one for one in HEADINGS if wanted in (_title(one, call).casefold(), one.replace("_", " "))), "")


def _shown(heading: str, functions: Sequence[FunctionSpec], call: Call) -> list[str]:
    """At most three examples of the heading; commands and names where there are too few sentences."""
    sentences = example_sentences(heading, call.profile.texts)
    found = [
        _quoted(sentences[spec.name], call) for spec in functions if spec.origin.built_in and spec.name in sentences
    ]
    if len(found) < _FEWEST_EXAMPLES:
        found += [_called(spec, call) for spec in functions if spec.name not in sentences]
        found += [f"@{name}" for name in _on_request(call)] if heading == "more" else []
    return found[:_MOST_EXAMPLES]


def _quoted(sentence: str, call: Call) -> str:
    return sentence if sentence.startswith("/") else call.say("help.quoted", sentence=sentence)


def _called(spec: FunctionSpec, call: Call) -> str:
    """Command of the function, or its first example, or its name."""
    if _is_typed(spec):
        return spoken_name(spec, call.profile.texts.language)
    example = next((one for one in _examples(spec, call) if "…" not in one), "")
    return _quoted(example, call) if example else plain_name(spec.name)


def _page(heading: str, functions: Sequence[FunctionSpec], call: Call) -> FunctionResult:
    texts = call.profile.texts
    lines = [
        call.say("help.line", name=_called(spec, call), about=short_about(spec, texts))
        for spec in functions[:_MOST_LINES]
    ]
    if len(functions) > _MOST_LINES:
        lines.append(call.say("help.more_lines", count=len(functions) - _MOST_LINES))
    names = _on_request(call) if heading == "more" else []
    if names:
        more = "…" if len(names) > _MOST_NAMED else ""
        lines.append(call.say("help.on_request", names=", ".join(f"@{name}" for name in names[:_MOST_NAMED]) + more))
    title = call.say("help.heading", title=_title(heading, call), examples="").rstrip()
    text = "\n".join([title, *(lines or [call.say("help.nothing")]), call.say("help.foot")])
    return FunctionResult.say(text, data=[spec.name for spec in functions])


def _on_request(call: Call) -> list[str]:
    """Names of the functions and groups that can be activated and are not."""
    return [one.name for one in call.on_request() if one.name not in call.profile.active]


def _one(topic: str, context: MessageContext, call: Call) -> FunctionResult:
    """Describe one function; one that only works in the other kind of chat, with a note."""
    wanted = topic.strip().lstrip("/").casefold()
    here = call.functions()
    for spec in (*here, *call.functions_elsewhere()):
        if spec.access.offered_to.isdisjoint(_PEOPLES_WAYS):
            continue
        if wanted in (spec.name.casefold(), plain_name(spec.name).casefold()) or wanted in spec.command.words:
            lines = _detail(spec, call)
            if not spec.is_set_up(context.bot):
                lines.append(call.say("help.not_set_up"))
            if spec not in here:
                key = "refusals.only_private" if context.is_group else "refusals.only_group"
                lines.append(call.say(key, name=spoken_name(spec, call.profile.texts.language)))
            return FunctionResult.say("\n".join(lines), data={"name": spec.name, "parameters": spec.parameters})
    return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("help.unknown", topic=topic))


def _detail(spec: FunctionSpec, call: Call) -> list[str]:
    """Complete description of a function: its command forms from the texts, if any, else its parameters."""
    texts = call.profile.texts
    typed = f"help.typed.{spec.name}"
    shown = spoken_name(spec, texts.language)
    others = [word for word in map("/{}".format, spec.command.words) if word != shown]
    also = [call.say("help.also", commands=", ".join(others))] if others else []
    if texts.has(typed):
        return [about(spec, texts), *(f"• {line}" for line in call.say(typed).splitlines()), *also]
    lines = [call.say("help.usage", usage=usage_line(spec, texts.language), about=about(spec, texts))]
    for name, schema in spec.parameters["properties"].items():
        key = "help.parameter" if name in spec.parameters["required"] else "help.parameter_optional"
        lines.append(call.say(key, name=name, hint=_hint(spec, name, schema, call)))
    examples = _examples(spec, call)[:_MOST_EXAMPLES]
    said = [call.say("help.examples_of", examples=call.say("help.between").join(examples))] if examples else []
    return [*lines, *also, *said]


def _hint(spec: FunctionSpec, name: str, schema: JsonObject, call: Call) -> str:
    """Explanation of a parameter: the text of a built-in function, else its description and allowed values."""
    texts, key = call.profile.texts, f"functions.parameters.{spec.name}.{name}"
    if spec.origin.built_in and texts.has(key):
        return call.say(key)
    described = str(schema.get("description", "")).rstrip(".")
    kind = _KINDS.get(str(schema.get("format")))
    rule = call.say(f"arguments.kinds.{kind}") if kind else allowed(schema, texts)
    if described and not kind and schema.get("type", "string") == "string" and "enum" not in schema:
        return described
    return f"{described}; {rule}" if described else rule


def _examples(spec: FunctionSpec, call: Call) -> list[str]:
    """Examples in the chat's language, or else all. Placeholders have sample values in a built-in function, else `…`,
    and such examples come last."""
    texts = call.profile.texts
    is_chinese = texts.language == "zh"
    fitting = [one for one in spec.prompt.examples if any(map(is_unspaced, one)) == is_chinese] or spec.prompt.examples

    lines = call.say("help.values").splitlines() if spec.origin.built_in else []
    values = dict(line.split(": ", 1) for line in lines)
    filled = [_SLOT.sub(lambda found: values.get(found[1], "…"), one) for one in fitting]
    return sorted(filled, key=lambda one: "…" in one)
