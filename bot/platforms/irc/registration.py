"""Registration with an IRC server: capabilities, SASL, nick."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import stringprep
import unicodedata
from collections.abc import Iterator, Sequence

from bot.platforms.connection import Rejected
from bot.platforms.irc.state import Features
from bot.platforms.irc.wire import Line, encode
from config.sections.irc import IrcSaslSettings, IrcSettings

_PIECE_CHARS = 400
_MOST_CHARS = 8000
_FEWEST_ROUNDS = 4096
"""A server that asks for fewer iterations could make the password easy to guess."""
_MOST_ROUNDS = 1_000_000
"""More iterations would block the event loop for seconds."""


class NoProof(Exception):
    """Authentication failed, on either side; the message has the reason."""


class Sasl:
    """One SASL exchange."""

    def __init__(self, settings: IrcSaslSettings, nonce: str) -> None:
        """`nonce`: a unique text without commas."""
        self._settings = settings
        self._scram = Scram(settings, nonce) if settings.mechanism.startswith("scram-") else None
        self._received = ""

    @property
    def is_over(self) -> bool:
        """Whether the client side is complete; with SCRAM, also the server's proof that it knows the password."""
        return self._scram is None or self._scram.is_server_proved

    def answer(self, piece: str) -> list[bytes]:
        """The lines that answer `AUTHENTICATE <piece>`; empty until the last piece. Raises NoProof for a challenge that
        is too long or invalid."""
        self._received += "" if piece == "+" else piece
        if len(self._received) > _MOST_CHARS:
            raise NoProof("the server says too much")
        if len(piece) == _PIECE_CHARS:
            return []
        received, self._received = self._received, ""
        return _lines(self._proof(_bytes(received)))

    def _proof(self, challenge: bytes) -> bytes:
        if self._scram is not None:
            return self._scram.answer(challenge)
        account = self._settings.account.encode()
        if self._settings.mechanism == "external":
            return account
        return b"\0".join((account, account, self._settings.password.get_secret_value().encode()))


class Scram:
    """SCRAM (RFC 5802 and 7677) without channel binding: the password is not transmitted, and the server proves that it
    knows it too."""

    def __init__(self, settings: IrcSaslSettings, nonce: str) -> None:
        self.is_server_proved = False
        self._hash = settings.mechanism.removeprefix("scram-").replace("-", "")
        self._password = _prepared(settings.password.get_secret_value())
        self._nonce = nonce
        name = _prepared(settings.account).replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}"
        self._expected = b""
        self._is_started = False

    def answer(self, challenge: bytes) -> bytes:
        """The response to the server's message: first message, challenge or signature. Raises NoProof if the password
        is rejected, or the server does not prove that it knows it."""
        if not self._is_started:
            self._is_started = True
            return f"n,,{self._first}".encode()
        attributes = _attributes(challenge)
        if "e" in attributes:
            raise NoProof("the account or its password is refused")
        if not self._expected:
            return self._final(challenge.decode("utf-8", "replace"), attributes)
        if not hmac.compare_digest(_bytes(attributes.get("v", "")), self._expected):
            raise NoProof("the server does not know the password, so it is not the one it says to be")
        self.is_server_proved = True
        return b""

    def _final(self, challenge: str, attributes: dict[str, str]) -> bytes:
        nonce, rounds = attributes.get("r", ""), attributes.get("i", "")
        if "m" in attributes or not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise NoProof("the server's challenge is not for this bot")
        if not (rounds.isascii() and rounds.isdigit() and len(rounds) < 9):
            raise NoProof("the server's words cannot be read")
        if not _FEWEST_ROUNDS <= int(rounds) <= _MOST_ROUNDS:
            raise NoProof(f"the server asks for {rounds} rounds")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._first},{challenge},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), _bytes(attributes.get("s", "")), int(rounds))
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), signed)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._expected = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._hash).digest()


def _lines(proof: bytes) -> list[bytes]:
    text = base64.b64encode(proof).decode()
    pieces = [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)]
    if not pieces or len(pieces[-1]) == _PIECE_CHARS:
        pieces.append("+")
    return [encode("AUTHENTICATE", piece) for piece in pieces]


def _attributes(message: bytes) -> dict[str, str]:
    return {one[0]: one[2:] for one in message.decode("utf-8", "replace").split(",") if one[1:2] == "="}


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoProof("the server's words cannot be read") from None


def _prepared(text: str) -> str:
    """SASLprep: the same password from different keyboards becomes the same bytes."""
    mapped = (" " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char))
    return unicodedata.normalize("NFKC", "".join(mapped))


CAPABILITIES = frozenset(
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


class Registration:
    """One registration, from the first line to the end of the MOTD."""

    def __init__(self, settings: IrcSettings) -> None:
        self._settings = settings
        self._offered: dict[str, str] = {}
        self._nicks = _nicks(settings)
        self.trying = next(self._nicks)
        """The last requested nick."""
        self.caps: set[str] = set()
        """Enabled capabilities."""
        self.is_welcome = False
        """The server has accepted the bot under the nick in its welcome."""
        self.is_done = False
        """The MOTD has ended: channels may be joined."""
        self._negotiates = True
        self._proved = settings.sasl.mechanism == "none"
        self._sasl = Sasl(settings.sasl, secrets.token_urlsafe(24))

    def begin(self) -> list[bytes]:
        """The first lines: CAP LS, PASS if a password is set, NICK and USER."""
        password = self._settings.password.get_secret_value()
        return [
            encode("CAP", "LS", "302"),
            *([encode("PASS", password)] if password else []),
            encode("NICK", self.trying),
            encode("USER", self._settings.username, "0", "*", self._settings.realname or self._settings.nick),
        ]

    def take(self, line: Line) -> list[bytes]:
        """The lines that answer `line`, perhaps none; sets `is_done` at the end. Raises Rejected if the server
        rejects the bot."""
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
            raise Rejected(_REFUSED[line.command])
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
        capabilities = sorted(CAPABILITIES & set(self._offered))
        if not self._proved and self._offers_the_mechanism():
            capabilities.append(_SASL)
        return [encode("CAP", "REQ", " ".join(capabilities))] if capabilities else self._end_of_caps()

    def _offers_the_mechanism(self) -> bool:
        mechanisms = self._offered.get(_SASL)
        # Before version 302 servers list SASL without mechanisms.
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
            raise Rejected(f"SASL: {why}")
        self._proved = True
        return self._end_of_caps()

    def _next_nick(self, why: str) -> list[bytes]:
        try:
            self.trying = next(self._nicks)
        except StopIteration:
            raise Rejected(f"no nick is free: {self.trying!r} is {why}") from None
        return [encode("NICK", self.trying)]

    def _welcome(self) -> list[bytes]:
        self.is_welcome = True
        if not self._proved and self._settings.sasl.required:
            raise Rejected("SASL: the server does not know capabilities")
        self._negotiates = False
        return []


def joins(channels: Sequence[tuple[str, str]], features: Features) -> list[bytes]:
    """JOIN lines for these channels, each with its key or an empty string; as many per line as the server accepts."""
    # In one line, channels with keys have to come first.
    rest = sorted(channels, key=lambda channel: not channel[1])
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
    """The nick, its alternatives, then variants with a suffix within usual nick rules."""
    yield settings.nick
    yield from settings.alternatives
    for suffix in ("_", "__", *map(str, range(1, 10))):
        yield settings.nick + suffix
    # Servers with a short limit reject long nicks, so the nick is shortened.
    for number in range(10, 20):
        yield f"{settings.nick[:7]}{number}"


def _offer(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value
