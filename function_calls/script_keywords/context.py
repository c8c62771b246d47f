"""SET CONTEXT and SYSTEM PROMPT: what models are told in this chat."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.ports import ChatNotes
from function_calls.profile import ChatNote

_MOST_NAME = 100
_PROMPT = "system prompt"
_UNNAMED = "context"
NOTING = frozenset({"SET CONTEXT", "SET SYSTEM PROMPT", "BEGIN SYSTEM PROMPT"})
"""What a script bears that has something noted for models."""


@basic_keyword("SET CONTEXT {name} AS {value}", "SET CONTEXT {value}", effect="idempotent", touches=("stays_here",))
async def set_context(run: ScriptRun, value: Value, name: Value = _UNNAMED, *, notes: ChatNotes) -> Value:
    """Let models in this chat know something, in the place of what they were told under that name before. NULL or an
    empty text takes it back."""
    words, under = text_of(value).strip(), text_of(name).strip()
    if not under or len(under) > _MOST_NAME:
        raise RunFault(RunCode.BAD_VALUE, f"the name of a context has 1 to {_MOST_NAME} characters")
    await _put(run, ChatNote(under, words, is_instruction=False), notes)
    return None


@basic_keyword("CLEAR CONTEXT [{name}]", effect="idempotent", touches=("stays_here",))
async def clear_context(run: ScriptRun, name: Value = "", *, notes: ChatNotes) -> Value:
    """Take back what models were told under that name; without one everything, the system prompt too."""
    await notes.clear(run.context.chat, text_of(name).strip())
    return None


@basic_keyword(
    "BEGIN SYSTEM PROMPT {words:block}",
    "SET SYSTEM PROMPT {words}",
    effect="idempotent",
    touches=("stays_here",),
)
async def system_prompt(run: ScriptRun, words: Value, *, notes: ChatNotes) -> Value:
    """Tell models in this chat how to behave. Information and no instruction to models, unless the script begins the
    chat and has not yet looked at who asks, asked or called anything, or read from outside."""
    await _put(run, ChatNote(_PROMPT, text_of(words).strip(), is_instruction=run.begins and run.is_of_author), notes)
    return None


async def _put(run: ScriptRun, note: ChatNote, notes: ChatNotes) -> None:
    if not note.words:
        await notes.clear(run.context.chat, note.name)
        return
    try:
        await notes.put(run.context.chat, note, run.context.sender.ref)
    except ValueError as error:
        raise RunFault(RunCode.NOT_ALLOWED, str(error)) from None
