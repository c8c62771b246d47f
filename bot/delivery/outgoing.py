"""Messages in the form that a network accepts: parts within its limits, choices and files as text where needed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import orjson

from bot.platforms.base import Limits, Outgoing
from config.texts import Phrases
from function_calls.context import Attachment
from function_calls.spec import Choice, Message
from services.patterns import visible, visible_line
from services.refs import ChatRef, JsonObject, MemberRef
from services.store.port import Row, Write
from services.store.turns import outbox
from services.web.content import data_in

_SHOWN_CHARS = 3000
_FENCE = "```"


def files_in_words(files: Sequence[Attachment], texts: Phrases) -> str:
    """`files` as text, one below the other."""
    return "\n".join(_in_words(file, texts) for file in files)


def _in_words(file: Attachment, texts: Phrases) -> str:
    name = visible_line(file.name)
    if file.url and not file.url.startswith("data:"):
        return texts.say("delivery.file_link", name=name, url=file.url)
    content = data_in(file.url) if file.url else None
    text = _text_of(content) if file.media_type.startswith("text/") and content is not None else None
    if text is None:
        size = len(content) if content is not None else file.size_bytes or 0
        return texts.say("delivery.file_unshown", name=name, kilobytes=f"{size / 1000:.1f}")
    shown = visible(text.strip("\n"))
    shown = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
    return f"{name}:\n{shown}" if _FENCE in shown else f"{name}:\n{_FENCE}\n{shown}\n{_FENCE}"


def _text_of(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


LONGEST_REPLY = 20_000
_ROOM_FOR_A_NOTE = 100
"""Characters reserved for the note that a piece may be a duplicate."""
ROOM_FOR_LATENESS = 100
"""Characters reserved for the note that a message is late."""
_JOINER = "\u200d"
# Combining marks are checked by category; these are the joiner, skin tones, and the tags of a flag.
_GOES_ON = re.compile("[\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
# Two regional indicators are a flag.
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]")
_REGIONALS_AT_END = re.compile("[\U0001f1e6-\U0001f1ff]+$")
_BREAKS = (re.compile(r"\n\n"), re.compile(r"\n"), re.compile(r"[.!?。！？]\s*"), re.compile(r"\s"))


class Due(NamedTuple):
    """Due time of a message of a timer, kept until it is sent: only then is it known whether it is late."""

    at_ms: int
    """When the message was due."""
    was_away: bool
    """The bot was not running then."""


class StatusPart(StrEnum):
    """Part of an outbound message in the status message of its turn."""

    SHOW = "show"
    """It is the status."""
    END = "end"
    """It replaces the status if there is one. Without text it only deletes the status."""


def addressed_to(message: Message, here: ChatRef) -> tuple[ChatRef, MemberRef | None]:
    """The chat that `message` goes to, and the member if it is private, else None. `here`: the chat of messages without
    a chat."""
    if isinstance(message.to, ChatRef):
        return message.to, None
    return here, message.to


def pieces(
    message: Message,
    chat: ChatRef,
    private_to: MemberRef | None,
    key: str,
    limits: Limits,
    texts: Phrases,
    name: str,
    room: int = 0,
) -> list[Outgoing]:
    """`message` in pieces for the platform. Each idempotency key is `key` with a number; `name` is the bot's. `room`
    characters per piece are left free."""
    text = message.text
    if limits.max_lines:
        text, rest = first_lines(text, limits.max_lines, limits)
        if rest:
            text = f"{text}\n{texts.say('delivery.cut_lines', lines=limits.max_lines, count=f'{rest:,}')}"
    if len(text) > LONGEST_REPLY:
        text = f"{text[:LONGEST_REPLY]}\n{texts.say('delivery.cut')}"
    files = message.attachments
    if files and not limits.attachments:
        text, files = f"{text}\n{files_in_words(files, texts)}".strip(), ()
    if message.choices and not limits.choices and not _names_commands(text, message.choices):
        text = f"{text}\n{_outgoing_in_words(message.choices, limits, texts, name)}"
    room += 0 if limits.sends_are_idempotent else _ROOM_FOR_A_NOTE
    longest = limits.text_chars - room
    choices = message.choices if limits.choices else ()
    if len(text) <= longest:
        to = (chat, f"{key}:0", text, message.reply_to, message.mentions, files, choices, private_to)
        return [Outgoing(*to, markdown=message.markdown)]
    parts = split(text, longest)
    last = len(parts) - 1
    return [
        Outgoing(
            chat=chat,
            key=f"{key}:{number}",
            text=part,
            reply_to=message.reply_to if number == 0 else None,
            mentions=message.mentions if number == 0 else (),
            attachments=files if number == last else (),
            choices=choices if number == last else (),
            private_to=private_to,
            markdown=message.markdown,
        )
        for number, part in enumerate(parts)
    ]


def _names_commands(text: str, choices: Sequence[Choice]) -> bool:
    """Whether all `choices` are commands that `text` contains, as in "Did you mean /help?"."""
    return all(choice.value.startswith("/") and choice.value in text for choice in choices)


def _outgoing_in_words(choices: Sequence[Choice], limits: Limits, texts: Phrases, name: str) -> str:
    """Line of text that lists what to type for `choices`."""
    values = [choice.value for choice in choices]
    if not limits.clients_keep_slashes and all(choice.stays and choice.value.startswith("/") for choice in choices):
        return " · ".join(f"{choice.label}: {choice.value}" for choice in choices)
    if not any(value.startswith("/") for value in values):
        return texts.say("delivery.choices", choices=" / ".join(values))
    key = "delivery.choices_by_name" if limits.clients_keep_slashes else "delivery.choices"
    return texts.say(key, choices=" · ".join(values), name=name)


def line_count(text: str, limits: Limits) -> int:
    """Number of lines that `text` counts for on a network with `limits`."""
    return sum(_rows(line, limits) for line in text.split("\n")) if limits.line_bytes else 1


def first_lines(text: str, most: int, limits: Limits) -> tuple[str, int]:
    """The beginning of `text` in at most `most` lines, and the number of lines that are left out."""
    count = line_count(text, limits)
    if count <= most:
        return text, 0
    lines: list[str] = []
    room = most if limits.line_bytes else 0
    for line in text.split("\n"):
        rows = _rows(line, limits)
        if rows > room:
            if room:
                fits = line.encode("utf-8", "replace")[: room * limits.line_bytes].decode("utf-8", "ignore")
                lines.append(line[: _cut(line, len(fits))].rstrip())
            break
        lines.append(line)
        room -= rows
    return "\n".join(lines), count - most


def _rows(line: str, limits: Limits) -> int:
    """Lines on the wire for one line of text; 0 for a blank line."""
    return -(-len(line.rstrip().encode("utf-8", "replace")) // limits.line_bytes)


def split(text: str, longest: int) -> list[str]:
    """`text` in pieces of at most `longest` characters, cut at paragraphs, lines, sentences or words if possible, never
    inside a grapheme. A code block that is cut is closed and opened again."""
    pieces: list[str] = []
    fence = ""
    while len(fence) + len(text) > longest:
        room = longest - len(fence) - len(_FENCE) - 1
        cut = _cut(text, room)
        part, text = text[:cut].rstrip(), text[cut:].lstrip("\n")
        if part:
            piece = fence + part
            fence = _open_fence(piece, longest)
            pieces.append(f"{piece}\n{_FENCE}" if fence else piece)
    return [*pieces, fence + text] if text.strip() or not pieces else pieces


def _cut(text: str, room: int) -> int:
    """Index at which to split: after the last break in the second half of the room, else between graphemes."""
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, 0, room)]
        if ends and ends[-1] > room // 2:
            return ends[-1]
    cut = room
    while cut > 1 and _is_within_a_character(text, cut):
        cut -= 1
    return cut if cut > 1 else room


def _is_within_a_character(text: str, cut: int) -> bool:
    """Whether the characters before and after `cut` belong to one grapheme."""
    before, after = text[cut - 1], text[cut : cut + 1]
    if not after:
        return False
    if _REGIONAL.fullmatch(after):
        letters = _REGIONALS_AT_END.search(text, 0, cut)
        return letters is not None and (letters.end() - letters.start()) % 2 == 1
    return before == _JOINER or unicodedata.category(after).startswith("M") or _GOES_ON.fullmatch(after) is not None


def _open_fence(piece: str, longest: int) -> str:
    """The opening line of a code block that `piece` leaves open, with its line end; empty if none is open."""
    fences = [line for line in piece.split("\n") if line.lstrip().startswith(_FENCE)]
    if len(fences) % 2 == 0:
        return ""
    line = fences[-1].strip()
    return f"{line if len(line) < longest // 3 else _FENCE}\n"


def outgoing_to_json(
    outgoing: Outgoing, due: Due | None = None, asked_by: str = "", status: StatusPart | None = None
) -> JsonObject:
    """`outgoing` as JSON for the outbox, with its due time, the key of the member who asked for it, and its part in the
    turn's status message. Default values are omitted."""
    optional: JsonObject = {
        "asked_by": asked_by,
        "reply_to": outgoing.reply_to,
        "mentions": [member.key for member in outgoing.mentions],
        "attachments": [[one.name, one.media_type, one.url, one.size_bytes] for one in outgoing.attachments],
        "choices": [one.to_json() for one in outgoing.choices],
        "private_to": None if outgoing.private_to is None else outgoing.private_to.key,
        "closes": list(outgoing.closes),
        "markdown": outgoing.markdown,
        "replaces": outgoing.replaces,
        "due": None if due is None else [due.at_ms, due.was_away],
        "status": None if status is None else status.value,
    }
    used = {name: value for name, value in optional.items() if value}
    return {"chat": outgoing.chat.key, "text": outgoing.text, **used}


