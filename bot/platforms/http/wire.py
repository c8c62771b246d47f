"""Wire format of the HTTP platform: posted messages, errors and events."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bot.platforms.base import Outgoing
from function_calls.context import MessageContext
from function_calls.spec import Choice
from services.refs import JsonObject, Role

MAX_BODY_BYTES = 64 * 1024
MAX_TEXT_CHARS = 8000
BOT_ID_PREFIX = "bot:"
"""Prefix of the ids of the bot's messages; no other message may use it."""

_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


Body = TypeVar("Body", bound=BaseModel)


class RequestError(Exception):
    """A rejected request: HTTP status, a code for programs and a sentence for people."""

    def __init__(
        self, status: int, code: str, message: str, *, field: str = "", retry_after_seconds: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.retry_after_seconds = retry_after_seconds

    def as_json(self) -> JsonObject:
        """The body of the response: `error` with `code`, `message`, and `field` if it is known."""
        body = {"code": self.code, "message": self.message}
        return {"error": body | ({"field": self.field} if self.field else {})}


def clean_text(text: str) -> str:
    """NFC, line ends as `\\n`, without other control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable():
        text = "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs"))
    return unicodedata.normalize("NFC", text)


def clean_name(name: str) -> str:
    """A display name on one line: without control characters, direction marks and redundant spaces."""
    visible = "".join(" " if char.isspace() else char for char in name if char not in _DIRECTION_MARKS)
    return clean_text(" ".join(visible.split()))


def _an_id(value: str) -> str:
    if value != value.strip() or any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise ValueError("must not hold control characters or begin or end with a space")
    return value


Id = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_an_id)]
Name = Annotated[str, StringConstraints(max_length=80), AfterValidator(clean_name)]


class PostedSender(BaseModel):
    """The sender as posted; `Callers` decide which fields count."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id | None = None
    name: Name = ""
    role: Role = Role.MEMBER


class Posted(BaseModel):
    """The body of `POST …/messages`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id
    sender: PostedSender = PostedSender()
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), AfterValidator(clean_text)]
    kind: Literal["message", "choice"] = "message"
    mentions_bot: Annotated[bool, Field(strict=True)] = False
    mentions: Annotated[tuple[Id, ...], Field(max_length=50)] = ()
    reply_to: Id | None = None


def read_posted(body: bytes) -> Posted:
    """The message in `body`. Raises RequestError with the first invalid field."""
    posted = read_body(Posted, body)
    if posted.id.startswith(BOT_ID_PREFIX):
        raise RequestError(400, "bad_request", f"id: must not begin with {BOT_ID_PREFIX!r}", field="id")
    if posted.kind == "choice" and posted.reply_to is None:
        raise RequestError(400, "bad_request", "reply_to: a choice names the message it belongs to", field="reply_to")
    return posted


def read_body(model: type[Body], body: bytes) -> Body:
    """The JSON object in `body` as `model`. Raises RequestError with the first invalid field."""
    try:
        return model.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(400, "invalid_json", f"the body is not JSON: {error.msg}") from error
    except ValidationError as error:
        raise _refusal_of(error) from error


def _refusal_of(error: ValidationError) -> RequestError:
    fault = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in fault["loc"])
    if field == "text" and fault["type"] == "string_too_long":
        return RequestError(413, "too_large", f"text: more than {MAX_TEXT_CHARS} characters", field=field)
    where = f"{field}: " if field else ""
    return RequestError(400, "bad_request", where + fault["msg"], field=field)


def member_message_body(context: MessageContext, shown: str) -> str:
    """The event of a member's message, as JSON; `shown` is its text as written."""
    return _compact(
        {
            "type": "said",
            "id": context.key.native_id,
            "at": context.sent_at.isoformat(timespec="milliseconds"),
            "kind": context.kind.value,
            "sender": {"id": context.sender.ref.native, "name": context.sender.name, "role": context.sender.role.value},
            "text": shown,
            "mentions": [member.native for member in context.mentions],
            "reply_to": context.reply_to.native_id if context.reply_to else None,
        }
    )


def message_body(outgoing: Outgoing, at: str) -> str:
    """The event of a message of the bot, as JSON: `type`, `id`, `at`, `text`, `reply_to`, `mentions`, `choices`,
    `private_to`, and optionally `closes` and `format`."""
    more: JsonObject = {"closes": list(outgoing.closes)} if outgoing.closes else {}
    if outgoing.markdown:
        more["format"] = "markdown"
    return _compact(
        {
            "type": "message",
            "id": bot_id(outgoing.key),
            "at": at,
            "text": outgoing.text,
            "reply_to": outgoing.reply_to,
            "mentions": [member.native for member in outgoing.mentions],
            "choices": [_choice(one) for one in outgoing.choices],
            "private_to": outgoing.private_to.native if outgoing.private_to else None,
            **more,
        }
    )


def edited_body(native_id: str, outgoing: Outgoing, at: str) -> str:
    """The event of a change of the bot's message `native_id`, as JSON: `type`, `id`, `at`, and the new `text`,
    `choices` and `format`, which is absent for plain text."""
    more: JsonObject = {"format": "markdown"} if outgoing.markdown else {}
    choices = [_choice(one) for one in outgoing.choices]
    return _compact({"type": "edited", "id": native_id, "at": at, "text": outgoing.text, "choices": choices, **more})


def deleted_body(native_id: str) -> str:
    """The event of the deletion of the bot's message `native_id`, as JSON."""
    return _compact({"type": "deleted", "id": native_id})


def _choice(choice: Choice) -> JsonObject:
    stays = {"stays": True} if choice.stays else {}
    return {"label": choice.label, "value": choice.value, **stays}


def status_body(text: str) -> str:
    """The event of a status line, as JSON; an empty text clears it."""
    return _compact({"type": "status", "text": text})


def bot_id(key: str) -> str:
    """The native id of the bot's message with an idempotency key."""
    return BOT_ID_PREFIX + key


def with_cursor(body: str, cursor: int) -> str:
    """A stored event with `cursor` added in front."""
    return f'{{"cursor":"{cursor}",{body[1:]}'


def _compact(value: JsonObject) -> str:
    return orjson.dumps(value).decode()
