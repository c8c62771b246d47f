"""From the settings' models to the one that is asked: all that are usable, each asked again when it fails for a moment,
the next when it goes on failing; without any, the one that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from config.models import ModelSettings
from config.settings import Settings
from config.texts import Texts
from function_calls.definition import DefinitionError
from services.clock import Clock
from services.deadlines import Deadlines
from services.json_values import JsonValue
from services.llm.anthropic_messages import AnthropicMessages
from services.llm.degrading import DegradingModel
from services.llm.failover import Failover, ModelState
from services.llm.model import ChatModel
from services.llm.offline import OfflineModel
from services.llm.openai_chat import OpenAIChat
from services.llm.own_provider import OwnProvider, load_function
from services.llm.profile import ModelProfile
from services.llm.resilient import ResilientModel
from services.llm.text_protocol import TextProtocol
from services.retry import Retry, RetryPolicy

_USUAL_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com/v1"
_PATIENCE_SECONDS = 20.0
_PATIENCE_BESIDE_OTHERS_SECONDS = 5.0


def model_of(settings: Settings, texts: Texts, clock: Clock, deadlines: Deadlines) -> ChatModel:
    """The model that the daemon asks. Raises DefinitionError for a function of one's own that cannot be found."""
    models = online_models(settings, clock)
    return Failover(models, settings.failover, clock, deadlines) if models else OfflineModel(texts)


def online_models(settings: Settings, clock: Clock) -> Sequence[ChatModel]:
    """Every usable model of the settings that answers chats, in their order, each by itself."""
    usable = [one for one in settings.answering_models if one.usable]
    # A wait that a provider asks for is not sat out where another one can be asked meanwhile.
    patience = _PATIENCE_SECONDS if len(usable) == 1 else _PATIENCE_BESIDE_OTHERS_SECONDS
    return [_online(one, clock, patience) for one in usable]


def shadow_of(settings: Settings, clock: Clock) -> ChatModel | None:
    """The model that only says what it would have called; None without a usable one."""
    named = next((one for one in settings.models if one.name == settings.router.shadow.model), None)
    return _online(named, clock, _PATIENCE_SECONDS) if named is not None and named.usable else None


def states_of(model: ChatModel) -> Sequence[ModelState]:
    """How each model behind `model` is doing; none for a model that is always there."""
    return model.states() if isinstance(model, Failover) else ()


def _online(settings: ModelSettings, clock: Clock, patience_seconds: float) -> ChatModel:
    retry = Retry(clock, RetryPolicy(attempts=settings.attempts))
    spoken_to = _spoken_to(settings, clock)
    return ResilientModel(spoken_to, retry, clock, settings.timeout_seconds, patience_seconds=patience_seconds)


def _spoken_to(settings: ModelSettings, clock: Clock) -> ChatModel:
    if settings.protocol == "function":
        return _own_provider(settings)
    profile = _profile(settings)
    if settings.protocol == "anthropic":
        return AnthropicMessages(profile, clock)
    if settings.protocol == "json_text":
        return TextProtocol(profile, clock, "json")
    if settings.protocol == "xml_text":
        return TextProtocol(profile, clock, "xml")
    return DegradingModel(OpenAIChat(profile, clock), lambda: TextProtocol(profile, clock, "json"))


def _own_provider(settings: ModelSettings) -> OwnProvider:
    try:
        return OwnProvider(settings.name, load_function(settings.function), settings.model)
    except ValueError as error:
        raise DefinitionError(f"models.{settings.name}.function", [str(error)]) from None


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
