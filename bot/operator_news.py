"""What the operators' chat hears of the bot itself: once what an edit broke, and once that all is well again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import structlog

from bot.chats import Chats
from bot.notices import Notices
from config.diagnostics import Diagnostic
from config.operators import OperatorsSettings
from config.texts import Phrases
from function_calls.visible import visible
from services.clock import Clock
from services.redaction import Redactor
from services.refs import ChatRef
from services.store.port import Store, StoreError

_GATHER_SECONDS = 1.0
"""Who edits saves more than one file, and some editors save twice."""
_QUIET_SECONDS = 60.0
"""Between two messages."""
_MOST_LINES = 5
_LINE_CHARS = 200
_log = structlog.get_logger("operators")


class OperatorNews:
    """Compares what is broken with what the chat was told last."""

    def __init__(
        self,
        settings: OperatorsSettings,
        notices: Notices,
        chats: Chats,
        store: Store,
        clock: Clock,
        redact: Redactor,
        still_serves: Callable[[str], bool],
    ) -> None:
        """`still_serves` says whether functions of a file serve at this moment."""
        self._still_serves = still_serves
        self._settings = settings
        self._notices = notices
        self._chats = chats
        self._store = store
        self._clock = clock
        self._redact = redact
        self._watched: dict[str, Callable[[], Sequence[Diagnostic]]] = {}
        self._told: frozenset[tuple[str, Diagnostic]] = frozenset()
        self._told_at = -_QUIET_SECONDS
        self._is_news = False
        self._telling: asyncio.Task[None] | None = None

    def watch(self, what: str, faults: Callable[[], Sequence[Diagnostic]]) -> None:
        """`faults` gives what is wrong at that moment with the functions or the settings, as `what` says."""
        self._watched[what] = faults

    def use(self, settings: OperatorsSettings) -> None:
        """From now on this chat is told; another one is told what is wrong already."""
        if settings.chat != self._settings.chat:
            self._told = frozenset()
        self._settings = settings
        self.changed()

    def changed(self) -> None:
        """What is wrong may be other than it was."""
        self._is_news = True
        if self._settings.chat is not None and self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def close(self) -> None:
        """Say no more."""
        if self._telling is not None:
            self._telling.cancel()
            with suppress(asyncio.CancelledError):
                await self._telling

    async def _tell(self) -> None:
        try:
            while self._is_news:
                quiet = self._told_at + _QUIET_SECONDS - self._clock.monotonic()
                await self._clock.sleep(max(_GATHER_SECONDS, quiet))
                self._is_news = False
                self._say_what_changed()
        finally:
            self._telling = None

    def _say_what_changed(self) -> None:
        if self._settings.chat is None:
            return
        chat = ChatRef.parse(self._settings.chat)
        now = [(what, one) for what, faults in self._watched.items() for one in faults()]
        before, self._told = self._told, frozenset(now)
        fresh = [found for found in now if found not in before]
        texts = self._chats.profile(chat).texts
        if fresh:
            self._say(chat, self._in_words(fresh, texts))
        elif before and not now:
            self._say(chat, texts.say("operators.well"))

    def _in_words(self, found: Sequence[tuple[str, Diagnostic]], texts: Phrases) -> str:
        parts: list[str] = []
        for what in self._watched:
            lines = [self._line(one) for kind, one in found if kind == what]
            more = len(lines) - _MOST_LINES
            if more > 0:
                lines = [*lines[:_MOST_LINES], texts.say("operators.more", count=more)]
            if lines:
                parts.append(texts.say(f"operators.{what}_broke", lines="\n".join(lines)))
            if any(kind == what and self._still_serves(one.file) for kind, one in found):
                parts[-1] += f"\n{texts.say('operators.serves_on')}"
        return "\n\n".join(parts)

    def _line(self, found: Diagnostic) -> str:
        line = visible(self._redact(f"{found.place}: {' '.join(found.message.split())}"))
        return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"

    def _say(self, chat: ChatRef, text: str) -> None:
        if self._chats.of(chat).allowed_by is None or not self._notices.reaches(chat):
            _log.error("operators_cannot_be_told", chat=chat.key, setting="operators.chat")
            return
        self._told_at = self._clock.monotonic()
        write, parcel = self._notices.notice(chat, text)
        try:
            self._store.post([write])
        except StoreError as problem:
            _log.error("operators_cannot_be_told", chat=chat.key, problem=str(problem))
            return
        self._notices.send([parcel])
