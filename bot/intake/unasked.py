"""Messages that a chat's admins have arranged and that need no turn: texts for members who come and go, texts of
triggers, and messages forwarded to other chats."""

from __future__ import annotations

import re
from collections import deque
from datetime import timedelta

import structlog

from bot.chats.chats import Chats
from bot.intake.gate import GateDecision
from bot.intake.notices import Notices
from function_calls.checks.askers_words import without_quotes
from function_calls.context import Kind, MessageContext
from services.background import Background
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, ReasonCode

_log = structlog.get_logger("unasked")
GREETING_SECONDS = 60.0
"""Members who come within this time are greeted together."""
_LATE = timedelta(minutes=10)
_NAMES = 10
_NAME_CHARS = 128
_WINDOW_SECONDS = 60.0
_TRIGGERS_PER_MINUTE = 5
_FORWARDS_PER_MINUTE = 20
_FORWARDED_CHARS = 1000
_LINES = 10
_MOST_COUNTED = 10_000
FORWARDED = "↪"
"""Begins every forwarded message. A message that contains it is never forwarded, so that two bots cannot send one in a
circle either."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_BESIDE_TURNS = frozenset({ReasonCode.NOT_ADDRESSED, ReasonCode.NOT_CHIMED_IN, ReasonCode.MUTED})
_OTHER = {Kind.JOIN: Kind.LEAVE, Kind.LEAVE: Kind.JOIN}


class Unasked:
    """Sends what an accepted event calls for."""

    def __init__(self, notices: Notices, chats: Chats, clock: Clock) -> None:
        self._notices = notices
        self._chats = chats
        self._clock = clock
        self._came: dict[tuple[ChatRef, Kind], dict[MemberRef, tuple[str, str]]] = {}
        """Names of members and of those who invited them, until the chat is greeted."""
        self._background = Background()
        self._sent = Recent[tuple[ChatRef, str], deque[float]](_MOST_COUNTED)

    async def close(self) -> None:
        """Send the greetings that wait."""
        await self._background.close()
        for chat, kind in list(self._came):
            self._greet(chat, kind, "")

    def act(self, context: MessageContext, decision: GateDecision, *, is_unrecorded: bool) -> None:
        """Send what the new event `context` calls for, if its chat is served. `is_unrecorded`: its sender has opted
        out, so it is not forwarded."""
        chat = self._chats.of(context.chat)
        if chat.allowed_by is None or not chat.settings.enabled or context.sender.is_bot or context.backfilled:
            return
        if context.kind in _OTHER:
            self._note_change(context)
            return
        is_plain = decision.reason in _BESIDE_TURNS or (decision.addressed and not decision.is_command)
        if context.kind is not Kind.MESSAGE or not context.is_group or not is_plain or decision.question is not None:
            return
        if context.private or context.is_forwarded or FORWARDED in context.text or context.text.startswith("/"):
            return
        if text := without_quotes(context.text) if chat.triggers or chat.forwards else "":
            if decision.reason in _BESIDE_TURNS:
                self._trigger(context, text)
            if not is_unrecorded:
                self._forward(context, text)

    def _note_change(self, context: MessageContext) -> None:
        """Note a member who came or went. Who does both within a minute is not mentioned."""
        chat, kind, member = context.chat, context.kind, context.sender.ref
        if self._clock.now() - context.sent_at > _LATE:
            return
        if self._came.get((chat, _OTHER[kind]), {}).pop(member, None) is not None:
            return
        settings = self._chats.of(chat).settings
        if (settings.welcome if kind is Kind.JOIN else settings.goodbye) == "off":
            return
        if (chat, kind) not in self._came:
            self._came[chat, kind] = {}
            self._background.start(self._greet_later(chat, kind, context.chat_title))
        inviter = " ".join(context.inviter.split())[:_NAME_CHARS]
        self._came[chat, kind][member] = context.sender.name, inviter

    async def _greet_later(self, chat: ChatRef, kind: Kind, title: str) -> None:
        await self._clock.sleep(GREETING_SECONDS)
        self._greet(chat, kind, title)

    def _greet(self, chat: ChatRef, kind: Kind, title: str) -> None:
        came, served = list(self._came.pop((chat, kind), {}).values()), self._chats.of(chat)
        text = served.settings.welcome if kind is Kind.JOIN else served.settings.goodbye
        if not came or text == "off" or served.allowed_by is None or self._is_quiet(chat):
            return
        texts = served.profile.texts
        names = [name for name, _ in came[:_NAMES]]
        if len(came) > _NAMES:
            names.append(texts.say("greetings.others", count=len(came) - _NAMES))
        inviters = dict.fromkeys(inviter for _, inviter in came if inviter)
        values = {
            "new_member": texts.say("greetings.and").join(names),
            "inviter": texts.say("greetings.and").join(inviters) or texts.say("greetings.somebody"),
            "chat": title or texts.say("greetings.this_chat"),
        }
        self._send(chat, filled(text, values))

    def _trigger(self, context: MessageContext, text: str) -> None:
        """Reply to the first word of a trigger in `text`, once a minute for each word."""
        chat, served = context.chat, self._chats.of(context.chat)
        word = served.find_trigger(text)
        if not word or self._is_quiet(chat) or not self._may_send(chat, f"trigger {word}", 1):
            return
        if self._may_send(chat, "triggers", _TRIGGERS_PER_MINUTE):
            self._send(chat, served.triggers[word], reply_to=context.key.native_id)

    def _forward(self, context: MessageContext, text: str) -> None:
        """Forward `text` to each chat with a rule for it, with chat and sender."""
        targets = [rule.target for rule, find in self._chats.of(context.chat).forwards if find(text)]
        for target in dict.fromkeys(targets):
            served = self._chats.of(target)
            if served.allowed_by is None or not served.settings.enabled:
                continue
            if not self._may_send(target, "forwards", _FORWARDS_PER_MINUTE):
                _log.warning("message_not_forwarded", chat=context.chat.key, to=target.key, because="too many")
            else:
                title = context.chat_title or context.chat.key
                said = served.profile.texts.say("forwards.message", chat=title, name=context.sender.name, text=text)
                self._send(target, "\n".join(f"{FORWARDED} {said[:_FORWARDED_CHARS]}".splitlines()[:_LINES]))

    def _is_quiet(self, chat: ChatRef) -> bool:
        return self._chats.quiet_until(chat, self._clock.now()) is not None

    def _may_send(self, chat: ChatRef, what: str, most: int) -> bool:
        """Whether fewer than `most` such messages were sent in the last minute; then this one is counted."""
        now = self._clock.monotonic()
        sent = self._sent.setdefault((chat, what), deque())
        while sent and sent[0] <= now - _WINDOW_SECONDS:
            sent.popleft()
        if len(sent) >= most:
            return False
        sent.append(now)
        return True

    def _send(self, chat: ChatRef, text: str, reply_to: str | None = None) -> None:
        self._notices.send_text(chat, text, reply_to)


def filled(text: str, values: dict[str, str]) -> str:
    """`text` with the values of its placeholders, in one pass, so that a name cannot contain one."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)
