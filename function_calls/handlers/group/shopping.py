"""Shopping list of a chat: add, show, tick off, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.handlers.group.document_changes import changed, changes_document
from function_calls.spec import Choice, FunctionResult, Message
from services.calc.dice import alternatives
from services.chats.documents import Documents
from services.chats.shopping import Item, ShoppingList
from services.chats.todo import matching
from services.refs import ErrorCode, RequestProblem

_MOST_BUTTONS = 10
_LONGEST = 100
_changes = partial(changes_document, tags=("shopping", "plan"))
_Which = Annotated[str, Field(description="Numbers or words of the items, separated by commas", max_length=2000)]


@_changes(
    examples=(
        "put {items} on the shopping list",
        "add {items} to the shopping list",
        "shopping list: {items}",
        "show the shopping list",
        "what's on the shopping list",
        "把{items}加到购物清单",
        "看看购物清单",
    ),
    commands=("shop", "shopping list", "买", "购物清单"),
)
async def shop(
    context: MessageContext,
    items: Annotated[str, Field(description="Such as: milk, 6 eggs; empty to show the list", max_length=2000)] = "",
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Put things to buy on this chat's shopping list, or show the list if no items are given."""
    texts = [text[:_LONGEST] for text in alternatives([items])]
    if not texts:
        return _shown(await documents.read(context.chat, ShoppingList), call)
    shopping, numbers = await changed(context, ShoppingList, lambda state, _: state.add(texts), documents, call)
    return _shown(shopping, call, call.undo(f"/shop remove {_listed(numbers)}") if numbers else ())


@_changes(
    examples=(
        "i bought {items}",
        "tick {items} off the shopping list",
        "i got the {items} from the shopping list",
        "cross {items} off the shopping list",
        "{items} is bought",
        "我买了{items}",
        "{items}买好了",
    ),
    commands=("bought", "shop done", "买好"),
    ask={"items": "@shopping.ask_items"},
    line="items",
)
async def shop_done(
    context: MessageContext,
    items: _Which,
    back: Annotated[bool, Field(description="Put ticked items back on the list")] = False,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Tick things off this chat's shopping list that somebody has bought."""
    change = _of(items, lambda state, numbers: state.mark(numbers, done=not back))
    shopping, numbers = await changed(context, ShoppingList, change, documents, call)
    undo = call.undo(f"/bought {_listed(numbers)} back={str(not back).lower()}") if numbers else ()
    return _report("back" if back else "bought", numbers, shopping, context, call, undo)


@_changes(
    examples=(
        "clear the shopping list",
        "remove {items} from the shopping list",
        "take {items} off the shopping list",
        "delete the bought things from the shopping list",
        "we don't need {items} from the shopping list",
        "清理购物清单",
        "从购物清单删掉{items}",
    ),
    commands=("shop clear", "shop remove", "买 清理", "买 删除"),
    line="items",
)
async def shop_remove(
    context: MessageContext,
    items: _Which = "",
    restore: Annotated[int, Field(description="Put back what this version of the list removed", ge=0)] = 0,
    *,
    documents: Documents,
    call: Call,
) -> FunctionResult:
    """Remove things from this chat's shopping list; without items, all that are bought."""

    def change(state: ShoppingList, now_ms: int) -> list[int]:
        if restore:
            return state.restore(restore)
        if items:
            return _of(items, ShoppingList.remove)(state, now_ms)
        return state.remove([one.number for one in state.shown if one.is_done])

    shopping, numbers = await changed(context, ShoppingList, change, documents, call)
    version = next((one.removed_in for one in shopping.items if one.number in numbers), 0)
    undo = call.undo(f"/shop clear restore={version}") if version else ()
    return _report("back" if restore else "removed", numbers, shopping, context, call, undo)


def _of(
    items: str, change: Callable[[ShoppingList, Sequence[int]], list[int]]
) -> Callable[[ShoppingList, int], list[int]]:
    """`change` with the numbers of `items`. It raises RequestProblem if one is unknown or ambiguous."""

    def run(state: ShoppingList, _: int) -> list[int]:
        numbers: list[int] = []
        for which in alternatives([items]):
            found = matching(state.shown, which)
            if not found:
                raise RequestProblem("todo.not_found", ErrorCode.NOT_FOUND, item=which)
            if len(found) > 1:
                several = "\n".join(map(_line, found[:10]))
                raise RequestProblem("shopping.several", ErrorCode.BAD_ARGUMENTS, item=which, items=several)
            numbers.append(found[0].number)
        return change(state, numbers)

    return run


def _report(
    key: str,
    numbers: Sequence[int | str],
    shopping: ShoppingList,
    context: MessageContext,
    call: Call,
    undo: tuple[Choice, ...],
) -> FunctionResult:
    """Report of a change, which a press of a button adds to the list in place."""
    items = ", ".join(one.text for one in shopping.items if one.number in numbers)
    text = call.say(f"shopping.{key if numbers else 'unchanged'}", name=context.sender.name, items=items)
    board = _shown(shopping, call).messages[0]
    update = Message(f"{board.text}\n{text}", choices=board.choices)
    return FunctionResult.say(text, data={"numbers": list(numbers)}, choices=undo, update=update)


def _shown(shopping: ShoppingList, call: Call, undo: tuple[Choice, ...] = ()) -> FunctionResult:
    """The list, with a button for each of the first ten open items."""
    shown, still = shopping.shown, [one for one in shopping.shown if not one.is_done]
    if not shown:
        return FunctionResult.say(call.say("shopping.empty"), data=[])
    lines = [call.say("shopping.title", count=len(still)), *map(_line, shown)]
    buttons = [Choice(one.text, f"/bought {one.number}") for one in still[:_MOST_BUTTONS]]
    buttons += [Choice(call.say("shopping.clear"), "/shop clear")] if len(still) < len(shown) else []
    data = [{"number": one.number, "text": one.text, "bought": one.is_done} for one in shown]
    return FunctionResult.say("\n".join(lines), data=data, choices=(*buttons, *undo))


def _line(item: Item) -> str:
    return f"#{item.number} {'✅ ' if item.is_done else ''}{item.text}"


def _listed(numbers: Sequence[int | str]) -> str:
    return ", ".join(map(str, numbers))
