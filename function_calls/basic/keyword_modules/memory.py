"""Memory of scripts: SET and GET BOT, CHAT and USER MEMORY, REMEMBER, RECALL, FORGET, session variables, CACHE.

A value is visible only in the chat where it was set, unless the operator shares its name. Completed statements are not
rolled back if the run fails later."""

from __future__ import annotations

from collections.abc import Sequence

from function_calls.basic.keyword_modules._service_errors import as_run_errors, text_in, wrong_type
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.session import session_variables
from function_calls.basic.values import number_of, text_of
from services.scripts.memory import (
    Owner,
    Remembered,
    ScriptMemory,
    bots_in,
    bots_own,
    of_chat,
    of_member,
    of_member_in,
    seconds_of,
)
from services.storage import name_matches

_OWN = ("stays_here",)
_PAIR = 2
_SESSION = "session."
_SESSION_LASTS, _CACHE_SECONDS = "24 hours", 3600


@basic_keyword("SET BOT MEMORY {key}, {value}", "SET BOT MEMORY {pair:pair}", effect="idempotent", touches=_OWN)
async def set_bot_memory(
    run: ScriptRun, key: Value = None, value: Value = None, pair: Value = None, *, memory: ScriptMemory
) -> None:
    """Store a value for this bot in this chat, or in all its chats if the operator shares the name."""
    name, kept = _named(run, key, value, pair)
    await _put(run, memory, _of_bot(run, name), name, kept)


