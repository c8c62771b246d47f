"""Client of the open platform's HTTP API, and the frames (protobuf) of its long connection."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import orjson
from yarl import URL

from bot.platforms.connection import CannotConnect
from bot.platforms.feishu.adapter import FeishuSettings
from bot.platforms.web_api import FILE_SECONDS, Refused, WebApi, bearer, check_path, form_with
from function_calls.context import Attachment
from services.clock import Clock
from services.patterns import one_line

Json = dict[str, Any]
Fields = Sequence[tuple[int, int | bytes]]
_EARLY_SECONDS, _HEARTBEAT_SECONDS, _PING_SECONDS, _LIMITED_SECONDS = 300.0, 30.0, 120.0, 5
_PROBLEM_CHARS = 300
_APP_LIMIT, _CHAT_LIMITS, _BEING_SENT = 99991400, (230020, 11232), 230049
_CREDENTIALS = (99991661, 99991663, 99991664, 99991665, 99991668, 99991677, 10014)
"""Bad tokens and, the last one, a wrong secret, which the connection reports until it is right; messages wait."""
_BAD_TOKENS = tuple(map(str, _CREDENTIALS[:-1]))
_METHOD, _HEADERS, _PAYLOAD = 4, 5, 8
_VARINT = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]")


class ApiError(Refused):
    """Feishu rejected a call. `code`: its number; the HTTP status if there is none."""

    def __init__(self, status: int, code: int, words: str, headers: Mapping[str, str]) -> None:
        """`words`: Feishu's explanation, for operators."""
        is_limited = status == 429 or code in (_APP_LIMIT, *_CHAT_LIMITS)
        meaning = 429 if is_limited else 401 if code in _CREDENTIALS else 503 if code == _BEING_SENT else status
        super().__init__(
            f"Feishu answers {code or status}: {one_line(words, _PROBLEM_CHARS)}",
            meaning,
            code=str(code or status),
            retry_after=headers.get("x-ogw-ratelimit-reset") or headers.get("Retry-After") or _LIMITED_SECONDS,
            unknown_outcome=meaning >= 500,
            for_account=is_limited and code not in _CHAT_LIMITS,
        )


