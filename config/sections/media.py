"""Settings of pictures, voice and documents in chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, SecretStr, model_validator

from config.terms import BaseUrl, Count, Headers, Seconds, Section, Word, settings_error


class MediaModelSettings(Section):
    """A model with an API in the form of OpenAI's. The next one of its list is used if it fails."""

    name: Word
    """Name in logs, and for prices in `budgets.prices`."""
    base_url: BaseUrl = ""
    """URL of the API. Empty: https://api.openai.com/v1."""
    api_key: SecretStr = SecretStr("")
    """API key; preferably a reference to the environment."""
    model: Word
    """The provider's name of the model."""
    timeout_seconds: Seconds = 120
    """Timeout of a request."""
    headers: Headers = Field(default_factory=dict)
    """Additional headers of each request; preferably references to the environment."""
    extra_body: Annotated[Mapping[Word, JsonValue], Field(max_length=50)] = Field(default_factory=dict)
    """Additional fields of each request, such as `size`, `quality`, `language` or `instructions`."""

    @property
    def usable(self) -> bool:
        """Whether it has a key or a URL, so that it can be asked."""
        return bool(self.api_key.get_secret_value() or self.base_url)


class SpeakingModelSettings(MediaModelSettings):
    """A model that reads answers aloud."""

    voice: Word = "alloy"
    """The provider's name of the voice."""
    format: Literal["opus", "mp3"] = "opus"
    """Format of the voice messages."""


class MediaSettings(Section):
    """Pictures, voice and documents. Each is off until it is configured; `sees` in `models` is the switch of
    pictures."""

    picture_bytes: Count = Field(default=5_000_000, ge=1000, le=20_000_000)
    """Maximum size of a picture that is shown to a model."""
    picture_pixels: Count = Field(default=40_000_000, ge=10_000, le=1_000_000_000)
    """Maximum number of its pixels."""
    pictures_per_turn: Count = Field(default=4, ge=1, le=20)
    """Maximum number of pictures that a model is shown with a message."""
    documents: bool = False
    """Whether models are given the text of attached documents. PDF and Excel files need the extra `documents`."""
    document_bytes: Count = Field(default=10_000_000, ge=1000, le=50_000_000)
    """Maximum size of a document that is read."""
    document_chars: Count = Field(default=20_000, ge=100, le=100_000)
    """Maximum length of its text in a request to a model, in characters; a longer one is cut, with a mark."""
    documents_per_turn: Count = Field(default=3, ge=1, le=20)
    """Maximum number of documents that are read with a message."""
    hearing: Annotated[tuple[MediaModelSettings, ...], Field(max_length=20)] = ()
    """Models that write down voice messages, in the order of use."""
    voice_bytes: Count = Field(default=10_000_000, ge=1000, le=25_000_000)
    """Maximum size of a voice message."""
    heard_by_name: bool = False
    """True: all voice messages of a group are written down, and those that name the bot are answered. False: only
    those that mention it or reply to it, and those in private chats."""
    show_heard: bool = False
    """Whether an answer begins with what was heard."""
    speaking: Annotated[tuple[SpeakingModelSettings, ...], Field(max_length=20)] = ()
    """Models that read answers aloud in chats with `voice_answers`, in the order of use."""
    spoken_chars: Count = Field(default=2000, ge=1, le=4096)
    """Maximum length of an answer that is read aloud, in characters; a longer one is sent as text only."""
    drawing: Annotated[tuple[MediaModelSettings, ...], Field(max_length=20)] = ()
    """Models of the function `draw`, in the order of use."""
    upload_bytes: Count = Field(default=8_000_000, ge=1000, le=50_000_000)
    """Maximum size of all files of a message from the chat page or the HTTP API."""

    @model_validator(mode="after")
    def _with_their_models(self) -> Self:
        if self.heard_by_name and not self.hearing:
            raise settings_error("has heard_by_name, but no model in hearing")
        names = [one.name for one in (*self.hearing, *self.speaking, *self.drawing)]
        if len({*names}) < len(names):
            raise settings_error("has models of the same name in hearing, speaking and drawing")
        return self
