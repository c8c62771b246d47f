"""What scripts say to people: TALK, PRINT, and lines of the log."""

from __future__ import annotations

import structlog

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.context import MessageContext
from function_calls.scripts.ending import EndOfRun
from function_calls.spec import Message
from services.known_members import KnownMembers, SeveralMembers, UnknownMember, called
from services.refs import MemberRef

_LINE = "talk.line"
"""Under which a run keeps the line that its next PRINT goes on with."""
_LOGGED_CHARS = 1000
_log = structlog.get_logger("scripts")


@basic_keyword("TALK {text}", "SAY {text}", effect="idempotent")
async def talk(run: ScriptRun, text: Value) -> None:
    """Say something in the chat."""
    _say(run, text_of(text))


@basic_keyword("BEGIN TALK {text:block}", effect="idempotent")
async def talk_block(run: ScriptRun, text: Value) -> None:
    """Say several lines as one message."""
    _say(run, text_of(text))


@basic_keyword("TALK TO {to}, {text}", effect="idempotent", touches=["reaches_out"])
async def talk_to(run: ScriptRun, to: Value, text: Value, *, members: KnownMembers) -> None:
    """Say something to one member of this chat alone, by their name."""
    member = await _member(run, text_of(to).strip(), members)
    said = text_of(text)
    if said.strip():
        run.say(Message(said, to=member))


@basic_keyword(
    "PRINT [{values...} [; {second...} [; {third...} [; {fourth...}]]] [{more:semicolon}]]", effect="idempotent"
)
async def print_line(
    run: ScriptRun,
    values: Value = None,
    second: Value = None,
    third: Value = None,
    fourth: Value = None,
    more: Value = None,
) -> None:
    """Say values in a line: with spaces between them at commas, with none at semicolons. Behind a semicolon at its end
    the next PRINT goes on in the same line."""
    before, text = run.kept.pop(_LINE, ""), "".join(map(_line, (values, second, third, fourth)))
    if not (before and run.say_on(before, text)):
        before = ""
        _say(run, text)
    if more is not None:
        run.kept[_LINE] = before + text


@basic_keyword("LOG {values...}", "DEBUG {values...}")
async def log_line(run: ScriptRun, values: Value) -> None:
    """Write a line into the log of the daemon, for the author; people see nothing of it."""
    _log.info("script_says", tool=run.tool, bot=run.bot, line=run.at.line, text=_line(values)[:_LOGGED_CHARS])


@basic_keyword("CANCEL [{text}]", effect="idempotent")
async def cancel(run: ScriptRun, text: Value = None) -> None:
    """End the run, perhaps with a last word."""
    _say(run, text_of(text))
    raise EndOfRun


def _say(run: ScriptRun, text: str) -> None:
    if text.strip():
        run.say(Message(text))


def _line(values: Value) -> str:
    return " ".join(map(text_of, values)) if isinstance(values, list) else text_of(values)


async def _member(run: ScriptRun, name: str, members: KnownMembers) -> MemberRef | None:
    """Whom `name` means: somebody who spoke in this chat, or None for all of it. Raises RunFault."""
    context = run.context
    if _is_here(name, context):
        return None
    known = await members.of(context.chat)
    for ref in (context.sender.ref, *(one.ref for one in known)):
        if name == ref.key:
            return ref
    texts = run.call.profile.texts
    if name.count(":") >= 2:
        raise RunFault(RunCode.NOT_ALLOWED, texts.say("basic.talk.other_chat", to=name))
    if name.removeprefix("@").casefold() == context.sender.name.casefold():
        return context.sender.ref
    try:
        return called(name, known, context.mentions, as_mention=name.startswith("@")).ref
    except SeveralMembers as several:
        raise RunFault(
            RunCode.NO_SUCH_THING, texts.say("basic.talk.several", to=name, names=", ".join(several.names))
        ) from None
    except UnknownMember:
        raise RunFault(RunCode.NO_SUCH_THING, texts.say("basic.talk.nobody", to=name)) from None


def _is_here(name: str, context: MessageContext) -> bool:
    return name.casefold() in ("", "here", "chat", "all", context.chat.key.casefold())
