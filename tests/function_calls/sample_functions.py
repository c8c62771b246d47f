"""Functions as an author writes them, for tests of the decorator and of what is read from signatures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.loading.python_functions import as_spec
from function_calls.spec import FunctionResult, FunctionSpec


class Units(BaseModel, frozen=True):
    """From one unit to another."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")


class Conversions:
    """Notes which conversions were asked for."""

    def __init__(self, runs: list[tuple[str, str]]) -> None:
        self.runs = runs


@tool_function(name="convert", description="Convert.", commands=["convert"], effect="once", confirm="Convert?")
async def convert(context: MessageContext, args: Units, *, conversions: Conversions) -> FunctionResult:
    conversions.runs.append((args.source, args.target))
    return FunctionResult.say(f"{args.source} to {args.target}")


def convert_spec(runs: list[tuple[str, str]]) -> FunctionSpec:
    """A function whose parameters are called `from` and `to`, and which needs a yes."""
    return as_spec(convert, {Conversions: Conversions(runs)})


class Priority(StrEnum):
    """How urgent."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True)
class Place:
    """Where."""

    name: str
    floor: int | None = None


class Address(BaseModel):
    """A place with a street."""

    street: str
    zip_code: str = Field(pattern=r"^\d{4}$", description="Four digits")


class Booking(BaseModel, frozen=True):
    """Every kind of field."""

    title: str = Field(description="What to book", min_length=1, max_length=40)
    guests: int = Field(2, ge=1, le=8)
    kind: Literal["room", "desk"] = "room"
    priority: Priority = Priority.LOW
    address: Address | None = None
    places: list[Place] = []
    prices: dict[str, float] = {}
    note: str | None = Field(None, description="Anything else")
    pair: tuple[int, str] | None = None
    size: int | float = 1
    wanted: bool = False


@dataclass
class Trip:
    """The same as a dataclass."""

    to: Place
    stops: list[Address]
    days: int = 3
    via: Literal["sea", "air"] | None = None


class Report(BaseModel):
    """What a function gives."""

    title: str
    lines: list[str] = []


@tool_function(examples=["book {title}"], tags=["office"], commands="book", x_color="blue")
async def book(context: MessageContext, args: Booking, *, call: Call) -> Report:
    """Book a room
    or a desk.

    More words for authors.
    """
    return Report(title=args.title, lines=[call.key])


@tool_function(description="Plan a trip.")
def travel(context: MessageContext, args: Trip) -> str:
    return f"{args.days} days to {args.to.name}"


@tool_function(description="Say hello.")
async def hello(context: MessageContext) -> str:
    return f"Hello, {context.sender.name}"


class RawText(BaseModel, frozen=True):
    """The words as they were said."""

    raw_text: str


@tool_function(description="Keep what was said.", effect="idempotent")
async def keep(context: MessageContext, args: RawText) -> str:
    return args.raw_text
