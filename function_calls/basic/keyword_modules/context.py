"""SET CONTEXT and SYSTEM PROMPT: notes and instructions for models in this chat."""

from __future__ import annotations

from function_calls.basic.codes import RunCode
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.session import translated_error
from function_calls.basic.values import text_of
from function_calls.ports import ChatNotes, NotesFull
from function_calls.profile import ChatNote

_MOST_NAME = 100
_PROMPT = "system prompt"
_UNNAMED = "context"


@basic_keyword(
    "SET CONTEXT {name} ( AS | , ) {value}", "SET CONTEXT {value}", effect="idempotent", touches=("stays_here",)
)
async def set_context(run: ScriptRun, value: Value, name: Value = _UNNAMED, *, notes: ChatNotes) -> Value:
    """Add information for models in this chat under a name, replacing the previous one. NULL or an empty text removes
    it."""
    words, under = text_of(value).strip(), text_of(name).strip()
    if not under or len(under) > _MOST_NAME:
        raise translated_error(run, RunCode.BAD_VALUE, "context.name", most=_MOST_NAME)
    await _put(run, under, words, notes)
    return None


@basic_keyword("CLEAR CONTEXT [{name}]", effect="idempotent", touches=("stays_here",))
async def clear_context(run: ScriptRun, name: Value = "", *, notes: ChatNotes) -> Value:
    """Remove the information stored under a name; without a name, all of it, including the system prompt."""
    chat, under = run.context.chat, text_of(name).strip()
    await notes.clear(chat, run.bot, [under] if under else [one.name for one in notes.of(chat, run.bot)])
    return None


@basic_keyword(
    "BEGIN SYSTEM PROMPT {words:block}",
    "SET SYSTEM PROMPT {words}",
    effect="idempotent",
    touches=("stays_here",),
)
async def system_prompt(run: ScriptRun, words: Value, *, notes: ChatNotes) -> Value:
    """Describe to models in this chat how to behave. Models treat it as information and not as an instruction, unless
    the script starts the chat and has not yet read member data, asked or called anything, or read from outside."""
    await _put(run, _PROMPT, text_of(words).strip(), notes, is_instruction=run.begins and run.is_of_author)
    return None


@basic_keyword("SET ANSWER MODE {mode}", "SET MAX LINES {count}", "PUBLISH")
async def setting_of_other_hosts(run: ScriptRun, mode: Value = None, count: Value = None) -> None:
    """No effect: a setting of other hosts that has no counterpart here. `rollcall basic check` warns about it."""


async def _put(run: ScriptRun, name: str, words: str, notes: ChatNotes, *, is_instruction: bool = False) -> None:
    """Store or clear a note for models. Raises RunError if the limit is reached."""
    chat, by = run.context.chat, run.context.sender.ref
    if not words:
        await notes.clear(chat, run.bot, [name])
        return
    of_member = by.key if run.knows_member_text else ""
    note = ChatNote(
        name, words, is_instruction, run.bot, run.tool, from_outside=run.has_outside_text, of_member=of_member
    )
    try:
        await notes.put(chat, note, by)
    except NotesFull as full:
        raise translated_error(
            run, RunCode.NOT_ALLOWED, "context.full", notes=full.most_notes, chars=full.most_chars
        ) from None
