"""How the bot introduces itself to a server: capabilities, proof of its account, a nick that is free. It neither sends
nor waits itself: lines go in, lines come out."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from bot.platforms.irc_features import Features
from bot.platforms.irc_sasl import NoProof, Sasl
from bot.platforms.irc_wire import Line, encode
from config.irc import IrcSettings

WANTED = frozenset(
    {
        "account-notify",
        "account-tag",
        "batch",
        "echo-message",
        "extended-join",
        "labeled-response",
        "message-tags",
        "multi-prefix",
        "server-time",
    }
)
_SASL = "sasl"
_SASL_FAILED = {
    "902": "the account is locked",
    "904": "the account or its password is refused",
    "905": "the credentials are too long",
    "906": "it was broken off",
    "908": "the mechanism is not offered",
}
_NICK_REFUSED = {"432": "not allowed", "433": "taken", "436": "taken", "437": "not available for a while"}
_REFUSED = {
    "464": "the server's password is wrong or missing",
    "465": "this bot is banned from the server",
    "463": "this host may not connect",
}


class Refused(Exception):
    """The server does not let the bot in as it is set up; to come back soon will not help."""


class Registration:
    """One introduction, from the first line to the end of the greeting."""

    def __init__(self, settings: IrcSettings) -> None:
        self._settings = settings
        self._offered: dict[str, str] = {}
        self._nicks = _nicks(settings)
        self.trying = next(self._nicks)
        """The nick that was asked for last."""
        self.caps: set[str] = set()
        """What was agreed on."""
        self.is_welcome = False
        """The server has taken us in, under the nick of its welcome."""
        self.is_done = False
        """The greeting is over: channels may be joined."""
        self._negotiates = True
        self._proved = settings.sasl.mechanism == "none"
        self._sasl = Sasl(settings.sasl, secrets.token_urlsafe(24))

    def begin(self) -> list[bytes]:
        """The first lines."""
        password = self._settings.password.get_secret_value()
        return [
            encode("CAP", "LS", "302"),
            *([encode("PASS", password)] if password else []),
            encode("NICK", self.trying),
            encode("USER", self._settings.username, "0", "*", self._settings.realname or self._settings.nick),
        ]

    def take(self, line: Line) -> list[bytes]:
        """The lines that answer `line`. Raises Refused."""
        match line.command:
            case "CAP":
                return self._cap(line)
            case "AUTHENTICATE":
                return self._authenticate(line)
            case "903":
                return self._believed()
            case "001":
                return self._welcome()
            case "376" | "422":
                self.is_done = self.is_welcome
                return []
        if line.command in _SASL_FAILED:
            return self._without_proof(_SASL_FAILED[line.command])
        if line.command in _NICK_REFUSED and not self.is_welcome:
            return self._next_nick(_NICK_REFUSED[line.command])
        if line.command in _REFUSED:
            raise Refused(_REFUSED[line.command])
        return []

    def _cap(self, line: Line) -> list[bytes]:
        subcommand, words = line.param(1).upper(), line.last.split()
        if subcommand == "LS" and self._negotiates:
            self._offered |= dict(_offer(word) for word in words)
            return [] if line.param(2) == "*" else self._ask()
        if subcommand == "ACK":
            self.caps |= {word for word in words if not word.startswith("-")}
            self.caps -= {word[1:] for word in words if word.startswith("-")}
            if _SASL in self.caps and not self._proved and self._negotiates:
                return [encode("AUTHENTICATE", self._settings.sasl.mechanism.upper())]
            return self._end_of_caps()
        if subcommand == "NAK":
            return self._end_of_caps()
        if subcommand == "DEL":
            self.caps -= set(words)
        return []

    def _ask(self) -> list[bytes]:
        wanted = sorted(WANTED & set(self._offered))
        if not self._proved and self._offers_the_mechanism():
            wanted.append(_SASL)
        return [encode("CAP", "REQ", " ".join(wanted))] if wanted else self._end_of_caps()

    def _offers_the_mechanism(self) -> bool:
        mechanisms = self._offered.get(_SASL)
        # Before version 302 servers say that there is SASL, and not which.
        return mechanisms is not None and (
            not mechanisms or self._settings.sasl.mechanism.upper() in mechanisms.upper().split(",")
        )

    def _end_of_caps(self) -> list[bytes]:
        if not self._negotiates:
            return []
        if not self._proved:
            return self._without_proof("the server does not offer the mechanism")
        self._negotiates = False
        return [encode("CAP", "END")]

    def _authenticate(self, line: Line) -> list[bytes]:
        if self._proved:
            return []
        try:
            return self._sasl.answer(line.param(0))
        except NoProof as problem:
            return self._without_proof(str(problem))

    def _believed(self) -> list[bytes]:
        if not self._proved and not self._sasl.is_over:
            return self._without_proof("the server did not show that it knows the password")
        self._proved = True
        return self._end_of_caps()

    def _without_proof(self, why: str) -> list[bytes]:
        if self._settings.sasl.required:
            raise Refused(f"SASL: {why}")
        self._proved = True
        return self._end_of_caps()

    def _next_nick(self, why: str) -> list[bytes]:
        try:
            self.trying = next(self._nicks)
        except StopIteration:
            raise Refused(f"no nick is free: {self.trying!r} is {why}") from None
        return [encode("NICK", self.trying)]

    def _welcome(self) -> list[bytes]:
        self.is_welcome = True
        if not self._proved and self._settings.sasl.required:
            raise Refused("SASL: the server does not know capabilities")
        self._negotiates = False
        return []


def joins(wanted: Sequence[tuple[str, str]], features: Features) -> list[bytes]:
    """The lines that join these channels, each with its key or an empty text, as many at once as the server takes."""
    # In one line those with keys have to stand first.
    rest = sorted(wanted, key=lambda channel: not channel[1])
    lines: list[bytes] = []
    while rest:
        some = features.joins_at_once
        while some > 1 and len(_join(rest[:some])) > features.line_bytes:
            some -= 1
        lines.append(_join(rest[:some]))
        rest = rest[some:]
    return lines


def _join(channels: Sequence[tuple[str, str]]) -> bytes:
    names = ",".join(name for name, _ in channels)
    keys = ",".join(key for _, key in channels if key)
    return encode("JOIN", names, keys) if keys else encode("JOIN", names)


def _nicks(settings: IrcSettings) -> Iterator[str]:
    """The nick, its alternatives, then the nick with something behind it, within what every server takes as a nick."""
    yield settings.nick
    yield from settings.alternatives
    for suffix in ("_", "__", *map(str, range(1, 10))):
        yield settings.nick + suffix
    # Servers with short nicks refuse what is too long, so it gets shorter.
    for number in range(10, 20):
        yield f"{settings.nick[:7]}{number}"


def _offer(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value
