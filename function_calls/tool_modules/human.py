"""Function for a model to ask the member during a turn. Disabled unless the settings name this module."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult
from services.refs import ErrorCode

_MOST_CHOICES = 8
_CHOICE_CHARS = 60

Option = Annotated[str, Field(min_length=1, max_length=_CHOICE_CHARS, pattern=r"\S")]


class HumanArguments(BaseModel, frozen=True, extra="forbid"):
    question: str = Field(
        description="The question, as the member is to read it", min_length=1, max_length=1000, pattern=r"\S"
    )
    choices: list[Option] = Field(
        default_factory=list,
        max_length=_MOST_CHOICES,
        description="Answers to offer; the member may answer in other words too",
    )


@tool_function(
    description=(
        "Ask the member who wrote something that you need to go on, and wait for the answer. Only for what nobody but "
        "a person can know or decide; never ask for passwords or keys"
    ),
    examples=("ask me {question}", "ask me before you go on: {question}", "问我：{question}", "先问我{question}"),
    offered_to=("model",),
    effect="read",
)
async def human_input(context: MessageContext, args: HumanArguments, *, call: Call) -> FunctionResult:
    """Ask the member in the chat. Gives the answer, and whose it is."""
    resumed = call.resumed
    if resumed is None:
        choices = tuple(Choice(one, one) for one in dict.fromkeys(map(str.strip, args.choices)))
        return FunctionResult.ask(args.question.strip(), choices=choices)
    if resumed.kind != "answered":
        return FunctionResult.fail(ErrorCode.CANCELLED, call.say("human.no_answer"))
    return FunctionResult(data={"answer": resumed.answer, "by": context.sender.name})
