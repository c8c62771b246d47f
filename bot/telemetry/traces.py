"""OpenTelemetry traces: a span for each turn, model request and run of a function, as outermost filters.

Imported only if the settings name a receiver. Attributes follow the semantic conventions for generative AI. Messages
and arguments are included only if the settings ask for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from bot import VERSION
from function_calls.context import MessageContext
from function_calls.filters.call import Invocation, Proceed
from function_calls.filters.round import Ask, Round
from function_calls.outcome import Dispatch, TurnOutcome
from function_calls.result import ended_as
from function_calls.spec import FunctionResult
from function_calls.turn import Turn
from services.llm.model import ModelAnswer, ModelError
from services.redaction import HIDDEN, Redactor

_log = structlog.get_logger("traces")
_EXPORT_SECONDS = 3
_MOST_CHARACTERS = 20_000


class _IntoOurLog(logging.Handler):
    """Logs warnings of the library, such as an unreachable receiver."""

    def emit(self, record: logging.LogRecord) -> None:
        _log.warning("traces_library", said=record.getMessage()[:300])


class Traces:
    """Exports spans to `url` by OTLP over HTTP."""

    def __init__(self, url: str, redact: Redactor, *, with_content: bool) -> None:
        """`with_content`: also export messages and arguments, without known secrets and sensitive arguments."""
        self._redact = redact
        self._with_content = with_content
        resource = Resource.create({"service.name": "rollcall", "service.version": VERSION})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url, timeout=_EXPORT_SECONDS)))
        self._tracer = self._provider.get_tracer("rollcall", VERSION)
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [_IntoOurLog(logging.WARNING)], False

    async def close(self) -> None:
        """Export the remaining spans."""
        await asyncio.to_thread(self._provider.shutdown)

    async def turn(self, context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        """A turn filter: the span `invoke_agent`, with the turn's id in the logs and its reason."""
        with self._span("invoke_agent rollcall", SpanKind.SERVER) as span:
            span.set_attribute("gen_ai.operation.name", "invoke_agent")
            span.set_attribute("gen_ai.agent.name", "rollcall")
            span.set_attribute("rollcall.platform", context.chat.platform)
            span.set_attribute("rollcall.turn.id", turn.input.id)
            if self._with_content:
                span.set_attribute("gen_ai.conversation.id", context.chat.key)
                self._content(span, "gen_ai.input.messages", [{"role": "user", "content": context.text}])
            outcome = await dispatch(context, turn)
            span.set_attribute("rollcall.turn.reason", outcome.reason.value)
            if outcome.error is not None:
                _failed(span, outcome.error.value)
        return outcome

    async def round(self, round_: Round, ask: Ask) -> ModelAnswer:
        """A round filter: the span `chat`, with the model and its tokens."""
        with self._span("chat", SpanKind.CLIENT) as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("rollcall.round.number", round_.number)
            if self._with_content:
                asked = [{"role": message.role, "content": message.content} for message in round_.request.messages]
                self._content(span, "gen_ai.input.messages", asked)
            try:
                answer = await ask(round_)
            except ModelError as error:
                _failed(span, error.code.value)
                raise
            span.update_name(f"chat {answer.model or answer.by}")
            span.set_attributes(
                {
                    "gen_ai.response.model": answer.model,
                    "gen_ai.response.id": answer.request_id,
                    "gen_ai.response.finish_reasons": [answer.finish],
                    "gen_ai.usage.input_tokens": answer.usage.prompt,
                    "gen_ai.usage.output_tokens": answer.usage.completion,
                    "gen_ai.usage.cache_read.input_tokens": answer.usage.cached,
                    "rollcall.model": answer.by,
                }
            )
            if self._with_content:
                self._content(span, "gen_ai.output.messages", [{"role": "assistant", "content": answer.text}])
        return answer

    async def call(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        """A call filter: the span `execute_tool`, with the outcome."""
        spec, call = invocation.spec, invocation.call
        with self._span(f"execute_tool {spec.name}", SpanKind.INTERNAL) as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", spec.name)
            span.set_attribute("gen_ai.tool.type", "function")
            span.set_attribute("gen_ai.tool.call.id", call.key)
            span.set_attribute("rollcall.call.path", call.path)
            if self._with_content:
                shown = spec.arguments.dump(invocation.arguments)
                shown = {key: HIDDEN if key in spec.execution.sensitive else value for key, value in shown.items()}
                self._content(span, "gen_ai.tool.call.arguments", shown)
            result = await proceed(invocation)
            span.set_attribute("rollcall.call.outcome", ended_as(result))
            if result.error is not None:
                _failed(span, result.error.code.value)
        return result

    @contextmanager
    def _span(self, name: str, kind: SpanKind) -> Iterator[Span]:
        """The current span. Of an exception only the type is recorded, since its text may quote messages."""
        with self._tracer.start_as_current_span(
            name, kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except ModelError:
                raise
            except BaseException as error:
                _failed(span, type(error).__name__)
                raise

    def _content(self, span: Span, attribute: str, value: object) -> None:
        text = self._redact(orjson.dumps(value, default=str).decode())
        span.set_attribute(attribute, text[:_MOST_CHARACTERS])


def _failed(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
