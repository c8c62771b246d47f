"""What clients do for each other beside talking: they say what they are when asked, and show that they are typing."""

from __future__ import annotations

from bot.platforms.irc_session import Session
from bot.platforms.irc_text import Ctcp, ctcp, ctcp_answer
from bot.platforms.irc_wire import Line, encode, one_word
from services.clock import Clock

_ANSWERS = 3
_WITHIN_SECONDS = 60.0
_TYPING_SECONDS = 3.0
"""How often the sign may be given; a client takes it down after six seconds."""
_TARGETS_KEPT = 1000
_LONGEST = 100


class Courtesies:
    """Answers CTCP within bounds, and never answers an answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered: list[float] = []
        self._typing_at: dict[str, float] = {}

    def answer(self, line: Line, session: Session) -> None:
        """Answer the CTCP in `line` if we know it, it is said to us alone, and it is not the fourth within a minute."""
        if line.command != "PRIVMSG" or "!" not in line.source or not one_word(line.nick):
            return
        request = ctcp(line.param(1))
        if request is None or session.state.is_me(line.nick) or not session.state.is_me(line.param(0)):
            return
        text = self._text(request)
        now = self._clock.monotonic()
        self._answered = [at for at in self._answered if now - at < _WITHIN_SECONDS]
        if text is None or len(self._answered) >= _ANSWERS:
            return
        self._answered.append(now)
        session.if_there_is_room(encode("NOTICE", line.nick, ctcp_answer(request.command, text)))

    def typing(self, session: Session, target: str, *, is_on: bool) -> None:
        """Show that something is being written to `target`, or no more, where the server passes that on."""
        if "message-tags" not in session.state.caps:
            return
        now = self._clock.monotonic()
        if is_on and now - self._typing_at.get(target, float("-inf")) < _TYPING_SECONDS:
            return
        if not is_on and target not in self._typing_at:
            return
        if is_on:
            self._typing_at[target] = now
            if len(self._typing_at) > _TARGETS_KEPT:
                self._typing_at.pop(next(iter(self._typing_at)))
        else:
            del self._typing_at[target]
        session.if_there_is_room(encode("TAGMSG", target, tags={"+typing": "active" if is_on else "done"}))

    def _text(self, request: Ctcp) -> str | None:
        match request.command:
            case "VERSION":
                return "Rollcall"
            case "PING":
                return request.text[:_LONGEST]
            case "TIME":
                return self._clock.now().strftime("%Y-%m-%d %H:%M:%S UTC")
        return None
