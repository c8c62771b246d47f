"""The form of one case of a replay: a line of JSON, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from config.models import ModelProfileSettings, Protocol
from services.json_values import JsonObject
from services.llm.dialects import dialect_of
from services.refs import ErrorCode, ReasonCode, Role


class BadCase(ValueError):
    """A case that cannot be replayed; says what is wrong with it."""


class _Part(BaseModel):
    """A part of a case. What is null is taken as left out, and further keys are the author's own notes."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {key: one for key, one in value.items() if one is not None} if isinstance(value, Mapping) else value


class WrittenMessage(_Part):
    """The message that is answered."""

    text: str = ""
    sender: str = "Ann"
    role: Role = Role.MEMBER
    chat: str = "replay:main:chat"
    is_group: bool = True
    addressed: bool = True


class WrittenAnswer(_Part):
    """One answer of the model as it came over the wire: a response, or a stream of events."""

    status: int = 200
    headers: Mapping[str, Any] = Field(default_factory=dict)
    body: Any = ""
    sse: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"status", "body", "sse"}:
            raise ValueError("has to have a status, a body or sse")
        return self


class ReplaySettings(_Part):
    """How the model is spoken to, and what it is offered."""

    protocol: Protocol = "openai"
    profile: ModelProfileSettings = ModelProfileSettings()
    """As in the settings; or the name of a family of models, which names its dialect where it has one."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the function that the first request asks for."""
    shortlist: int | None = Field(None, ge=0)
    """In place of `router.shortlist`, however few functions there are."""

    @field_validator("profile", mode="before")
    @classmethod
    def _named(cls, profile: object) -> object:
        if isinstance(profile, str):
            return {"dialect": dialect_of(profile)}
        if not isinstance(profile, Mapping):
            return profile
        # As everywhere in a case, further keys are the author's own notes.
        return {key: value for key, value in profile.items() if key in ModelProfileSettings.model_fields}

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _by_name(cls, choice: Any) -> Any:
        """The name alone of a function that is named as OpenAI does."""
        function = choice.get("function") if isinstance(choice, Mapping) else None
        return function.get("name") if isinstance(function, Mapping) else choice

    @field_validator("shortlist", mode="before")
    @classmethod
    def _off_is_none_at_all(cls, shortlist: Any) -> Any:
        """A switch: on as the settings say, off for everything on offer."""
        return {True: None, False: 0}[shortlist] if isinstance(shortlist, bool) else shortlist


class ExpectedCall(BaseModel):
    """A call that a handler is to receive."""

    name: str
    arguments: Mapping[str, Any]


class Expected(BaseModel):
    """What is to come out; only what is named is compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: list[ExpectedCall] | None = None
    reply: str | None = None
    reason: ReasonCode | None = None
    error: ErrorCode | None = None

    def differs_from(self, result: JsonObject) -> bool:
        """Whether anything that is named is not so in `result`."""
        wanted = self.model_dump(mode="json", include=self.model_fields_set)
        return any(_canonical(value) != _canonical(result[key]) for key, value in wanted.items())


class Case(_Part):
    """One case."""

    id: Any = None
    message: WrittenMessage = WrittenMessage()
    history: tuple[Mapping[str, Any], ...] = ()
    functions: tuple[Mapping[str, Any], ...] | None = None
    """Definitions to offer in place of the registry's functions."""
    results: Mapping[str, Any] = Field(default_factory=dict)
    """What a function of that name returns instead of being run."""
    model: tuple[WrittenAnswer, ...] = ()
    settings: ReplaySettings = ReplaySettings()
    expect: Expected = Expected()


def id_in(line: bytes) -> Any:
    """The id of the case in `line`, however bad the case; None without one."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value.get("id") if isinstance(value, dict) else None


def read_case(line: bytes) -> Case:
    """The case in `line`. Raises BadCase with all that is wrong."""
    try:
        return Case.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise BadCase(f"this is no JSON: {error}") from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        raise BadCase("; ".join(f"{'.'.join(map(str, one['loc'])) or 'case'}: {one['msg']}" for one in found)) from None


def _canonical(value: Any) -> bytes:
    """The same bytes for the same JSON: `true`, `1` and `1.0` are three values, and the order of keys is none."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
