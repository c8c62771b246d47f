"""An XMPP user: a client with the plugins of slixmpp, which the bot does not use for messages."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

from slixmpp import JID, ClientXMPP, Message

from tests.harness.xmpp_servers import PASSWORD, XmppServer

_PATIENCE_SECONDS = 30.0
_PLUGINS = (
    *("xep_0030", "xep_0045", "xep_0066", "xep_0085", "xep_0199", "xep_0249", "xep_0308", "xep_0359", "xep_0363"),
    *("xep_0372", "xep_0421", "xep_0424", "xep_0428", "xep_0444", "xep_0461"),
)


class Person:
    """A connected user, with all messages received so far."""

    def __init__(self, jid: str, server: XmppServer) -> None:
        self.jid = jid
        self.nick = jid.partition("@")[0].rstrip("0123456789")
        self.seen: list[Any] = []
        login = {"unencrypted_plain": True, "unencrypted_scram": False}
        unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default one takes 0.2 s
        self.client = ClientXMPP(jid, PASSWORD, plugin_config={"feature_mechanisms": login}, ssl_context=unused)
        self.client.enable_plaintext, self.client.enable_starttls, self.client.enable_direct_tls = True, False, False
        for plugin in _PLUGINS:
            self.client.register_plugin(plugin)
        self.client.add_filter("in", self._note)
        self._server = server
        self._more = asyncio.Condition()
        self._noting: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Log in."""
        started = asyncio.ensure_future(self.client.wait_until("session_start", _PATIENCE_SECONDS))
        self.client.connect("127.0.0.1", self._server.port)
        await started
        self.client.send_presence()

    async def close(self) -> None:
        """Log out."""
        await self.client.disconnect(wait=1.0)
        if self.client._run_out_filters is not None:
            self.client._run_out_filters.cancel()

    async def join(self, room: str, nick: str = "") -> None:
        """Enter a room."""
        await self.client.plugin["xep_0045"].join_muc_wait(JID(room), nick or self.nick, maxstanzas=0, timeout=20)

    def message(self, to: str, text: str = "") -> Any:
        """A message to a room or a person, not sent yet."""
        kind = "groupchat" if "@muc." in to and "/" not in to else "chat"
        message = self.client.make_message(mto=to, mbody=text or None, mtype=kind)
        message["id"] = self.client.new_id()
        return message

    async def send(self, message: Any) -> str:
        """Send a message; returns its archive id in a room, else its own id."""
        message.send()
        if message["type"] != "groupchat":
            return str(message["id"])
        echo = await self.until(lambda one: one["id"] == message["id"] and one["type"] == "groupchat")
        return str(echo["stanza_id"]["id"] or echo["id"])

    async def say(self, to: str, text: str) -> str:
        """Send a text; see `send`."""
        return await self.send(self.message(to, text))

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """The first received message that matches `wanted`, as soon as it arrives."""
        async with asyncio.timeout(_PATIENCE_SECONDS), self._more:
            while True:
                for message in self.seen:
                    if wanted(message):
                        return message
                await self._more.wait()

    async def settled(self, room: str, seconds: float = _PATIENCE_SECONDS) -> None:
        """Return when all earlier messages of a room have arrived. Raises IqTimeout after `seconds`."""
        await self.client.plugin["xep_0030"].get_info(jid=JID(room), timeout=seconds)

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file; returns its URL."""
        url = await self.client.plugin["xep_0363"].upload_file(
            name, len(content), "image/png", input_file=BytesIO(content), domain=JID("localhost")
        )
        return str(url)

    def _note(self, stanza: Any) -> Any:
        if isinstance(stanza, Message):
            self.seen.append(stanza)
            task = asyncio.ensure_future(self._notify())
            self._noting.add(task)
            task.add_done_callback(self._noting.discard)
        return stanza

    async def _notify(self) -> None:
        async with self._more:
            self._more.notify_all()


@asynccontextmanager
async def a_person(server: XmppServer, name: str, *rooms: str) -> AsyncIterator[Person]:
    """A new user in `rooms`."""
    person = Person(server.add_user(name), server)
    await person.connect()
    for room in rooms:
        await person.join(room)
    try:
        yield person
    finally:
        await person.close()
