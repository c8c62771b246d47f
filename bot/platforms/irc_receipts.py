"""Which of the lines that were written has the server taken, and which did it refuse."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field

from bot.platforms.base import SendFailed
from bot.platforms.irc_state import State
from bot.platforms.irc_wire import Line

LABEL = "label"
_REFUSALS = {
    "401": "there is nobody of that name",
    "402": "there is no such server",
    "403": "there is no such channel",
    "404": "the channel takes no messages from the bot",
    "407": "there are too many of that name",
    "411": "the server knows no recipient",
    "412": "the server takes no empty text",
    "415": "the channel takes no messages from the bot",
    "417": "the line is too long for the server",
    "442": "the bot is not in the channel",
    "477": "the channel is for registered accounts only",
    "486": "they take private messages of registered accounts only",
    "489": "the channel takes no messages from the bot",
    "531": "they take no private messages from the bot",
    "716": "they take no private messages from the bot",
}
_ASKS_FOR_TIME = frozenset({"263", "439", "707"})
"""Too fast, or targets changed too fast: the same line will do later."""
_LATER_SECONDS = 30.0
_CONCLUSIVE = frozenset({"PRIVMSG", "FAIL", *_ASKS_FOR_TIME})
"""Of several lines in answer to one, those that say what became of it; that somebody is away does not."""


@dataclass(eq=False, slots=True)
class Sent:
    """One line that was written and has no answer yet."""

    token: str
    """Its label, or the word in the PING after it."""
    target: str
    text: str
    done: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """The id that the server gave it (empty where it gives none), or SendFailed."""


class Receipts:
    """The lines of one connection that wait. With labels the server says to which line an answer belongs; without them
    answers come in the order of the lines, and a PING behind each one tells when the server has read it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: dict[str, Sent] = {}
        self._batches: dict[str, str] = {}
        self._numbers = itertools.count(1)

    @property
    def uses_labels(self) -> bool:
        """Whether lines are labelled, and need no PING."""
        return {"labeled-response", "batch"} <= self._state.caps

    def expect(self, target: str, text: str) -> Sent:
        """A line that is written now."""
        sent = Sent(f"rc{next(self._numbers)}", target, text)
        self._waiting[sent.token] = sent
        return sent

    def forget(self, sent: Sent) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(sent.token, None)

    def follow(self, line: Line) -> None:
        """Note what `line` says about one that waits."""
        if self.uses_labels:
            self._labelled(line)
        elif line.command == "PONG":
            self._read(line.last)
        elif self._is_echo(line):
            self._answer(self._oldest(line.param(0), line.param(1)), line)
        elif line.command in _REFUSALS or line.command in _ASKS_FOR_TIME:
            self._answer(self._oldest(line.param(1)), line)

    def lost(self) -> None:
        """The connection is gone: nobody knows about what waits."""
        for sent in self._waiting.values():
            _fail(sent, "the connection was lost before the server answered", retryable=True, unknown_outcome=True)
        self._waiting.clear()

    def _labelled(self, line: Line) -> None:
        label = line.tags.get(LABEL, "")
        if line.command == "BATCH":
            reference = line.param(0)
            if reference.startswith("+") and label:
                self._batches[reference[1:]] = label
            elif reference.startswith("-"):
                # An answer in several lines, none of which was what we wait for.
                self._answer(self._waiting.get(self._batches.pop(reference[1:], "")), None)
            return
        if label:
            self._answer(self._waiting.get(label), line)
            return
        label = self._batches.get(line.tags.get("batch", ""), "")
        if label and (line.command in _CONCLUSIVE or line.command in _REFUSALS):
            self._answer(self._waiting.get(label), line)

    def _read(self, token: str) -> None:
        """The server has read all that was written before this PING."""
        sent = self._waiting.get(token)
        if sent is not None and "echo-message" in self._state.caps:
            self.forget(sent)
            _fail(sent, "the server took the line and told it to nobody", retryable=False)
        else:
            self._answer(sent, None)

    def _answer(self, sent: Sent | None, line: Line | None) -> None:
        if sent is None:
            return
        self.forget(sent)
        if line is not None and line.command in _REFUSALS:
            _fail(sent, f"{sent.target}: {_REFUSALS[line.command]} ({line.command})", retryable=False)
        elif line is not None and line.command in _ASKS_FOR_TIME:
            _fail(sent, f"the server asks for time ({line.command})", retryable=True, after_seconds=_LATER_SECONDS)
        elif line is not None and line.command == "FAIL":
            _fail(sent, f"{sent.target}: the server refuses it ({line.param(1)})", retryable=False)
        elif not sent.done.done():
            sent.done.set_result(line.tags.get("msgid", "") if line is not None else "")

    def _is_echo(self, line: Line) -> bool:
        return "echo-message" in self._state.caps and line.command == "PRIVMSG" and self._state.is_me(line.nick)

    def _oldest(self, target: str, text: str = "") -> Sent | None:
        fold = self._state.features.fold
        fitting = [one for one in self._waiting.values() if fold(one.target) == fold(target)]
        # A server may change the text on its way, so the first one will do.
        return next((one for one in fitting if one.text == text), fitting[0] if fitting else None)


def _fail(
    sent: Sent, problem: str, *, retryable: bool, unknown_outcome: bool = False, after_seconds: float | None = None
) -> None:
    if not sent.done.done():
        failure = SendFailed(
            problem, retryable=retryable, unknown_outcome=unknown_outcome, retry_after_seconds=after_seconds
        )
        sent.done.set_exception(failure)
        # Marks it as seen: whoever waited may have been cancelled meanwhile.
        sent.done.exception()
