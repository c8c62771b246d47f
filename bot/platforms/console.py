"""A private chat in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from bot.platforms.base import Deliver, Limits, Outgoing, Receipt
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from services.clock import Clock
from services.refs import ChatRef, MemberRef, Role

TERMINAL = ChatRef("console", "main", "terminal")
"""The only chat of this platform."""

_PROMPT = "› "


_PASTE_OFF = "\x1b[?2004l"


class Console:
    """Reads lines from one stream and writes replies to another. The user is the operator, and so the owner. In a
    terminal with GNU readline, several lines that are pasted at once are one message."""

    name = "console"
    account = "main"
    limits = Limits(text_chars=20_000, sends_per_minute=100_000)

    def __init__(self, member_name: str, clock: Clock, *, read_from: TextIO, write_to: TextIO) -> None:
        self._clock = clock
        self._read_from = read_from
        self._write_to = write_to
        self._has_editor = _has_editor(read_from, write_to)
        self._chat = TERMINAL
        self._sender = Sender(MemberRef(self.name, self.account, "operator"), member_name, Role.OWNER)
        # Unique per process, so that ids never repeat.
        self._session = uuid.uuid4().hex[:12]
        self._count = 0
        self.answered: Callable[[], Awaitable[None]] | None = None
        """Waits until the lines so far are answered; set for piped input, so that a line can answer a question."""

    async def run(self, deliver: Deliver) -> None:
        """Deliver lines until the stream ends or the daemon cancels it. Blank lines are skipped."""
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # A daemon thread: a blocked read must not keep the process alive.
        with self._restored_terminal():
            threading.Thread(target=self._read_lines, args=(loop, lines), daemon=True).start()
            self._prompt()
            while (line := await lines.get()) is not None:
                if line.strip():
                    await deliver(self._context(line.rstrip("\n")), ())
                    if self.answered is not None:
                        await self.answered()
                else:
                    self._prompt()

    async def send(self, outgoing: Outgoing) -> Receipt:
        self._write(f"\r{outgoing.plain}\n{_PROMPT}")
        return Receipt(outgoing.key)

    async def typing(self, chat: ChatRef, status: str) -> None:
        if status and status != "…":
            self._write(f"\r({status})\n{_PROMPT}")

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return Role.OWNER if member == self._sender.ref else None

    async def close(self) -> None:
        return None

    def _context(self, line: str) -> MessageContext:
        self._count += 1
        return MessageContext(
            key=MessageKey(self._chat, f"{self._session}-{self._count}"),
            kind=Kind.MESSAGE,
            chat=self._chat,
            is_group=False,
            sender=self._sender,
            text=line,
            sent_at=self._clock.now(),
        )

    def _read_lines(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
        def hand_over(line: str | None) -> None:
            # The loop may have ended during the read.
            if not loop.is_closed():
                loop.call_soon_threadsafe(lines.put_nowait, line)

        for line in _edited_lines() if self._has_editor else self._read_from:
            hand_over(line)
        hand_over(None)

    @contextmanager
    def _restored_terminal(self) -> Iterator[None]:
        """Context manager that restores the terminal's modes at the end: the thread may still be inside readline, which
        has changed them. Does nothing without a line editor."""
        if not self._has_editor:
            yield
            return
        import termios

        modes = termios.tcgetattr(self._read_from)
        try:
            yield
        finally:
            termios.tcsetattr(self._read_from, termios.TCSADRAIN, modes)
            self._write(_PASTE_OFF)

    def _prompt(self) -> None:
        """Show the prompt, unless readline does."""
        if not self._has_editor:
            self._write(_PROMPT)

    def _write(self, text: str) -> None:
        self._write_to.write(text)
        self._write_to.flush()


def _has_editor(read_from: TextIO, write_to: TextIO) -> bool:
    """Whether `input` edits lines with GNU readline, and bracketed paste is on. libedit has no bracketed paste."""
    is_terminal = (read_from, write_to) == (sys.stdin, sys.stdout) and read_from.isatty() and write_to.isatty()
    if not is_terminal or os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        import readline
    except ImportError:
        return False
    if "libedit" in (readline.__doc__ or ""):
        return False
    readline.parse_and_bind("set enable-bracketed-paste on")
    return True


def _edited_lines() -> Iterator[str]:
    """Lines from the terminal; a paste of several lines is one of them. Ends with Ctrl-D."""
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            return
