"""Models without function calling: functions are described in the instructions, and calls are read from the text.

Spoken over the chat completions of the OpenAI API, of which only plain messages are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import orjson

from services.clock import Clock
from services.json_values import JsonObject
from services.llm.encoding import dumps
from services.llm.json_calls import JSON_CALLS
from services.llm.json_calls import write_calls as write_json
from services.llm.markup import ReadText
from services.llm.model import ModelAnswer, ModelMessage, ModelRequest, Offer
from services.llm.openai_answers import read_body
from services.llm.profile import ModelProfile
from services.llm.provider import Provider, say_hello
from services.llm.text_calls import RESULT, CallForm, reader_of
from services.llm.text_prompts import WriteCalls, functions_prompt
from services.llm.xml_calls import XML_CALLS
from services.llm.xml_calls import write_calls as write_xml

Form = Literal["json", "xml"]
_CHOICES = {"required": "Call a function now.", "none": "Call no function now."}


@dataclass(frozen=True, slots=True)
class _Wording:
    """How one form is written and read."""

    calls: CallForm
    write: WriteCalls


_WORDINGS: dict[str, _Wording] = {"json": _Wording(JSON_CALLS, write_json), "xml": _Wording(XML_CALLS, write_xml)}


def text_reader(form: Form, offer: Offer | None) -> ReadText:
    """How the text of an answer to a request with `offer` is read."""
    return reader_of(_WORDINGS[form].calls, offer)


class TextProtocol:
    """A ChatModel whose functions live in prose. Asks once; `ResilientModel` asks again."""

    def __init__(self, profile: ModelProfile, clock: Clock, form: Form) -> None:
        self.name = profile.name
        self._profile = profile
        self._clock = clock
        self._form: Form = form
        self._write = _WORDINGS[form].write
        self._provider = Provider(profile.endpoint("chat/completions"), clock)
        head = orjson.dumps({"model": profile.model, **profile.extra})
        self._head = head.removesuffix(b"}")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The model's answer. Raises ModelError as `Provider.post` and `read` do."""
        status, headers, answer = await self._provider.post(self.encode(request), request.timeout_seconds)
        return self.read(request, status, headers, answer)

    def read(self, request: ModelRequest, status: int, headers: Mapping[str, str], answer: bytes) -> ModelAnswer:
        """What the server's response to `request` says. Raises ModelError as `read_body` does."""
        return read_body(status, headers, answer, self._clock.now(), text_reader(self._form, request.offer))

    def encode(self, request: ModelRequest) -> bytes:
        """The bytes of the request's body."""
        messages = self._plain(request.messages)
        if request.offer is None or not request.offer.functions:
            return b'%b,"messages":%b}' % (self._head, dumps(messages))
        if request.tool_choice != "auto":
            only = f"Call the function {request.tool_choice} now."
            _add(messages, "user", _CHOICES.get(request.tool_choice, only))
        instructions = messages.pop(0)["content"] if messages and messages[0]["role"] == "system" else ""
        system = dumps(instructions + "\n\n").removesuffix(b'"') + self._prompt(request.offer)
        rest = dumps(messages)[1:]
        comma = b"," if messages else b""
        return b'%b,"messages":[{"role":"system","content":%b}%b%b}' % (self._head, system, comma, rest)

    async def probe(self) -> str:
        """One line that says how fast the model answered a word. Raises ModelError when it did not."""
        return await say_hello(self, self._profile.model, self._clock)

    async def close(self) -> None:
        """Close the connections; the model is not used afterwards."""
        await self._provider.close()

    def _prompt(self, offer: Offer) -> bytes:
        """The functions in words, as the end of a JSON text; made once for each Offer."""
        key = f"{self._form}_text"
        prompt = offer.encoded.get(key)
        if prompt is None:
            prompt = offer.encoded[key] = dumps(functions_prompt(offer, self._form, self._write)).removeprefix(b'"')
        return prompt

    def _plain(self, messages: Sequence[ModelMessage]) -> list[JsonObject]:
        """The conversation in words: one system message at the beginning, then user and assistant by turns, the user
        first, since many templates of chats know nothing else."""
        plain: list[JsonObject] = []
        called: dict[str, str] = {}
        faulty: set[str] = set()
        for message in messages:
            if message.role == "assistant":
                called = {call.id: call.name for call in message.calls}
                faulty = {call.id for call in message.calls if call.arguments is None}
                if not plain or plain[-1]["role"] == "system":
                    _add(plain, "user", "…")
                _add(plain, "assistant", self._said(message))
            elif message.role == "tool":
                name = escape(called.get(message.call_id) or "unknown")
                again = "\nThe block has to be exactly in the form of the samples." if message.call_id in faulty else ""
                _add(plain, "user", f'{RESULT}"{name}">{_inert(message.content)}</result>{again}')
            elif message.role == "system" and not plain:
                _add(plain, "system", message.content)
            else:
                _add(plain, "user", _inert(message.content))
        return plain

    def _said(self, message: ModelMessage) -> str:
        """What the assistant said, with its calls: as it wrote them where they could not be read."""
        readable = [(call.name, call.arguments) for call in message.calls if call.arguments is not None]
        blocks = [self._write(readable)] if readable else []
        blocks += [call.raw for call in message.calls if call.arguments is None]
        return "\n".join(part for part in [message.content, *blocks] if part)


def _inert(text: str) -> str:
    """`text` in which nobody can forge a result, or the end of one."""
    return text.replace("<result", "<\\result").replace("</result", "<\\/result")


def _add(plain: list[JsonObject], role: str, content: str) -> None:
    """Add what `role` says, to what it said last where that was the latest."""
    if plain and plain[-1]["role"] == role:
        plain[-1]["content"] += "\n" + content
    else:
        plain.append({"role": role, "content": content})
