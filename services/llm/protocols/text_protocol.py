"""Client for models without function calling: functions are described in the prompt, calls are parsed from the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import orjson

from services.clock import Clock
from services.llm.encoding import dumps
from services.llm.model import UNSEEN, ModelAnswer, ModelMessage, ModelRequest, Offer, OfferedFunction
from services.llm.profile import ModelProfile
from services.llm.provider import Provider, say_hello
from services.llm.reading.markup import ReadText
from services.llm.reading.openai import read_body
from services.llm.text_calls import JSON_CALLS, RESULT, XML_CALLS, CallForm, reader_of
from services.llm.text_calls import write_json_calls as write_json
from services.llm.text_calls import write_xml_calls as write_xml
from services.refs import JsonObject, JsonValue

WriteCalls = Callable[[Sequence[tuple[str, Mapping[str, JsonValue]]]], str]
_MOST_DEPTH = 6

_RULES = """\
You can call functions. To do so, answer with one block in exactly the form of the samples below and nothing after it; \
put several calls into the same block. {form} You are then told the results, and answer in words.
Call only functions of this list. If you have to ask before you can tell what is wanted, call:
{insufficient}
If no function fits, just answer in words, without any block.

Functions:"""
_FORMS = {
    "json": "Write valid JSON.",
    "xml": "Write well-formed XML, with values that hold < or & in <![CDATA[ ]]>.",
}


def functions_prompt(offer: Offer, form: str, write: WriteCalls) -> str:
    """Prompt for the functions of `offer`; `form` is `json` or `xml`, and `write` renders its samples."""
    insufficient = write([("insufficient_arguments", {"question": "the question"})])
    rules = _RULES.format(form=_FORMS[form], insufficient=insufficient)
    return "\n\n".join([rules, *(_described(function, write) for function in offer.functions)])


def _described(function: OfferedFunction, write: WriteCalls) -> str:
    sample = write([(function.name, sample_arguments(function))])
    if function.system_prompt:
        prompt = function.system_prompt.replace("{schema}", sample)
        return f"### {function.name}\n{prompt}" if sample in prompt else f"### {function.name}\n{prompt}\n{sample}"
    schema = orjson.dumps(function.parameters).decode()
    return f"### {function.name}\n{function.description}\nArguments, as JSON Schema: {schema}\n{sample}"


def sample_arguments(function: OfferedFunction) -> JsonObject:
    """Sample arguments: each parameter's example or default, else a value of its type."""
    return {
        name: _sample(name, schema if isinstance(schema, dict) else {}, _MOST_DEPTH)
        for name, schema in (function.parameters.get("properties") or {}).items()
    }


def _sample(name: str, schema: JsonObject, depth: int) -> JsonValue:
    for key in ("example", "default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    union = next((schema[key] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)
    if union and isinstance(union[0], dict):
        return _sample(name, union[0], depth - 1) if depth else "…"
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    if kind == "object":
        properties = schema.get("properties") or {}
        return {one: _sample(one, sub, depth - 1) for one, sub in properties.items() if isinstance(sub, dict) and depth}
    if kind == "array":
        items = schema.get("items")
        item = _sample(name, items, depth - 1) if isinstance(items, dict) and depth else "…"
        # An object without known fields is not informative and rarely valid.
        return [] if item == {} and not schema.get("minItems") else [item]
    return {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1.5), "boolean": True}.get(
        str(kind), f"the {name}"
    )


Form = Literal["json", "xml"]
_CHOICES = {"required": "Call a function now.", "none": "Call no function now."}


@dataclass(frozen=True, slots=True)
class _Wording:
    """Parser and writer of calls in one form, `json` or `xml`."""

    calls: CallForm
    write: WriteCalls


_WORDINGS: dict[str, _Wording] = {"json": _Wording(JSON_CALLS, write_json), "xml": _Wording(XML_CALLS, write_xml)}


def text_reader(form: Form, offer: Offer | None) -> ReadText:
    """Parser of answer texts for a request with `offer`."""
    return reader_of(_WORDINGS[form].calls, offer)


