"""The XML stream of one account: connects and resumes it, sends requests and messages, and reads archives."""

from __future__ import annotations

import asyncio
import re
import ssl
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any, Literal
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import structlog
from aiohttp import ClientError
from slixmpp import ClientXMPP
from slixmpp.exceptions import IqError, IqTimeout
from slixmpp.plugins.xep_0363.http_upload import FileTooBig, FileUploadError, UploadServiceNotFound
from slixmpp.stanza import Message, Presence

from bot.platforms.base import SendFailed
from bot.platforms.connection import CannotConnect
from bot.platforms.xmpp.adapter import XmppSettings
from function_calls.context import Attachment
from services.web.content import data_in

_log = structlog.get_logger("platforms")
CLIENT, MAM, PING = "{jabber:client}", "{urn:xmpp:mam:2}", "{urn:xmpp:ping}ping"
DISCO = "{http://jabber.org/protocol/disco#info}"
_RSM, _FORM = "{http://jabber.org/protocol/rsm}", "{jabber:x:data}"
_CONNECT_SECONDS = 30.0
_UPLOAD_SECONDS = 60.0
_PAGE = "50"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NO_ANSWER = frozenset({"timeout", "disconnected"})


class Refused(Exception):
    """A request was rejected with `condition`, or not answered: then it is one of NO_ANSWER."""

    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition


def an_element(tag: str, *children: Element, text: str = "", **attributes: str) -> Element:
    """An element. Characters that XML does not permit become U+FFFD."""
    element = Element(tag, {name: _NOT_XML.sub("\ufffd", value) for name, value in attributes.items()})
    element.text = _NOT_XML.sub("\ufffd", text) or None
    element.extend(children)
    return element


def condition_of(xml: Element) -> str:
    """The condition of an error stanza, such as `forbidden`."""
    return next((child.tag.rpartition("}")[2] for child in xml.find(f"{CLIENT}error") or ()), "undefined-condition")


