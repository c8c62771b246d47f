"""Client of a Satori gateway: a WebSocket for events, HTTP for calls."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
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
_OPEN_SECONDS = 15.0
_CALL_SECONDS = 30.0
_FILE_SECONDS = 300.0
_REPLAY_SECONDS = 0.5
_MOST_HELD = 100
_FRAME_BYTES = 16 * 1024 * 1024


class CallFailed(SendFailed):
    """The gateway answered with an HTTP status other than success."""

    def __init__(self, method: str, status: int, retry_after: str) -> None:
        super().__init__(
            f"the gateway answers {method} with HTTP {status}",
            # 401: the token was changed, which the connection reports.
            retryable=status in (401, 408, 429) or (status >= 500 and status != 501),
            retry_after_seconds=(float(retry_after) if retry_after.isdecimal() else 5.0) if status == 429 else None,
        )
        self.status = status


class Gateway:
    """One account at a gateway. Its network and ids are known after the first `open`."""

    def __init__(self, settings: SatoriSettings) -> None:
        self._settings = settings
        self._url = f"{settings.url}/v1"
        token = settings.token.get_secret_value()
        self._credentials: Json = {"token": token} if token else {}
        self._bearer = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: aiohttp.ClientSession | None = None
        self._proxied: list[str] = []
        self._login: Json = {}
        self.who = (settings.platform, settings.user_id)
        """Network and user id of the account."""

    async def open(self, after: int | None) -> aiohttp.ClientWebSocketResponse:
        """A connection whose next frames are events after the sequence number `after`; None: new events. Raises
        CannotConnect, also if the account is offline."""
        url, resume = self._settings.url, {} if after is None else {"sn": after, "sequence": after}
        identify = {"op": _IDENTIFY, "body": self._credentials | resume}
        closing = aiohttp.ClientWSTimeout(ws_close=2.0)
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                socket = await self._http.ws_connect(f"{self._url}/events", max_msg_size=_FRAME_BYTES, timeout=closing)
                try:
                    await socket.send_str(orjson.dumps(identify).decode())
                    while (message := await socket.receive_json(loads=orjson.loads))["op"] != _READY:
                        pass
                    self._logged_in(message["body"])
                except BaseException:
                    await socket.close()
                    raise
        except aiohttp.WSMessageTypeError:
            raise CannotConnect(f"{url} ends the connection; it may reject the token") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CannotConnect(f"{url} cannot be reached: {type(error).__name__}") from None
        except (ValueError, TypeError, LookupError, AttributeError):
            raise CannotConnect(f"{url} does not speak Satori v1") from None
        return socket

    def _logged_in(self, ready: Json) -> None:
        logins = {_who(one): one for one in ready["logins"]}
        platform, user = self._settings.platform, self._settings.user_id
        found = [one for one in logins if platform in ("", one[0]) and user in ("", one[1])]
        if len(found) != 1:
            names = ", ".join(map(" ".join, logins)) or "none"
            raise CannotConnect(f"platform and user_id fit {len(found)} accounts of the gateway, which has: {names}")
        self.who = found[0]
        self._login = logins[self.who]
        self._proxied = _urls(ready)
        self.check_online({"type": "login-updated", "login": self._login})

    def check_online(self, event: Json) -> None:
        """Raises CannotConnect if the event tells that the account has left its network."""
        updated = (event.get("login") or {}).get("status", 1)
        status = {"login-updated": updated, "login-removed": 0}.get(str(event.get("type")), 1)
        if status != 1 and self.is_for_account(event):
            raise CannotConnect(f"the gateway is not logged in as {self.who[1]} on {self.who[0]}")

    def is_for_account(self, event: Json) -> bool:
        """Whether the event belongs to this account; older gateways name it in the event itself."""
        login = event.get("login") or event
        who = _who(login)
        return who == self.who if who[1] else "sn" in self._login and login.get("sn") == self._login["sn"]

    async def events(self, socket: aiohttp.ClientWebSocketResponse, after: int | None) -> AsyncIterator[Json]:
        """Events until the connection ends, other messages as an empty event, and unreadable frames as an event without
        its fields. Gateways may send new events among those that they repeat after `after`, so events are put in order
        at first."""
        held: list[tuple[int, int, Json]] = []
        while True:
            try:
                frame = await socket.receive(_REPLAY_SECONDS if held else None)
                if frame.type is not aiohttp.WSMsgType.TEXT:
                    return
                message = orjson.loads(frame.data)
                op, body = message["op"], message.get("body") or {}
                number = number_of(body)
            except TimeoutError:
                after = None
            except (ValueError, TypeError, LookupError, AttributeError):
                yield {"frame": frame.data}
            else:
                self._proxied = _urls(body) if op == _META else self._proxied
                if op != _EVENT or after is None or number is None:
                    yield body if op == _EVENT else {}
                else:
                    heapq.heappush(held, (number, id(body), body))
            while held and (after is None or held[0][0] <= after + 1 or len(held) > _MOST_HELD):
                number, _, body = heapq.heappop(held)
                after = None if after is None else number
                yield body

    async def call(self, method: str, **given: str) -> Any:
        """The result of an API method. Raises SendFailed."""
        return await self._post(method, _CALL_SECONDS, json=given)

    async def upload(self, name: str, media_type: str, content: bytes) -> str:
        """URL of a new file for messages. Raises SendFailed."""
        form = aiohttp.FormData()
        form.add_field("file", content, filename=name, content_type=media_type)
        return str((await self._post("upload.create", _FILE_SECONDS, data=form))["file"])

    async def _post(self, method: str, seconds: float, **body: Any) -> Any:
        platform, user = self.who
        names = {"Satori-Platform": platform, "Satori-User-ID": user, "X-Platform": platform, "X-Self-ID": user}
        body |= {"headers": self._bearer | names, "timeout": aiohttp.ClientTimeout(seconds, sock_connect=10.0)}
        # Errors of aiohttp are not chained: they may contain the token.
        try:
            async with self._http.post(f"{self._url}/{method}", allow_redirects=False, **body) as response:
                if response.status >= 300:
                    raise CallFailed(method, response.status, response.headers.get("Retry-After", ""))
                return orjson.loads(await response.read() or b"null")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            words = f"no answer of the gateway: {type(error).__name__}"
            is_unsent = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
            raise SendFailed(words, retryable=True, unknown_outcome=not is_unsent) from None

    async def download(self, url: str, max_bytes: int) -> bytes:
        """A file of a message, by the gateway or from a host in `file_hosts`. Raises FileUnavailable."""
        content, timeout, headers = bytearray(), aiohttp.ClientTimeout(_FILE_SECONDS), {}
        try:
            host = urlsplit(url).hostname or ""
            if url.startswith(("internal:", *self._proxied)):
                url, headers = f"{self._url}/proxy/{quote(url, safe=':/')}", self._bearer
            elif not any(f".{host}".endswith(f".{one}") for one in self._settings.file_hosts):
                raise FileUnavailable(f"{host or 'its server'} is not in file_hosts")
            source = URL(url, encoded=True)
            async with self._http.get(source, headers=headers, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    raise FileUnavailable(f"its server answers {response.status}")
                while (response.content_length or 0) <= max_bytes and len(content) <= max_bytes:
                    if not (chunk := await response.content.readany()):
                        return bytes(content)
                    content += chunk
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FileUnavailable(f"no answer of its server: {type(error).__name__}") from None
        raise FileUnavailable(f"the file is larger than {max_bytes:,} bytes")

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()

    @property
    def _http(self) -> aiohttp.ClientSession:
        # A proxy would see the token of a gateway without TLS.
        self._session = self._session or aiohttp.ClientSession(trust_env=self._url.startswith("https://"))
        return self._session


async def probe(settings: SatoriSettings) -> str:
    """Connect, and name the account. Raises CannotOpen."""
    gateway = Gateway(settings)
    try:
        await (await gateway.open(None)).close()
    except CannotConnect as problem:
        raise CannotOpen(f"{problem}. Check url, token, platform and user_id") from None
    finally:
        await gateway.close()
    return f"connected as @{gateway.who[1]} on {gateway.who[0]}"


def number_of(event: Json) -> int | None:
    """The sequence number of an event, `id` at older gateways."""
    number = event.get("sn", event.get("id"))
    return number if isinstance(number, int) else None


def _who(login: Json) -> tuple[str, str]:
    """Network and user id of a login; empty if they are missing."""
    return str(login.get("platform") or ""), str(login.get("self_id") or (login.get("user") or {}).get("id") or "")


def _urls(body: Json) -> list[str]:
    """Beginnings of the URLs that the gateway fetches."""
    return [one for one in body.get("proxy_urls") or () if one]
