"""From what a function said to what a network takes: addressed, in pieces within its limits, choices as words where
there are no buttons."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from bot.platforms.base import Limits, Outgoing
from config.texts import Phrases
from function_calls.context import Attachment
from function_calls.spec import Choice, Message
from services.json_values import JsonObject
from services.refs import ChatRef, MemberRef

LONGEST_REPLY = 20_000
_FENCE = "```"
_BREAKS = (re.compile(r"\n\n"), re.compile(r"\n"), re.compile(r"[.!?。！？]\s*"), re.compile(r"\s"))


def addressed_to(message: Message, here: ChatRef) -> tuple[ChatRef, MemberRef | None]:
    """The chat that `message` goes to, and the member when it is for one alone."""
    if isinstance(message.to, ChatRef):
        return message.to, None
    return here, message.to


def pieces(
    message: Message, chat: ChatRef, private_to: MemberRef | None, key: str, limits: Limits, texts: Phrases
) -> list[Outgoing]:
    """`message` as it goes over the wire. `key` and a number make each piece's idempotency key."""
    text = message.text[:LONGEST_REPLY]
    if message.choices and not limits.choices:
        words = " / ".join(choice.value for choice in message.choices)
        text = f"{text}\n{texts.say('delivery.choices', choices=words)}"
    parts = split(text, limits.text_chars)
    outgoing = [
        Outgoing(chat=chat, key=f"{key}:{number}", text=part, private_to=private_to)
        for number, part in enumerate(parts)
    ]
    outgoing[0] = replace(outgoing[0], reply_to=message.reply_to, mentions=message.mentions)
    choices = message.choices if limits.choices else ()
    outgoing[-1] = replace(outgoing[-1], attachments=message.attachments, choices=choices)
    return outgoing


def split(text: str, longest: int) -> list[str]:
    """`text` in pieces of at most `longest` characters, cut at paragraphs, lines, sentences or words where it can be,
    never inside a character that is made of several; a code block that is cut is closed and opened again."""
    pieces: list[str] = []
    fence = ""
    while len(fence) + len(text) > longest:
        room = longest - len(fence) - len(_FENCE) - 1
        cut = _cut(text, max(room, 1))
        piece, text = fence + text[:cut].rstrip(), text[cut:].lstrip("\n")
        fence = _open_fence(piece)
        pieces.append(f"{piece}\n{_FENCE}" if fence else piece)
    return [*pieces, fence + text] if text or not pieces else pieces


def _cut(text: str, room: int) -> int:
    """Where to cut: after the last good break in the second half of the room, else between whole characters."""
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, 0, room)]
        if ends and ends[-1] > room // 2:
            return ends[-1]
    cut = room
    while cut > 1 and _joins(text[cut - 1], text[cut : cut + 1]):
        cut -= 1
    return cut if cut > 1 else room


def _joins(before: str, after: str) -> bool:
    """Whether the two belong to one character as people see it."""
    if not after:
        return False
    return (
        after in "\u200d\ufe0f\ufe0e"
        or before == "\u200d"
        or unicodedata.combining(after) != 0
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff")
    )


def _open_fence(piece: str) -> str:
    """The opening line of a code block that `piece` leaves open, with its line end; empty when there is none."""
    fences = [line for line in piece.split("\n") if line.lstrip().startswith(_FENCE)]
    return f"{fences[-1].strip()}\n" if len(fences) % 2 else ""


def outgoing_to_json(outgoing: Outgoing) -> JsonObject:
    """`outgoing` as plain data, for the outbox."""
    return {
        "chat": outgoing.chat.key,
        "text": outgoing.text,
        "reply_to": outgoing.reply_to,
        "mentions": [member.key for member in outgoing.mentions],
        "attachments": [[one.name, one.media_type, one.url, one.size_bytes] for one in outgoing.attachments],
        "choices": [[choice.label, choice.value] for choice in outgoing.choices],
        "private_to": outgoing.private_to.key if outgoing.private_to else None,
    }


def outgoing_from_json(key: str, data: JsonObject) -> Outgoing:
    """What `outgoing_to_json` wrote."""
    return Outgoing(
        chat=ChatRef.parse(data["chat"]),
        key=key,
        text=data["text"],
        reply_to=data["reply_to"],
        mentions=tuple(MemberRef.parse(one) for one in data["mentions"]),
        attachments=tuple(Attachment(*one) for one in data["attachments"]),
        choices=tuple(Choice(*one) for one in data["choices"]),
        private_to=MemberRef.parse(data["private_to"]) if data["private_to"] else None,
    )