def due_from_json(data: JsonObject) -> Due | None:
    """The due time written by `outgoing_to_json`; None if the message is not from a timer."""
    return Due(*data["due"]) if "due" in data else None


def outgoing_from_json(key: str, data: JsonObject) -> Outgoing:
    """The message written by `outgoing_to_json`; `key` is its idempotency key, and absent fields get their defaults."""
    return Outgoing(
        chat=ChatRef.parse(data["chat"]),
        key=key,
        text=data["text"],
        reply_to=data.get("reply_to"),
        mentions=tuple(MemberRef.parse(one) for one in data.get("mentions", ())),
        attachments=tuple(Attachment(*one) for one in data.get("attachments", ())),
        choices=tuple(Choice(*one) for one in data.get("choices", ())),
        private_to=MemberRef.parse(data["private_to"]) if data.get("private_to") else None,
        closes=tuple(data.get("closes", ())),
        markdown=data.get("markdown", False),
        replaces=data.get("replaces"),
    )


class OutboundMessage(NamedTuple):
    """One row of the outbox."""

    row_id: int
    outgoing: Outgoing
    history_id: int | None
    """The history row that receives the native id."""
    claimed: bool
    """The outbox row is in state "sending", claimed by this process."""
    created_ms: int
    """When the row was written, in milliseconds since 1970."""
    due: Due | None = None
    """Set for messages of timers, which are marked if they are late."""
    turn_id: int = 0
    """The turn that sends the message; 0 for notices."""
    asked_by: str = ""
    """On a paced network, the key of the answered member. Empty: none, and the message is never dropped."""
    status: StatusPart | None = None
    """Part in the status message of its turn; None: none."""
    may_be_sent: bool = False
    """An earlier process may have sent it."""
    is_unrecorded: bool = False
    """Its content is deleted once it is sent or given up."""

    @property
    def only_ends_status(self) -> bool:
        """Whether it only deletes the status of its turn."""
        return self.status is StatusPart.END and not self.outgoing.text


