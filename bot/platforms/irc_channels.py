"""The channels that the bot wants to be in: which of them it has to ask for now, and why it is not in the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from bot.platforms.irc_state import State
from bot.platforms.irc_wire import Line
from config.irc import IrcChannelSettings

_log = structlog.get_logger("irc")
_REFUSED = {
    "403": "there is no such channel",
    "405": "the bot is in too many channels",
    "437": "the channel is not available for a while",
    "471": "the channel is full",
    "473": "the channel is for invited members only",
    "474": "the bot is banned from it",
    "475": "its key is wrong or missing",
    "476": "the server takes no channel of this name",
    "477": "the channel is for registered accounts only",
    "489": "the channel is for encrypted connections only",
    "520": "the channel is for operators only",
}
_FIRST_PAUSE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 3600.0
_KICKED_AGAIN_SECONDS = 900.0
"""Whoever is kicked again within this time waits longer."""
_ANSWER_SECONDS = 30.0
_PEOPLE_SECONDS = 300.0
"""So long after it came, the bot keeps what it has to say in an empty channel for those who are on their way back: a
server that was started again lets a program in long before most people."""


@dataclass(slots=True)
class _Wanted:
    name: str
    key: str
    problem: str = ""
    """Why the bot is not in it; empty: it is, or has not been refused yet."""
    next_at: float = 0.0
    """When it is asked for again."""
    pause_seconds: float = _FIRST_PAUSE_SECONDS
    kicked_at: float = float("-inf")
    joined_at: float = float("-inf")


class WantedChannels:
    """Keeps asking for channels, less and less often where it is refused. It outlives connections."""

    def __init__(self, settings: Sequence[IrcChannelSettings], network: str, now: Callable[[], float]) -> None:
        """`now` are seconds that never go back."""
        self._wanted = [_Wanted(one.name, one.key.get_secret_value()) for one in settings]
        self._network = network
        self._now = now

    def connected(self) -> None:
        """There is a new connection: what was refused for a while on the last one may be asked for at once."""
        for one in self._wanted:
            one.problem, one.next_at, one.pause_seconds = "", 0.0, _FIRST_PAUSE_SECONDS

    def due(self, state: State) -> list[tuple[str, str]]:
        """The names and keys of those to ask for now."""
        now = self._now()
        due = [one for one in self._wanted if one.next_at <= now and not _is_in(state, one.name)]
        for one in due:
            # Until it has answered.
            one.next_at = now + _ANSWER_SECONDS
        return [(one.name, one.key) for one in due]

    def follow(self, line: Line, state: State) -> None:
        """Note what `line`, which `state` follows too, says about one of them."""
        match line.command:
            case "JOIN" if state.is_me(line.nick):
                self._joined(line.param(0), state)
            case "KICK" if state.is_me(line.param(1)):
                self._kicked(line, state)
            case "INVITE" if state.is_me(line.param(0)):
                wanted = self._find(line.param(1), state)
                if wanted is not None:
                    wanted.next_at = 0.0
            case command if command in _REFUSED:
                wanted = self._find(line.param(1), state)
                if wanted is not None and not _is_in(state, wanted.name):
                    self._pause(wanted, _REFUSED[command])

    def problem(self, name: str, state: State) -> str | None:
        """Why the bot is not in the channel `name`, in words; empty while it is asking; None for one that nobody
        wants."""
        wanted = self._find(name, state)
        return None if wanted is None else wanted.problem

    def waits_for_people_until(self, name: str, state: State) -> float:
        """The instant until which nothing is said in the channel `name`, because nobody is there yet; in the past where
        it can be said."""
        wanted = self._find(name, state)
        return float("-inf") if wanted is None or state.has_people(name) else wanted.joined_at + _PEOPLE_SECONDS

    def problems(self) -> list[str]:
        """For an operator: each channel that the bot is kept out of, why, and when it tries again."""
        now = self._now()
        return [
            f"{one.name}: {one.problem}; tried again in {max(one.next_at - now, 0):.0f} s"
            for one in self._wanted
            if one.problem
        ]

    def _joined(self, name: str, state: State) -> None:
        wanted = self._find(name, state)
        if wanted is not None:
            wanted.problem = ""
        if not _is_in(state, name):
            return
        if wanted is not None:
            wanted.joined_at = self._now()
        _log.info("irc_joined", network=self._network, channel=name)

    def _kicked(self, line: Line, state: State) -> None:
        wanted = self._find(line.param(0), state)
        _log.warning("irc_kicked", network=self._network, channel=line.param(0), by=line.nick)
        if wanted is None:
            return
        now = self._now()
        if now - wanted.kicked_at > _KICKED_AGAIN_SECONDS:
            wanted.pause_seconds = _FIRST_PAUSE_SECONDS
        wanted.kicked_at = now
        self._pause(wanted, "the bot was kicked")

    def _pause(self, wanted: _Wanted, problem: str) -> None:
        """Ask again after a pause that grows each time."""
        wanted.problem = problem
        wanted.next_at = self._now() + wanted.pause_seconds
        seconds = round(wanted.pause_seconds)
        wanted.pause_seconds = min(wanted.pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
        _log.warning(
            "irc_not_in_channel", network=self._network, channel=wanted.name, problem=problem, next_try_seconds=seconds
        )

    def _find(self, name: str, state: State) -> _Wanted | None:
        fold = state.features.fold
        return next((one for one in self._wanted if fold(one.name) == fold(name)), None)


def _is_in(state: State, name: str) -> bool:
    return state.features.fold(name) in state.channels
