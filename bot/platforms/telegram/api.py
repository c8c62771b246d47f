"""Client of the Bot API (https://core.telegram.org/bots/api)."""

from __future__ import annotations

import hmac
from typing import Any

import orjson

from bot.platforms.web_api import FILE_SECONDS, Answer, Refused, WebApi, form_with
from function_calls.context import Attachment


class ApiError(Refused):
    """Telegram rejected a call, with a description."""

    def __init__(self, answer: Answer) -> None:
        # A proxy in front of the server answers without JSON.
        content = answer.content if isinstance(answer.content, dict) else {}
        advice = content.get("parameters") or {}
        status, words = int(content.get("error_code", answer.status)), str(content.get("description", ""))
        line, seconds = f"Telegram answers {status}: {words}".rstrip(": "), advice.get("retry_after", "")
        super().__init__(line, status, code=words, retry_after=seconds)
        self.moved_to = str(advice.get("migrate_to_chat_id", ""))
        """Id of the supergroup that the group has become; empty if it has not."""

    def says(self, *words: str) -> bool:
        """Whether the description contains one of `words`."""
        return any(word in self.code for word in words)


class BotApi:
    """Calls methods of the Bot API."""

    def __init__(self, url: str, token: str) -> None:
        self._web = WebApi("Telegram", url)
        self._token = token
        self.webhook_secret = hmac.digest(token.encode(), b"webhook", "sha256").hex()
        """Part of the requests that Telegram sends to the bot."""
        self.close = self._web.close

    async def call(
        self, method: str, *, seconds: float = 30.0, upload: tuple[str, Attachment] | None = None, **given: Any
    ) -> Any:
        """The result of `method` with the parameters `given`, without those that are None, and with the file `upload`
        as a parameter of that name. Raises SendFailed, mostly ApiError."""
        given = {name: value for name, value in given.items() if value is not None}
        body: dict[str, Any] = {"json": given}
        if upload is not None:
            texts = {name: one if isinstance(one, str) else orjson.dumps(one).decode() for name, one in given.items()}
            seconds, body = FILE_SECONDS, {"data": form_with(texts, *upload)}
        answer = await self._web.call("POST", f"/bot{self._token}/{method}", seconds=seconds, **body)
        if isinstance(answer.content, dict) and answer.content.get("ok"):
            return answer.content["result"]
        raise ApiError(answer)

    async def download(self, path: str, max_bytes: int) -> bytes:
        """The file with the `file_path` that `getFile` returned. Raises FileUnavailable."""
        return await self._web.download(f"{self._web.url}/file/bot{self._token}/{path}", max_bytes)
