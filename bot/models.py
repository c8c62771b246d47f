"""From the settings' models to the one that answers: the first usable, asked again when it fails for a moment; without
any, the one that needs no network."""

from __future__ import annotations

from types import MappingProxyType

from config.settings import ModelSettings, Settings
from config.texts import Texts
from services.clock import Clock
from services.json_values import JsonValue
from services.llm.model import ChatModel
from services.llm.offline import OfflineModel
from services.llm.openai_chat import OpenAIChat
from services.llm.profile import ModelProfile
from services.llm.resilient import ResilientModel
from services.retry import Retry, RetryPolicy

_USUAL_URL = "https://api.openai.com/v1"


def model_of(settings: Settings, texts: Texts, clock: Clock) -> ChatModel:
    """The model that the daemon asks."""
    usable = next((one for one in settings.models if one.usable), None)
    return OfflineModel(texts) if usable is None else _online(usable, clock)


def _online(settings: ModelSettings, clock: Clock) -> ChatModel:
    extra: dict[str, JsonValue] = {}
    if settings.temperature is not None:
        extra["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        extra["max_completion_tokens"] = settings.max_output_tokens
    profile = ModelProfile(
        name=settings.name,
        model=settings.model,
        base_url=settings.base_url or _USUAL_URL,
        api_key=settings.api_key,
        parallel_flag=settings.parallel_calls,
        extra=MappingProxyType(extra),
    )
    retry = Retry(clock, RetryPolicy(attempts=settings.attempts))
    return ResilientModel(OpenAIChat(profile, clock), retry, clock, settings.timeout_seconds)