def outbox_row(message: OutboundMessage, epoch: int, state: str = "sending") -> Write:
    """The write that adds the outbox row of `message`, in the process `epoch`."""
    body = outgoing_to_json(message.outgoing, message.due, message.asked_by, message.status)
    if message.is_unrecorded:
        body["unrecorded"] = True
    return outbox.put(
        id=message.row_id,
        key=message.outgoing.key,
        turn_id=message.turn_id,
        history_id=message.history_id,
        chat=message.outgoing.chat.key,
        body=orjson.dumps(body).decode(),
        state=state,
        epoch=epoch,
        at_ms=message.created_ms,
    )


def message_of_row(row: Row) -> OutboundMessage:
    """The message of an outbox row that an earlier process left, or that is retried."""
    body = orjson.loads(row["body"])
    outgoing, due = outgoing_from_json(row["key"], body), due_from_json(body)
    if due is not None:
        due = due._replace(was_away=True)
    return OutboundMessage(
        row["id"],
        outgoing,
        row["history_id"],
        claimed=False,
        created_ms=row["at_ms"],
        due=due,
        turn_id=row["turn_id"],
        asked_by=body.get("asked_by", ""),
        is_unrecorded=body.get("unrecorded", False),
        status=StatusPart(body["status"]) if "status" in body else None,
    )
