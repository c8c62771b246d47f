"""What is known of a network while connected: who we are there, who is in our channels, and who they have proved to be.

It is thrown away with the connection: what was true before a gap proves nothing after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bot.platforms.irc_features import Features
from bot.platforms.irc_wire import Line
from config.irc import BY_NICK
from services.refs import Role

WHOX_TOKEN = "417"  # noqa: S105 - a number that answers bear
WHOX_FIELDS = f"%tcnuhaf,{WHOX_TOKEN}"
"""What is asked of everybody in a channel."""
_ROLES = {"q": Role.ADMIN, "a": Role.ADMIN, "o": Role.MODERATOR, "h": Role.MODERATOR}
"""By the modes of a channel: founder and protected are admins, operators and half-operators moderators."""


@dataclass(slots=True)
class Person:
    """Somebody who shares a channel with us."""

    nick: str
    account: str = ""
    """The account that they have proved to be theirs; empty: none, or none that we know of."""


@dataclass(slots=True)
class Channel:
    """A channel that we are in."""

    name: str
    """As the server writes it."""
    members: dict[str, set[str]] = field(default_factory=dict)
    """Their modes there (`o`, `v` …), by folded nick."""
    is_listed: bool = False
    """The server has told all who are there."""


class State:
    """One connection's view of the network."""

    def __init__(self) -> None:
        self.features = Features()
        self.caps: set[str] = set()
        self.nick = ""
        self.mask = ""
        """Our own `user@host` as others see it; empty: not known yet."""
        self.channels: dict[str, Channel] = {}
        """By folded name."""
        self._people: dict[str, Person] = {}
        self._naming: dict[str, set[str]] = {}
        self._follow: Mapping[str, Callable[[Line], None]] = {
            "001": self._welcome,
            "005": lambda line: self.features.learn(line.params[1:-1]),
            "353": self._names,
            "366": self._end_of_names,
            "354": self._whox,
            "396": self._own_host,
            "ACCOUNT": lambda line: self._proves(line.nick, line.param(0)),
            "JOIN": self._join,
            "KICK": lambda line: self._leaves(line.param(0), line.param(1)),
            "MODE": self._mode,
            "NICK": self._nick,
            "PART": self._part,
            "QUIT": lambda line: self._quit(line.nick),
        }

    def follow(self, line: Line) -> None:
        """Note what `line` changes."""
        step = self._follow.get(line.command)
        if step is not None:
            step(line)
        if line.command in ("PRIVMSG", "NOTICE", "TAGMSG") and "!" in line.source:
            self._heard(line)

    def is_me(self, nick: str) -> bool:
        """Whether `nick` is ours."""
        return self.features.fold(nick) == self.features.fold(self.nick)

    def own_source_bytes(self) -> int:
        """Of what the server puts before our lines: `:nick!user@host `. As long as it may be while it is not known."""
        mask = len(self.mask.encode()) if self.mask else self.features.longest_mask_bytes
        return len(self.nick.encode()) + mask + 3

    def account(self, line: Line) -> str:
        """The account that the sender of `line` has proved; empty when they have none, or nobody tells."""
        if "account-tag" in self.caps and line.command in ("PRIVMSG", "NOTICE", "TAGMSG"):
            return _account(line.tags.get("account", ""))
        person = self._people.get(self.features.fold(line.nick))
        return person.account if person else ""

    def identity(self, nick: str, account: str) -> str:
        """Who somebody is: the account where it is proved, else the nick, marked as no more than that."""
        return self.features.fold(account) if account else BY_NICK + self.features.fold(nick)

    def identity_of(self, nick: str) -> str:
        """Who the one with `nick` is, as far as we have seen."""
        person = self._people.get(self.features.fold(nick))
        return self.identity(nick, person.account if person else "")

    def nick_of(self, identity: str) -> str:
        """The nick under which `identity` shares a channel with us now; empty: under none."""
        if identity.startswith(BY_NICK):
            person = self._people.get(identity.removeprefix(BY_NICK))
            return person.nick if person and not person.account else ""
        return next(
            (one.nick for one in self._people.values() if one.account and self.features.fold(one.account) == identity),
            "",
        )

    def named(self, nick: str, channel: str) -> str:
        """The identity of the member of `channel` with `nick`; empty when there is none."""
        known = self.channels.get(self.features.fold(channel))
        return self.identity_of(nick) if known and self.features.fold(nick) in known.members else ""

    def channels_of(self, nick: str) -> Collection[Channel]:
        """Our channels that the one with `nick` is in."""
        folded = self.features.fold(nick)
        return [channel for channel in self.channels.values() if folded in channel.members]

    def has_people(self, channel: str) -> bool:
        """Whether somebody beside us is known to be in `channel`."""
        known = self.channels.get(self.features.fold(channel))
        return known is not None and known.is_listed and any(not self.is_me(nick) for nick in known.members)

    def role(self, channel: str, identity: str) -> Role | None:
        """What `identity` is in `channel` now; None when they are not there, or we are not. Whoever is known by a nick
        alone is a member at most, whatever sign stands before it."""
        known = self.channels.get(self.features.fold(channel))
        if known is None:
            return None
        modes = [modes for nick, modes in known.members.items() if self._is(nick, identity)]
        if not modes:
            return None
        if identity.startswith(BY_NICK):
            return Role.MEMBER
        roles = [_ROLES.get(mode, Role.MEMBER) for held in modes for mode in held]
        return max(roles, key=lambda role: role.rank, default=Role.MEMBER)

    def _is(self, folded_nick: str, identity: str) -> bool:
        person = self._people.get(folded_nick)
        return self.identity(folded_nick, person.account if person else "") == identity

    def _welcome(self, line: Line) -> None:
        self.nick = line.param(0)

    def _own_host(self, line: Line) -> None:
        user, at, _ = self.mask.partition("@")
        host = line.param(1)
        # Some servers show the user as well. Where ours is not known, neither is the length of the whole.
        self.mask = host if "@" in host else f"{user}@{host}" if at else ""

    def _person(self, nick: str) -> Person:
        return self._people.setdefault(self.features.fold(nick), Person(nick))

    def _proves(self, nick: str, account: str) -> None:
        person = self._people.get(self.features.fold(nick))
        if person is not None:
            person.account = _account(account)

    def _heard(self, line: Line) -> None:
        if self.is_me(line.nick):
            self.mask = line.source.partition("!")[2]
        elif "account-tag" in self.caps:
            self._proves(line.nick, line.tags.get("account", ""))

    def _join(self, line: Line) -> None:
        name = line.param(0)
        if not self.features.is_channel(name):
            return
        folded = self.features.fold(name)
        if self.is_me(line.nick):
            self.channels[folded] = Channel(name)
            self.mask = line.source.partition("!")[2] or self.mask
        channel = self.channels.get(folded)
        if channel is None:
            return
        channel.members[self.features.fold(line.nick)] = set()
        person = self._person(line.nick)
        person.nick = line.nick
        if "extended-join" in self.caps and len(line.params) > 1:
            person.account = _account(line.param(1))
        elif "account-tag" in self.caps:
            person.account = _account(line.tags.get("account", ""))

    def _part(self, line: Line) -> None:
        for name in line.param(0).split(","):
            self._leaves(name, line.nick)

    def _leaves(self, name: str, nick: str) -> None:
        folded = self.features.fold(name)
        if self.is_me(nick):
            gone = self.channels.pop(folded, None)
            for other in gone.members if gone else ():
                self._forget(other)
        elif folded in self.channels:
            self.channels[folded].members.pop(self.features.fold(nick), None)
            self._forget(self.features.fold(nick))

    def _quit(self, nick: str) -> None:
        folded = self.features.fold(nick)
        for channel in self.channels.values():
            channel.members.pop(folded, None)
        self._people.pop(folded, None)

    def _forget(self, folded_nick: str) -> None:
        """Whoever shares no channel with us any more may be somebody else when they come back."""
        if all(folded_nick not in channel.members for channel in self.channels.values()):
            self._people.pop(folded_nick, None)

    def _nick(self, line: Line) -> None:
        old, new = self.features.fold(line.nick), line.param(0)
        if self.is_me(line.nick):
            self.nick = new
        folded = self.features.fold(new)
        person = self._people.pop(old, None)
        if person is not None:
            person.nick = new
            self._people[folded] = person
        for channel in self.channels.values():
            modes = channel.members.pop(old, None)
            if modes is not None:
                channel.members[folded] = modes

    def _mode(self, line: Line) -> None:
        channel = self.channels.get(self.features.fold(line.param(0)))
        if channel is None:
            return
        of_members = set(self.features.prefixes.values())
        for is_set, mode, nick in self.features.changes(line.param(1), line.params[2:]):
            modes = channel.members.get(self.features.fold(nick))
            if mode in of_members and modes is not None:
                (modes.add if is_set else modes.discard)(mode)

    def _names(self, line: Line) -> None:
        """Part of the list of who is there. It may be asked for again, so who is missing from it is gone."""
        channel = self.channels.get(self.features.fold(line.param(2)))
        if channel is None:
            return
        listed = self._naming.setdefault(self.features.fold(channel.name), set())
        prefixes = self.features.prefixes
        for word in line.param(3).split():
            nick = word.lstrip("".join(prefixes))
            signs = word[: len(word) - len(nick)]
            nick = nick.partition("!")[0]
            folded = self.features.fold(nick)
            held = {prefixes[sign] for sign in signs}
            if "multi-prefix" not in self.caps:
                # Only the mightiest is told; the lesser ones that we have seen are still held.
                held |= {mode for mode in channel.members.get(folded, ()) if _is_below(prefixes, mode, held)}
            channel.members[folded] = held
            self._person(nick)
            listed.add(folded)

    def _end_of_names(self, line: Line) -> None:
        folded = self.features.fold(line.param(1))
        listed = self._naming.pop(folded, None)
        channel = self.channels.get(folded)
        if channel is None:
            return
        channel.is_listed = True
        if listed is None:
            return
        for gone in set(channel.members) - listed - {self.features.fold(self.nick)}:
            del channel.members[gone]
            self._forget(gone)

    def _whox(self, line: Line) -> None:
        """`me token channel user host nick flags account`."""
        if len(line.params) < 8 or line.param(1) != WHOX_TOKEN:
            return
        if self.is_me(line.param(5)):
            self.mask = f"{line.param(3)}@{line.param(4)}"
        self._proves(line.param(5), line.param(7))


def _account(told: str) -> str:
    """The account in what a server says, in which `*` and `0` are none. One that looks like the mark of a nick would be
    taken for it, so it counts for nothing."""
    return "" if told in ("*", "0") or told.startswith(BY_NICK) else told


def _is_below(prefixes: Mapping[str, str], mode: str, held: set[str]) -> bool:
    order = list(prefixes.values())
    return bool(held) and mode in order and order.index(mode) > min(order.index(one) for one in held)
