"""Questions of MCP servers, asked in the chat one field at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

from config.texts import Phrases
from function_calls.loading.foreign_text import capped, cleaned_text
from function_calls.spec import Choice, FunctionResult
from services.mcp.tools import Questions, Replies
from services.refs import JsonObject, JsonValue

_MESSAGE_CHARS = 1000
_FIELD_CHARS = 300
_URL_CHARS = 2000
_MOST_FIELDS = 20
_MOST_CHOICES = 10
_MOST_OPTIONS = 100
_MOST_TRIES = 3
_FORMATS: Mapping[str, Callable[[str], object]] = {
    "email": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+").fullmatch,
    "uri": re.compile(r"[a-z][a-z0-9+.-]*:\S+", re.IGNORECASE).fullmatch,
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
}
_HINTS = {"date": "2026-07-28", "date-time": "2026-07-28T09:30:00Z", "email": "ann@example.org"}


class Questionnaire:
    """Questions of one call and the answers so far, as plain data that a question of the bot stores."""

    def __init__(self, state: JsonObject, server: str, texts: Phrases) -> None:
        """`state`: of `started`, or that of `FunctionResult.ask` before."""
        self._state = deepcopy(state)
        self._server = server
        self._texts = texts

    @staticmethod
    def started(questions: Questions) -> JsonObject:
        """State before the first answer."""
        requests = [[key, dict(one)] for key, one in questions.requests.items()]
        return {"token": questions.token, "requests": requests, "answers": {}, "content": {}, "skipped": [], "tries": 0}

    @property
    def replies(self) -> Replies:
        """The answers; requests without one are cancelled."""
        answers: dict[str, JsonObject] = {key: {"action": "cancel"} for key, _ in self._state["requests"]}
        return Replies(self._state["token"], {**answers, **self._state["answers"]})

    def take(self, answer: str) -> None:
        """Record the member's answer to the current question. The third invalid one cancels the request."""
        state, request = self._state, self._request
        if request is None:
            return
        if answer == self._texts.say("foreign_tools.decline"):
            self._end("decline")
            return
        field = self._field(request)
        if field is None:
            self._end("accept")
            return
        if answer == self._texts.say("foreign_tools.skip") and not field.is_required:
            default = field.schema.get("default")
            state["skipped"].append(field.name)
            if default is not None:
                state["content"][field.name] = default
        else:
            try:
                state["content"][field.name] = field.parsed(answer, self._texts)
            except ValueError:
                state["tries"] += 1
                if state["tries"] >= _MOST_TRIES:
                    self._end("cancel")
                return
        state["tries"] = 0
        if self._field(request) is None:
            self._end("accept")

    def next(self) -> FunctionResult | None:
        """The question to ask; None if all requests have answers."""
        while (request := self._request) is not None:
            if request.get("mode") == "url":
                if urlsplit(_text(request.get("url"))).scheme == "https":
                    return self._ask_to_open(request)
                self._end("decline")
            elif _is_askable(request):
                return self._ask(request)
            else:
                self._end("cancel")
        return None

    def _ask_to_open(self, request: JsonObject) -> FunctionResult:
        url = cleaned_text(_text(request["url"]), lines=False)[:_URL_CHARS]
        text = self._texts.say("foreign_tools.asks_to_open", host=urlsplit(url).hostname, url=url)
        done = self._texts.say("foreign_tools.opened")
        return self._question(f"{self._introduction(request)}\n{text}", (Choice(done, done), self._decline))

    def _ask(self, request: JsonObject) -> FunctionResult:
        field, texts, state = self._field(request), self._texts, self._state
        if field is None:
            return self._question(self._introduction(request), (*_yes_or_no(texts)[:1], self._decline))
        is_first = not state["content"] and not state["skipped"]
        lines = [self._introduction(request)] if is_first and not state["tries"] else []
        lines += [texts.say("foreign_tools.invalid")] if state["tries"] else []
        lines.append(field.text(texts))
        skip = texts.say("foreign_tools.skip")
        choices = field.choices(texts)
        more = () if field.is_required else (Choice(skip, skip),)
        return self._question("\n".join(lines), (*choices, *more, self._decline), only_choices=bool(choices))

    def _question(self, text: str, choices: tuple[Choice, ...], *, only_choices: bool = True) -> FunctionResult:
        return FunctionResult.ask(text, resume=self._state, choices=choices, only_choices=only_choices)

    def _introduction(self, request: JsonObject) -> str:
        message = capped(_text(request.get("message")), _MESSAGE_CHARS)
        return self._texts.say("foreign_tools.asks", server=self._server, message=message)

    @property
    def _decline(self) -> Choice:
        text = self._texts.say("foreign_tools.decline")
        return Choice(text, text)

    @property
    def _request(self) -> JsonObject | None:
        """The first request without an answer."""
        return next((one for key, one in self._state["requests"] if key not in self._state["answers"]), None)

    def _field(self, request: JsonObject) -> _Field | None:
        """The first field without a value; None for a request without further fields."""
        required = (request.get("requestedSchema") or {}).get("required") or ()
        for name, schema in _properties(request).items():
            if name not in self._state["content"] and name not in self._state["skipped"]:
                return _Field(name, schema, name in required)
        return None

    def _end(self, action: str) -> None:
        """Answer the current request."""
        state = self._state
        key = next(key for key, _ in state["requests"] if key not in state["answers"])
        content = {"content": state["content"]} if action == "accept" and state["content"] else {}
        state["answers"][key] = {"action": action, **content}
        state.update(content={}, skipped=[], tries=0)


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a form."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool

    def text(self, texts: Phrases) -> str:
        """The field's title and description, and what to write."""
        title = capped(_text(self.schema.get("title")) or self.name, _FIELD_CHARS)
        about = capped(_text(self.schema.get("description")), _FIELD_CHARS)
        hint = _HINTS.get(_text(self.schema.get("format")), "")
        parts = [f"{title}: {about}" if about else title]
        parts += [texts.say("foreign_tools.for_example", example=hint)] if hint else []
        options = list(self._options())
        if options and not self.choices(texts):
            key = "foreign_tools.several_of" if self.schema.get("type") == "array" else "foreign_tools.one_of"
            parts.append(texts.say(key, options=", ".join(options)))
        return "\n".join(parts)

    def choices(self, texts: Phrases) -> tuple[Choice, ...]:
        """The possible answers, if there are few of them."""
        if self.schema.get("type") == "boolean":
            return _yes_or_no(texts)
        options = self._options()
        is_short = self.schema.get("type") != "array" and len(options) <= _MOST_CHOICES
        return tuple(Choice(label, label) for label in options) if is_short else ()

    def parsed(self, answer: str, texts: Phrases) -> JsonValue:
        """The value that the answer means. Raises ValueError."""
        options = self._options()
        match self.schema.get("type"):
            case "boolean":
                return [choice.value for choice in _yes_or_no(texts)].index(answer) == 0
            case "array":
                chosen = [_option(part, options) for part in re.split("[,，、]", answer)]
                return _within(chosen, len(chosen), self.schema, "Items")
            case "integer":
                return _within(int(answer), int(answer), self.schema, "imum")
            case "number":
                return _within(float(answer), float(answer), self.schema, "imum")
        if options:
            return _option(answer, options)
        check = _FORMATS.get(_text(self.schema.get("format")))
        if check is not None and not check(answer):
            raise ValueError(answer)
        return _within(answer, len(answer), self.schema, "Length")

    def _options(self) -> dict[str, str]:
        """Values of an enum by their labels."""
        schema = self.schema.get("items") if self.schema.get("type") == "array" else self.schema
        if not isinstance(schema, Mapping):
            return {}
        titled = schema.get("oneOf") or schema.get("anyOf")
        if isinstance(titled, list):
            pairs = [(one.get("title"), one.get("const")) for one in titled if isinstance(one, Mapping)]
        else:
            values = schema.get("enum") or []
            pairs = list(zip(schema.get("enumNames") or values, values, strict=False))
        return {
            capped(label, _FIELD_CHARS): value
            for label, value in pairs[:_MOST_OPTIONS]
            if isinstance(label, str) and isinstance(value, str)
        }


