"""Clients of the models that draw, hear and speak, over the OpenAI-compatible APIs of images and audio."""

from __future__ import annotations

import asyncio
import base64
import importlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

import structlog

from config.sections.media import MediaModelSettings, MediaSettings
from services.web.http import WebClient, WebError, WebLimits

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Image as GeneratedImage

_log = structlog.get_logger("media")
_USUAL_URL = "https://api.openai.com/v1"
_REFUSALS = ("content_policy", "moderation", "content_filter", "safety")
"""Parts of error codes of providers that decline a request for its content."""
_EXTENSIONS = {"ogg": "ogg", "opus": "ogg", "mpeg": "mp3", "mp4": "m4a", "x-m4a": "m4a", "wav": "wav", "x-wav": "wav"}
"""File name extensions, by which servers recognise the format, by subtype."""
_SOUND_TYPES = {"opus": "audio/ogg", "mp3": "audio/mpeg"}
_PROBE_SECONDS = 20.0
_DOWNLOAD = WebLimits(timeout_seconds=60.0, body_bytes=20_000_000)
Model = TypeVar("Model", bound=MediaModelSettings)
Made = TypeVar("Made")


class MediaError(Exception):
    """No model of the list has answered. `is_refused`: a model declined the request for its content. The message is for
    the log."""

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused


class Sound(NamedTuple):
    """A voice message."""

    content: bytes
    media_type: str
    name: str


class MediaModels:
    """The configured models. Each list is tried in order until a model answers."""

    def __init__(self, settings: MediaSettings, web: WebClient) -> None:
        """`web` downloads pictures that a provider keeps on another server."""
        self.settings = settings
        """Current settings; may be replaced."""
        self._web = web

    def is_configured(self, _bot: str) -> bool:
        """Whether a model that draws is usable; functions with this service draw."""
        return any(one.usable for one in self.settings.drawing)

    async def draw(self, prompt: str) -> bytes:
        """A picture of `prompt`. Raises MediaError."""

        async def ask(client: AsyncOpenAI, model: MediaModelSettings) -> bytes:
            made = await client.images.generate(model=model.model, prompt=prompt, n=1, extra_body=model.extra_body)
            images = getattr(made, "data", None)  # the package does not validate answers
            if not isinstance(images, list) or not images:
                raise MediaError(f"{model.name} returned no picture")
            return await self._content(client, images[0])

        return await self._first(self.settings.drawing, ask)

    async def hear(self, content: bytes, media_type: str) -> str:
        """The words in a voice message; empty if there are none. Raises MediaError."""
        kind = media_type.partition("/")[2].partition(";")[0]
        file = (f"voice.{_EXTENSIONS.get(kind, kind or 'ogg')}", content, media_type)

        async def ask(client: AsyncOpenAI, model: MediaModelSettings) -> str:
            heard = await client.audio.transcriptions.create(
                model=model.model, file=file, response_format="json", extra_body=model.extra_body
            )
            text = getattr(heard, "text", None)  # the package does not validate answers
            if not isinstance(text, str):
                raise MediaError(f"{model.name} returned no text")
            return text.strip()

        return await self._first(self.settings.hearing, ask)

    async def speak(self, text: str) -> Sound:
        """`text` read aloud. Raises MediaError."""
        settings = self.settings.speaking

        async def ask(client: AsyncOpenAI, model: MediaModelSettings) -> Sound:
            voice = next(one for one in settings if one is model)
            answer = await client.audio.speech.create(
                model=model.model,
                voice=voice.voice,
                input=text,
                response_format=voice.format,
                extra_body=model.extra_body,
            )
            name = "voice.ogg" if voice.format == "opus" else "voice.mp3"
            return Sound(await answer.aread(), _SOUND_TYPES[voice.format], name)

        return await self._first(settings, ask)

    async def probe(self, model: MediaModelSettings) -> str:
        """One line confirming that the server knows `model`. Raises MediaError with the reason, in words for
        operators."""
        openai = await asyncio.to_thread(importlib.import_module, "openai")
        try:
            async with _client(openai.AsyncOpenAI, openai.DefaultAsyncHttpxClient, model) as client:
                async with asyncio.timeout(_PROBE_SECONDS):
                    await client.models.retrieve(model.model)
        except (openai.OpenAIError, TimeoutError) as error:
            status = getattr(error, "status_code", "")
            raise MediaError(f"{model.name}: {type(error).__name__} {status}".strip()) from None
        return f"{model.name}: {model.model}"

    async def _first(
        self, models: Sequence[Model], ask: Callable[[AsyncOpenAI, MediaModelSettings], Awaitable[Made]]
    ) -> Made:
        # In a thread: importing openai blocks for most of a second.
        openai = await asyncio.to_thread(importlib.import_module, "openai")
        for model in models:
            if not model.usable:
                continue
            try:
                async with _client(openai.AsyncOpenAI, openai.DefaultAsyncHttpxClient, model) as client:
                    async with asyncio.timeout(model.timeout_seconds):
                        return await ask(client, model)
            except openai.OpenAIError as error:
                code = str(getattr(error, "code", "") or "")
                _log.warning("media_model_failed", model=model.name, error=type(error).__name__, code=code)
                if any(part in code for part in _REFUSALS):
                    raise MediaError(f"{model.name} declined: {code}", is_refused=True) from None
            except (TimeoutError, MediaError, WebError, ValueError) as error:
                _log.warning("media_model_failed", model=model.name, error=type(error).__name__)
        raise MediaError("no model of the list has answered")

    async def _content(self, client: AsyncOpenAI, image: GeneratedImage) -> bytes:
        """The bytes of a generated picture: in the answer, on the provider's own server, or elsewhere on the web."""
        if isinstance(image.b64_json, str):
            return base64.b64decode(image.b64_json, validate=True)
        url = image.url if isinstance(image.url, str) else ""
        if url.startswith("data:"):
            return base64.b64decode(url.partition(",")[2], validate=True)
        if urlsplit(url)[:2] != urlsplit(str(client.base_url))[:2]:
            return (await self._web.request("GET", url, limits=_DOWNLOAD)).body
        openai = importlib.import_module("openai")
        answer = await client.get(url, cast_to=openai.HttpxBinaryResponseContent)
        return bytes(await answer.aread())


def _client(
    make: Callable[..., AsyncOpenAI], make_transport: Callable[..., object], model: MediaModelSettings
) -> AsyncOpenAI:
    return make(
        base_url=model.base_url or _USUAL_URL,
        api_key=model.api_key.get_secret_value() or "none",
        max_retries=0,
        timeout=model.timeout_seconds,
        default_headers={name: value.get_secret_value() for name, value in model.headers.items()},
        # The key stays with the configured origin.
        http_client=make_transport(follow_redirects=False),
    )