class TextProtocol:
    """ChatModel with functions described in text. Does not retry; see `ResilientModel`."""

    def __init__(self, profile: ModelProfile, clock: Clock, form: Form) -> None:
        self.name = profile.name
        self._profile = profile
        self._clock = clock
        self._form: Form = form
        self._write = _WORDINGS[form].write
        self._provider = Provider(profile.endpoint("chat/completions"), clock)
        self._heads = profile.heads()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        status, headers, answer = await self._provider.post(self.encode(request), request.timeout_seconds)
        return self.read(request, status, headers, answer)

    def read(self, request: ModelRequest, status: int, headers: Mapping[str, str], answer: bytes) -> ModelAnswer:
        """Parse the server's response to `request`. Raises ModelError as `read_body` does."""
        return read_body(status, headers, answer, self._clock.now(), text_reader(self._form, request.offer))

    def encode(self, request: ModelRequest) -> bytes:
        """Encode the request body, with the functions' prompt at the end of the system message instead of `tools`."""
        messages, head = self._plain(request.messages), self._heads[request.thinks]
        if request.offer is None or not request.offer.functions:
            return b'%b,"messages":%b}' % (head, dumps(messages))
        if request.tool_choice != "auto":
            only = f"Call the function {request.tool_choice} now."
            _add(messages, "user", _CHOICES.get(request.tool_choice, only))
        instructions = messages.pop(0)["content"] if messages and messages[0]["role"] == "system" else ""
        system = dumps(instructions + "\n\n").removesuffix(b'"') + self._prompt(request.offer)
        rest = dumps(messages)[1:]
        comma = b"," if messages else b""
        return b'%b,"messages":[{"role":"system","content":%b}%b%b}' % (head, system, comma, rest)

    async def probe(self) -> str:
        return await say_hello(self, self._profile.model, self._clock)

    async def close(self) -> None:
        await self._provider.close()

    def _prompt(self, offer: Offer) -> bytes:
        """Functions' prompt as the end of a JSON string, cached per offer."""
        key = f"{self._form}_text"
        prompt = offer.encoded.get(key)
        if prompt is None:
            prompt = offer.encoded[key] = dumps(functions_prompt(offer, self._form, self._write)).removeprefix(b'"')
        return prompt

    def _plain(self, messages: Sequence[ModelMessage]) -> list[JsonObject]:
        """Conversation as text, with calls and results written into it: one leading system message, then alternating
        user and assistant messages, the user first, because many chat templates support nothing else."""
        plain: list[JsonObject] = []
        called: dict[str, str] = {}
        faulty: set[str] = set()
        for message in messages:
            if message.role == "assistant":
                called = {call.id: call.name for call in message.calls}
                faulty = {call.id for call in message.calls if call.arguments is None}
                if not plain or plain[-1]["role"] == "system":
                    _add(plain, "user", "…")
                _add(plain, "assistant", self._assistant_text(message))
            elif message.role == "tool":
                name = escape(called.get(message.call_id) or "unknown")
                reminder = (
                    "\nThe block has to be exactly in the form of the samples." if message.call_id in faulty else ""
                )
                _add(plain, "user", f'{RESULT}"{name}">{_inert(message.content)}</result>{reminder}')
            elif message.role == "system" and not plain:
                _add(plain, "system", message.content)
            else:
                _add(plain, "user", _inert(message.content) + (UNSEEN if message.images else ""))
        return plain

    def _assistant_text(self, message: ModelMessage) -> str:
        """The assistant's text with its calls; unreadable calls as the model wrote them."""
        readable = [(call.name, call.arguments) for call in message.calls if call.arguments is not None]
        blocks = [self._write(readable)] if readable else []
        blocks += [call.raw for call in message.calls if call.arguments is None]
        return "\n".join(part for part in [message.content, *blocks] if part)


def _inert(text: str) -> str:
    """Escape `text` so that it cannot forge a function result or its end."""
    return text.replace("<result", "<\\result").replace("</result", "<\\/result")


def _add(plain: list[JsonObject], role: str, content: str) -> None:
    """Append a message, merged with the last one if the role is the same."""
    if plain and plain[-1]["role"] == role:
        plain[-1]["content"] += "\n" + content
    else:
        plain.append({"role": role, "content": content})
