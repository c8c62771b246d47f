"""Functions as an operator would write them, for the goldens of `rollcall functions`."""

from pydantic import BaseModel, Field

from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.clock import Clock


class Parcel(BaseModel):
    """Which parcel."""

    number: str = Field(description="The number on the parcel", examples=["PK-17"])
    weight_kg: float | None = Field(default=None, description="Its weight in kilograms", gt=0)
    speed: str = Field(default="normal", description="How fast", pattern="^(normal|fast)$")


class Quote(BaseModel):
    """What it costs."""

    price: float


@tool_function(
    name="parcel_quote",
    description="What sending a parcel costs",
    examples=("how much is it to send {number}", "寄{number}多少钱"),
    commands=("quote", "报价"),
    roles="moderator",
    scope="group",
    cost_center="logistics",
)
async def quote(context: MessageContext, args: Parcel, *, clock: Clock) -> Quote:
    """Look it up."""
    return Quote(price=4.5 if args.speed == "normal" else 9)


@tool_function(effect="once", confirm="Send {number}?", sensitive=("number",))
def parcel_send(context: MessageContext, args: Parcel) -> FunctionResult:
    """Send a parcel."""
    return FunctionResult.say(f"{args.number} is on its way.")
