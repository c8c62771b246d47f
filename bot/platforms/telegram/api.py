"""Client of the Bot API (https://core.telegram.org/bots/api)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from bot.platforms.base import FileUnavailable, SendFailed
from function_calls.context import Attachment
from services.web.content import data_in

_CALL_SECONDS = 30.0
_FILE_SECONDS = 300.0
_CHUNK_BYTES = 65_536


class ApiError(SendFailed):
    """A call failed. The message says why, without the token."""

    def __init__(self, message: str, code: int = 0, parameters: Mapping[str, Any] | None = None) -> None:
        """`code`: HTTP status of the rejection; 0 if there was no answer. `parameters`: advice of the server."""
        advice = parameters or {}
        super().__init__(
            message,
            # 401: the token was withdrawn, which the connection reports until it is valid again.
            retryable=code in (0, 401, 429) or code >= 500,
            retry_after_seconds=advice.get("retry_after"),
            unknown_outcome=code == 0,
        )
        self.moved_to = str(advice.get("migrate_to_chat_id", ""))
        """Id of the supergroup that the group has become; empty if it has not."""

    def says(self, *words: str) -> bool:
        """Whether the description contains one of `words`."""
        return any(word in str(self) for word in words)


class BotApi:
    """Calls methods of the Bot API."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self.webhook_secret = hmac.digest(token.encode(), b"webhook", "sha256").hex()
        """Part of the requests that Telegram sends to the bot."""

    async def call(
        self, method: str, *, seconds: float = _CALL_SECONDS, upload: tuple[str, Attachment] | None = None, **given: Any
    ) -> Any:
        """The result of `method` with the parameters `given`, without those that are None, and with the file `upload`
        as a parameter of that name. Raises ApiError."""
        given = {name: value for name, value in given.items() if value is not None}
        body: dict[str, Any] = {"data": _form(given, *upload)} if upload else {"json": given}
        timeout = aiohttp.ClientTimeout(_FILE_SECONDS if upload else seconds, sock_connect=10)
        # Errors of aiohttp are not chained: they may contain the URL, which contains the token.
        try:
            async with self._http.post(f"{self._url}/bot{self._token}/{method}", timeout=timeout, **body) as response:
                return _result(await response.read(), response.status)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            problem = ApiError(f"cannot connect to Telegram: {type(error).__name__}")
            problem.unknown_outcome = False
            raise problem from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(f"no answer of Telegram: {type(error).__name__}") from None

    async def download(self, path: str, max_bytes: int) -> bytes:
        """The file with the `file_path` that `getFile` returned. Raises FileUnavailable, also as soon as more than
        `max_bytes` have arrived."""
        content = bytearray()
        url, timeout = f"{self._url}/file/bot{self._token}/{path}", aiohttp.ClientTimeout(_FILE_SECONDS)
        try:
            async with self._http.get(url, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    raise FileUnavailable(f"Telegram answers {response.status}")
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    content += chunk
                    if len(content) > max_bytes:
                        raise FileUnavailable(f"the file is larger than {max_bytes:,} bytes")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FileUnavailable(f"no answer of Telegram: {type(error).__name__}") from None
        return bytes(content)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()

    @property
    def _http(self) -> aiohttp.ClientSession:
        self._session = self._session or aiohttp.ClientSession(trust_env=True)
        return self._session


def _form(given: Mapping[str, Any], name: str, file: Attachment) -> aiohttp.FormData:
    form = aiohttp.FormData()
    for key, value in given.items():
        form.add_field(key, value if isinstance(value, str) else orjson.dumps(value).decode())
    form.add_field(name, data_in(file.url) or b"", filename=file.name, content_type=file.media_type)
    return form


def _result(body: bytes, status: int) -> Any:
    try:
        answer = orjson.loads(body)
        if answer["ok"]:
            return answer["result"]
        description, code = str(answer["description"]), int(answer["error_code"])
    except (ValueError, KeyError, TypeError):
        # A proxy in front of the server answers without JSON.
        raise ApiError(f"Telegram answers {status}", status if status >= 400 else 0) from None
    raise ApiError(f"Telegram answers {code}: {description}", code, answer.get("parameters"))