class Stream:
    """The stream of one account. An interrupted session is resumed if the server permits it."""

    def __init__(
        self, settings: XmppSettings, received: Callable[[Element], None], renewed: Callable[[], None]
    ) -> None:
        """`received` gets each message and presence, in the order of arrival; `renewed` is called when a new session
        begins."""
        self._settings = settings
        self._received = received
        self._renewed = renewed
        self.domain = settings.jid.partition("@")[2]
        self._client: ClientXMPP | None = None
        self._opening: asyncio.Future[None] | None = None
        self._lost, self._up = asyncio.Event(), asyncio.Event()
        self._why = self._origin = ""
        self._pages: dict[str, tuple[str, list[Element]]] = {}
        self._unconfirmed: dict[str, asyncio.Future[Element]] = {}

    async def open(self) -> None:
        """Connect, unless connected. Raises CannotConnect."""
        try:
            client = self._client = self._client or self._new_client()
        except OSError as error:
            raise CannotConnect(f"ca_file cannot be used: {error}") from error
        if self._up.is_set() and await self.is_alive():
            return
        await self._abort()
        self._lost.clear()
        self._why = ""
        self._opening = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                client.connect(self._settings.host or None, self._settings.port)
                await self._opening
        except TimeoutError:
            raise CannotConnect(self._why or "the server does not answer") from None
        finally:
            self._opening = None
            if not self._up.is_set():
                client.cancel_connection_attempt()
                await self._abort()

    async def until_up(self) -> None:
        """Return when stanzas can be sent."""
        await self._up.wait()

    async def until_lost(self) -> None:
        """Wait until the connection is lost; then raises CannotConnect."""
        await self._lost.wait()
        raise CannotConnect(self._why or "the connection was lost")

    async def is_alive(self) -> bool:
        """Whether the server answers. Otherwise the connection is aborted."""
        try:
            await self.ask(self.domain, Element(PING))
        except Refused as refused:
            if refused.condition in NO_ANSWER:
                await self._abort()
                return False
        return True

    async def close(self) -> None:
        """End the session."""
        client, self._client = self._client, None
        if client is not None:
            if self._up.is_set():
                await client.disconnect(wait=2.0)
            client.cancel_connection_attempt()
            if (sending := client._run_out_filters) is not None:  # noqa: SLF001 - nothing else ends this task
                sending.cancel()

    async def ask(self, to: str, payload: Element, kind: Literal["get", "set"] = "get") -> Element:
        """Send a request to `to`, or the own account if that is empty; returns the answer. Raises Refused."""
        if self._client is None or not self._up.is_set():
            raise Refused("disconnected")
        request: Any = self._client.make_iq(ito=to or None, itype=kind)
        request.append(payload)
        try:
            answer: Element = (await request.send(timeout=self._settings.answer_seconds)).xml
        except IqTimeout:
            raise Refused("timeout") from None
        except IqError as error:
            raise Refused(error.condition) from None
        return answer

    async def features(self, jid: str) -> tuple[set[str], str]:
        """Features and name of a server, room or account. Raises Refused."""
        info = await self.ask(jid, Element(f"{DISCO}query"))
        names = (one.get("name", "") for one in info.iter(f"{DISCO}identity"))
        return {one.get("var", "") for one in info.iter(f"{DISCO}feature")}, next(names, "")

    def write(self, stanza: Element) -> None:
        """Send a message or presence. Without a connection it is dropped."""
        if self._client is not None and self._up.is_set():
            kind = Message if stanza.tag == f"{CLIENT}message" else Presence
            self._client.send(kind(self._client, xml=stanza))

    async def send(self, message: Element, *, is_echoed: bool) -> Element:
        """Send a message and wait until a room echoes it, or else until the server has processed it; returns the echo,
        or `message`. Raises SendFailed."""
        ident = message.get("id", "")
        confirmed: asyncio.Future[Element] = asyncio.get_running_loop().create_future()
        self._unconfirmed[ident] = confirmed
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                self.write(message)
                if is_echoed:
                    return await confirmed
                await self.ask(self.domain, Element(PING))
        except TimeoutError:
            await self.is_alive()
            raise SendFailed("the message was not confirmed", retryable=True, unknown_outcome=True) from None
        except Refused as refused:
            if refused.condition in NO_ANSWER:
                raise SendFailed("the server did not answer", retryable=True, unknown_outcome=True) from None
        finally:
            del self._unconfirmed[ident]
        return confirmed.result() if confirmed.done() else message

    def confirm(self, message: Element) -> None:
        """Note the room's echo of a message, or the error for one."""
        waiting = self._unconfirmed.get(message.get("id", ""))
        if waiting is None or waiting.done():
            return
        if (error := message.find(f"{CLIENT}error")) is None:
            waiting.set_result(message)
        else:
            waiting.set_exception(SendFailed(condition_of(message), retryable=error.get("type") == "wait"))

    async def archive(
        self, jid: str, rsm: Mapping[str, str], form: Mapping[str, str] | None = None
    ) -> tuple[list[Element], bool]:
        """A page of the archive of a room or of the own account, and whether it is the last. Raises Refused."""
        query_id = uuid.uuid4().hex
        fields = {"FORM_TYPE": MAM.strip("{}"), **(form or {})}
        query = an_element(
            f"{MAM}query",
            an_element(
                f"{_FORM}x",
                *(
                    an_element(f"{_FORM}field", an_element(f"{_FORM}value", text=value), var=name)
                    for name, value in fields.items()
                ),
                type="submit",
            ),
            an_element(
                f"{_RSM}set",
                *(an_element(f"{_RSM}{name}", text=value) for name, value in {"max": _PAGE, **rsm}.items()),
            ),
            queryid=query_id,
        )
        results: list[Element] = []
        self._pages[query_id] = jid, results
        try:
            answer = await self.ask("" if jid == self._settings.jid else jid, query, "set")
        finally:
            del self._pages[query_id]
        end = answer.find(f"{MAM}fin")
        return results, not results or (end is not None and end.get("complete") == "true")

    async def upload(self, file: Attachment) -> str:
        """Put a file on the server; returns its URL. Raises SendFailed."""
        if self._client is None:
            raise SendFailed("not connected", retryable=True)
        plugin, content = self._client.plugin["xep_0363"], data_in(file.url) or b""
        try:
            async with asyncio.timeout(_UPLOAD_SECONDS):
                url = await plugin.upload_file(file.name, len(content), file.media_type, input_file=BytesIO(content))
        except (UploadServiceNotFound, FileTooBig, IqError) as error:
            raise SendFailed(f"the server takes no such file: {type(error).__name__}", retryable=False) from error
        except (FileUploadError, IqTimeout, ClientError, OSError) as error:
            raise SendFailed(f"the upload failed: {type(error).__name__}", retryable=True) from error
        return str(url)

    async def file_origin(self) -> str:
        """Scheme, host and port of the server's own files; empty without them. The server names them with a slot."""
        if not self._origin and self._client is not None:
            plugin = self._client.plugin["xep_0363"]
            with suppress(IqError, IqTimeout):
                if (service := await plugin.find_upload_service()) is not None:
                    slot = await plugin.request_slot(service["from"], "origin", 1)
                    parts = urlsplit(slot["http_upload_slot"]["get"]["url"])
                    self._origin = f"{parts.scheme}://{parts.netloc}"
        return self._origin

    def _incoming(self, stanza: Any) -> Any:
        """slixmpp's filter for all stanzas. An exception would end the stream."""
        xml: Element = stanza.xml
        try:
            if (result := xml.find(f"{MAM}result")) is not None:
                # Only the archive may answer; anybody can send a message that looks like a result.
                jid, results = self._pages.get(result.get("queryid", ""), ("", []))
                if xml.get("from", self._settings.jid) == jid:
                    results.append(result)
            elif xml.tag in (f"{CLIENT}message", f"{CLIENT}presence"):
                self._received(xml)
        except Exception as error:  # noqa: BLE001 - any stanza that we do not expect
            _log.error("event_unreadable", network=f"xmpp:{self._settings.account}", exc_info=error)
        return stanza

    def _new_client(self) -> ClientXMPP:
        settings = self._settings
        in_clear, by_dns = settings.tls == "none", not settings.host
        # Without TLS slixmpp sends no credentials by default, so a server that hides STARTTLS gets none.
        login = {"unencrypted_plain": in_clear, "unencrypted_scram": in_clear}
        password = settings.password.get_secret_value()
        if in_clear:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        else:
            tls = ssl.create_default_context(cafile=str(settings.ca_file) if settings.ca_file else None)
        client = ClientXMPP(settings.jid, password, plugin_config={"feature_mechanisms": login}, ssl_context=tls)
        client.enable_plaintext = in_clear
        client.enable_starttls = settings.tls == "starttls" or by_dns
        client.enable_direct_tls = settings.tls == "direct" or by_dns
        for plugin in ("xep_0030", "xep_0198", "xep_0199", "xep_0363"):
            client.register_plugin(plugin)
        client.add_filter("in", self._incoming)
        for event, handler in {
            "session_start": lambda _: self._opened(is_resumed=False),
            "session_resumed": lambda _: self._opened(is_resumed=True),
            "connection_failed": lambda problem: self._note(f"cannot connect: {problem}"),
            "failed_all_auth": lambda _: self._note("the server rejects the login, or has no TLS"),
            "reconnect_delay": lambda _: self._ended(None),
            "disconnected": self._ended,
        }.items():
            client.add_event_handler(event, handler)
        return client

    def _note(self, why: str) -> None:
        self._why = why

    def _opened(self, *, is_resumed: bool) -> None:
        self._up.set()
        if not is_resumed:
            for waiting in self._unconfirmed.values():
                if not waiting.done():
                    waiting.set_exception(SendFailed("the session was lost", retryable=True, unknown_outcome=True))
            self.write(Element(f"{CLIENT}presence"))
            self._renewed()
        if self._opening is not None and not self._opening.done():
            self._opening.set_result(None)

    def _ended(self, reason: object) -> None:
        """The connection was lost, or all addresses of the server have failed."""
        self._up.clear()
        self._why = self._why or (f"the connection was lost: {reason}" if reason else "")
        self._lost.set()
        if self._opening is not None and not self._opening.done():
            self._opening.set_exception(CannotConnect(self._why or "the server ended the connection"))

    async def _abort(self) -> None:
        """Abort the connection without ending the session, so that it can be resumed."""
        self._up.clear()
        if self._client is not None and self._client.is_connected():
            self._lost.clear()
            self._client.abort()
            await self._lost.wait()
