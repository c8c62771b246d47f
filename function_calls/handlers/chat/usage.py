"""Use of the language model in this chat, and the command for longer thinking."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.checks.budgets import MICROS
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.chats.members import KnownMembers
from services.chats.usage import UsageCounts


@tool_function(
    examples=(
        "how much have i used you today",
        "show my usage of the language model",
        "how many tokens have i used this month",
        "what did my questions to you cost",
        "how many requests have i made here",
        "我今天用了多少 token",
        "我这个月的用量是多少",
    ),
    commands=("usage", "用量"),
    tags="chat",
    return_direct=True,
)
async def usage(context: MessageContext, *, counts: UsageCounts, call: Call) -> FunctionResult:
    """Show how much the asker has used the language model in this chat, today and this month."""
    found = await counts.of(context.chat, call.now.date())
    mine = found.get(context.sender.ref.key, (Counter(), Counter()))
    return FunctionResult.say(_line(context.sender.name, mine, call))


@tool_function(commands=("usage all", "全部用量"), tags="chat", offered_to=["command", "api"], roles="admin")
async def chat_usage(
    context: MessageContext, *, counts: UsageCounts, known: KnownMembers, call: Call
) -> FunctionResult:
    """Show how much each member has used the language model in this chat, today and this month."""
    found = await counts.of(context.chat, call.now.date())
    names = {one.ref.key: one.name for one in await known.of(context.chat)} | {"": call.say("usage.bot")}
    ordered = sorted(found.items(), key=lambda item: -item[1][1]["tokens"])
    lines = [_line(names.get(key, key.rpartition(":")[2]), used, call) for key, used in ordered]
    return FunctionResult.say("\n".join(lines) or call.say("usage.nothing"))


def _line(name: str, used: tuple[Counter[str], Counter[str]], call: Call) -> str:
    def amount(of: Counter[str]) -> str:
        money = call.say("usage.money", money=f"{of['money'] / MICROS:.2f}") if of["money"] else ""
        return call.say("usage.amount", requests=of["requests"], tokens=of["tokens"], money=money)

    return call.say("usage.line", name=name, today=amount(used[0]), month=amount(used[1]))


@tool_function(
    description="Answer a question after longer thinking.",
    commands=("think", "想想"),
    tags="chat",
    line="question",
    offered_to=["command"],
)
def think(context: MessageContext, question: Annotated[str, Field(description="What to think about")]) -> bool:
    """Leave the question to the model, which recognises the command."""
    return False
