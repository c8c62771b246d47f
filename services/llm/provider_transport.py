"""One connection pool to a provider's server, over the openai package: bytes out, bytes in.

Importing this module imports openai, which takes most of a second: `provider` does so for the first request.
"""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
import httpx2
import openai

from services.clock import Clock
from services.llm.answer_rules import MAX_BODY_BYTES
from services.llm.endpoint import Endpoint
from services.llm.model import ModelError
from services.llm.provider_errors import error_of_status
from services.refs import ErrorCode

_MAX_ERROR_BYTES = 64 * 1024
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 30.0


class ProviderTransport:
    """Posts to one server. Never follows a redirect, so the key stays with the origin it was configured for."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._clock = clock
        self._api_key = endpoint.api_key
        # Only connecting has a limit of its own; the whole request has the caller's.
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            # A server on this machine may want no key; the package insists on one, which is not sent then.
            api_key=endpoint.api_key.get_secret_value() or "none",
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAioHttpClient(
                limits=httpx2.Limits(
                    max_connections=endpoint.connections,
                    max_keepalive_connections=endpoint.connections,
                    keepalive_expiry=_IDLE_SECONDS,
                ),
                timeout=timeout,
                follow_redirects=False,
                event_hooks={"response": [self._refuse_status]},
            ),
        )
        # Whole, since the package would put it together anew for each request, which takes longer than sending it.
        base = self._client.base_url
        self._url = str(base.copy_with(raw_path=base.raw_path + endpoint.path.encode()))
        headers: dict[str, str | openai.Omit] = {"content-type": "application/json", **endpoint.headers}
        bearer = endpoint.bearer and bool(endpoint.api_key.get_secret_value())
        if not bearer:
            headers["authorization"] = openai.Omit()
        self._options: openai.RequestOptions = {"headers": headers, "security": {"bearer_auth": bearer}}

    async def post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer to `body`; at most 8 MiB and one byte of the body are read.

        Raises ModelError for any other status than 2xx and for a connection that fails.
        """
        try:
            # `stream` leaves the body unread, so that no more of it than is allowed gets into memory.
            response = await self._client.post(
                self._url, cast_to=httpx2.Response, content=body, options=self._options, stream=True
            )
            try:
                return response.status_code, response.headers, await _read(response, MAX_BODY_BYTES)
            finally:
                await response.aclose()
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise self._connection_error(error) from error
        except openai.OpenAIError as error:
            raise ModelError(ErrorCode.PROVIDER_ERROR, self._without_key(str(error))) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _refuse_status(self, response: httpx2.Response) -> None:
        """Called for each response before its body is read. The package itself would read all of a refusal."""
        if response.is_success:
            return
        text = self._without_key((await _read(response, _MAX_ERROR_BYTES)).decode("utf-8", "replace"))
        raise error_of_status(response.status_code, response.headers, text.encode(), self._clock.now())

    def _connection_error(self, error: Exception) -> ModelError:
        reason = error.__cause__ or error
        text = self._without_key(f"{type(reason).__name__}: {reason}")
        return ModelError(ErrorCode.TRANSIENT, f"the connection to the provider failed: {text}", retryable=True)

    def _without_key(self, text: str) -> str:
        """Some gateways quote the key that they refuse."""
        key = self._api_key.get_secret_value()
        return text.replace(key, "***") if key else text


async def _read(response: httpx2.Response, most_bytes: int) -> bytes:
    """The decoded body, or its first `most_bytes` + 1 where it is longer: enough to see that it is."""
    parts: list[bytes] = []
    missing = most_bytes + 1
    async for part in response.aiter_bytes():
        parts.append(part[:missing])
        missing -= len(part)
        if missing <= 0:
            break
    return parts[0] if len(parts) == 1 else b"".join(parts)
