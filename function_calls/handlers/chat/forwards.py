"""Rules that forward messages with certain words to another chat, agreed on by the admins of both."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from config.texts import Phrases
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import ChatRules, ForwardRule
from function_calls.spec import FunctionResult, Message
from services.clock import Clock
from services.refs import ChatRef, ErrorCode

CODE_HOURS = 24
"""How long the other chat can accept a rule."""
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_CHARS = 8
_MOST_RULES = 20
_MOST_WORDS = 10
_LONGEST_WORD = 50
_RULE = re.compile(r"\s*(?P<words>.+?)\s*(?:\bto\b|到|→|->)\s*(?P<chat>\S+:\S+:\S+)\s*", re.DOTALL | re.IGNORECASE)

_admin_command = partial(
    tool_function, tags="chat", scope="group", offered_to=["command"], roles="admin", effect="idempotent"
)
_Code = Annotated[str, Field(description="The code of the rule", min_length=1, max_length=20)]


class ForwardArguments(BaseModel, frozen=True, extra="forbid"):
    rule: str | None = Field(
        default=None, description="Words, separated by commas, `to`, and the key of a chat", max_length=1000
    )


@_admin_command(
    description="Show the rules that forward messages from or to this chat, or propose one.",
    commands=("forward", "转发"),
    line="rule",
)
async def forward(
    context: MessageContext, args: ForwardArguments, *, rules: ChatRules, clock: Clock, call: Call
) -> FunctionResult:
    """List the rules of both directions; with a rule, give the code by which an admin of the other chat accepts it."""
    known = rules.forwards(context.chat)
    if not (args.rule or "").strip():
        lines = [_line(rule, context.chat, call.profile.texts) for rule in known]
        how = call.say("forwards.how", chat=context.chat.key)
        return FunctionResult.say("\n".join([*lines, how]), data=[rule.code for rule in known])
    found = _RULE.fullmatch(args.rule or "")
    parts = re.split(r"[,，、;；]", found["words"]) if found is not None else []
    words = tuple(dict.fromkeys(" ".join(part.split()) for part in parts if re.search(r"\w", part)))
    is_fitting = 0 < len(words) <= _MOST_WORDS and all(len(word) <= _LONGEST_WORD for word in words)
    if found is None or not is_fitting:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("forwards.unclear"), ["rule"])
    target = ChatRef.parse(found["chat"])
    if target == context.chat:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("forwards.same_chat"), ["rule"])
    if sum(rule.source == context.chat for rule in known) >= _MOST_RULES:
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("forwards.too_many", count=_MOST_RULES))
    code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_CHARS))
    rule = ForwardRule(code, context.chat, target, words, False, clock.now_ms() + CODE_HOURS * 3_600_000)
    await rules.put_forward(rule, context.sender.ref)
    text = call.say("forwards.proposed", code=code, words=", ".join(words), chat=target.key, hours=CODE_HOURS)
    return FunctionResult.say(text, data=code)


@_admin_command(
    description="Let another chat forward messages to this one.",
    commands=("forward accept", "转发 同意"),
    ask={"code": "@forwards.ask_code"},
)
async def forward_accept(context: MessageContext, code: _Code, *, rules: ChatRules, call: Call) -> FunctionResult:
    """Accept a rule to this chat, and notify the other chat."""
    rule = _found(code, context.chat, rules)
    if rule is None or rule.target != context.chat:
        return _unknown(code, call)
    await rules.put_forward(replace(rule, accepted=True), context.sender.ref)
    facts = {"code": rule.code, "words": ", ".join(rule.words)}
    told = call.say("forwards.was_accepted", chat=context.chat_title or context.chat.key, **facts)
    text = call.say("forwards.accepted", chat=rule.source.key, **facts)
    return FunctionResult(messages=(Message(text), Message(told, to=rule.source)))


@_admin_command(
    description="Remove a rule that forwards messages from or to this chat.",
    commands=("forward remove", "转发 删除"),
    ask={"code": "@forwards.ask_code"},
)
async def forward_remove(context: MessageContext, code: _Code, *, rules: ChatRules, call: Call) -> FunctionResult:
    """Remove a rule of either direction, and notify the other chat if it had been accepted."""
    rule = _found(code, context.chat, rules)
    if rule is None or (not rule.accepted and rule.source != context.chat):
        return _unknown(code, call)
    await rules.remove_forward(rule, context.sender.ref)
    other = rule.target if rule.source == context.chat else rule.source
    text = call.say("forwards.removed", code=rule.code)
    told = call.say("forwards.was_removed", code=rule.code, chat=context.chat_title or context.chat.key)
    return FunctionResult(messages=(Message(text), *([Message(told, to=other)] if rule.accepted else [])))


def _found(code: str, chat: ChatRef, rules: ChatRules) -> ForwardRule | None:
    wanted = "".join(one for one in code.upper() if one.isalnum())
    return next((rule for rule in rules.forwards(chat) if rule.code == wanted), None)


def _unknown(code: str, call: Call) -> FunctionResult:
    return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("forwards.unknown", code=code), ["code"])


def _line(rule: ForwardRule, here: ChatRef, texts: Phrases) -> str:
    is_from_here = rule.source == here
    key = "forwards.line_to" if is_from_here else "forwards.line_from"
    open_note = "" if rule.accepted else texts.say("forwards.open")
    other = rule.target if is_from_here else rule.source
    return texts.say(key, code=rule.code, words=", ".join(rule.words), chat=other.key) + open_note
