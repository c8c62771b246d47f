"""CREATE TASK: an entry of the chat's to-do list."""

from __future__ import annotations

from function_calls.basic.codes import RunCode
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.session import translated_error
from function_calls.basic.values import text_of
from services.chats.todo import MOST_OPEN, Priority, TodoLists
from services.refs import RequestProblem

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
    """Add a task to the chat's to-do list. Returns the number of the task."""
    words = text_of(title).strip()
    if not words:
        raise translated_error(run, RunCode.BAD_VALUE, "task.no_title")
    facts = [text_of(one).strip() for one in (assignee, due, project)]
    message = ", ".join(one for one in facts if one)
    text = f"{words} ({message})" if message else words
    if len(text) > _MOST_CHARS:
        raise translated_error(run, RunCode.BAD_VALUE, "task.too_long", most=_MOST_CHARS)
    number = run.stored_data[_TASKS] = run.stored_data.get(_TASKS, 0) + 1
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
    except RequestProblem:
        raise translated_error(run, RunCode.NOT_ALLOWED, "task.full", most=MOST_OPEN) from None
    return entry.number
