"""The openai package's client, which makes what all requests to a server share once.

Left to itself the package puts the same address and the same headers together for each request, and httpx2 parses and
copies them twice more; both hold them, and the request's body, until the answer is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx2
import openai

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions


class Parcel(httpx2.AsyncByteStream):
    """The body of a request, let go once it is on its way: whoever waits for the answer need not hold it."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self.data: bytes | None = data
        """None when it was taken to be sent."""

    def take(self) -> bytes:
        """The bytes, which are not here any more. Raises RuntimeError when they were taken before."""
        data, self.data = self.data, None
        if data is None:
            raise RuntimeError("a request's body is sent once")
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.take()


class Alike(httpx2.Request):
    """A request like another, with a body of its own."""

    def __init__(self, like: httpx2.Request, parcel: Parcel) -> None:
        self.like = like
        self.method = like.method
        self.url = like.url
        self.extensions = like.extensions
        self.headers = like.headers.copy()
        self.headers["Content-Length"] = str(parcel.size_bytes)
        self.stream = parcel


class OpenAIClient(openai.AsyncOpenAI):
    """The package's client, for requests that are alike in all but their bodies, which are Parcels.

    What the package does for each request it does here for the first one of those that are alike. Should it call its
    methods otherwise one day, it would do so for each again, which is slower and as right.
    """

    _first: tuple[FinalRequestOptions, httpx2.Request] | None = None

    @property
    def user_agent(self) -> str:
        """The package's own name, not that of this class."""
        return f"{openai.AsyncOpenAI.__name__}/Python {openai.__version__}"

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        parcel = options.content
        if retries_taken or not isinstance(parcel, Parcel):
            return super()._build_request(options, retries_taken=retries_taken)
        if self._first is None or not _are_alike(options, self._first[0]):
            bare = options.model_copy(update={"content": b""})
            self._first = (bare, super()._build_request(bare))
        return Alike(self._first[1], parcel)

    async def _send_request(self, request: httpx2.Request, *, stream: bool, **more: Any) -> httpx2.Response:
        # The package would look for other ways to log in than a key, in five coroutines around one another, all of
        # which each waiting turn holds.
        return await self._client.send(request, stream=stream, **more)


def _are_alike(one: FinalRequestOptions, other: FinalRequestOptions) -> bool:
    return (
        one.url == other.url
        and one.headers == other.headers
        and one.timeout == other.timeout
        and one.security == other.security
        and one.params == other.params
        and one.method == other.method
    )
