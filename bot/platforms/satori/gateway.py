"""Settings and client of a Satori gateway: a WebSocket for events, HTTP for calls."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import quote

import aiohttp
import orjson
from pydantic import AfterValidator, Field, SecretStr
from yarl import URL

from bot.platforms.connection import CannotConnect, probing
from bot.platforms.web_api import FILE_SECONDS, Refused, WebApi, bearer, check_host, form_with
from config.sections.networks import NetworkSettings
from config.terms import SecureUrl, Word
from function_calls.context import Attachment
from services.clock import Clock

Json = dict[str, Any]
_EVENT, _IDENTIFY, _READY, _META = 0, 3, 4, 5
_REPLAY_SECONDS = 0.5
_MOST_HELD = 100
_FRAME_BYTES = 16 * 1024 * 1024


class SatoriSettings(NetworkSettings):
    """One account of the bot at a Satori gateway."""

    url: Annotated[SecureUrl, AfterValidator(lambda url: url.removesuffix("/v1"))]
    """URL of the gateway, without `/v1`, such as `http://127.0.0.1:5140/satori`."""
    token: SecretStr = SecretStr("")
    """Token that is also set in the gateway; preferably a reference to the environment."""
    platform: str = ""
    """Network of the account as named by the gateway, such as `qq`; needed if the gateway has several accounts."""
    user_id: str = ""
    """Id of the account on its network; needed if the gateway has several accounts on it."""
    buttons: bool = False
    """Whether the network shows buttons, as Discord, KOOK and Telegram do. False: choices become text."""
    admin_roles: tuple[Word, ...] = Field(default=(), max_length=50)
    """Ids of more roles whose members are admins. On Discord and KOOK, ids are numbers."""
    file_hosts: tuple[Word, ...] = Field(default=(), max_length=50)
    """Hosts, with their subdomains, from which files in messages are downloaded, in addition to the gateway."""


class Gateway:
    """One account at a gateway. Its network and ids are known after the first `open`."""

    def __init__(self, settings: SatoriSettings) -> None:
        self._settings = settings
        token = settings.token.get_secret_value()
        self._credentials: Json = {"token": token} if token else {}
        self._web = WebApi(f"the gateway {settings.url}", f"{settings.url}/v1", bearer(token))
        self.close = self._web.close
        self._proxied: list[str] = []
        self._login: Json = {}
        self.who = (settings.platform, settings.user_id)
        """Network and user id of the account."""

    async def open(self, after: int | None) -> aiohttp.ClientWebSocketResponse:
        """A connection whose next frames are events after the sequence number `after`; None: new events. Raises
        CannotConnect, also if the account is offline."""
        resume = {} if after is None else {"sn": after, "sequence": after}

        async def greet(socket: aiohttp.ClientWebSocketResponse) -> None:
            await socket.send_str(orjson.dumps({"op": _IDENTIFY, "body": self._credentials | resume}).decode())
            while (message := await socket.receive_json(loads=orjson.loads))["op"] != _READY:
                pass
            self._logged_in(message["body"])

        return await self._web.socket("/events", greet, max_msg_size=_FRAME_BYTES)

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
        return await self._post(method, json=given)

    async def upload(self, file: Attachment) -> str:
        """URL of a new file for messages. Raises SendFailed."""
        return str((await self._post("upload.create", seconds=FILE_SECONDS, data=form_with({}, "file", file)))["file"])

    async def _post(self, method: str, **options: Any) -> Any:
        platform, user = self.who
        names = {"Satori-Platform": platform, "Satori-User-ID": user, "X-Platform": platform, "X-Self-ID": user}
        status, headers, content = await self._web.call("POST", f"/{method}", headers=names, **options)
        if status >= 300:
            words = f"the gateway answers {method} with HTTP {status}"
            raise Refused(words, status, retry_after=headers.get("Retry-After", ""))
        return content

    async def download(self, url: str, max_bytes: int) -> bytes:
        """A file of a message, by the gateway or from a host in `file_hosts`. Raises FileUnavailable."""
        if is_own := url.startswith(("internal:", *self._proxied)):
            url = f"{self._web.url}/proxy/{quote(url, safe=':/')}"
        else:
            check_host(url, self._settings.file_hosts)
        return await self._web.download(URL(url, encoded=True), max_bytes, None if is_own else {})


async def probe(settings: SatoriSettings, _clock: Clock) -> str:
    """Connect, and name the account. Raises CannotOpen."""
    gateway = Gateway(settings)
    async with probing(gateway.close, "Check url, token, platform and user_id"):
        await (await gateway.open(None)).close()
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
