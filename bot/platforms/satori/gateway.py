"""Client of a Satori gateway (https://satori.chat): a WebSocket for events, HTTP for calls."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import orjson
from yarl import URL

from bot.platforms.adapter import CannotOpen
from bot.platforms.base import FileUnavailable, SendFailed
from bot.platforms.connection import CannotConnect
from bot.platforms.satori.adapter import SatoriSettings

Json = dict[str, Any]
_EVENT, _IDENTIFY, _READY, _META = 0, 3, 4, 5
_ONLINE = 1
_OPEN_SECONDS = 15.0
_REPLAY_SECONDS = 0.5
_MOST_HELD = 100
_FRAME_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 65_536
_FILE_SECONDS = 300.0
_UNAUTHORIZED = (3000, 4001, 4004)
"""WebSocket close codes of gateways that reject the token."""
_OPTIONAL = ("message.update", "message.delete", "reaction.create", "upload.create")


class CallFailed(SendFailed):
    """The gateway answered with an HTTP status other than success. The message is safe for logs."""

    def __init__(self, method: str, status: int, headers: Mapping[str, str]) -> None:
        wait = headers.get("Retry-After", "")
        super().__init__(
            f"the gateway answers {method} with HTTP {status}",
            # 401: the token was withdrawn, which the connection reports until it is valid again.
            retryable=status in (401, 408, 429) or (status >= 500 and status != 501),
            retry_after_seconds=(float(wait) if wait.isdecimal() else 5.0) if status == 429 else None,
        )
        self.status = status


class Gateway:
    """One account at a gateway. Its facts are known after the first `open`."""

    def __init__(self, settings: SatoriSettings) -> None:
        self._settings = settings
        self._token = settings.token.get_secret_value()
        self._session: aiohttp.ClientSession | None = None
        self._proxied: list[str] = []
        self._login: Json = {}
        self.platform = settings.platform
        self.user_id = settings.user_id
        self.user_name = ""

    async def open(self, after: int | None) -> aiohttp.ClientWebSocketResponse:
        """A connection whose next frames are events after the sequence number `after`; None: new events. Raises
        CannotConnect, also if the account is offline."""
        resume = {} if after is None else {"sn": after, "sequence": after}
        url = self._settings.url
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                closing = aiohttp.ClientWSTimeout(ws_close=2.0)
                socket = await self._http.ws_connect(f"{url}/v1/events", max_msg_size=_FRAME_BYTES, timeout=closing)
                try:
                    await socket.send_str(_json({"op": _IDENTIFY, "body": {"token": self._token, **resume}}))
                    self._logged_in(await self._ready(socket))
                except BaseException:
                    await socket.close()
                    raise
        except (aiohttp.ClientError, OSError) as error:
            # Includes TimeoutError.
            raise CannotConnect(f"{url} cannot be reached: {type(error).__name__}") from None
        except (ValueError, TypeError, LookupError, AttributeError):
            raise CannotConnect(f"{url} does not speak Satori v1") from None
        return socket

    async def _ready(self, socket: aiohttp.ClientWebSocketResponse) -> Json:
        while True:
            frame = await socket.receive()
            if frame.type is not aiohttp.WSMsgType.TEXT:
                rejected = socket.close_code in _UNAUTHORIZED
                raise CannotConnect("the gateway rejects token" if rejected else "the gateway ended the connection")
            message = orjson.loads(frame.data)
            if message["op"] == _READY:
                return dict(message["body"])

    def _logged_in(self, ready: Json) -> None:
        """Find the account among the logins. Raises CannotConnect."""
        found = {_identity(one): one for one in ready["logins"]}
        wanted = (self._settings.platform, self._settings.user_id)
        fitting = [who for who in found if all(want in ("", fact) for want, fact in zip(wanted, who, strict=True))]
        if len(fitting) != 1:
            names = ", ".join(map(" ".join, found)) or "none"
            raise CannotConnect(f"platform and user_id fit {len(fitting)} accounts of the gateway, which has: {names}")
        self.platform, self.user_id = fitting[0]
        self._login = found[fitting[0]]
        user = self._login.get("user") or {}
        self.user_name = str(user.get("nick") or user.get("name") or self.user_id)
        self._proxied = list(ready.get("proxy_urls") or self._login.get("proxy_urls") or [])
        self.check_online(self._login)

    def check_online(self, login: Json) -> None:
        """Raises CannotConnect if the account is not connected to its network."""
        if login.get("status", _ONLINE) != _ONLINE:
            raise CannotConnect(f"the gateway is not logged in as {self.user_id} on {self.platform}")

    def is_for_account(self, event: Json) -> bool:
        """Whether the event belongs to this account; older gateways name it in the event itself."""
        login = event.get("login") or event
        who = _identity(login)
        return who == (self.platform, self.user_id) if who[1] else login.get("sn") == self._login.get("sn", -1)

    async def events(self, socket: aiohttp.ClientWebSocketResponse, after: int | None) -> AsyncIterator[str | Json]:
        """Events, pongs (as an event without a type) and frames that are neither, until the connection ends. Gateways
        may send new events among those that they repeat after `after`, so events are put in order at first."""
        held: list[tuple[int, int, Json]] = []
        while True:
            try:
                frame = await socket.receive(_REPLAY_SECONDS if held else None)
            except TimeoutError:
                after = None
            else:
                if frame.type is not aiohttp.WSMsgType.TEXT:
                    return
                try:
                    message = orjson.loads(frame.data)
                    op, body = message["op"], message.get("body") or {}
                    number = body.get("sn", body.get("id"))
                except (ValueError, TypeError, LookupError, AttributeError):
                    yield frame.data
                    continue
                if op != _EVENT:
                    self._proxied = list(body.get("proxy_urls") or []) if op == _META else self._proxied
                    yield {}
                elif after is None or not isinstance(number, int):
                    yield body
                else:
                    heapq.heappush(held, (number, len(held), body))
            while held and (after is None or held[0][0] <= after + 1 or len(held) > _MOST_HELD):
                number, _, body = heapq.heappop(held)
                after = None if after is None else number
                yield body

    async def call(
        self, method: str, form: aiohttp.FormData | None = None, *, seconds: float = 30.0, **given: Any
    ) -> Any:
        """The result of an API method. Raises SendFailed."""
        features = self._login.get("features") or _OPTIONAL
        if method in _OPTIONAL and method not in features:
            raise SendFailed(f"the network has no {method}", retryable=False)
        names = {"Satori-Platform": self.platform, "Satori-User-ID": self.user_id}
        names |= {"X-Platform": self.platform, "X-Self-ID": self.user_id}
        body: Json = {"json": given} if form is None else {"data": form}
        body["timeout"] = aiohttp.ClientTimeout(seconds if form is None else _FILE_SECONDS, sock_connect=10)
        url = f"{self._settings.url}/v1/{method}"
        # Errors of aiohttp are not chained: they may contain the headers, which contain the token.
        try:
            async with self._http.post(url, headers=self._bearer | names, allow_redirects=False, **body) as response:
                if response.status >= 300:
                    raise CallFailed(method, response.status, response.headers)
                content = await response.read()
                return orjson.loads(content) if content else None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise SendFailed(f"cannot connect to the gateway: {type(error).__name__}", retryable=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            words = f"no answer of the gateway: {type(error).__name__}"
            raise SendFailed(words, retryable=True, unknown_outcome=True) from None

    async def download(self, url: str, max_bytes: int) -> bytes:
        """A file of a message, from the gateway or a host in `file_hosts`. Raises FileUnavailable."""
        parts, headers = urlsplit(url), self._bearer
        if parts.scheme == "internal" or any(url.startswith(one) for one in self._proxied if one):
            url = f"{self._settings.url}/v1/proxy/{quote(url, safe=':/')}"
        elif parts.scheme in ("http", "https") and _is_below(parts.hostname or "", self._settings.file_hosts):
            headers = {}
        else:
            raise FileUnavailable(f"{parts.hostname or 'its server'} is not in file_hosts")
        content, timeout = bytearray(), aiohttp.ClientTimeout(_FILE_SECONDS)
        source = URL(url, encoded=True)
        try:
            async with self._http.get(source, headers=headers, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    raise FileUnavailable(f"its server answers {response.status}")
                if (response.content_length or 0) <= max_bytes:
                    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                        content += chunk
                        if len(content) > max_bytes:
                            break
                    else:
                        return bytes(content)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FileUnavailable(f"no answer of its server: {type(error).__name__}") from None
        raise FileUnavailable(f"the file is larger than {max_bytes:,} bytes")

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    @property
    def _http(self) -> aiohttp.ClientSession:
        self._session = self._session or aiohttp.ClientSession(trust_env=True)
        return self._session


async def probe(settings: SatoriSettings) -> str:
    """Connect, and describe the account. Raises CannotOpen."""
    gateway = Gateway(settings)
    try:
        await (await gateway.open(None)).close()
        return f"connected as @{gateway.user_name} ({gateway.user_id} on {gateway.platform})"
    except CannotConnect as problem:
        raise CannotOpen(f"{problem}. Check url, token, platform and user_id") from None
    finally:
        await gateway.close()


def _identity(login: Json) -> tuple[str, str]:
    """Network and user id of a login; empty if they are missing."""
    return str(login.get("platform") or ""), str((login.get("user") or {}).get("id") or login.get("self_id") or "")


def _is_below(host: str, hosts: tuple[str, ...]) -> bool:
    return any(host == one or host.endswith(f".{one}") for one in hosts)


def _json(message: Json) -> str:
    return orjson.dumps(message).decode()
