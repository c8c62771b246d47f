"""CREATE TASK: an entry of the chat's to-do list."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from services.todo import MOST_OPEN, ListFull, Priority, TodoLists

_MOST_CHARS = 500
_TASKS = "tasks"


@basic_keyword(
    "CREATE TASK {title} [, {assignee} [, {due} [, {project}]]]",
    "CREATE_TASK {title} [, {assignee} [, {due} [, {project}]]]",
    effect="once",
    touches=("stays_here",),
)
async def create_task(
    run: ScriptRun,
    title: Value,
    assignee: Value = None,
    due: Value = None,
    project: Value = None,
    *,
    todos: TodoLists,
) -> Value:
    """Put an entry on the chat's to-do list. Its value is the entry's number."""
    words = text_of(title).strip()
    if not words:
        raise RunFault(RunCode.BAD_VALUE, "the task has no title")
    facts = [text_of(one).strip() for one in (assignee, due, project)]
    told = ", ".join(one for one in facts if one)
    text = f"{words} ({told})" if told else words
    if len(text) > _MOST_CHARS:
        raise RunFault(RunCode.BAD_VALUE, f"a task has {_MOST_CHARS} characters at most")
    number = run.kept[_TASKS] = run.kept.get(_TASKS, 0) + 1
    sender = run.context.sender
    try:
        entry = await todos.add(
            run.context.chat,
            text,
            Priority.NORMAL,
            author=sender.ref,
            author_name=sender.name,
            call_key=f"{run.call.key}:task:{number}",
        )
    except ListFull:
        raise RunFault(RunCode.NOT_ALLOWED, f"the list has {MOST_OPEN} open entries, which is the most") from None
    return entry.number
