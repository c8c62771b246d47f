"""Language models of the settings, each with retries and failover, and the current one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

from config.sections.models import ModelSettings
from config.settings import Settings
from config.texts import Texts
from function_calls.schema.definition import DefinitionError
from services.background import Background
from services.clock import Clock, Deadlines
from services.llm.failover import Failover, ModelState
from services.llm.model import ChatModel, ModelAnswer, ModelRequest
from services.llm.offline.offline import OfflineModel
from services.llm.profile import ModelProfile
from services.llm.protocols.anthropic_messages import AnthropicMessages
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.protocols.own_provider import OwnProvider, load_function
from services.llm.protocols.text_protocol import TextProtocol
from services.llm.resilient import DegradingModel, ResilientModel
from services.refs import JsonValue
from services.retry import Retry, RetryPolicy

_USUAL_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com/v1"
_EFFORT = "reasoning_effort"
_PATIENCE_SECONDS = 20.0
_PATIENCE_WITH_FAILOVER_SECONDS = 5.0


def model_of(settings: Settings, texts: Texts, clock: Clock, deadlines: Deadlines) -> ChatModel:
    """The chat model of the daemon. Raises DefinitionError for a custom model function that cannot be found."""
    models = online_models(settings, clock)
    if not models:
        return OfflineModel(texts)
    return Failover(models, settings.failover, clock, deadlines, seeing=settings.seeing_models)


def online_models(settings: Settings, clock: Clock) -> Sequence[ChatModel]:
    """The usable chat models of the settings, in order, without failover."""
    usable = [one for one in settings.answering_models if one.usable]
    # A long retry-after is not waited for if another model can be used meanwhile.
    patience = _PATIENCE_SECONDS if len(usable) == 1 else _PATIENCE_WITH_FAILOVER_SECONDS
    return [_online(one, clock, patience) for one in usable]


def shadow_of(settings: Settings, clock: Clock) -> ChatModel | None:
    """The shadow model; None if none is usable."""
    named = next((one for one in settings.models if one.name == settings.router.shadow.model), None)
    return _online(named, clock, _PATIENCE_SECONDS) if named is not None and named.usable else None


def states_of(model: ChatModel) -> Sequence[ModelState]:
    """State of each model behind `model`; empty for a model without failover."""
    return model.states() if isinstance(model, Failover) else ()


def _online(settings: ModelSettings, clock: Clock, patience_seconds: float) -> ChatModel:
    retry = Retry(clock, RetryPolicy(attempts=settings.attempts))
    client = _client_of(settings, clock)
    return ResilientModel(client, retry, clock, settings.timeout_seconds, patience_seconds=patience_seconds)


def _client_of(settings: ModelSettings, clock: Clock) -> ChatModel:
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
    extra: dict[str, JsonValue] = dict(settings.extra_body)
    own = (("temperature", settings.temperature), ("top_p", settings.top_p), (_EFFORT, settings.reasoning_effort))
    extra |= {name: value for name, value in own if value is not None}
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
        sees=settings.sees,
        dialect=can.dialect,
        extra=MappingProxyType(extra),
        thinking=MappingProxyType({_EFFORT: settings.thinking_effort} if settings.thinking_effort else {}),
        headers={name.lower(): value.get_secret_value() for name, value in settings.headers.items()},
        api_version=settings.api_version,
    )


class CurrentModel:
    """ChatModel that delegates to the current model. A replaced model is closed when its last request has ended."""

    def __init__(self, model: ChatModel, hide: Callable[[str], str] = str) -> None:
        """`hide` removes known secrets from the messages of requests."""
        self.name = model.name
        self._hide = hide
        self._model = model
        self._asked: Counter[ChatModel] = Counter()
        self._closing = Background()

    @property
    def can_write(self) -> bool:
        """Whether the model can write text, which the offline model cannot."""
        return not isinstance(self._model, OfflineModel)

    def use(self, model: ChatModel) -> None:
        """Use `model` from the next request on."""
        old, self._model, self.name = self._model, model, model.name
        if old is not model:
            self._close_if_idle(old)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The answer of the current model. Raises ModelError. A model that was replaced meanwhile is closed after its
        last answer."""
        model = self._model
        self._asked[model] += 1
        try:
            return await model.complete(self._without_secrets(request))
        finally:
            self._asked[model] -= 1
            if model is not self._model:
                self._close_if_idle(model)

    def _without_secrets(self, request: ModelRequest) -> ModelRequest:
        hidden = [(message, self._hide(message.content)) for message in request.messages]
        if all(message.content == text for message, text in hidden):
            return request
        messages = [message if message.content == text else replace(message, content=text) for message, text in hidden]
        return replace(request, messages=messages)

    async def probe(self) -> str:
        """Status line of the current model. Raises ModelError."""
        return await self._model.probe()

    async def close(self) -> None:
        """Close the current model, and wait for replaced ones to be closed."""
        await self._model.close()
        await self._closing.idle()

    def states(self) -> Sequence[ModelState]:
        """State of each model behind the current one."""
        return states_of(self._model)

    def _close_if_idle(self, model: ChatModel) -> None:
        if self._asked[model] > 0:
            return
        del self._asked[model]
        self._closing.start(model.close())
