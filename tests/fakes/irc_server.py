"""An IRC server on 127.0.0.1 that fails as the test requests."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.fakes.listener import Listener
from tests.fakes.scram import ScramServer

PATIENCE_SECONDS = 60.0
ALL_CAPS = (
    "account-notify account-tag batch echo-message extended-join labeled-response message-tags multi-prefix server-time"
)
ISUPPORT = "CASEMAPPING=rfc1459 CHANTYPES=# PREFIX=(qaohv)~&@%+ STATUSMSG=@+ NICKLEN=20 CHANMODES=b,k,l,imnpst"


class FakeIrcServer:
    """Accepts one client and answers as configured. The attributes can be changed at any time."""

    def __init__(
        self,
        *,
        caps: str = "",
        isupport: str = ISUPPORT,
        taken: Collection[str] = (),
        knows_caps: bool = True,
        accounts: Mapping[str, str] | None = None,
        mask: str = "rollcall@host.test",
    ) -> None:
        """`taken`: nicks in use. `accounts`: passwords by account."""
        self.caps = caps
        self.isupport = isupport
        self.taken = set(taken)
        self.knows_caps = knows_caps
        self.accounts = dict(accounts or {})
        self.mask = mask
        self.others = "@ann +bob"
        """Members of each channel, with their prefixes."""
        self.refused_joins: dict[str, str] = {}
        """Numerics by channel."""
        self.refused_texts: dict[str, str] = {}
        """Numerics by target of a PRIVMSG."""
        self.whois: dict[str, str] = {}
        """Accounts by nick; empty for a user without an account."""
        self.drops: Callable[[str], bool] = lambda line: False
        """Close the connection instead of answering such a line."""
        self.believes_everybody = False
        """With SCRAM, accept everybody without a proof by the server."""
        self.is_silent = False
        """Answer nothing."""
        self.swallows_texts = False
        """Accept messages and drop them."""
        self.is_refusing = False
        """Close connections with an ERROR."""
        self.received: list[str] = []
        """All lines of all connections."""
        self.connections = 0
        self.nick = ""
        self._writer: asyncio.StreamWriter | None = None
        self._more = asyncio.Condition()
        self._listener = Listener(self._serve)
        self._ids = 0
        self._is_let_in = False
        self._negotiates = False
        self._scram: ScramServer | None = None
        self._proofs = 0

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._listener.port

    async def __aenter__(self) -> Self:
        await self._listener.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.stop()

    def write(self, *lines: str | bytes) -> None:
        """Send these lines to the client."""
        assert self._writer is not None
        for line in lines:
            self._writer.write(line if isinstance(line, bytes) else f"{line}\r\n".encode())

    def drop(self) -> None:
        """Close the connection without an ERROR."""
        assert self._writer is not None
        self._writer.transport.abort()

    async def until(self, wanted: Callable[[str], bool], count: int = 1) -> list[str]:
        """The client's lines that match `wanted`, after there are `count`."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._more:
            while len(found := [line for line in self.received if wanted(line)]) < count:
                await self._more.wait()
            return found

    async def gets(self, text: str, count: int = 1) -> list[str]:
        """The client's lines that contain `text`, after there are `count`."""
        return await self.until(lambda line: text in line, count)

    def has(self, text: str) -> list[str]:
        """The client's lines so far that contain `text`."""
        return [line for line in self.received if text in line]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writer, self.nick, self._is_let_in, self._negotiates = writer, "", False, False
        async with self._more:
            self._more.notify_all()
        if self.is_refusing:
            self.write("ERROR :Closing link: (go away)")
            writer.close()
            return
        with suppress(OSError, asyncio.CancelledError):
            while raw := await reader.readline():
                line = raw.decode().rstrip("\r\n")
                async with self._more:
                    self.received.append(line)
                    self._more.notify_all()
                if self.drops(line):
                    self.drop()
                elif not self.is_silent:
                    self._answer(line)
        writer.close()

    def _answer(self, line: str) -> None:  # noqa: C901 - a table of commands
        tags, line = line[1:].split(" ", 1) if line.startswith("@") else ("", line)
        head, _, trailing = line.partition(" :")
        command, *params = head.split()
        params = [*params, trailing] if " :" in line else params
        match command:
            case "CAP":
                self._cap(params)
            case "NICK":
                self._nick(params[0])
            case "AUTHENTICATE":
                self._authenticate(params[0])
            case "USER":
                self._let_in()
            case "JOIN":
                for channel in params[0].split(","):
                    self._join(channel)
            case "PING":
                self.write(f":irc.test PONG irc.test :{params[-1]}")
            case "WHOIS":
                account = self.whois.get(params[0])
                if account is None:
                    self.write(f":irc.test 401 {self.nick} {params[0]} :No such nick")
                else:
                    self.write(f":irc.test 311 {self.nick} {params[0]} user host * :Somebody")
                if account:
                    self.write(f":irc.test 330 {self.nick} {params[0]} {account} :is logged in as")
                self.write(f":irc.test 318 {self.nick} {params[0]} :End of WHOIS")
            case "PRIVMSG":
                self._said(tags, params[0], params[1])

    def _cap(self, params: list[str]) -> None:
        if not self.knows_caps:
            self.write(":irc.test 421 * CAP :Unknown command")
        elif params[0] == "LS":
            self._negotiates = True
            # In two lines, like servers with many capabilities.
            first, *rest = self.caps.split() or [""]
            self.write(f":irc.test CAP * LS * :{first}", f":irc.test CAP * LS :{' '.join(rest)}")
        elif params[0] == "REQ":
            self.write(f":irc.test CAP * ACK :{params[1]}")
        elif params[0] == "END":
            self._negotiates = False
            self._let_in()

    def _nick(self, nick: str) -> None:
        if nick.lower() in {one.lower() for one in self.taken}:
            self.write(f":irc.test 433 {self.nick or '*'} {nick} :Nickname is already in use")
            return
        if self._is_let_in:
            self.write(f":{self.nick}!{self.mask} NICK :{nick}")
        self.nick = nick
        self._let_in()

    def _authenticate(self, word: str) -> None:
        if word in ("PLAIN", "EXTERNAL") or word.startswith("SCRAM-"):
            self._scram = ScramServer(word, self.accounts) if word.startswith("SCRAM-") else None
            self._proofs = 0
            self.write("AUTHENTICATE +")
            return
        if self._scram is not None:
            self._scramble(self._scram, "" if word == "+" else base64.b64decode(word).decode())
            return
        _, account, password = [*base64.b64decode(word if word != "+" else "").decode().split("\0"), "", ""][:3]
        good = word == "+" or self.accounts.get(account) == password
        self.write(":irc.test 903 * :good" if good else ":irc.test 904 * :SASL authentication failed")

    def _scramble(self, scram: ScramServer, said: str) -> None:
        self._proofs += 1
        if self._proofs == 1:
            self._authenticates(scram.challenge(said))
        elif self.believes_everybody or not said:
            self.write(":irc.test 903 * :good")
        elif proof := scram.judge(said):
            self._authenticates(proof)
        else:
            self.write(":irc.test 904 * :SASL authentication failed")

    def _authenticates(self, text: str) -> None:
        self.write(f"AUTHENTICATE {base64.b64encode(text.encode()).decode()}")

    def _let_in(self) -> None:
        user_was_given = any(line.startswith("USER") for line in self.received)
        if self._is_let_in or self._negotiates or not self.nick or not user_was_given:
            return
        self._is_let_in = True
        self.write(
            f":irc.test 001 {self.nick} :Welcome",
            f":irc.test 005 {self.nick} {self.isupport} :are supported",
            f":irc.test 376 {self.nick} :End of MOTD",
        )

    def _join(self, channel: str) -> None:
        if channel in self.refused_joins:
            self.write(f":irc.test {self.refused_joins[channel]} {self.nick} {channel} :Cannot join")
            return
        self.write(
            f":{self.nick}!{self.mask} JOIN {channel}",
            f":irc.test 353 {self.nick} = {channel} :{self.nick} {self.others}",
            f":irc.test 366 {self.nick} {channel} :End of NAMES",
        )

    def _said(self, tags: str, target: str, text: str) -> None:
        label = next((tag for tag in tags.split(";") if tag.startswith("label=")), "")
        if self.swallows_texts:
            return
        if target in self.refused_texts:
            numeric = f":irc.test {self.refused_texts[target]} {self.nick} {target} :Cannot send"
            self.write(f"@{label} {numeric}" if label else numeric)
        elif "echo-message" in self.caps:
            self._ids += 1
            labelled = f"{label};" if label else ""
            self.write(f"@{labelled}msgid=id{self._ids} :{self.nick}!{self.mask} PRIVMSG {target} :{text}")
