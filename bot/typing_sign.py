"""Shows that an answer is on its way, unless it is there in a moment; takes the sign down when the turn is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.refs import ChatRef

SHOWN_AFTER_SECONDS = 0.4
WORKING = "…"

Show = Callable[[ChatRef, str], Awaitable[None]]


class TypingSigns:
    """The signs of all turns, with one timer for all of them: nearly every turn is over before its sign is due."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: dict[TypingSign, float] = {}
        """When each is to be shown, on the loop's clock; they wait equally long, so the first one is due first."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, chat: ChatRef) -> TypingSign:
        """The sign of a turn of `chat` that begins now."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        sign = TypingSign(chat, self)
        due = self._due[sign] = loop.time() + SHOWN_AFTER_SECONDS
        if self._timer is None:
            self._timer = loop.call_at(due, self._show_due)
        return sign

    def cancel(self, sign: TypingSign) -> None:
        """Do not show the plain sign any more."""
        self._due.pop(sign, None)

    def show(self, chat: ChatRef, text: str) -> None:
        """Show `text`, or with an empty one nothing; best effort, and nobody waits for it."""
        task = asyncio.create_task(self._shown(chat, text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shown(self, chat: ChatRef, text: str) -> None:
        await self._show(chat, text)

    def _show_due(self) -> None:
        self._timer = None
        if self._loop is None:
            return
        now = self._loop.time()
        for sign, due in list(self._due.items()):
            if due > now:
                self._timer = self._loop.call_at(due, self._show_due)
                return
            del self._due[sign]
            sign.put_up(WORKING)


class TypingSign:
    """The sign of one turn."""

    __slots__ = ("_chat", "_is_up", "_signs")

    def __init__(self, chat: ChatRef, signs: TypingSigns) -> None:
        self._chat = chat
        self._signs = signs
        self._is_up = False

    async def say(self, text: str) -> None:
        """Show `text` instead of the plain sign."""
        self._signs.cancel(self)
        self.put_up(text)

    def put_up(self, text: str) -> None:
        """Show `text` now."""
        self._is_up = bool(text)
        self._signs.show(self._chat, text)

    def take_down(self) -> None:
        """The turn is over."""
        self._signs.cancel(self)
        if self._is_up:
            self.put_up("")