def _option(answer: str, options: Mapping[str, str]) -> str:
    """The value with that label or value. Raises ValueError."""
    wanted = answer.strip().casefold()
    for label, value in options.items():
        if wanted in (label.casefold(), value.casefold()):
            return value
    raise ValueError(answer)


def _within(value: JsonValue, size: float, schema: Mapping[str, Any], suffix: str) -> JsonValue:
    """`value`, if `size` is within `min…` and `max…` of the schema. Raises ValueError."""
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    # Comparisons are false for NaN.
    is_within = (least is None or size >= least) and (most is None or size <= most) and abs(size) < float("inf")
    if not is_within:
        raise ValueError(value)
    return value


def _properties(request: JsonObject) -> Mapping[str, Any]:
    schema = request.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _is_askable(request: JsonObject) -> bool:
    """Whether the form is short and has only fields that the protocol allows."""
    fields = _properties(request).values()
    types = ("string", "number", "integer", "boolean", "array")
    return len(fields) <= _MOST_FIELDS and all(
        isinstance(one, Mapping) and one.get("type", "string") in types for one in fields
    )


def _yes_or_no(texts: Phrases) -> tuple[Choice, ...]:
    return tuple(Choice(texts.say(f"questions.{one}_label"), texts.words(f"answers.{one}")[0]) for one in ("yes", "no"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
