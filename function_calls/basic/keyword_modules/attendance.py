"""Attendants and conversations of a help desk. Both are rows: attendants those of `attendants.csv` next to the script,
with the columns `id`, `name`, `email`, `department` and `status`; conversations are saved in this chat."""

from __future__ import annotations

from function_calls.basic.keyword_modules._rows import Rows, RowSources, filter_in, place_of
from function_calls.basic.keyword_modules._service_errors import as_run_errors
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.basic.run.script_calls import call_function
from function_calls.basic.values import text_of
from services.refs import JsonObject
from services.scripts.tables import ScriptTables, like

ATTENDANTS, CONVERSATIONS = "attendants.csv", "conversations"
_OWN = ("stays_here",)


@basic_keyword("GET ATTENDANTS [{status}]")
async def attendants(run: ScriptRun, status: Value = None, *, sources: RowSources) -> Value:
    """The attendants, optionally with one status: a map with `count` and `items`."""
    wanted = {} if status is None else {"status": status}
    rows = await _rows(run, sources, ATTENDANTS, wanted)
    return {"count": len(rows), "items": rows}


@basic_keyword("GET ATTENDANT STATUS {attendant}")
async def attendant_status(run: ScriptRun, attendant: Value, *, sources: RowSources) -> Value:
    """The status of an attendant; NULL if there is none with this id."""
    rows = await _rows(run, sources, ATTENDANTS, {"id": attendant})
    return like(rows[0], "status") if rows else None


@basic_keyword("GET ATTENDANT STATS {attendant}")
async def attendant_stats(run: ScriptRun, attendant: Value, *, sources: RowSources) -> Value:
    """The number of conversations that an attendant has: a map with `active_conversations`."""
    rows = await _rows(run, sources, CONVERSATIONS, {"assigned_to": attendant})
    return {"active_conversations": sum(text_of(like(one, "status")) != "resolved" for one in rows)}


@basic_keyword("GET QUEUE")
async def queue(run: ScriptRun, *, sources: RowSources) -> Value:
    """The conversations that are not resolved: a map with `items`, and the numbers `total`, `waiting`, `active` and
    `resolved`."""
    rows = await _rows(run, sources, CONVERSATIONS, {})
    status = [text_of(like(one, "status")) for one in rows]
    items = [{**one, "session_id": like(one, "id")} for one, its in zip(rows, status, strict=True) if its != "resolved"]
    waiting, resolved = status.count("waiting"), status.count("resolved")
    counts = {"total": len(items), "waiting": waiting, "active": len(items) - waiting, "resolved": resolved}
    return {**counts, "items": items}


@basic_keyword("GET CUSTOMER HISTORY {customer}")
async def customer_history(run: ScriptRun, customer: Value, *, sources: RowSources) -> Value:
    """The conversations of a customer in this chat: a map with `session_count` and `items`."""
    rows = await _rows(run, sources, CONVERSATIONS, {"customer": customer})
    return {"session_count": len(rows), "items": rows}


@basic_keyword("GET SUMMARY [{session}]", effect="idempotent")
async def conversation_summary(run: ScriptRun, session: Value = None) -> Value | Asks:
    """A summary of this chat, by the function `summary` with the rights of the caller: a map with `text`."""
    return await call_function(run, "summary", {})


@basic_keyword(
    "ASSIGN CONVERSATION {session}, {assigned_to}",
    "RESOLVE CONVERSATION {session} [, {reason}]",
    "TAG CONVERSATION {session}, {tag}",
    "ADD NOTE {session}, {note}",
    "SET PRIORITY {session}, {priority}",
    effect="once",
    touches=_OWN,
)
async def change_conversation(
    run: ScriptRun,
    session: Value,
    assigned_to: Value = None,
    reason: Value = None,
    tag: Value = None,
    note: Value = None,
    priority: Value = None,
    *,
    tables: ScriptTables,
) -> Value:
    """Save a fact about a conversation in the table `conversations`: its attendant, tag, note, priority, or that it is
    resolved. Returns a map with `success`."""
    given = {"assigned_to": assigned_to, "reason": reason, "tag": tag, "note": note, "priority": priority}
    changes: JsonObject = {name: value for name, value in given.items() if value is not None}
    if assigned_to is not None:
        changes["status"] = "assigned"
    elif tag is None and note is None and priority is None:
        changes["status"] = "resolved"
    return await _save(run, tables, text_of(session), changes)


@basic_keyword("TRANSFER TO HUMAN {department} [, {priority} [, {context}]]", effect="once", touches=_OWN)
async def transfer(
    run: ScriptRun,
    department: Value,
    priority: Value = "normal",
    context: Value = None,
    *,
    tables: ScriptTables,
    sources: RowSources,
) -> Value:
    """Put this conversation in the queue of a department in the table `conversations`. Returns a map with `success`,
    `status` ("queued") and `queue_position`."""
    waiting = await _rows(run, sources, CONVERSATIONS, {"status": "waiting"})
    row = {
        "customer": run.context.sender.ref.key, "department": department, "priority": priority, "context": context,
        "status": "waiting",
    }  # fmt: skip
    saved = await _save(run, tables, run.context.chat.key, row)
    return {**saved, "status": "queued", "queue_position": len(waiting) + 1, "estimated_wait_seconds": 0}


async def _save(run: ScriptRun, tables: ScriptTables, session: str, changes: JsonObject) -> JsonObject:
    with as_run_errors(run, CONVERSATIONS):
        await tables.save(place_of(run, CONVERSATIONS), [{"id": session, **changes}])
    return {"success": True}


async def _rows(run: ScriptRun, sources: RowSources, table: str, wanted: JsonObject) -> list[JsonObject]:
    return await Rows(run, sources).find(table, filter_in(run, wanted))
