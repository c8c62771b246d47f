"""From the settings' models to the one that is asked: all that are usable, each asked again when it fails for a moment,
the next when it goes on failing; without any, the one that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from config.settings import ModelSettings, Settings
from config.texts import Texts
from function_calls.definition import DefinitionError
from services.clock import Clock
from services.deadlines import Deadlines
from services.json_values import JsonValue
from services.llm.failover import Failover, ModelState
from services.llm.model import ChatModel
from services.llm.offline import OfflineModel
from services.llm.openai_chat import OpenAIChat, OpenAIProfile
from services.llm.own_provider import OwnProvider, load_function
from services.llm.resilient import ResilientModel
from services.retry import Retry, RetryPolicy

_USUAL_URL = "https://api.openai.com/v1"
_PATIENCE_SECONDS = 20.0
_PATIENCE_BESIDE_OTHERS_SECONDS = 5.0


def model_of(settings: Settings, texts: Texts, clock: Clock, deadlines: Deadlines) -> ChatModel:
    """The model that the daemon asks. Raises DefinitionError for a function of one's own that cannot be found."""
    models = online_models(settings, clock)
    return Failover(models, settings.failover, clock, deadlines) if models else OfflineModel(texts)


def online_models(settings: Settings, clock: Clock) -> Sequence[ChatModel]:
    """Every usable model of the settings, in their order, each by itself."""
    usable = [one for one in settings.models if one.usable]
    # A wait that a provider asks for is not sat out where another one can be asked meanwhile.
    patience = _PATIENCE_SECONDS if len(usable) == 1 else _PATIENCE_BESIDE_OTHERS_SECONDS
    return [_online(one, clock, patience) for one in usable]


def states_of(model: ChatModel) -> Sequence[ModelState]:
    """How each model behind `model` is doing; none for a model that is always there."""
    return model.states() if isinstance(model, Failover) else ()


def _online(settings: ModelSettings, clock: Clock, patience_seconds: float) -> ChatModel:
    model = _own_provider(settings) if settings.protocol == "function" else _openai_chat(settings, clock)
    retry = Retry(clock, RetryPolicy(attempts=settings.attempts))
    return ResilientModel(model, retry, clock, settings.timeout_seconds, patience_seconds=patience_seconds)


def _own_provider(settings: ModelSettings) -> OwnProvider:
    try:
        return OwnProvider(settings.name, load_function(settings.function), settings.model)
    except ValueError as error:
        raise DefinitionError(f"models.{settings.name}.function", [str(error)]) from None


def _openai_chat(settings: ModelSettings, clock: Clock) -> OpenAIChat:
    extra: dict[str, JsonValue] = {}
    if settings.temperature is not None:
        extra["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        extra["max_completion_tokens"] = settings.max_output_tokens
    profile = OpenAIProfile(
        name=settings.name,
        model=settings.model,
        base_url=settings.base_url or _USUAL_URL,
        api_key=settings.api_key,
        parallel_flag=settings.parallel_calls,
        extra=MappingProxyType(extra),
    )
    return OpenAIChat(profile, clock)
