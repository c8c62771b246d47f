"""A model whose answers are written in a case, as bytes of the wire that the case names."""

from __future__ import annotations

import orjson

from bot.replay_case import Case, ReplaySettings, WrittenAnswer
from services.clock import InstantClock
from services.llm import anthropic_answers, openai_answers
from services.llm.dialects import reader_for
from services.llm.markup import ReadText
from services.llm.model import ModelAnswer, ModelError, ModelRequest, Offer
from services.llm.text_protocol import text_reader


class WrittenModel:
    """A ChatModel that gives the answers of a case in their order."""

    name = "written"

    def __init__(self, case: Case, clock: InstantClock) -> None:
        self._answers = list(case.model)
        self._settings = case.settings
        self._clock = clock
        self._last_error: ModelError | None = None
        self.exhausted = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if self.has_run_out():
            if self._last_error is not None:
                raise ModelError(self._last_error.code, str(self._last_error))
            # Nothing more is said: the turn ends with what it has.
            return ModelAnswer()
        written = self._answers.pop(0)
        self._last_error = None
        try:
            return self._read(written, request.offer)
        except ModelError as error:
            self._last_error = error
            raise

    def has_run_out(self) -> bool:
        """Whether an answer is wanted that was not written; from then on `exhausted`."""
        self.exhausted = self.exhausted or not self._answers
        return self.exhausted

    async def probe(self) -> str:
        return "written"

    async def close(self) -> None:
        return None

    def _read(self, written: WrittenAnswer, offer: Offer | None) -> ModelAnswer:
        headers = {name.lower(): str(value) for name, value in written.headers.items()}
        body = written.body.encode() if isinstance(written.body, str) else orjson.dumps(written.body)
        if self._settings.protocol == "anthropic":
            if written.sse is not None:
                return anthropic_answers.read_stream(written.sse.encode())
            return anthropic_answers.read_body(written.status, headers, body, self._clock.now())
        read_text = _text_reader(self._settings, offer)
        if written.sse is not None:
            return openai_answers.read_stream(written.sse.encode(), read_text=read_text)
        return openai_answers.read_body(written.status, headers, body, self._clock.now(), read_text)


def _text_reader(settings: ReplaySettings, offer: Offer | None) -> ReadText:
    if settings.protocol == "json_text":
        return text_reader("json", offer)
    if settings.protocol == "xml_text":
        return text_reader("xml", offer)
    return reader_for(settings.profile.dialect, offer)
