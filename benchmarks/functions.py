"""Functions of the benchmarks: twenty typical ones for a model, and any number of typed commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.loading.python_functions import as_spec
from function_calls.spec import FunctionResult, FunctionSpec

_Parameter = tuple[type, Any, str]
"""Type, default (... if there is none) and description."""
_UNIT: Any = Literal["celsius", "fahrenheit"]
_MODE: Any = Literal["car", "bike", "walk", "transit"]

TWENTY: Sequence[tuple[str, str, dict[str, _Parameter]]] = (
    (
        "get_weather",
        "Tell the weather of a city today or over the next days.",
        {
            "city": (str, ..., "The city, as people call it."),
            "unit": (_UNIT, "celsius", "Unit of temperatures."),
            "days": (int, 1, "How many days, counted from today."),
        },
    ),
    (
        "find_trains",
        "Find train connections between two stations.",
        {
            "start": (str, ..., "Station to leave from."),
            "end": (str, ..., "Station to arrive at."),
            "day": (str, ..., "The day, as YYYY-MM-DD."),
            "changes": (int, 3, "At most so many changes."),
        },
    ),
    (
        "exchange",
        "Convert an amount of money into another currency.",
        {
            "amount": (float, ..., "How much."),
            "source": (str, ..., "Three-letter code of the currency it is in."),
            "target": (str, ..., "Three-letter code of the currency wanted."),
        },
    ),
    (
        "nudge",
        "Remind a member of something at a given time.",
        {"what": (str, ..., "What to be reminded of."), "at": (str, ..., "When, as ISO 8601.")},
    ),
    ("nudges", "List a member's open reminders.", {"most": (int, 10, "At most so many.")}),
    (
        "translate",
        "Translate a text into another language.",
        {"text": (str, ..., "The text."), "language": (str, ..., "The language wanted.")},
    ),
    (
        "search_web",
        "Search the web and list the best pages.",
        {"query": (str, ..., "What to look for."), "most": (int, 5, "At most so many pages.")},
    ),
    (
        "top_stories",
        "Tell the latest headlines about a subject.",
        {"subject": (str, ..., "The subject."), "country": (str, "no", "Two-letter code of the country.")},
    ),
    (
        "play",
        "Play a piece of music in the living room.",
        {"title": (str, ..., "Title of the piece."), "artist": (str, "", "Who plays it.")},
    ),
    (
        "countdown",
        "Start a countdown.",
        {"seconds": (int, ..., "How long."), "label": (str, "timer", "What it is for.")},
    ),
    ("reckon", "Work out an arithmetic expression.", {"expression": (str, ..., "The expression.")}),
    ("share_price", "Tell the latest price of a share.", {"symbol": (str, ..., "Ticker symbol of the share.")}),
    (
        "send_mail",
        "Send an e-mail in the group's name.",
        {
            "to": (str, ..., "Address of the recipient."),
            "subject": (str, ..., "Subject of the mail."),
            "body": (str, ..., "Text of the mail."),
            "urgent": (bool, False, "Whether it is marked as urgent."),
        },
    ),
    (
        "book_table",
        "Book a table in a restaurant.",
        {
            "restaurant": (str, ..., "Name of the restaurant."),
            "people": (int, ..., "How many will come."),
            "at": (str, ..., "When, as ISO 8601."),
        },
    ),
    ("define", "Explain what a word means.", {"word": (str, ..., "The word.")}),
    (
        "directions",
        "Describe the way between two places.",
        {
            "start": (str, ..., "Where to start."),
            "end": (str, ..., "Where to go."),
            "mode": (_MODE, "car", "How to travel."),
        },
    ),
    (
        "throw_dice",
        "Throw dice.",
        {"sides": (int, 6, "Sides of each die."), "dice": (int, 1, "How many dice are thrown.")},
    ),
    ("sum_up", "Sum up what was said lately.", {"messages": (int, 50, "How many messages to read.")}),
    (
        "ask_group",
        "Open a poll in the group.",
        {"question": (str, ..., "The question."), "options": (list[str], ..., "What can be chosen.")},
    ),
    (
        "hush",
        "Silence a member of the group for a while.",
        {"member": (str, ..., "Whom."), "minutes": (int, 10, "For how long.")},
    ),
)


def functions(count: int = 20) -> list[FunctionSpec]:
    """`count` functions: the twenty, repeated with numbered names."""
    specs: list[FunctionSpec] = []
    for number in range(count):
        name, description, parameters = TWENTY[number % len(TWENTY)]
        again = number // len(TWENTY)
        specs.append(_function(f"{name}_{again}" if again else name, description, parameters))
    return specs


def commands(count: int, effect: str = "read") -> list[FunctionSpec]:
    """`count` functions with one integer argument each, called as `/cmd0 1`, `/cmd1 1` and so on."""
    return [_command(f"cmd{number}", effect) for number in range(count)]


class Number(BaseModel):
    """Argument of each command."""

    n: int


def _command(name: str, effect: str) -> FunctionSpec:
    async def run(context: MessageContext, args: Number) -> FunctionResult:
        return FunctionResult.say(f"{name}:{args.n}")

    mark = tool_function(name, "Repeat a number.", commands=[name], effect=effect)
    return as_spec(mark(run), {})


def _function(name: str, description: str, parameters: dict[str, _Parameter]) -> FunctionSpec:
    fields: dict[str, Any] = {
        key: (kind, Field(default, description=text)) for key, (kind, default, text) in parameters.items()
    }
    answer = _weather if name.startswith("get_weather") else _done

    async def run(context: MessageContext, args: Any) -> FunctionResult:
        return FunctionResult.say(answer(args))

    # The arguments model is created at run time, so the source cannot contain its annotation.
    run.__annotations__["args"] = create_model(name, **fields)
    return as_spec(tool_function(name, description)(run), {})


def _weather(arguments: Any) -> str:
    return f"weather in {arguments.city}: sunny"


def _done(arguments: Any) -> str:
    return "done"


Answer = Callable[[Any], str]