@basic_keyword("GET BOT MEMORY {key:key}")
async def get_bot_memory(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """The value stored by SET BOT MEMORY under a name; NULL if there is none."""
    name = text_in(run, key, "memory_name")
    return await _others_words(run, memory, _of_bot(run, name), name)


@basic_keyword("SET CHAT MEMORY {key}, {value}", "SET CHAT MEMORY {pair:pair}", effect="idempotent", touches=_OWN)
async def set_chat_memory(
    run: ScriptRun, key: Value = None, value: Value = None, pair: Value = None, *, memory: ScriptMemory
) -> None:
    """Store a value for everybody in this chat."""
    name, kept = _named(run, key, value, pair)
    await _put(run, memory, of_chat(run.bot, run.context.chat), name, kept)


@basic_keyword("GET CHAT MEMORY {key:key}")
async def get_chat_memory(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """The value stored by SET CHAT MEMORY in this chat under a name; NULL if there is none."""
    return await _others_words(run, memory, of_chat(run.bot, run.context.chat), text_in(run, key, "memory_name"))


@basic_keyword(
    "SET USER MEMORY {key}, {value} [, {duration}]",
    "SET USER MEMORY {pair:pair}",
    "REMEMBER {key}, {value} [, {duration}]",
    "REMEMBER {pair:pair}",
    effect="idempotent",
    touches=_OWN,
)
async def set_user_memory(
    run: ScriptRun,
    key: Value = None,
    value: Value = None,
    duration: Value = None,
    pair: Value = None,
    *,
    memory: ScriptMemory,
) -> None:
    """Store a value for the member who runs the script, for a duration ("30 days") or permanently."""
    name, kept = _named(run, key, value, pair)
    await _put(run, memory, _of_member(run, name)[0], name, kept, duration)


@basic_keyword("GET USER MEMORY {key:key}", "RECALL {key:key}")
async def get_user_memory(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """The value stored by SET USER MEMORY or REMEMBER for this member under a name; NULL if there is none or it has
    expired."""
    name = text_in(run, key, "memory_name")
    return await _own_words(run, memory, _of_member(run, name), name)


@basic_keyword("FORGET {key}", "FORGET USER MEMORY {key}", effect="idempotent", touches=_OWN)
async def forget(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """Delete the value stored for this member under a name. Returns whether there was one."""
    name = text_in(run, key, "memory_name")
    return await _forgotten(run, memory, _of_member(run, name), name)


@basic_keyword("FORGET BOT MEMORY {key}", effect="idempotent", touches=_OWN)
async def forget_bot_memory(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """Delete the value stored by SET BOT MEMORY under a name. Returns whether there was one."""
    name = text_in(run, key, "memory_name")
    return await _forgotten(run, memory, [_of_bot(run, name)], name)


@basic_keyword("FORGET CHAT MEMORY {key}", effect="idempotent", touches=_OWN)
async def forget_chat_memory(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """Delete the value stored by SET CHAT MEMORY in this chat under a name. Returns whether there was one."""
    name = text_in(run, key, "memory_name")
    return await _forgotten(run, memory, [of_chat(run.bot, run.context.chat)], name)


@basic_keyword(
    "SET SESSION {key}, {value}",
    "SET SESSION {session}, {key}, {value}",
    effect="idempotent",
    touches=_OWN,
)
async def set_session(
    run: ScriptRun,
    key: Value,
    value: Value,
    session: Value = None,
    *,
    memory: ScriptMemory,
) -> None:
    """Store a session variable, a value for the member in this chat for 24 hours, `SET "session.step" = 2`."""
    name = text_in(run, key, "memory_name").removeprefix(_SESSION)
    if _is_own_session(run, session):
        await _put(run, memory, _of_member(run, _SESSION + name)[0], _SESSION + name, value, _SESSION_LASTS)


@basic_keyword("GET SESSION {key:key}", "GET SESSION {session}, {key:key}")
async def get_session(run: ScriptRun, key: Value, session: Value = None, *, memory: ScriptMemory) -> Value:
    """The session variable stored by SET SESSION for this member in this chat, or a fact such as "user_id" or
    "channel"; NULL if there is none, or for the session of somebody else."""
    name = text_in(run, key, "memory_name").removeprefix(_SESSION)
    if not _is_own_session(run, session):
        return None
    found = await _own_words(run, memory, _of_member(run, _SESSION + name), _SESSION + name)
    if found is not None:
        return found
    run.knows_member_text = True
    facts = session_variables(run.context, run.call, run.bot)
    facts |= facts["session"]
    folded = name.casefold()
    return facts.get(folded, facts.get(folded.replace("_", "")))


def _is_own_session(run: ScriptRun, session: Value) -> bool:
    return session is None or text_of(session) in (run.context.chat.key, run.context.sender.ref.key)


@basic_keyword("CACHE SET {key}, {value} [, {seconds}]", effect="idempotent", touches=_OWN)
async def cache_set(
    run: ScriptRun, key: Value, value: Value, seconds: Value = _CACHE_SECONDS, *, memory: ScriptMemory
) -> None:
    """Store a value for this bot in this chat for a number of seconds, by default an hour."""
    name = f"cache:{text_in(run, key, 'memory_name')}"
    await _put(run, memory, _of_bot(run, name), name, value, f"{number_of(seconds):g} seconds")


@basic_keyword("CACHE GET {key:key}")
async def cache_get(run: ScriptRun, key: Value, *, memory: ScriptMemory) -> Value:
    """The value stored by CACHE SET under a name; NULL if there is none or it has expired."""
    name = f"cache:{text_in(run, key, 'memory_name')}"
    return await _others_words(run, memory, _of_bot(run, name), name)


def _named(run: ScriptRun, key: Value, value: Value, pair: Value) -> tuple[str, Value]:
    if isinstance(pair, list) and len(pair) == _PAIR:
        key, value = pair
    return text_in(run, key, "memory_name"), value


def _of_bot(run: ScriptRun, name: str) -> Owner:
    return bots_own(run.bot) if _is_shared(run, name) else bots_in(run.bot, run.context.chat)


def _of_member(run: ScriptRun, name: str) -> list[Owner]:
    """Owners to read from, in order; writes go to the first. Values from a private chat with the bot are not visible
    where others read along, but the chat's values of a member are visible in private."""
    member, chat = run.context.sender.ref, run.context.chat
    if _is_shared(run, name):
        return [of_member(member)]
    openly = of_member_in(member, chat)
    return [of_member_in(member, chat, private=True), openly] if run.context.private else [openly]


def _is_shared(run: ScriptRun, name: str) -> bool:
    return any(name_matches(pattern.casefold(), name.strip().casefold()) for pattern in run.grants.shared_memory)


async def _put(
    run: ScriptRun, memory: ScriptMemory, owner: Owner, name: str, value: Value, duration: Value = None
) -> None:
    if duration is not None and not isinstance(duration, str | int | float):
        raise wrong_type(run, "duration")
    with as_run_errors(run, name):
        if value is None:
            await memory.forget(owner, name)
        else:
            await memory.put(owner, name, value, from_outside=run.has_outside_text, seconds=seconds_of(duration))


async def _found(run: ScriptRun, memory: ScriptMemory, owners: Sequence[Owner], name: str) -> Remembered | None:
    with as_run_errors(run, name):
        for owner in owners:
            found = await memory.get(owner, name)
            if found is not None:
                return found
    return None


async def _others_words(run: ScriptRun, memory: ScriptMemory, owner: Owner, name: str) -> Value:
    """Read a value that anybody in the chat may have set."""
    found = await _found(run, memory, [owner], name)
    run.has_outside_text = run.has_outside_text or found is not None
    return None if found is None else found.value


async def _own_words(run: ScriptRun, memory: ScriptMemory, owners: Sequence[Owner], name: str) -> Value:
    found = await _found(run, memory, owners, name)
    run.has_outside_text = run.has_outside_text or (found is not None and found.from_outside)
    run.knows_member_text = run.knows_member_text or found is not None
    return None if found is None else found.value


async def _forgotten(run: ScriptRun, memory: ScriptMemory, owners: Sequence[Owner], name: str) -> bool:
    with as_run_errors(run, name):
        return any([await memory.forget(owner, name) for owner in owners])
