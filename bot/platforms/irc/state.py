"""State of an IRC network: own nick, channels, members, accounts and server features."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from bot.platforms.irc.wire import LINE_BYTES, Line
from config.sections.irc import BY_NICK, IrcChannelSettings
from services.refs import Role
from services.retry import RetryPolicy

_HEX = re.compile(r"\\x([0-9A-Fa-f]{2})")
_FOLDS = {
    "ascii": str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"),
    "rfc1459": str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ[]\\~", "abcdefghijklmnopqrstuvwxyz{}|^"),
    "rfc1459-strict": str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ[]\\", "abcdefghijklmnopqrstuvwxyz{}|"),
}
_USUAL_HOST_BYTES = 63
_USUAL_USER_BYTES = 11
_SHORTEST_LINE, _LONGEST_LINE = 256, 65_536


class Features:
    """ISUPPORT features of a server, with the defaults of RFC 1459."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    def learn(self, tokens: Sequence[str]) -> None:
        """Process the tokens of an ISUPPORT reply, without the nick before and the text after them."""
        for token in tokens:
            name, _, value = token.partition("=")
            if name.startswith("-"):
                self._tokens.pop(name[1:].upper(), None)
            elif name:
                self._tokens[name.upper()] = _HEX.sub(lambda found: chr(int(found[1], 16)), value)

    def fold(self, name: str) -> str:
        """Case-folded `name`, a nick or channel, for comparisons."""
        fold = _FOLDS.get(self._tokens.get("CASEMAPPING", "rfc1459").lower())
        # Other mappings fold more of Unicode; folding too much could confuse two users.
        return name.translate(fold or _FOLDS["ascii"])

    def is_channel(self, target: str) -> bool:
        """Whether `target` is a channel."""
        return bool(target) and target[0] in self._tokens.get("CHANTYPES", "#&")

    def channel_of(self, target: str) -> tuple[str, bool]:
        """The channel in `target`, and whether it addresses only some members (`@#channel`); else `target`."""
        stripped = target.lstrip(self._tokens.get("STATUSMSG", ""))
        if stripped != target and self.is_channel(stripped):
            return stripped, True
        return target, False

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Member modes by nick prefix, highest first: `@` is `o`. Empty if the server's PREFIX is malformed."""
        modes, closed, signs = self._tokens.get("PREFIX", "(ov)@+").lstrip("(").partition(")")
        return dict(zip(signs, modes, strict=False)) if closed else {}

    def changes(self, modes: str, params: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
        """Mode changes of a channel: whether it is set, the mode, and its parameter or an empty string."""
        lists, always, when_set, *_ = [*self._tokens.get("CHANMODES", "b,k,l,imnpst").split(","), "", "", ""]
        with_param = lists + always + "".join(self.prefixes.values())
        rest = iter(params)
        sets = True
        for mode in modes:
            if mode in "+-":
                sets = mode == "+"
            else:
                has_param = mode in with_param or (sets and mode in when_set)
                yield sets, mode, next(rest, "") if has_param else ""

    @property
    def line_bytes(self) -> int:
        """Maximum length of a line with its end, without tags."""
        return min(max(self._number("LINELEN", LINE_BYTES), _SHORTEST_LINE), _LONGEST_LINE)

    @property
    def longest_mask_bytes(self) -> int:
        """Maximum length of `user@host` on this server."""
        return self._number("USERLEN", _USUAL_USER_BYTES) + 1 + self._number("HOSTLEN", _USUAL_HOST_BYTES)

    @property
    def joins_at_once(self) -> int:
        """Maximum number of channels per JOIN: the server's TARGMAX, at most 20; 1 if it does not name one."""
        for target in self._tokens.get("TARGMAX", "").upper().split(","):
            command, colon, most = target.partition(":")
            if command == "JOIN" and colon:
                return min(int(most), 20) if most.isascii() and most.isdigit() and int(most) else 20
        return 1

    @property
    def has_whox(self) -> bool:
        """Whether WHO can report accounts."""
        return "WHOX" in self._tokens

    @property
    def bot_mode(self) -> str:
        """The user mode that marks a bot; empty if absent."""
        mode = self._tokens.get("BOT", "")
        return mode if len(mode) == 1 and mode.isalpha() else ""

    @property
    def network(self) -> str:
        """The network's name; empty if the server has none."""
        return self._tokens.get("NETWORK", "")

    def _number(self, name: str, otherwise: int) -> int:
        value = self._tokens.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 and int(value) > 0 else otherwise


WHOX_TOKEN = "417"  # noqa: S105 - a number in replies
WHOX_FIELDS = f"%tcnuhaf,{WHOX_TOKEN}"
"""Requested WHO fields for each member of a channel."""
_ROLES = {"q": Role.ADMIN, "a": Role.ADMIN, "o": Role.MODERATOR, "h": Role.MODERATOR}
"""Roles by channel modes: founder and protected are admins, operators and half-operators moderators."""


@dataclass(slots=True)
class Person:
    """A user who shares a channel with the bot."""

    nick: str
    account: str = ""
    """Account that the user is logged in to; empty if none or unknown."""


@dataclass(slots=True)
class Channel:
    """A channel that the bot is in."""

    name: str
    """As the server writes it."""
    members: dict[str, set[str]] = field(default_factory=dict)
    """Member modes (`o`, `v` …) by folded nick."""
    is_listed: bool = False
    """The member list is complete."""


class State:
    """State of the network on one connection."""

    def __init__(self) -> None:
        self.features = Features()
        self.caps: set[str] = set()
        self.nick = ""
        self.mask = ""
        """The bot's `user@host` as others see it; empty if unknown."""
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
        """Update the state from `line`, including the activity of its sender. Unknown commands are ignored."""
        step = self._follow.get(line.command)
        if step is not None:
            step(line)
        if line.command in ("PRIVMSG", "NOTICE", "TAGMSG") and "!" in line.source:
            self._note_activity(line)

    def is_me(self, nick: str) -> bool:
        """Whether `nick` is the bot's."""
        return self.features.fold(nick) == self.features.fold(self.nick)

    def own_source_bytes(self) -> int:
        """Length of the source `:nick!user@host ` that the server adds to the bot's lines; the maximum if unknown."""
        mask = len(self.mask.encode()) if self.mask else self.features.longest_mask_bytes
        return len(self.nick.encode()) + mask + 3

    def account(self, line: Line) -> str:
        """The account of the sender of `line`; empty if none or unknown."""
        if "account-tag" in self.caps and line.command in ("PRIVMSG", "NOTICE", "TAGMSG"):
            return _account(line.tags.get("account", ""))
        person = self._people.get(self.features.fold(line.nick))
        return person.account if person else ""

    def identity(self, nick: str, account: str) -> str:
        """Identity of a user: the account if known, else the nick with a prefix."""
        return self.features.fold(account) if account else BY_NICK + self.features.fold(nick)

    def identity_of(self, nick: str) -> str:
        """Identity of the user with `nick`, as far as known."""
        person = self._people.get(self.features.fold(nick))
        return self.identity(nick, person.account if person else "")

    def nick_of(self, identity: str) -> str:
        """The nick of `identity` in a common channel; empty if absent."""
        if identity.startswith(BY_NICK):
            person = self._people.get(identity.removeprefix(BY_NICK))
            return person.nick if person and not person.account else ""
        return next(
            (one.nick for one in self._people.values() if one.account and self.features.fold(one.account) == identity),
            "",
        )

    def named(self, nick: str, channel: str) -> str:
        """The identity of the member of `channel` with `nick`; empty if absent."""
        known = self.channels.get(self.features.fold(channel))
        return self.identity_of(nick) if known and self.features.fold(nick) in known.members else ""

    def channels_of(self, nick: str) -> Collection[Channel]:
        """The bot's channels that the user with `nick` is in."""
        folded = self.features.fold(nick)
        return [channel for channel in self.channels.values() if folded in channel.members]

    def is_in(self, channel: str) -> bool:
        """Whether the bot is in `channel`."""
        return self.features.fold(channel) in self.channels

    def has_people(self, channel: str) -> bool:
        """Whether anybody else is known to be in `channel`."""
        known = self.channels.get(self.features.fold(channel))
        return known is not None and known.is_listed and any(not self.is_me(nick) for nick in known.members)

    def role(self, channel: str, identity: str) -> Role | None:
        """Role of `identity` in `channel`; None if they or the bot are not in it. A user without an account is a member
        at most, whatever their modes."""
        known = self.channels.get(self.features.fold(channel))
        if known is None:
            return None
        modes = [modes for nick, modes in known.members.items() if self.identity_of(nick) == identity]
        if not modes:
            return None
        if identity.startswith(BY_NICK):
            return Role.MEMBER
        roles = [_ROLES.get(mode, Role.MEMBER) for held in modes for mode in held]
        return max(roles, key=lambda role: role.rank, default=Role.MEMBER)

    def _welcome(self, line: Line) -> None:
        self.nick = line.param(0)

    def _own_host(self, line: Line) -> None:
        user, at, _ = self.mask.partition("@")
        host = line.param(1)
        # Some servers include the user. If the user is unknown, so is the length of the mask.
        self.mask = host if "@" in host else f"{user}@{host}" if at else ""

    def _person(self, nick: str) -> Person:
        return self._people.setdefault(self.features.fold(nick), Person(nick))

    def _proves(self, nick: str, account: str) -> None:
        person = self._people.get(self.features.fold(nick))
        if person is not None:
            person.account = _account(account)

    def _note_activity(self, line: Line) -> None:
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
            channel = self.channels.pop(folded, None)
            for other in channel.members if channel else ():
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
        """Forget a user without a common channel: the nick may be another user's next time."""
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
        """Process a part of the member list. When it is repeated, missing members have left."""
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
                # Only the highest prefix is sent; lower modes that are known remain.
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
        for absent in set(channel.members) - listed - {self.features.fold(self.nick)}:
            del channel.members[absent]
            self._forget(absent)

    def _whox(self, line: Line) -> None:
        """Process a WHOX reply, `me token channel user host nick flags account`: the user's account, or the bot's own
        mask. Other replies are ignored."""
        if len(line.params) < 8 or line.param(1) != WHOX_TOKEN:
            return
        if self.is_me(line.param(5)):
            self.mask = f"{line.param(3)}@{line.param(4)}"
        self._proves(line.param(5), line.param(7))


def _account(reported: str) -> str:
    """The account in a server's reply, where `*` and `0` mean none. One that looks like the prefix of a nick identity
    is ignored, since it could be used to impersonate."""
    return "" if reported in ("*", "0") or reported.startswith(BY_NICK) else reported


def _is_below(prefixes: Mapping[str, str], mode: str, held: set[str]) -> bool:
    order = list(prefixes.values())
    return bool(held) and mode in order and order.index(mode) > min(order.index(one) for one in held)


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
_PAUSES = RetryPolicy(first_wait_seconds=10.0, longest_wait_seconds=3600.0)
_KICKED_AGAIN_SECONDS = 900.0
"""After a second kick within this time, the pause is longer."""
_ANSWER_SECONDS = 30.0
_PEOPLE_SECONDS = 300.0
"""After a join, messages wait this long in an empty channel: after a restart of the server, programs reconnect before
most people."""


@dataclass(slots=True)
class _ConfiguredChannel:
    name: str
    key: str
    problem: str = ""
    """Why the bot is not in it; empty if it is, or has not been rejected yet."""
    next_at: float = 0.0
    """When to request it again."""
    refusals: int = 0
    """Consecutive rejections; each extends the pause."""
    kicked_at: float = float("-inf")
    joined_at: float = float("-inf")


class ConfiguredChannels:
    """Requests channels again after rejections, with growing pauses. Outlives connections."""

    def __init__(self, settings: Sequence[IrcChannelSettings], network: str, now: Callable[[], float]) -> None:
        """`now` returns seconds on a monotonic clock."""
        self._channels = [_ConfiguredChannel(one.name, one.key.get_secret_value()) for one in settings]
        self._network = network
        self._now = now

    def connected(self) -> None:
        """Reset pauses for a new connection, where earlier rejections may not apply."""
        for one in self._channels:
            one.problem, one.next_at, one.refusals = "", 0.0, 0

    def due(self, state: State) -> list[tuple[str, str]]:
        """Names and keys of the channels to request now."""
        now = self._now()
        due = [one for one in self._channels if one.next_at <= now and not state.is_in(one.name)]
        for one in due:
            # Until the answer arrives.
            one.next_at = now + _ANSWER_SECONDS
        return [(one.name, one.key) for one in due]

    def follow(self, line: Line, state: State) -> None:
        """Process an answer in `line` about these channels, after `state` has: joins, kicks, invitations, which are
        followed at once, and refusals."""
        match line.command:
            case "JOIN" if state.is_me(line.nick):
                self._joined(line.param(0), state)
            case "KICK" if state.is_me(line.param(1)):
                self._kicked(line, state)
            case "INVITE" if state.is_me(line.param(0)):
                channel = self._find(line.param(1), state)
                if channel is not None:
                    channel.next_at = 0.0
            case command if command in _REFUSED:
                channel = self._find(line.param(1), state)
                if channel is not None and not state.is_in(channel.name):
                    self._pause(channel, _REFUSED[command])

    def problem(self, name: str, state: State) -> str | None:
        """Why the bot is not in channel `name`; empty while it is being requested; None if it is not configured."""
        channel = self._find(name, state)
        return None if channel is None else channel.problem

    def waits_for_people_until(self, name: str, state: State) -> float:
        """Time until which messages to channel `name` wait because nobody else is there; in the past if they need not
        wait."""
        channel = self._find(name, state)
        return float("-inf") if channel is None or state.has_people(name) else channel.joined_at + _PEOPLE_SECONDS

    def problems(self) -> list[str]:
        """For operators: rejected channels with the reason and the time of the next request."""
        now = self._now()
        return [
            f"{one.name}: {one.problem}; tried again in {max(one.next_at - now, 0):.0f} s"
            for one in self._channels
            if one.problem
        ]

    def _joined(self, name: str, state: State) -> None:
        channel = self._find(name, state)
        if channel is not None and state.is_in(name):
            channel.problem, channel.joined_at = "", self._now()
        _log.info("irc_joined", network=self._network, channel=name)

    def _kicked(self, line: Line, state: State) -> None:
        channel = self._find(line.param(0), state)
        _log.warning("irc_kicked", network=self._network, channel=line.param(0), by=line.nick)
        if channel is None:
            return
        now = self._now()
        if now - channel.kicked_at > _KICKED_AGAIN_SECONDS:
            channel.refusals = 0
        channel.kicked_at = now
        self._pause(channel, "the bot was kicked")

    def _pause(self, channel: _ConfiguredChannel, problem: str) -> None:
        """Record the problem, and request the channel again after a pause that grows with each refusal."""
        channel.problem = problem
        channel.refusals += 1
        seconds = _PAUSES.wait_after(channel.refusals)
        channel.next_at = self._now() + seconds
        _log.warning(
            "irc_not_in_channel",
            network=self._network,
            channel=channel.name,
            problem=problem,
            next_try_seconds=round(seconds),
        )

    def _find(self, name: str, state: State) -> _ConfiguredChannel | None:
        fold = state.features.fold
        return next((one for one in self._channels if fold(one.name) == fold(name)), None)
