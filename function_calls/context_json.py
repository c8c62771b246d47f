"""MessageContext as plain data, for the inbox: what a restart needs to answer the message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender, TimerCall
from services.json_values import JsonObject
from services.refs import ChatRef, MemberRef, Role

_MESSAGE = Kind.MESSAGE


def context_to_json(context: MessageContext) -> JsonObject:
    """`context` as plain data; what is usual is left out."""
    sender, quoted = context.sender, context.reply_to
    data: JsonObject = {
        "chat": context.chat[:3],
        "id": context.key.native_id,
        "sender": [*sender.ref[:3], sender.name, str(sender.role)],
        "text": context.text,
        "at": context.sent_at.timestamp(),
        "group": context.is_group,
        "bot": context.bot,
    }
    if context.kind is not _MESSAGE:
        data["kind"] = context.kind.value
    if context.key.kind is not _MESSAGE:
        data["key"] = [context.key.kind.value, context.key.revision]
    if context.mentions_bot:
        data["mentions_bot"] = True
    if context.mentions:
        data["mentions"] = [one[:3] for one in context.mentions]
    if quoted is not None:
        data["reply_to"] = [quoted.native_id, quoted.sender_name, quoted.text, quoted.from_bot]
    if context.attachments:
        data["attachments"] = [[one.name, one.media_type, one.url, one.size_bytes] for one in context.attachments]
    return data | _rare(context) if _has_rare(context) else data


def context_from_json(data: JsonObject) -> MessageContext:
    """The context that `context_to_json` wrote."""
    chat = ChatRef(*data["chat"])
    platform, account, native, name, role = data["sender"]
    key_kind, revision = data.get("key", (Kind.MESSAGE, ""))
    quoted: list[Any] | None = data.get("reply_to")
    return MessageContext(
        key=MessageKey(chat, data["id"], Kind(key_kind), revision),
        kind=Kind(data.get("kind", Kind.MESSAGE)),
        chat=chat,
        is_group=data["group"],
        sender=Sender(MemberRef(platform, account, native), name, Role(role)),
        text=data["text"],
        sent_at=datetime.fromtimestamp(data["at"], UTC),
        mentions=tuple(MemberRef(*one) for one in data.get("mentions", ())),
        mentions_bot=data.get("mentions_bot", False),
        reply_to=Quoted(*quoted) if quoted else None,
        attachments=tuple(Attachment(*one) for one in data.get("attachments", ())),
        private=data.get("private", False),
        chat_title=data.get("title", ""),
        bot=data["bot"],
        takes=tuple(data.get("takes", ())),
        timer=_timer_from_json(data["timer"]) if "timer" in data else None,
    )


def _has_rare(context: MessageContext) -> bool:
    return context.private or bool(context.chat_title or context.takes) or context.timer is not None


def _rare(context: MessageContext) -> JsonObject:
    timer = None if context.timer is None else _timer_to_json(context.timer)
    rare = {"private": context.private, "title": context.chat_title, "takes": list(context.takes), "timer": timer}
    return {key: value for key, value in rare.items() if value}


def _timer_to_json(timer: TimerCall) -> list[Any]:
    due = timer.due_at.timestamp()
    ids = (timer.timer_id, timer.occurrence_id)
    return [timer.function, timer.arguments, *ids, due, timer.title, timer.number, timer.was_away]


def _timer_from_json(data: list[Any]) -> TimerCall:
    function, arguments, timer_id, occurrence_id, due, title, number, was_away = data
    due_at = datetime.fromtimestamp(due, UTC)
    return TimerCall(function, arguments, timer_id, occurrence_id, due_at, title, number, was_away)