class FeishuApi:
    """Calls methods as one app."""

    def __init__(self, settings: FeishuSettings, clock: Clock) -> None:
        self._url, self._clock = settings.domain, clock
        self._web = WebApi("Feishu", f"{settings.domain}/")
        self.close = self._web.close
        self._app = (settings.app_id, settings.app_secret.get_secret_value())
        self._token, self._expires_at, self._renewal = "", 0.0, asyncio.Lock()

    async def call(self, method: str, path: str, **options: Any) -> Json:
        """The `data` of the answer to a request, or the answer if it has none. `path` is below `open-apis`; for options
        see `_request`. Raises SendFailed, mostly ApiError."""
        token = await self._valid_token()
        try:
            answer = await self._request(method, f"open-apis/{path}", token, **options)
        except ApiError as problem:
            if problem.code not in _BAD_TOKENS:
                raise
            self._token = "" if self._token == token else self._token
            answer = await self._request(method, f"open-apis/{path}", await self._valid_token(), **options)
        return answer.get("data") or answer

    async def _valid_token(self) -> str:
        """The tenant's access token, replaced before it expires. Raises SendFailed."""
        async with self._renewal:
            if not self._token or self._clock.monotonic() >= self._expires_at:
                path, (app_id, secret) = "open-apis/auth/v3/tenant_access_token/internal", self._app
                answer = await self._request("POST", path, json={"app_id": app_id, "app_secret": secret})
                self._token = str(answer["tenant_access_token"])
                self._expires_at = self._clock.monotonic() + max(int(answer["expire"]) - _EARLY_SECONDS, 1.0)
            return self._token

    async def _request(
        self, method: str, path: str, token: str = "", upload: tuple[Json, str, Attachment] | None = None, **given: Any
    ) -> Json:
        """An answer. `upload`: the parameters of `form_with`. Raises SendFailed."""
        check_path(path, "Feishu")
        given["headers"] = bearer(token)
        if upload is not None:
            given |= {"data": form_with(*upload), "seconds": FILE_SECONDS}
        status, headers, content = await self._web.call(method, path, **given)
        answer: Json = content if isinstance(content, dict) else {}
        if not isinstance(code := answer.get("code"), int):
            raise ApiError(max(status, 502 if status < 400 else 0), 0, "not from the open platform", headers)
        if code or status >= 400:
            raise ApiError(status, code, str(answer.get("msg") or ""), headers)
        return answer

    async def download(self, path: str, kind: str, max_bytes: int) -> bytes:
        """The file at `path` below `open-apis`, of the type `kind`. Raises FileUnavailable and SendFailed."""
        check_path(path, "Feishu")
        url = URL(f"{self._web.url}open-apis/{path}").with_query(type=kind)
        return await self._web.download(url, max_bytes, bearer(await self._valid_token()))

    async def link(self) -> tuple[aiohttp.ClientWebSocketResponse, int, float]:
        """A new long connection, the number of its service, and the seconds between pings. Raises CannotConnect and
        SendFailed, without the URL, which holds a ticket."""
        app_id, secret = self._app
        found = await self._request("POST", "callback/ws/endpoint", json={"AppID": app_id, "AppSecret": secret})
        url = str(found["data"]["URL"])
        if self._url.startswith("https://") and not url.startswith("wss://"):
            raise CannotConnect("Feishu named an address without TLS")
        closing = aiohttp.ClientWSTimeout(ws_close=2.0)
        try:
            socket = await self._web.http.ws_connect(url, heartbeat=_HEARTBEAT_SECONDS, autoping=False, timeout=closing)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # More than 50 connections of an app are rejected with 1000040350.
            code = (getattr(error, "headers", None) or {}).get("handshake-autherrcode") or type(error).__name__
            raise CannotConnect(f"no long connection to Feishu: {code}") from None
        seconds = (found["data"].get("ClientConfig") or {}).get("PingInterval") or _PING_SECONDS
        return socket, int(parse_qs(urlsplit(url).query)["service_id"][0]), max(float(seconds), 1.0)


class Frame:
    """A message on a long connection."""

    def __init__(self, data: bytes) -> None:
        """Raises ValueError, LookupError, TypeError or AttributeError if `data` is no frame."""
        self._fields = parse_fields(data)
        known: dict[int, Any] = dict(self._fields)
        written: list[dict[int, Any]] = [dict(parse_fields(one)) for key, one in self._fields if key == _HEADERS]  # type: ignore[arg-type]
        self.headers: dict[str, str] = {one[1].decode(): one[2].decode() for one in written}
        self.payload: bytes = known.get(_PAYLOAD, b"")
        self.is_event = known[_METHOD] == 1

    def answered(self, answer: Json) -> bytes:
        """The frame with another payload."""
        return written_fields([*(one for one in self._fields if one[0] != _PAYLOAD), (_PAYLOAD, orjson.dumps(answer))])


def ping(service: int) -> bytes:
    """The frame that asks for a sign of life."""
    header = written_fields([(1, b"type"), (2, b"ping")])
    return written_fields([(1, 0), (2, 0), (3, service), (_METHOD, 0), (_HEADERS, header)])


def parse_fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Numbers and values of a protobuf message's fields, which are integers or bytes. Raises ValueError for others."""
    fields: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        is_number, end = key & 7 == 0, at + value
        fields.append((key >> 3, value if is_number else data[at:end]))
        at = at if is_number else end
        if key & 7 not in (0, 2) or at > len(data):
            raise ValueError("malformed protobuf")
    return fields


def written_fields(fields: Fields) -> bytes:
    """The protobuf message with those fields."""
    return b"".join(
        _written(key << 3) + _written(one)
        if isinstance(one, int)
        else _written(key << 3 | 2) + _written(len(one)) + one
        for key, one in fields
    )


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer that begins at `at`, and the position after it."""
    found = _VARINT.match(data, at)
    if found is None:
        raise ValueError("malformed protobuf")
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(found[0])), found.end()


def _written(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _written(number >> 7)
