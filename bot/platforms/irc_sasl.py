"""How the bot proves to a server whose account it has: what it says in AUTHENTICATE, mechanism by mechanism. It neither
sends nor waits itself."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import stringprep
import unicodedata

from bot.platforms.irc_wire import encode
from config.irc import IrcSaslSettings

_PIECE_CHARS = 400
_MOST_CHARS = 8000
_FEWEST_ROUNDS = 4096
"""A server that asks for fewer wants something from which the password can be guessed."""
_MOST_ROUNDS = 1_000_000
"""More would keep everything else waiting for seconds."""


class NoProof(Exception):
    """It cannot be proved, or the server has not proved itself; says why."""


class Sasl:
    """One proof, from the server's first word to its last."""

    def __init__(self, settings: IrcSaslSettings, nonce: str) -> None:
        """`nonce` is a text without commas that was never used before."""
        self._settings = settings
        self._scram = Scram(settings, nonce) if settings.mechanism.startswith("scram-") else None
        self._heard = ""

    @property
    def is_over(self) -> bool:
        """Nothing is missing from our side; with SCRAM also: the server has shown that it knows the password."""
        return self._scram is None or self._scram.is_server_proved

    def answer(self, piece: str) -> list[bytes]:
        """The lines that answer `AUTHENTICATE <piece>`. Raises NoProof."""
        self._heard += "" if piece == "+" else piece
        if len(self._heard) > _MOST_CHARS:
            raise NoProof("the server says too much")
        if len(piece) == _PIECE_CHARS:
            return []
        heard, self._heard = self._heard, ""
        try:
            said = base64.b64decode(heard, validate=True)
        except (binascii.Error, ValueError):
            raise NoProof("the server's words cannot be read") from None
        return _lines(self._proof(said))

    def _proof(self, said: bytes) -> bytes:
        if self._scram is not None:
            return self._scram.answer(said)
        account = self._settings.account.encode()
        if self._settings.mechanism == "external":
            return account
        return b"\0".join((account, account, self._settings.password.get_secret_value().encode()))


class Scram:
    """RFC 5802 and 7677, without channel binding: the password itself never leaves the bot, and the server proves that
    it knows it as well."""

    def __init__(self, settings: IrcSaslSettings, nonce: str) -> None:
        self.is_server_proved = False
        self._hash = settings.mechanism.removeprefix("scram-").replace("-", "")
        self._password = _prepared(settings.password.get_secret_value())
        self._nonce = nonce
        name = _prepared(settings.account).replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}"
        self._expected = b""
        self._is_begun = False

    def answer(self, said: bytes) -> bytes:
        """What answers the server's words: its invitation, its challenge, its own proof. Raises NoProof."""
        if not self._is_begun:
            self._is_begun = True
            return f"n,,{self._first}".encode()
        told = _attributes(said)
        if "e" in told:
            raise NoProof("the account or its password is refused")
        if not self._expected:
            return self._final(said.decode("utf-8", "replace"), told)
        if not hmac.compare_digest(_bytes(told.get("v", "")), self._expected):
            raise NoProof("the server does not know the password, so it is not the one it says to be")
        self.is_server_proved = True
        return b""

    def _final(self, challenge: str, told: dict[str, str]) -> bytes:
        nonce, rounds = told.get("r", ""), told.get("i", "")
        if "m" in told or not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise NoProof("the server's challenge is not for this bot")
        if not (rounds.isascii() and rounds.isdigit() and len(rounds) < 9):
            raise NoProof("the server's words cannot be read")
        if not _FEWEST_ROUNDS <= int(rounds) <= _MOST_ROUNDS:
            raise NoProof(f"the server asks for {rounds} rounds")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._first},{challenge},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), _bytes(told.get("s", "")), int(rounds))
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


def _attributes(said: bytes) -> dict[str, str]:
    return {one[0]: one[2:] for one in said.decode("utf-8", "replace").split(",") if one[1:2] == "="}


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoProof("the server's words cannot be read") from None


def _prepared(text: str) -> str:
    """SASLprep: the same password typed on another keyboard is the same bytes."""
    mapped = (" " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char))
    return unicodedata.normalize("NFKC", "".join(mapped))
