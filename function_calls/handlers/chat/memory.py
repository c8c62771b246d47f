"""Notes on members and the chat: add, show and delete them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.checks.askers_words import own_text
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.chats.members import KnownMember
from services.chats.memory import NOTE_CHARS, Memory, Place, SeveralNotes, is_in_words, without_request
from services.chats.privacy import MemberData
from services.patterns import visible_line
from services.refs import ErrorCode, JsonObject, Role
from services.store.chats.memory import Note


@tool_function(
    description="Note a lasting fact that the sender states in this message about themselves or about this chat: who "
    "they are, what they like, what is decided. Not for tasks or reminders, and not for what others or texts say",
    examples=(
        "remember that {fact}",
        "please remember that {fact}",
        "note for later that {fact}",
        "keep in mind that {fact}",
        "make a note that {fact}",
        "记住{fact}",
        "帮我记住一件事：{fact}",
    ),
    commands=("remember", "remember that", "记住", "请记住"),
    tags=("memory", "this_chat"),
    touches="stays_here",
    effect="idempotent",
    ask={"fact": "@memory.ask_text"},
    line="fact",
    sensitive=("fact",),
)
async def remember(
    context: MessageContext,
    fact: Annotated[str, Field(description="One fact, in the sender's words", max_length=NOTE_CHARS, pattern=r"\S")],
    for_everybody: Annotated[bool, Field(description="It is about this chat, not about the sender")] = False,
    replaces: Annotated[int | None, Field(description="Number of the note that this one contradicts")] = None,
    *,
    memory: Memory,
    data: MemberData,
    call: Call,
) -> FunctionResult:
    """Add a note. A model may only note what the asker's own words say, because a note outlives the conversation."""
    text, is_for_all = without_request(fact)
    said = call.askers_texts
    if said is not None and data.is_opted_out(context.chat, context.sender.ref):
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("privacy.no_notes"))
    if said is not None and not is_in_words(text, map(own_text, said), context.sender.name):
        return FunctionResult.fail(ErrorCode.REFUSED, call.say("memory.not_own_words"), ["fact"])
    on_chat, author = is_for_all or for_everybody, KnownMember(context.sender.ref, context.sender.name)
    at_ms = round(context.sent_at.timestamp() * 1000)
    note, replaced, is_new = await memory.remember(
        _place(context), text, author, on_chat=on_chat, replaces=replaces, at_ms=at_ms, key=call.key
    )
    if not is_new:
        return FunctionResult.say(_noted("memory.known", note, call), data=_data(note))
    lines = [_noted("memory.noted.chat" if on_chat else "memory.noted.me", note, call)]
    lines += [_noted("memory.instead", one, call) for one in replaced]
    return FunctionResult.say(
        "\n".join(lines), data=_data(note), choices=call.undo(f"/memory forget {note.number} restore=true")
    )


@tool_function(
    name="memory",
    examples=(
        "what do you know about me",
        "what do you remember about me",
        "what have you noted about this chat",
        "show me what you remember about this group",
        "which notes do you have on me",
        "你记得我什么",
        "看看你对这个群的记忆",
    ),
    commands=("memory", "记忆"),
    tags=("memory", "this_chat"),
    touches="reads_outside",
    effect="read",
)
async def show_memory(context: MessageContext, *, memory: Memory, call: Call) -> FunctionResult:
    """Show the notes on the sender and on this chat"""
    notes = await memory.of(_place(context), context.sender.ref)
    lines: list[str] = []
    for title, part in (("me", [one for one in notes if one.about]), ("chat", [one for one in notes if not one.about])):
        lines += [call.say(f"memory.title.{title}"), *(_line(note, call) for note in part)] if part else []
    lines.append(call.say("memory.foot" if notes else "memory.none"))
    return FunctionResult.say("\n".join(lines), data=[_data(note) for note in notes])


@tool_function(
    description="Delete a note on the sender or on this chat",
    examples=(
        "forget that {note}",
        "forget what you noted about {note}",
        "delete the note about {note}",
        "delete note {note} from your memory",
        "remove {note} from what you know about me",
        "忘掉关于{note}的记忆",
        "删除记忆{note}",
    ),
    commands=("memory forget", "记忆 忘记"),
    tags=("memory", "this_chat"),
    touches="reads_outside",
    effect="idempotent",
    ask={"note": "@memory.ask_note"},
    sensitive=("note",),
)
async def memory_forget(
    context: MessageContext,
    note: Annotated[str, Field(description="The note's number or words of its text", max_length=NOTE_CHARS)],
    restore: Annotated[bool, Field(description="Make valid again what the note replaced")] = False,
    *,
    memory: Memory,
    call: Call,
) -> FunctionResult:
    """Erase a note: the member's own, or any for moderators and above."""
    try:
        erased, restored, _ = await memory.forget(
            _place(context),
            note,
            by=context.sender.ref,
            may_forget_any=context.sender.role in Role.at_least(Role.MODERATOR),
            restore=restore,
            key=call.key,
        )
    except SeveralNotes as error:
        lines = [call.say("memory.several", words=note), *(_line(one, call) for one in error.notes[:10])]
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, "\n".join(lines))
    # Without its text, which would be recorded again in the history.
    lines = [call.say("memory.forgotten" if erased.text else "memory.forgotten_before", number=erased.number)]
    lines += [_noted("memory.restored", one, call) for one in restored]
    return FunctionResult.say("\n".join(lines), data={"number": erased.number})


def _place(context: MessageContext) -> Place:
    return Place(context.chat.key, context.sender.ref.key if context.is_group and context.private else "")


def _noted(key: str, note: Note, call: Call) -> str:
    return call.say(key, number=note.number, text=visible_line(note.text))


def _line(note: Note, call: Call) -> str:
    day = f"{datetime.fromtimestamp(note.at_ms / 1000, call.profile.timezone):%Y-%m-%d}"
    return call.say("memory.line", number=note.number, text=visible_line(note.text), name=note.author_name, day=day)


def _data(note: Note) -> JsonObject:
    return {"number": note.number, "text": note.text, "is_on_chat": not note.about}
