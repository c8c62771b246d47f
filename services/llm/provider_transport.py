"""One connection pool to a provider's server, over the openai package: bytes out, bytes in.

Importing this module imports openai, which takes most of a second: `provider` does so for the first request.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from typing import cast

import httpx2
import openai

from services.clock import Clock
from services.llm.answer_rules import MAX_BODY_BYTES
from services.llm.endpoint import Endpoint
from services.llm.model import ModelError
from services.llm.provider_client import OpenAIClient, Parcel
from services.llm.provider_errors import error_of_status
from services.llm.provider_pool import OneServerClient
from services.refs import ErrorCode

_MAX_ERROR_BYTES = 64 * 1024
_CONNECT_SECONDS = 10.0
_KEPT_SECONDS = 30.0
_ENCODINGS = {"": None, "identity": None, "gzip": 47, "x-gzip": 47, "deflate": 47}
"""What zlib is told for each encoding of a body: 47 is gzip or zlib, whichever it is."""


class ProviderTransport:
    """Posts to one server. Never follows a redirect, so the key stays with the origin it was configured for."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        """A body in which nothing comes for `endpoint.silence_seconds` is given up."""
        self._silence_seconds = endpoint.silence_seconds
        self._clock = clock
        self._api_key = endpoint.api_key
        # Only connecting has a limit of its own; the whole request has the caller's.
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
        self._client = OpenAIClient(
            base_url=endpoint.base_url,
            # A server on this machine may want no key; the package insists on one, which is not sent then.
            api_key=endpoint.api_key.get_secret_value() or "none",
            max_retries=0,
            timeout=timeout,
            http_client=OneServerClient(
                limits=httpx2.Limits(
                    max_connections=endpoint.connections,
                    max_keepalive_connections=endpoint.connections,
                    keepalive_expiry=_KEPT_SECONDS,
                ),
                timeout=timeout,
                event_hooks={"response": [self._refuse_status]},
            ),
        )
        # Whole, since the package would put it together anew for each request, which takes longer than sending it.
        base = self._client.base_url
        self._url = str(base.copy_with(raw_path=base.raw_path + endpoint.path.encode()))
        headers: dict[str, str | openai.Omit] = {
            "content-type": "application/json",
            "accept-encoding": "gzip, deflate",
            **endpoint.headers,
        }
        bearer = endpoint.bearer and bool(endpoint.api_key.get_secret_value())
        if not bearer:
            headers["authorization"] = openai.Omit()
        # What is not given here, the package would copy anew for each request.
        self._options: openai.RequestOptions = {
            "headers": headers,
            "security": {"bearer_auth": bearer},
            "timeout": timeout,
            "max_retries": 0,
            "params": {},
        }

    @staticmethod
    def packed(body: bytes) -> Parcel:
        """`body` as it is posted: held no longer than until it is sent, unless the caller holds it, too."""
        return Parcel(body)

    async def post(self, body: Parcel) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer to `body`; at most 8 MiB and one byte of the body are read.

        Raises ModelError for any other status than 2xx and for a connection that fails.
        """
        try:
            # `stream` leaves the body unread, so that no more of it than is allowed gets into memory.
            response = await self._client.post(
                self._url, cast_to=httpx2.Response, content=body, options=self._options, stream=True
            )
            try:
                return (
                    response.status_code,
                    response.headers,
                    await _read(response, MAX_BODY_BYTES, self._silence_seconds),
                )
            finally:
                await response.aclose()
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
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
        body = await _read(response, _MAX_ERROR_BYTES, self._silence_seconds)
        text = self._without_key(body.decode("utf-8", "replace"))
        raise error_of_status(response.status_code, response.headers, text.encode(), self._clock.now())

    def _connection_error(self, error: Exception) -> ModelError:
        reason = error.__cause__ or error
        text = self._without_key(f"{type(reason).__name__}: {reason}")
        return ModelError(ErrorCode.TRANSIENT, f"the connection to the provider failed: {text}", retryable=True)

    def _without_key(self, text: str) -> str:
        """Some gateways quote the key that they refuse."""
        key = self._api_key.get_secret_value()
        return text.replace(key, "***") if key else text


async def _read(response: httpx2.Response, most_bytes: int, silence_seconds: float) -> bytes:
    """The decoded body, or its first `most_bytes` + 1 where it is longer: enough to see that it is. Unpacked here: the
    package would unpack all of a piece, which may be a thousand times as long. Raises ModelError for a body that falls
    silent, that breaks off, or that is packed in a way nobody asked for."""
    unpack = _unpacker(response.headers.get("content-encoding", ""))
    parts: list[bytes] = []
    missing = most_bytes + 1
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(silence_seconds) as silence:
            # As it comes from the connection: httpx2 would wrap it twice more.
            async for piece in cast(httpx2.AsyncByteStream, response.stream):
                silence.reschedule(loop.time() + silence_seconds)
                part = piece[:missing] if unpack is None else unpack.decompress(piece, missing)
                parts.append(part)
                missing -= len(part)
                if missing <= 0:
                    break
    except TimeoutError:
        text = f"the provider fell silent for {silence_seconds:g} s in its answer"
        raise ModelError(ErrorCode.TIMEOUT, text, retryable=True) from None
    except zlib.error as error:
        raise ModelError(ErrorCode.TRANSIENT, f"the answer cannot be unpacked: {error}", retryable=True) from error
    if unpack is not None and missing > 0 and parts and not unpack.eof:
        raise ModelError(ErrorCode.TRANSIENT, "the packed answer breaks off", retryable=True)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unpacker(encoding: str) -> zlib._Decompress | None:
    encoding = encoding.strip().lower()
    if encoding not in _ENCODINGS:
        raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, f"the answer is packed as {encoding[:40]!r}, unasked")
    window = _ENCODINGS[encoding]
    return None if window is None else zlib.decompressobj(window)
