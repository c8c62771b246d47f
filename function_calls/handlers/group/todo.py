"""To-do list of a chat."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.handlers.group.document_changes import changes_document, reads_document
from function_calls.spec import FunctionResult
from services.chats.todo import Priority, SeveralTodos, Show, State, TodoLists
from services.refs import ErrorCode, JsonObject, Role
from services.store.chats.todos import Todo

_changes = partial(changes_document, tags="todo")
_reads = partial(reads_document, tags="todo")
_Show = Annotated[Show, Field(description="Which entries")]
_Item = Annotated[str, Field(description="The entry's number or words of its text", min_length=1, max_length=300)]


class AddArguments(BaseModel, frozen=True, extra="forbid"):
    text: str = Field(description="What is to be done", min_length=1, max_length=300, pattern=r"\S")
    priority: Priority = Field(default=Priority.NORMAL, description="How much it matters")


class UpdateArguments(BaseModel, frozen=True, extra="forbid"):
    number: int = Field(description="The entry's number", ge=1, le=999_999_999)
    text: str | None = Field(
        default=None, description="What it should say instead", min_length=1, max_length=300, pattern=r"\S"
    )
    state: State | None = Field(default=None, description="Whether it is done or open again")


@_changes(
    description="Add an entry to this chat's to-do list",
    examples=(
        "add {text} to my to do list",
        "put {text} on the todo list",
        "add {text} to the list with {priority} priority",
        "put {text} on my list of things to do",
        "add a task to {text}",
        "add {text} to our list",
        "new todo: {text}",
        "把{text}加到待办清单",
        "待办里加一条{text}",
        "添加待办{text}",
    ),
    commands=("todo add", "待办 添加"),
    touches="stays_here",
    ask={"text": "@todo.ask_text"},
)
async def todo_add(context: MessageContext, args: AddArguments, *, lists: TodoLists, call: Call) -> FunctionResult:
    """Add an entry. Idempotent: a run repeated after a crash finds the entry by the key of the call."""
    entry = await lists.add(
        context.chat,
        args.text,
        args.priority,
        author=context.sender.ref,
        author_name=context.sender.name,
        call_key=call.key,
    )
    text, undo = call.say("todo.added", number=entry.number, text=entry.text), call.undo(f"/todo remove {entry.number}")
    return FunctionResult.say(text, data=_data(entry), choices=undo)


@_reads(
    description="Show this chat's to-do list",
    examples=(
        "what's on my to do list",
        "show me the todo list",
        "read my to-do list to me",
        "what do we still have to do today",
        "what are my open tasks",
        "what is on the list of things to do",
        "list the {show} todos",
        "is there anything on my list",
        "看看待办清单",
        "待办列表有什么",
        "还有哪些事情要做",
    ),
    commands=("todo", "todos", "todo list", "待办", "待办 列表"),
)
async def todo_list(
    context: MessageContext, show: _Show = Show.OPEN, *, lists: TodoLists, call: Call
) -> FunctionResult:
    """List the entries by priority, highest first."""
    entries = await lists.entries(context.chat, show)
    if not entries:
        return FunctionResult.say(call.say(f"todo.empty.{show}"), data=[])
    lines = [call.say(f"todo.title.{show}", count=len(entries)), *(_line(entry, call) for entry in entries)]
    return FunctionResult.say("\n".join(lines), data=[_data(entry) for entry in entries])


@_changes(
    description="Mark an entry of the to-do list as done",
    examples=(
        "mark {item} as done on the todo list",
        "check off {item} on my to do list",
        "tick {item} off the list",
        "todo {item} is done",
        "i finished the task {item}",
        "{item} is finished, cross it off",
        "把待办{item}标记为完成",
        "待办{item}做完了",
        "完成待办{item}",
    ),
    commands=("todo done", "done", "待办 完成"),
    ask={"item": "@todo.ask_item"},
)
async def todo_done(context: MessageContext, item: _Item, *, lists: TodoLists, call: Call) -> FunctionResult:
    """Mark an entry as done; permitted to all members of the chat."""
    try:
        entry, now = await lists.finish(context.chat, item, call_key=call.key)
    except SeveralTodos as error:
        return _several(item, error, call)
    text = call.say("todo.done" if now else "todo.done_before", number=entry.number, text=entry.text)
    undo = call.undo(f"/todo update {entry.number} state=open") if now else ()
    return FunctionResult.say(text, data={"number": entry.number, "done": True}, choices=undo)


@_changes(
    description="Change an entry of the to-do list: its text, or whether it is done",
    examples=(
        "change todo {number} to {text}",
        "reword todo {number} as {text}",
        "update entry {number} of the todo list to say {text}",
        "change number {number} on my to do list to {text}",
        "set todo number {number} to {state} again",
        "把待办{number}改成{text}",
        "修改待办{number}为{text}",
        "把待办第{number}条的内容换成{text}",
    ),
    commands=("todo update", "todo change", "待办 修改"),
    ask={"number": "@todo.ask_number"},
)
async def todo_update(
    context: MessageContext, args: UpdateArguments, *, lists: TodoLists, call: Call
) -> FunctionResult:
    """Change an entry: the text by its author, or by moderators and above; the state by all members."""
    if args.text is None and args.state is None:
        return FunctionResult.fail(ErrorCode.MISSING_ARGUMENTS, call.say("todo.no_change"), ["text"])
    entry = await lists.update(
        context.chat,
        args.number,
        text=args.text,
        state=args.state,
        by=context.sender.ref,
        may_reword_any=context.sender.role in Role.at_least(Role.MODERATOR),
        call_key=call.key,
    )
    return FunctionResult.say(call.say("todo.updated", line=_line(entry, call)), data=_data(entry))


@_changes(
    description="Delete an entry from the to-do list",
    examples=(
        "remove {item} from my to do list",
        "delete {item} from the list",
        "take {item} off the todo list",
        "clear {item} from our todo list",
        "erase todo {item}",
        "i no longer need {item} on my to-do list",
        "从待办里删除{item}",
        "删除待办{item}",
        "删掉待办{item}",
        "把{item}从待办清单移除",
    ),
    commands=("todo remove", "todo delete", "待办 删除"),
    touches="reads_outside",
    ask={"item": "@todo.ask_item"},
)
async def todo_remove(context: MessageContext, item: _Item, *, lists: TodoLists, call: Call) -> FunctionResult:
    """Delete an entry: the member's own, or any for moderators and above."""
    try:
        entry = await lists.remove(
            context.chat,
            item,
            by=context.sender.ref,
            may_remove_any=context.sender.role in Role.at_least(Role.MODERATOR),
            call_key=call.key,
        )
    except SeveralTodos as error:
        return _several(item, error, call)
    key = "todo.removed" if entry.text else "todo.removed_before"
    return FunctionResult.say(call.say(key, number=entry.number, text=entry.text), data={"number": entry.number})


def _several(item: str, error: SeveralTodos, call: Call) -> FunctionResult:
    lines = [call.say("todo.several", item=item), *(_line(entry, call) for entry in error.candidates[:10])]
    return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, "\n".join(lines), ["item"])


def _line(entry: Todo, call: Call) -> str:
    priority = call.say(f"todo.mark.{list(Priority)[entry.priority]}")
    done = call.say("todo.mark.done") if entry.is_done else ""
    return call.say(
        "todo.line", number=entry.number, text=entry.text, author=entry.author_name, marks=f"{priority}{done}"
    )


def _data(entry: Todo) -> JsonObject:
    return {
        "number": entry.number,
        "text": entry.text,
        "priority": list(Priority)[entry.priority].value,
        "added_by": entry.author_name,
        "done": entry.is_done,
    }
