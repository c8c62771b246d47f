"""Shopping list of a chat: add, show, tick off, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import Choice, FunctionResult, Message, ToolError
from services.calc.dice import alternatives
from services.chats.documents import Documents
from services.chats.shopping import MOST_OPEN, Item, ShoppingList, TooManyItems
from services.chats.todo import matching
from services.refs import ErrorCode

_MOST_BUTTONS = 10
_LONGEST = 100
_Items = Annotated[list[str], Field(description="Each with its quantity, such as 6 eggs", max_length=100)]
_Which = Annotated[list[str], Field(description="Their numbers or words of their texts", max_length=100)]


@tool_function(
    name="shop_add",
    description="Put things to buy on this chat's shopping list",
    examples=(
        "put {items} on the shopping list",
        "add {items} to the shopping list",
        "we need to buy {items}",
        "shopping list: {items}",
        "buy {items}",
        "把{items}加到购物清单",
        "购物清单加上{items}",
        "要买{items}",
    ),
    commands=("shop", "买"),
    tags=("shopping", "plan"),
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
)
async def shop_add(
    context: MessageContext,
    items: _Items = [],  # noqa: B006 - never changed
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Add items, and show the list; without items only show it."""
    texts = [text[:_LONGEST] for text in alternatives(items)]
    if not texts:
        return await shop_list(context, documents=documents, call=call)
    try:
        shopping, numbers = await documents.change(
            context.chat, ShoppingList, [], call.key, lambda state: state.add(texts)
        )
    except TooManyItems:
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("todo.full", most=MOST_OPEN))
    board = _board(shopping, call)
    undo = call.undo(f"/shop remove {','.join(map(str, numbers))}")
    return FunctionResult.say(board.text, data=_data(shopping), choices=(*board.choices, *undo), update=board)


@tool_function(
    name="shop_list",
    description="Show this chat's shopping list",
    examples=(
        "show the shopping list",
        "what's on the shopping list",
        "what do we need to buy",
        "what do we still have to buy",
        "read me the shopping list",
        "看看购物清单",
        "要买些什么",
        "购物清单上有什么",
    ),
    commands=("shop list", "shopping", "shopping list", "购物清单"),
    tags=("shopping", "plan"),
    touches="reads_outside",
    effect="read",
)
async def shop_list(context: MessageContext, *, documents: Documents, call: Call) -> FunctionResult:
    """Show the items, open ones first, with a button for each of the first ten."""
    shopping = await documents.read(context.chat, ShoppingList)
    return FunctionResult(True, (_board(shopping, call),), _data(shopping))


@tool_function(
    name="shop_done",
    description="Tick things off this chat's shopping list that somebody has bought",
    examples=(
        "i bought {items}",
        "tick {items} off the shopping list",
        "i got the {items} from the shopping list",
        "cross {items} off the shopping list",
        "{items} is bought",
        "我买了{items}",
        "{items}买好了",
        "购物清单上的{items}买到了",
    ),
    commands=("bought", "shop done", "买好", "买到"),
    tags=("shopping", "plan"),
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
    ask={"items": "@shopping.ask_items"},
)
async def shop_done(
    context: MessageContext,
    items: _Which,
    back: Annotated[bool, Field(description="Put ticked items back on the list")] = False,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Tick items off; permitted to all members."""
    mark = _chosen(items, call, lambda state, numbers: state.mark(numbers, done=not back))
    shopping, numbers = await documents.change(context.chat, ShoppingList, [], call.key, mark)
    texts = ", ".join(one.text for one in shopping.items if one.number in numbers)
    key = "unchanged" if not numbers else "back" if back else "bought"
    undo = call.undo(f"/bought {','.join(map(str, numbers))} back={'false' if back else 'true'}") if numbers else ()
    return _report(call.say(f"shopping.{key}", name=context.sender.name, items=texts), shopping, undo, call)


@tool_function(
    name="shop_remove",
    description="Remove things from this chat's shopping list; without items, all that are bought",
    examples=(
        "clear the shopping list",
        "remove {items} from the shopping list",
        "take {items} off the shopping list",
        "delete the bought things from the shopping list",
        "we don't need {items} from the shopping list",
        "清理购物清单",
        "从购物清单删掉{items}",
        "购物清单不要{items}了",
    ),
    commands=("shop clear", "shop remove", "买 清理", "买 删除"),
    tags=("shopping", "plan"),
    touches=("reads_outside", "stays_here"),
    effect="idempotent",
)
async def shop_remove(
    context: MessageContext,
    items: _Which = [],  # noqa: B006 - never changed
    restore: Annotated[int, Field(description="Put back what this version of the list removed", ge=0)] = 0,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Remove items, or put removed ones back; permitted to all members."""

    def bought(state: ShoppingList) -> list[int]:
        return state.remove([one.number for one in state.shown if one.is_done])

    change = _chosen(items, call, ShoppingList.remove) if items else bought
    if restore:
        change = lambda state: state.restore(restore)  # noqa: E731 - one of three
    shopping, numbers = await documents.change(context.chat, ShoppingList, [], call.key, change)
    texts = ", ".join(one.text for one in shopping.items if one.number in numbers)
    key = "unchanged" if not numbers else "back" if restore else "removed"
    undo = call.undo(f"/shop clear restore={shopping.version}") if numbers and not restore else ()
    return _report(call.say(f"shopping.{key}", items=texts, name=context.sender.name), shopping, undo, call)


def _chosen(
    items: Sequence[str], call: Call, change: Callable[[ShoppingList, Sequence[int]], list[int]]
) -> Callable[[ShoppingList], list[int]]:
    """`change` with the numbers of the items that `items` mean. It raises ToolError if one is unknown or ambiguous."""

    def run(state: ShoppingList) -> list[int]:
        numbers: list[int] = []
        for which in alternatives(items):
            found = matching(state.shown, which)
            if len(found) != 1:
                text = call.say("todo.several" if found else "todo.not_found", item=which)
                lines = "\n".join([text, *(_line(one, call) for one in found[:10])])
                raise ToolError(lines, ErrorCode.BAD_ARGUMENTS if found else ErrorCode.NOT_FOUND)
            numbers.append(found[0].number)
        return change(state, numbers)

    return run


def _report(text: str, shopping: ShoppingList, undo: tuple[Choice, ...], call: Call) -> FunctionResult:
    board = _board(shopping, call)
    update = Message(f"{board.text}\n{text}", choices=board.choices)
    return FunctionResult.say(text, data=_data(shopping), choices=undo, update=update)


def _board(shopping: ShoppingList, call: Call) -> Message:
    """The list, with a button for each of the first ten open items."""
    still = [one for one in shopping.shown if not one.is_done]
    if not shopping.shown:
        return Message(call.say("shopping.empty"))
    lines = [call.say("shopping.title", count=len(still)), *(_line(one, call) for one in shopping.shown)]
    buttons = [Choice(f"✔ {one.text}", f"/bought {one.number}") for one in still[:_MOST_BUTTONS]]
    if len(still) < len(shopping.shown):
        buttons.append(Choice(call.say("shopping.clear"), "/shop clear"))
    return Message("\n".join(lines), choices=tuple(buttons))


def _line(item: Item, call: Call) -> str:
    return f"#{item.number} {call.say('todo.mark.done') if item.is_done else ''}{item.text}"


def _data(shopping: ShoppingList) -> list[dict[str, int | str | bool]]:
    return [{"number": one.number, "text": one.text, "bought": one.is_done} for one in shopping.shown]
