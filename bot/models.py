"""From the settings' models to the one that answers: the first usable, asked again when it fails for a moment; without
any, the one that needs no network."""

from __future__ import annotations

from types import MappingProxyType

from config.models import ModelSettings
from config.settings import Settings
from config.texts import Texts
from services.clock import Clock
from services.json_values import JsonValue
from services.llm.anthropic_messages import AnthropicMessages
from services.llm.degrading import DegradingModel
from services.llm.model import ChatModel
from services.llm.offline import OfflineModel
from services.llm.openai_chat import OpenAIChat
from services.llm.profile import ModelProfile
from services.llm.resilient import ResilientModel
from services.llm.text_protocol import TextProtocol
from services.retry import Retry, RetryPolicy

_USUAL_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com/v1"


def model_of(settings: Settings, texts: Texts, clock: Clock) -> ChatModel:
    """The model that the daemon asks."""
    usable = next((one for one in settings.answering_models if one.usable), None)
    return OfflineModel(texts) if usable is None else _online(usable, clock)


def shadow_of(settings: Settings, clock: Clock) -> ChatModel | None:
    """The model that only says what it would have called; None without a usable one."""
    named = next((one for one in settings.models if one.name == settings.router.shadow.model), None)
    return _online(named, clock) if named is not None and named.usable else None


def _online(settings: ModelSettings, clock: Clock) -> ChatModel:
    retry = Retry(clock, RetryPolicy(attempts=settings.attempts))
    return ResilientModel(_spoken_to(settings, clock), retry, clock, settings.timeout_seconds)


def _spoken_to(settings: ModelSettings, clock: Clock) -> ChatModel:
    profile = _profile(settings)
    if settings.protocol == "anthropic":
        return AnthropicMessages(profile, clock)
    if settings.protocol == "json_text":
        return TextProtocol(profile, clock, "json")
    if settings.protocol == "xml_text":
        return TextProtocol(profile, clock, "xml")
    return DegradingModel(OpenAIChat(profile, clock), lambda: TextProtocol(profile, clock, "json"))


def _profile(settings: ModelSettings) -> ModelProfile:
    is_anthropic = settings.protocol == "anthropic"
    extra: dict[str, JsonValue] = {}
    if settings.temperature is not None:
        extra["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        extra["max_tokens" if is_anthropic else "max_completion_tokens"] = settings.max_output_tokens
    can = settings.profile
    return ModelProfile(
        name=settings.name,
        model=settings.model,
        base_url=settings.base_url or (_ANTHROPIC_URL if is_anthropic else _USUAL_URL),
        api_key=settings.api_key,
        parallel_flag=settings.parallel_calls,
        strict=can.strict,
        tool_choice_required=can.tool_choice,
        echo_reasoning=can.reasoning_echo,
        dialect=can.dialect,
        extra=MappingProxyType(extra),
    )
