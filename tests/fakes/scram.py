"""The server side of SCRAM, implemented from RFC 5802 independently of the bot's client side."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

_SALT = b"salt and pepper"
_ROUNDS = 4096


class ScramServer:
    """One authentication."""

    def __init__(self, mechanism: str, accounts: Mapping[str, str]) -> None:
        """`mechanism`: such as `SCRAM-SHA-256`. `accounts`: passwords by account."""
        self._hash = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._accounts = accounts
        self._account = ""
        self._said = ""

    def challenge(self, first: str) -> str:
        """Server's answer to the client's first message."""
        assert first.startswith("n,,n=")
        self._account, _, nonce = first.removeprefix("n,,n=").partition(",r=")
        challenge = f"r={nonce}+ours,s={base64.b64encode(_SALT).decode()},i={_ROUNDS}"
        self._said = f"{first.removeprefix('n,,')},{challenge}"
        return challenge

    def judge(self, final: str) -> str:
        """The server's proof; empty if the client's proof is wrong."""
        bare, _, proof = final.rpartition(",p=")
        said = f"{self._said},{bare}".encode()
        password = self._accounts.get(self._account, "").encode()
        salted = hashlib.pbkdf2_hmac(self._hash, password, _SALT, _ROUNDS)
        stored = hashlib.new(self._hash, self._hmac(salted, b"Client Key")).digest()
        signature = self._hmac(stored, said)
        key = bytes(one ^ other for one, other in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.new(self._hash, key).digest() != stored:
            return ""
        return "v=" + base64.b64encode(self._hmac(self._hmac(salted, b"Server Key"), said)).decode()

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.digest(key, text, self._hash)
